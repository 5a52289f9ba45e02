//! Who stands in the way, and what people are told to do.

use std::sync::Arc;

use rstest::rstest;
use sluice_crds::gated_source::ConsumerKind;

use super::super::claim::Claim;
use super::given::{Applier, Autoscaler};
use super::*;

mod flux;

fn held(play: &Play) -> (String, Option<String>, String) {
    let held = play
        .status()
        .held
        .unwrap_or_else(|| panic!("{}", play.state()));
    (held.reason, held.by, held.message)
}

fn half() -> Play {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play
}

fn hpa(target: &str) -> Autoscaler {
    Autoscaler {
        name: "hpa".into(),
        kind: "Deployment".into(),
        target: target.into(),
    }
}

#[test]
fn an_autoscaler_holds_at_the_start_and_midway() {
    for target in ["web-v1", "web-v2"] {
        let mut play = pair(&json!({}));
        play.cluster.autoscalers.push(hpa(target));
        play.run();
        let (reason, by, message) = held(&play);
        assert_eq!(reason, "Autoscaler");
        assert_eq!(by.as_deref(), Some("HorizontalPodAutoscaler hpa"));
        assert!(
            message.contains(&format!("scales Deployment {target}; delete it")),
            "{message}"
        );
        assert_eq!(play.ready(), ("False".into(), "Autoscaler".into()));
        assert!(find(&play.status().conditions, "Stalled").is_some());
        rests(&mut play);
        play.cluster.autoscalers.clear();
        play.run();
        assert_eq!(play.state(), "rolloutSucceed");
    }
    let mut play = half();
    play.cluster.autoscalers.push(hpa("web-v1"));
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(held(&play).0, "Autoscaler");
    assert_eq!(play.present(), (5, 5));
}

#[test]
fn an_autoscaler_of_something_else_holds_nothing() {
    let mut play = pair(&json!({}));
    play.cluster.autoscalers.push(hpa("web-v3"));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn another_rollout_has_the_workload() {
    let play = half();
    let claim = play.cluster.workloads[&v1()]["metadata"]["annotations"].clone();
    let mut other = pair(&json!({}));
    other.cluster.rollout.as_mut().unwrap().metadata.uid = Some("r-2".into());
    other.cluster.workloads.get_mut(&v1()).unwrap()["metadata"]["annotations"] = claim;
    other.cluster.others.insert("r-1".into(), "first".into());
    other.run();
    let (reason, by, message) = held(&other);
    assert_eq!(
        (reason.as_str(), by.as_deref()),
        ("ClaimedBy", Some("Rollout first"))
    );
    assert!(message.contains("let that end, or delete it"), "{message}");
    // Nobody has that UID any more: it is taken over.
    other.cluster.others.clear();
    other.run();
    assert_eq!(other.state(), "rolloutSucceed");
}

#[rstest]
#[case::under_another_name(v2(), "shop")]
#[case::from_another_namespace(v1(), "prod")]
fn a_copy_of_a_workload_that_another_rollout_has_is_free(#[case] of: Name, #[case] from: &str) {
    let claim = Claim::of(&half().cluster.workloads[&v1()]).unwrap();
    let workload = claim.workload.replace("shop", from);
    let mut copied = pair(&json!({}));
    copied.cluster.rollout.as_mut().unwrap().metadata.uid = Some("r-2".into());
    let copy = copied.cluster.workloads.get_mut(&of).unwrap();
    copy["metadata"]["annotations"] = json!({ marks::CLAIM: Claim { workload, ..claim }.text() });
    copied.cluster.others.insert("r-1".into(), "first".into());
    copied.run();
    assert_eq!(copied.state(), "rolloutSucceed");
}

#[test]
fn what_somebody_else_has_written_holds_and_is_not_written_again() {
    let mut play = half();
    play.cluster
        .foreign(&v2(), "/spec/replicas", json!(7), "kubectl-edit");
    play.cluster.settle();
    play.run();
    let (reason, by, message) = held(&play);
    assert_eq!(
        (reason.as_str(), by.as_deref()),
        ("FieldOverwritten", Some("kubectl-edit"))
    );
    assert_eq!(
        message,
        "kubectl-edit has set the replicas of Deployment web-v2 to 7, and the rollout has written 5; bring that back, or begin another run by sluice.dev/retry"
    );
    let writes = play.log.len();
    rests(&mut play);
    assert_eq!(play.log.len(), writes);
    // It is ours again.
    play.cluster
        .foreign(&v2(), "/spec/replicas", json!(5), "kubectl-edit");
    play.cluster.settle();
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    // Or somebody asks to go on from there.
    play.cluster
        .foreign(&v1(), "/spec/replicas", json!(8), "kubectl-edit");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.cluster.settle();
    play.run();
    assert_eq!(held(&play).0, "FieldOverwritten");
    play.retry("1");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

fn scale_source(play: &mut Play, replicas: u64) {
    let field = "/spec/replicas";
    play.cluster
        .foreign(&v1(), field, replicas.into(), "kubectl");
}

/// What was let out is not carried to its end where somebody else writes.
#[test]
fn a_conflict_in_the_middle_of_a_batch_keeps_the_old_pods() {
    type Does = fn(&mut Play);
    let cases: [(&str, Does, Does); 2] = [
        (
            "Autoscaler",
            |play| play.cluster.autoscalers.push(hpa("web-v1")),
            |play| play.cluster.autoscalers.clear(),
        ),
        (
            "FieldOverwritten",
            |play| scale_source(play, 8),
            |play| scale_source(play, 10),
        ),
    ];
    for (reason, begins, ends) in cases {
        let mut play = pair(&json!({"numBatches": 2}));
        play.cluster.broken.insert("web:2".into());
        play.run();
        assert_eq!(play.sizes(), ["Scale web-v2 5"]);
        begins(&mut play);
        play.cluster.broken.clear();
        play.run();
        assert_eq!(play.cluster.available(&v2()), 5);
        assert_eq!(play.state(), format!("batchInRolling 0, held: {reason}"));
        assert_eq!(play.ready(), ("False".into(), reason.into()));
        rests(&mut play);
        assert_eq!(play.sizes(), ["Scale web-v2 5"]);
        ends(&mut play);
        play.run();
        assert_eq!(play.state(), "rolloutSucceed", "{reason}");
        assert_eq!(play.present(), (10, 0), "{reason}");
    }
}

/// Its revision is named, so it is no other run.
#[test]
fn a_target_that_gets_another_template_midway_holds() {
    let mut play = half();
    let template = |play: &mut Play, image: &str| {
        let image = json!([{"name": "c", "image": image}]);
        let field = "/spec/template/spec/containers";
        play.cluster.foreign(&v2(), field, image, "kubectl");
        play.cluster.settle();
    };
    template(&mut play, "web:3");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    let (reason, by, _) = held(&play);
    assert_eq!(
        (reason.as_str(), by.as_deref()),
        ("TargetChanged", Some("Deployment web-v2"))
    );
    rests(&mut play);
    assert_eq!(play.present(), (5, 5));
    template(&mut play, "web:2");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn selectors_that_overlap_are_told() {
    let mut play = pair(&json!({}));
    let labels = json!({"app": "web-v1", "v": "2"});
    play.cluster
        .foreign(&v2(), "/spec/template/metadata/labels", labels, "kubectl");
    play.cluster.settle();
    play.run();
    let (reason, _, message) = held(&play);
    assert_eq!(reason, "SelectorsOverlap");
    assert!(
        message.contains("selects the pods of Deployment web-v2"),
        "{message}"
    );
}

#[test]
fn on_delete_is_told() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    let of = name(Kind::StatefulSet, "db");
    play.cluster.foreign(
        &of,
        "/spec/updateStrategy/type",
        json!("OnDelete"),
        "kubectl",
    );
    let image = json!([{"name": "c", "image": "db:2"}]);
    play.cluster
        .foreign(&of, "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    play.run();
    let (reason, _, message) = held(&play);
    assert_eq!(reason, "OnDelete");
    assert!(
        message.contains("updateStrategy.type: RollingUpdate"),
        "{message}"
    );
}

/// Objects that are older than the rules of admission may have another plan of what is out.
#[test]
fn a_plan_that_changes_below_what_is_out_holds() {
    let mut play = pair(&json!({
        "rolloutBatches": [{"replicas": 2}, {"replicas": 3}, {}], "lastBatchToRollout": 0,
    }));
    play.run();
    play.spec(&json!({"rolloutPlan": {
        "rolloutBatches": [{"replicas": 1}, {"replicas": 3}, {}], "lastBatchToRollout": null,
    }}));
    play.run();
    let (reason, by, _) = held(&play);
    assert_eq!(reason, "PlanChanged");
    assert_eq!(by.as_deref(), Some("spec.rolloutPlan.rolloutBatches[0]"));
    // What comes later may change.
    play.spec(&json!({"rolloutPlan": {"rolloutBatches": [{"replicas": 2}, {"replicas": 7}, {}]}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// A look at which no gate is asked.
fn ungated(given: &Given) -> Report {
    let considered = consider(given);
    assert_eq!(considered.question, None);
    report(given, &considered, &Answer::NotAsked)
}

fn held_by(report: &Report) -> Option<(&str, &str)> {
    let held = report.status.held.as_ref()?;
    Some((&held.reason, &held.message))
}

/// What is not known of a workload is told, and in other words when it is for another reason.
#[test]
fn why_something_is_not_known_is_told() {
    let mut play = half();
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    let mut given = play.given().unwrap();
    given.unsure_since = Some(play.now - SignedDuration::from_mins(1));
    for why in [
        "it was not read yet",
        "may not list Deployment.apps in namespace shop",
    ] {
        given
            .workloads
            .insert(v1(), given::Sight::Unknown(why.into()));
        let report = ungated(&given);
        assert!(report.acts.is_empty());
        let told = format!("Deployment web-v1 cannot be read: {why}");
        assert_eq!(held_by(&report), Some(("NotReadable", told.as_str())));
        let ready = find(&report.status.conditions, "Ready").unwrap();
        assert_eq!((&*ready.reason, &*ready.message), ("NotReadable", &*told));
        let object = Arc::make_mut(&mut given.object);
        object.status = Some(report.status.clone());
    }
    given.workloads = play.given().unwrap().workloads;
    given.autoscalers = Err("may not list them".to_owned());
    let told = "the HorizontalPodAutoscalers cannot be listed: may not list them";
    assert_eq!(held_by(&ungated(&given)), Some(("NotReadable", told)));
}

#[test]
fn what_is_not_up_to_date_holds_and_is_told_late() {
    let mut play = half();
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    let mut given = play.given().unwrap();
    let Some(given::Sight::Here { is_behind, .. }) = given.workloads.get_mut(&v1()) else {
        panic!("{given:?}");
    };
    *is_behind = true;
    let look = ungated;
    given.unsure_since = Some(play.now);
    let report = look(&given);
    assert!(report.acts.is_empty());
    assert_eq!(
        report.status.held.as_ref().map(|it| it.reason.as_str()),
        Some("LastBatch")
    );
    assert_eq!(report.wake, Some(play.now + SignedDuration::from_secs(30)));
    // Also that the spec is another one: what is told is about the one before, until more is known.
    assert_eq!(Some(&report.status), given.object.status.as_ref());
    given.now = Now::given(play.now + SignedDuration::from_secs(30));
    let report = look(&given);
    assert_eq!(
        report.status.held.as_ref().map(|it| it.reason.as_str()),
        Some("Stale")
    );
}
