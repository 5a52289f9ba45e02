//! What people ask of it, story by story.

use super::*;

#[test]
fn what_is_pending_is_held_and_goes_out_when_the_gate_opens() {
    let mut play = Play::new(&json!({}));
    play.settle();
    assert_eq!(
        (play.admitted(), play.pending()),
        (None, Some(revision('a').as_str()))
    );
    assert!(play.child.is_none());
    assert_eq!(play.says("Ready").unwrap(), "True NothingAdmitted");
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    assert!(
        play.message("Blocked").contains("freeze"),
        "{}",
        play.message("Blocked")
    );
    play.open();
    play.settle();
    assert_eq!(
        (play.admitted(), play.pending()),
        (Some(revision('a').as_str()), None)
    );
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    assert_eq!(play.child("/ref/branch").unwrap(), "main");
    assert_eq!(play.child("/interval").unwrap(), "12h");
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert_eq!(play.says("Blocked").unwrap(), "False NothingPending");
    assert_eq!(play.says("Recoverable").unwrap(), "True Pinned");
}

#[test]
fn a_revision_costs_few_writes_and_no_change_costs_none() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.writes = (0, 0);
    play.push('b');
    play.settle();
    // Admitted, then serving; and the child once.
    assert_eq!(play.writes, (2, 1));
    for _ in 0..5 {
        play.pass(60);
        play.settle();
    }
    assert_eq!(play.writes, (2, 1));
}

#[test]
fn a_replica_that_is_killed_after_the_status_makes_the_child_later_without_asking() {
    let mut play = Play::new(&json!({}));
    play.open();
    let report = play.look();
    play.write_status(&report);
    let asked = play.told.len();
    play.close();
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    assert_eq!(play.told.len(), asked);
}

#[test]
fn an_approved_revision_goes_out_although_a_newer_one_waits() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    for digit in ['b', 'c'] {
        play.push(digit);
        play.settle();
    }
    assert_eq!(play.ours().candidates.len(), 2);
    play.keep(&format!("{{revisions: {{allow: ['{}']}}}}", commit('b')));
    play.settle();
    assert_eq!(play.admitted(), Some(revision('b').as_str()));
    assert_eq!(play.pending(), Some(revision('c').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    // Never back to what is older.
    play.keep(&format!("{{revisions: {{allow: ['{}']}}}}", commit('a')));
    play.settle();
    assert_eq!(play.admitted(), Some(revision('b').as_str()));
}

#[test]
fn an_edit_of_the_child_is_taken_back() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    let child = play.child.as_mut().unwrap();
    child
        .spec
        .insert("ref".to_owned(), json!({ "branch": "main" }));
    child.spec.insert("suspend".to_owned(), json!(true));
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    assert!(!play.child.as_ref().unwrap().spec.contains_key("suspend"));
}

#[test]
fn access_follows_the_source_at_once_and_content_waits() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    let source = play.upstream.as_mut().unwrap();
    source
        .spec
        .insert("secretRef".to_owned(), json!({ "name": "two" }));
    source.spec.insert("ignore".to_owned(), json!("/docs"));
    play.settle();
    assert_eq!(play.child("/secretRef/name").unwrap(), "two");
    assert_eq!(play.child("/ignore"), None);
    // The same commit with other content is another candidate.
    assert_eq!(play.pending(), Some(revision('a').as_str()));
    play.open();
    play.settle();
    assert_eq!(play.child("/ignore").unwrap(), "/docs");
    assert_eq!(play.pending(), None);
}

#[test]
fn a_lost_status_is_read_back_from_the_child() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    play.push('b');
    play.object.status = None;
    play.settle();
    let admitted = play.ours().admitted.clone().unwrap();
    assert_eq!(
        (admitted.origin, admitted.revision.as_str()),
        (Origin::Adopted, &*revision('a'))
    );
    assert_eq!(play.pending(), Some(revision('b').as_str()));
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
}

/// Repositories whose commits have 64 digits.
#[test]
fn a_commit_of_sha256_is_read_back_from_the_child_as_one() {
    let mut play = Play::new(&json!({}));
    let shown = format!("main@sha256:{}", "a".repeat(64));
    fetched(play.upstream.as_mut().unwrap(), &shown);
    play.open();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    play.close();
    play.object.status = None;
    play.settle();
    let admitted = play.ours().admitted.clone().unwrap();
    assert_eq!(
        (admitted.origin, admitted.revision),
        (Origin::Adopted, shown)
    );
    assert_eq!(play.pending(), None);
}

#[test]
fn what_somebody_else_made_is_never_touched() {
    let mut play = Play::new(&json!({}));
    let theirs = git(
        "app",
        &json!({ "url": "https://git.example.com/theirs" }),
        &revision('f'),
    );
    play.child = Some(theirs.clone());
    play.open();
    play.settle();
    assert_eq!(play.child, Some(theirs));
    assert_eq!(play.says("Stalled").unwrap(), "True TargetTaken");
    assert_eq!(play.says("Ready").unwrap(), "False TargetTaken");
    // The gate is open, and nothing goes out: nobody would serve it.
    assert_eq!((play.admitted(), play.says("Recoverable")), (None, None));
    assert_eq!(play.says("Blocked").unwrap(), "True TargetTaken");
    assert_eq!(play.pending(), Some(revision('a').as_str()));
    // Who deploys it is named.
    play.consumers = vec![(ConsumerKind::Kustomization, kustomization("app", "app"))];
    play.settle();
    assert_eq!(play.says("Bypassed").unwrap(), "True TargetTaken");
    let said = play.message("Bypassed");
    assert!(said.contains("Kustomization apps/app"), "{said}");
    play.child = None;
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Bypassed"), None);
}

#[test]
fn somebody_without_the_artifact_has_the_child_fetched_once() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let mut app = kustomization("app", "app");
    app.status.conditions =
        vec![serde_json::from_value(condition("Ready", "False", "ArtifactFailed", None)).unwrap()];
    play.consumers = vec![(ConsumerKind::Kustomization, app)];
    play.writes = (0, 0);
    play.settle();
    let annotations = play
        .child
        .as_ref()
        .unwrap()
        .metadata
        .annotations
        .clone()
        .unwrap();
    assert_eq!(
        annotations[crate::verdict::status::REQUESTED_AT],
        "missing-2026-11-20T12:00:00Z-2026-11-20T12:00:00Z"
    );
    assert_eq!(play.writes.1, 1);
}

#[test]
fn a_request_is_handed_on_to_the_child() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let annotations = play.object.metadata.annotations.get_or_insert_default();
    annotations.insert(
        crate::verdict::status::REQUESTED_AT.to_owned(),
        "now".to_owned(),
    );
    play.writes = (0, 0);
    play.settle();
    assert_eq!(play.writes, (1, 1));
    assert_eq!(
        play.ours().last_handled_reconcile_at.as_deref(),
        Some("now")
    );
    let annotations = play.child.unwrap().metadata.annotations.unwrap();
    assert_eq!(annotations[crate::verdict::status::REQUESTED_AT], "now");
}

#[test]
fn what_runs_already_is_admitted_without_asking() {
    let baseline = json!({ "from": { "kind": "Kustomization", "name": "app" } });
    let mut play = Play::new(&json!({ "baseline": baseline }));
    play.push('b');
    let mut app = kustomization("app", "upstream");
    app.status.last_applied_revision = Some(revision('a'));
    play.consumers = vec![(ConsumerKind::Kustomization, app)];
    play.settle();
    let admitted = play.ours().admitted.clone().unwrap();
    assert_eq!(
        (admitted.origin, admitted.revision.as_str()),
        (Origin::Baseline, &*revision('a'))
    );
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    assert_eq!(play.pending(), Some(revision('b').as_str()));
    assert!(play.told[0].allowed && play.told[0].checked.is_empty());
    // And once only.
    play.push('c');
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

#[test]
fn a_baseline_of_somebody_else_is_refused() {
    let baseline = json!({ "from": { "kind": "Kustomization", "name": "app" } });
    let mut play = Play::new(&json!({ "baseline": baseline }));
    let mut app = kustomization("app", "something");
    app.status.last_applied_revision = Some(revision('a'));
    play.consumers = vec![(ConsumerKind::Kustomization, app)];
    play.open();
    play.settle();
    assert_eq!(play.admitted(), None);
    assert_eq!(play.says("Stalled").unwrap(), "True BaselineMismatch");
}

/// A chart of a registry is pinned by its digest, which the HelmRelease's history has.
#[test]
fn the_baseline_of_a_chart_in_a_registry_is_the_digest_that_runs() {
    let source = json!({ "kind": "OCIRepository", "name": "upstream" });
    let baseline = json!({ "from": { "kind": "HelmRelease", "name": "app" } });
    let mut play = Play::new(&json!({ "sourceRef": source, "baseline": baseline }));
    play.kind = SourceKind::OCIRepository;
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let spec = json!({ "url": "oci://r", "ref": { "semver": "1.x" } });
    play.upstream = Some(git("upstream", &spec, &format!("1.1.0@{}", digest("2"))));
    let release = flux(json!({
        "metadata": { "name": "app", "namespace": "apps" },
        "spec": { "chartRef": source },
        "status": { "history": [
            { "chartVersion": "1.1.0+222222222222", "ociDigest": digest("2"), "status": "failed" },
            { "chartVersion": "1.0.0+111111111111", "ociDigest": digest("1"), "status": "deployed" },
        ]},
    }));
    play.consumers = vec![(ConsumerKind::HelmRelease, release)];
    play.settle();
    assert_eq!(play.admitted(), Some(digest("1").as_str()));
    assert_eq!(play.child("/ref/digest"), Some(digest("1")));
}

/// With each commit source-controller says for a moment that it is at work.
#[test]
fn a_source_at_work_is_no_news_for_one_that_has_something_out() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.writes = (0, 0);
    let work = |play: &mut Play, status: &str, generation: i64| {
        let source = play.upstream.as_mut().unwrap();
        source.metadata.generation = Some(generation);
        let ready = condition("Ready", status, "Progressing", Some(1));
        source.status.conditions = vec![serde_json::from_value(ready).unwrap()];
        play.settle();
    };
    work(&mut play, "Unknown", 1);
    work(&mut play, "True", 2);
    assert_eq!(play.writes, (0, 0));
    // A suspended source does not finish by itself.
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert("suspend".to_owned(), true.into());
    play.settle();
    let said = "nothing newer is seen: the GitRepository upstream is suspended";
    assert!(play.message("Ready").contains(said));
    // And a GatedSource that has nothing out reports what it waits for.
    play = Play::new(&json!({}));
    work(&mut play, "True", 2);
    assert_eq!(
        play.message("Ready"),
        "the GitRepository upstream is being fetched again"
    );
}

/// The source leaves its shard, and the child with it.
#[test]
fn a_child_is_fetched_by_the_one_who_fetches_its_source() {
    let mut play = Play::new(&json!({}));
    let shard = "sharding.fluxcd.io/key".to_owned();
    let labels = |play: &Play| play.child.as_ref().unwrap().metadata.labels.clone();
    let label = [(shard.clone(), "one".to_owned())];
    play.upstream.as_mut().unwrap().metadata.labels = Some(label.clone().into());
    play.open();
    play.settle();
    assert_eq!(labels(&play), Some(label.into()));
    let theirs = play.child.as_mut().unwrap().metadata.labels.as_mut();
    theirs.unwrap().insert("team".into(), "web".into());
    play.upstream.as_mut().unwrap().metadata.labels = None;
    play.settle();
    assert_eq!(labels(&play), Some([("team".into(), "web".into())].into()));
}

/// A request that was handed on while an artifact was lost is not handed on again after that.
#[test]
fn a_request_is_handed_on_once() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let asked = |play: &Play| {
        let annotations = play.child.as_ref()?.metadata.annotations.as_ref()?;
        annotations.get("reconcile.fluxcd.io/requestedAt").cloned()
    };
    let ask = |play: &mut Play, at: &str| {
        let annotation = ("reconcile.fluxcd.io/requestedAt".to_owned(), at.to_owned());
        play.object.metadata.annotations = Some([annotation].into());
        play.settle();
    };
    let app = |ready: &str| {
        let mut app = kustomization("app", "app");
        let ready = condition("Ready", ready, "ArtifactFailed", Some(1));
        app.status.conditions = vec![serde_json::from_value(ready).unwrap()];
        vec![(ConsumerKind::Kustomization, app)]
    };
    ask(&mut play, "one");
    assert_eq!(asked(&play).as_deref(), Some("one"));
    play.consumers = app("False");
    play.settle();
    let missing = asked(&play).unwrap();
    assert!(missing.starts_with("one/missing-2026"), "{missing}");
    ask(&mut play, "two");
    let missing = asked(&play).unwrap();
    assert!(missing.starts_with("two/missing-2026"), "{missing}");
    play.consumers = app("True");
    play.settle();
    assert_eq!(asked(&play), Some(missing));
    ask(&mut play, "three");
    assert_eq!(asked(&play).as_deref(), Some("three"));
}

pub(super) fn kustomization(name: &str, source: &str) -> FluxObject {
    flux(json!({
        "metadata": { "name": name, "namespace": "apps" },
        "spec": { "sourceRef": { "kind": "GitRepository", "name": source } },
    }))
}

#[test]
fn anyone_who_goes_past_the_gates_is_named() {
    let mut play = Play::new(&json!({}));
    play.consumers = vec![
        (ConsumerKind::Kustomization, kustomization("app", "app")),
        (
            ConsumerKind::Kustomization,
            kustomization("sly", "upstream"),
        ),
    ];
    play.settle();
    assert_eq!(play.says("Bypassed").unwrap(), "True UpstreamUsed");
    assert!(play.message("Bypassed").contains("Kustomization apps/sly"));
    assert!(!play.message("Bypassed").contains("apps/app"));
    play.consumers.pop();
    play.settle();
    assert_eq!(play.says("Bypassed"), None);
}

#[test]
fn a_gate_that_comes_by_the_way_that_it_closes_is_told() {
    let mut play = Play::new(&json!({}));
    play.consumers = vec![(ConsumerKind::Kustomization, kustomization("app", "app"))];
    play.carried = vec![Carried {
        what: "Gate apps/production".to_owned(),
        by: ConsumerKind::Kustomization,
        namespace: "apps".to_owned(),
        name: "app".to_owned(),
    }];
    play.settle();
    assert_eq!(
        play.says("SelfGated").unwrap(),
        "True DeliveredThroughItself"
    );
    play.consumers = vec![(ConsumerKind::Kustomization, kustomization("app", "another"))];
    play.settle();
    assert_eq!(play.says("SelfGated"), None);
}
