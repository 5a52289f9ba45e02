//! What is shown and reported of those who wait.

use super::*;

#[tokio::test]
async fn what_waits_is_reported_again_while_it_asks() {
    let desk = Desk::open(false);
    for _ in 0..7 {
        desk.ask(Some("shop"), false, "OutsideWindow").await;
        desk.ask(Some("till"), true, "InsideWindow").await;
        desk.pass(10);
    }
    let events = desk.events();
    let waits = (events.iter()).filter(|event| event.told.reason == "Blocked");
    let since = |event: &Queued| {
        let more = event.told.more.as_ref().unwrap();
        assert_eq!(more.labels["sluice.dev/decision"], "Blocked");
        assert_eq!(more.annotations["sluice.dev/subject-name"], "shop");
        assert_eq!(more.annotations["sluice.dev/decided-by"], "apps/production");
        more.annotations["sluice.dev/since"].clone()
    };
    assert_eq!(waits.map(since).collect::<Vec<_>>(), [NOON; 3]);
    assert_eq!(events.len(), 4, "of what goes on once");
    // Every 10 minutes is more seldom than equal answers are folded.
    assert_eq!(desk.lines().await.len(), 14);
}

#[tokio::test]
async fn what_waits_is_shown_until_it_goes_on_or_is_forgotten() {
    let desk = Desk::open(false);
    let waiting = || {
        let all = desk.decisions.waiting().into_iter();
        all.map(|it| (it.name, it.waits)).collect::<Vec<_>>()
    };
    desk.ask(Some("shop"), false, "OutsideWindow").await;
    desk.ask(Some("till"), false, "OutsideWindow").await;
    desk.ask(None, false, "OutsideWindow").await;
    desk.ask(Some("till"), true, "InsideWindow").await;
    let shown = |name: &str, waits| (name.to_owned(), waits);
    assert_eq!(waiting(), [shown("shop", true), shown("till", false)]);
    desk.pass(59);
    desk.ask(Some("shop"), false, "OutsideWindow").await;
    desk.pass(1);
    assert_eq!(waiting(), [shown("shop", true)]);
    desk.pass(59);
    assert_eq!(waiting(), []);
}

/// A gated source that asks no more, since its source is back at what is out or since it is gone, waits
/// no more.
#[tokio::test]
async fn a_gated_source_waits_while_something_is_pending() {
    let desk = Desk::open(false);
    let spec = |strategy: &str| {
        serde_json::json!({
            "sourceRef": {"kind": "GitRepository", "name": "upstream"},
            "gates": {"refs": [{"name": "production"}]}, "strategy": strategy,
        })
    };
    let is = |name: &str, version: &str, strategy: &str, status: serde_json::Value| {
        let metadata = serde_json::json!({
            "namespace": "apps", "name": name, "resourceVersion": version,
        });
        let spec = spec(strategy);
        let object = serde_json::json!({"metadata": metadata, "spec": spec, "status": status});
        let object: sluice_crds::GatedSource = serde_json::from_value(object).unwrap();
        desk.decisions.world.gated_sources.put(Arc::new(object));
    };
    let waiting = || {
        let all = desk.decisions.waiting().into_iter();
        all.map(|it| (it.name, it.waits)).collect::<Vec<_>>()
    };
    let pending = serde_json::json!({"pending": {"revision": "r", "since": NOON}});
    is("app", "1", "pin", pending);
    is("still", "1", "suspend", serde_json::json!({}));
    for name in ["app", "gone", "still"] {
        let mut decision = decision(desk.clock.now(), false, "OutsideWindow");
        decision.subject.kind = "GatedSource".to_owned();
        decision.subject.name = Some(name.to_owned());
        desk.decisions.tell(decision, Asker::Controller).await;
    }
    let shown = |name: &str, waits| (name.to_owned(), waits);
    assert_eq!(waiting(), [shown("app", true), shown("still", true)]);
    is("app", "2", "pin", serde_json::json!({}));
    assert_eq!(waiting(), [shown("app", false), shown("still", true)]);
}

/// What the controller asks for itself waits no longer than it is there.
#[tokio::test]
async fn what_is_deleted_waits_no_more() {
    let desk = Desk::open(false);
    let metadata = serde_json::json!({"namespace": "apps", "name": "here", "resourceVersion": "1"});
    let object = serde_json::json!({
        "metadata": metadata,
        "spec": {"appRef": {"kind": "HelmRelease", "name": "app"}, "environments": []},
    });
    let pipeline: sluice_crds::Pipeline = serde_json::from_value(object).unwrap();
    desk.decisions.world.pipelines.put(Arc::new(pipeline));
    let all = [
        ("Pipeline", "here"),
        ("Pipeline", "gone"),
        ("PromotionStrategy", "gone"),
        ("RevertCommit", "gone"),
        ("Rollout", "gone"),
    ];
    for (kind, name) in all {
        let mut decision = decision(desk.clock.now(), false, "OutsideWindow");
        decision.subject.kind = kind.to_owned();
        decision.subject.name = Some(name.to_owned());
        desk.decisions.tell(decision, Asker::Controller).await;
    }
    let waiting = desk.decisions.waiting();
    let names = waiting
        .iter()
        .map(|it| (it.kind.as_str(), it.name.as_str()));
    assert_eq!(names.collect::<Vec<_>>(), [("Pipeline", "here")]);
}

#[tokio::test]
async fn it_waits_while_one_of_its_questions_is_answered_no() {
    let desk = Desk::open(false);
    let ask = async |action: &str, revision: &str, allowed| {
        let mut decision = decision(desk.clock.now(), allowed, "r");
        decision.subject.action = action.to_owned();
        decision.subject.revision = Some(revision.to_owned());
        desk.tell(decision).await;
    };
    let waits = || desk.decisions.waiting()[0].waits;
    ask("promote", "v1", false).await;
    ask("rollback", "v1", true).await;
    assert!(waits());
    // It wants to promote another one by now.
    ask("promote", "v2", true).await;
    assert!(!waits());
    assert_eq!(desk.decisions.waiting().len(), 1);
}
