//! StatefulSets and CloneSets, by their partition.

use std::sync::Arc;

use rstest::rstest;
use sluice_crds::rollout::BatchRollingState;

use super::*;
use crate::delivery::rollout::workload::Workload;

mod ends;

fn db(kind: Kind) -> Name {
    name(kind, "db")
}

fn template(play: &mut Play, kind: Kind, image: &str) {
    let image = json!([{"name": "c", "image": image}]);
    play.cluster.foreign(
        &db(kind),
        "/spec/template/spec/containers",
        image,
        "kubectl",
    );
    play.cluster.settle();
}

fn images(play: &Play, kind: Kind) -> Vec<&str> {
    let pods = &play.cluster.pods[&db(kind)];
    let mut images: Vec<&str> = pods.iter().map(|pod| pod.image.as_str()).collect();
    images.sort_unstable();
    images
}

/// The second half has db:2, and the first one waits for a person.
fn half(kind: Kind, plan: &Value) -> Play {
    let mut whole = json!({"lastBatchToRollout": 0});
    json_patch::merge(&mut whole, plan);
    let mut play = in_place(kind, &json!({ "rolloutPlan": whole }));
    template(&mut play, kind, "db:2");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    play.log.clear();
    play
}

const NEW: [&str; 4] = ["db:2", "db:2", "db:2", "db:2"];

#[test]
fn a_stateful_set_goes_out_in_batches_and_is_armed_again() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    template(&mut play, Kind::StatefulSet, "db:2");
    assert_eq!(images(&play, Kind::StatefulSet), ["db:1"; 4]);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(images(&play, Kind::StatefulSet), NEW);
    assert_eq!(
        play.log,
        [
            "Finalize true",
            "Claim db",
            "Partition db 2",
            "Partition db 0",
            "Partition db 2147483647",
            "Release db",
            "Finalize false",
        ]
    );
    rests(&mut play);
    // The next template waits for the next run.
    template(&mut play, Kind::StatefulSet, "db:3");
    assert_eq!(images(&play, Kind::StatefulSet), NEW);
    play.spec(&json!({"revision": "3"}));
    play.run();
    assert_eq!(images(&play, Kind::StatefulSet), ["db:3"; 4]);
    assert_eq!(play.status().history.len(), 2);
}

/// Nothing but time makes a pod available that has been ready for a while: the run wakes itself.
#[test]
fn pods_that_have_to_be_ready_for_a_while_are_looked_at_again_then() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"rolloutPlan": {"numBatches": 1}}),
    );
    template(&mut play, Kind::StatefulSet, "db:2");
    let soak = json!(60);
    let of = db(Kind::StatefulSet);
    play.cluster
        .foreign(&of, "/spec/minReadySeconds", soak, "kubectl");
    play.cluster.settle();
    while !play.log.iter().any(|it| it == "Partition db 0") {
        play.look();
    }
    play.cluster.settle();
    let mut given = play.given().unwrap();
    let ready_since = |given: &mut Given, seconds: i64| {
        let since = given.now.at - SignedDuration::from_secs(seconds);
        let pods = given.pods.iter_mut().flatten();
        pods.for_each(|pod| pod.ready_since = Some(since));
    };
    let look = |given: &mut Given| {
        let report = report(given, &consider(given), &Answer::NotAsked);
        Arc::make_mut(&mut given.object).status = Some(report.status.clone());
        report
    };
    ready_since(&mut given, 59);
    assert_eq!(look(&mut given).wake, Some(given.now.at));
    let waits = look(&mut given);
    let state = waits.status.batch_rolling_state;
    assert_eq!(state, Some(BatchRollingState::BatchVerifying));
    let soon = given.now.at + SignedDuration::from_secs(1);
    assert_eq!((waits.changed, waits.wake), (false, Some(soon)));
    ready_since(&mut given, 60);
    let state = look(&mut given).status.batch_rolling_state;
    assert_eq!(state, Some(BatchRollingState::BatchReady));
}

#[test]
fn without_rearm_the_partition_stays_at_zero() {
    let mut play = in_place(Kind::StatefulSet, &json!({"rearm": false}));
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    assert_eq!(play.sizes(), ["Partition db 2", "Partition db 0"]);
}

#[test]
fn a_clone_set_goes_out_in_batches() {
    let mut play = in_place(Kind::CloneSet, &json!({}));
    template(&mut play, Kind::CloneSet, "db:2");
    play.run();
    assert_eq!(
        play.sizes(),
        ["Partition db 2", "Partition db 0", "Partition db \"100%\""]
    );
    assert_eq!(images(&play, Kind::CloneSet), NEW);
}

#[test]
fn a_clone_set_that_is_paused_is_armed() {
    let mut play = in_place(Kind::CloneSet, &json!({}));
    let strategy = json!({"paused": true, "partition": null});
    play.cluster.foreign(
        &db(Kind::CloneSet),
        "/spec/updateStrategy",
        strategy,
        "kubectl",
    );
    template(&mut play, Kind::CloneSet, "db:2");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.sizes()[0], "Partition db \"100%\"");
    assert_eq!(images(&play, Kind::CloneSet), NEW);
}

#[test]
fn what_is_not_armed_is_held_with_what_to_do() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    let field = "/spec/updateStrategy/rollingUpdate/partition";
    play.cluster
        .foreign(&db(Kind::StatefulSet), field, json!(3), "kubectl");
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: NotArmed");
    let held = play.status().held.unwrap();
    assert!(
        held.message.contains("1 of 4 pods have it already"),
        "{held:?}"
    );
    assert!(held.message.contains("partition: 2147483647"), "{held:?}");
    rests(&mut play);
}

#[test]
fn nothing_to_roll_arms_and_succeeds() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    let field = "/spec/updateStrategy/rollingUpdate/partition";
    play.cluster
        .foreign(&db(Kind::StatefulSet), field, json!(0), "kubectl");
    play.cluster.settle();
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.sizes(), ["Partition db 2147483647"]);
    assert!(play.told.is_empty());
    rests(&mut play);
    // The Rollout came before the template of its revision.
    play.gate("open");
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    assert_eq!(images(&play, Kind::StatefulSet), NEW);
}

#[test]
fn a_template_that_changes_midway_holds() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"rolloutPlan": {"lastBatchToRollout": 0}}),
    );
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    template(&mut play, Kind::StatefulSet, "db:3");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: TargetChanged");
    // It has reached only the pods that were out.
    assert_eq!(
        images(&play, Kind::StatefulSet),
        ["db:1", "db:1", "db:3", "db:3"]
    );
    template(&mut play, Kind::StatefulSet, "db:2");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 1}}));
    play.run();
    assert_eq!(images(&play, Kind::StatefulSet), NEW);
}

#[rstest]
fn a_partition_that_somebody_lowers_midway_holds_and_is_not_written_again(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) {
    let mut play = half(kind, &json!({}));
    let partition = |play: &mut Play, pods: u64| {
        let field = kind.fields()[0];
        play.cluster
            .foreign(&db(kind), field, pods.into(), "kubectl");
        play.cluster.settle();
        play.run();
    };
    partition(&mut play, 0);
    assert_eq!(play.state(), "batchReady 0, held: FieldOverwritten");
    let held = play.status().held.unwrap();
    assert_eq!(held.by.as_deref(), Some("kubectl"));
    let told = "has set the partition of";
    assert!(held.message.contains(told), "{held:?}");
    rests(&mut play);
    assert!(play.log.is_empty(), "{:?}", play.log);
    partition(&mut play, 2);
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
}

/// A pod that is deleted while the current revision is the old one comes back with that, once the partition is raised.
#[rstest]
fn it_is_armed_only_when_its_last_pod_is_there(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) {
    let batches = json!([{"maxUnavailable": 1}]);
    let plan = json!({"numBatches": null, "rolloutBatches": batches});
    let mut play = in_place(kind, &json!({ "rolloutPlan": plan }));
    template(&mut play, kind, "db:2");
    while images(&play, kind) != NEW {
        play.look();
        play.cluster.tick();
    }
    assert_eq!(play.cluster.available(&db(kind)), 3);
    for _ in 0..10 {
        play.look();
    }
    assert_eq!(play.state(), "finalising");
    assert_eq!(play.sizes(), ["Partition db 0"]);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.sizes().len(), 2, "{:?}", play.log);
}

#[test]
fn replicas_that_change_midway_hold() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"rolloutPlan": {"lastBatchToRollout": 0}}),
    );
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    play.cluster.foreign(
        &db(Kind::StatefulSet),
        "/spec/replicas",
        json!(6),
        "kubectl",
    );
    play.cluster.settle();
    play.run();
    let held = play.status().held.unwrap();
    assert_eq!(held.reason, "FieldOverwritten");
    assert_eq!(held.by.as_deref(), Some("kubectl"));
    assert!(held.message.contains("to 6, and there were 4"), "{held:?}");
}

#[test]
fn a_stateful_set_is_scaled_in_a_run_of_its_own() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"rolloutPlan": {"targetSize": 6}}),
    );
    play.run();
    assert_eq!(play.sizes(), ["Scale db 5", "Scale db 6"]);
    template(&mut play, Kind::StatefulSet, "db:2");
    play.spec(&json!({"revision": "3", "rolloutPlan": {"targetSize": 8}}));
    play.run();
    assert_eq!(play.ready(), ("False".into(), "InvalidSpec".into()));
}
