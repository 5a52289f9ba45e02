//! Where a run ends: deletion, failure, another run, a status that is lost, a process that is killed.

use rstest::rstest;
use sluice_crds::rollout::RollingState;

use super::*;

fn plan() -> Value {
    json!({"rolloutBatches": [{"replicas": 2}, {"replicas": 3}, {}]})
}

/// Looks until the state is this one, before anything follows from it.
pub(super) fn until(play: &mut Play, state: &str) {
    for _ in 0..200 {
        if play.state().split(',').next() == Some(state) {
            return;
        }
        play.look();
        play.cluster.tick();
        play.now += SignedDuration::from_secs(1);
    }
    panic!("it is {}, never {state}", play.state());
}

pub(super) const STATES: [&str; 13] = [
    "verifyingSpec",
    "initializing",
    "batchInitializing 0",
    "batchInRolling 0",
    "batchVerifying 0",
    "batchFinalizing 0",
    "batchReady 0",
    "batchInitializing 1",
    "batchInRolling 1",
    "batchFinalizing 1",
    "batchInRolling 2",
    "finalising",
    "rolloutSucceed",
];

/// What makes a run stay in a state that it passes otherwise.
pub(super) fn stay(play: &mut Play, state: &str) {
    match state {
        "verifyingSpec" => play.gate("closed"),
        "batchVerifying 0" => play.measures.clear(),
        "batchReady 0" => play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 0}})),
        _ => {}
    }
}

/// It goes on.
pub(super) fn go_on(play: &mut Play) {
    measure(play);
    if play
        .status()
        .held
        .is_some_and(|it| it.reason == "LastBatch")
    {
        play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    }
}

pub(super) fn with_hooks(strategy: &str, revert: bool) -> Play {
    let hook = |type_: &str| json!({"type": type_, "name": type_, "url": "https://a/b"});
    let mut plan = plan();
    plan["rolloutStrategy"] = strategy.into();
    plan["revertOnDelete"] = revert.into();
    plan["canaryMetric"] = json!([{"name": "errors"}]);
    plan["rolloutWebhooks"] = json!([
        hook("initialize-rollout"),
        hook("pre-batch-rollout"),
        hook("post-batch-rollout"),
        hook("finalize-rollout"),
    ]);
    pair(&plan)
}

/// Metrics are measured all the time.
pub(super) fn measure(play: &mut Play) {
    let measure = Measure {
        range: metric::ANY,
        measured: Some(metric::Measured {
            value: 0.0,
            at: play.now + SignedDuration::from_hours(1),
        }),
    };
    play.measures.insert("errors".into(), measure);
}

#[test]
fn a_rollout_is_deleted_in_each_state() {
    for strategy in ["IncreaseFirst", "DecreaseFirst"] {
        for (revert, state) in [false, true]
            .into_iter()
            .flat_map(|revert| STATES.map(|state| (revert, state)))
        {
            let mut play = with_hooks(strategy, revert);
            measure(&mut play);
            stay(&mut play, state);
            play.look();
            until(&mut play, state);
            play.cluster.delete(play.now);
            play.run();
            let case = format!("{strategy} {revert} {state}: {:?}", play.log);
            assert!(play.cluster.rollout.is_none(), "{case}");
            let (new, old) = play.present();
            match (state, revert) {
                ("rolloutSucceed" | "finalising", _) => assert_eq!((new, old), (10, 0), "{case}"),
                (_, true) => assert_eq!((new, old), (0, 10), "{case}"),
                (_, false) => assert!(new + old >= 10, "{case}"),
            }
            assert!(
                play.cluster.available(&v1()) + play.cluster.available(&v2()) >= 10,
                "{case}"
            );
        }
    }
}

/// The source does not come up: the new pods stay, and the Rollout goes all the same.
#[test]
fn a_revert_never_takes_pods_away_before_the_old_ones_are_there() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.broken.insert("web:1".into());
    play.cluster.delete(play.now);
    play.run();
    assert_eq!(play.present(), (5, 10));
    assert_eq!(play.state(), "rolloutDeleting");
    play.pass(11);
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (5, 10));
}

#[test]
fn a_hook_that_hangs_does_not_keep_a_rollout_that_is_deleted() {
    let mut play = with_hooks("IncreaseFirst", false);
    measure(&mut play);
    play.look();
    until(&mut play, "batchInRolling 0");
    play.silent.insert("finalize-rollout".into());
    play.cluster.delete(play.now);
    play.run();
    assert_eq!(play.state(), "rolloutDeleting");
    play.pass(11);
    play.run();
    assert!(play.cluster.rollout.is_none());
}

#[test]
fn what_others_hold_is_left_and_the_rollout_goes() {
    let mut play = pair(&json!({
        "rolloutStrategy": "DecreaseFirst", "numBatches": 2, "revertOnDelete": true,
        "lastBatchToRollout": 0,
    }));
    play.run();
    play.cluster.autoscalers.push(given::Autoscaler {
        name: "hpa".into(),
        kind: "Deployment".into(),
        target: "web-v1".into(),
    });
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (5, 5));
    assert!(
        play.news
            .iter()
            .any(|it| it.contains("hpa scales Deployment web-v1")),
        "{:?}",
        play.news
    );
}

/// Half a batch of DecreaseFirst, and the target is pruned: the sources get everything back.
#[test]
fn a_target_that_is_gone_counts_as_nothing() {
    let mut play = pair(&json!({"rolloutStrategy": "DecreaseFirst", "numBatches": 2}));
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.present(), (0, 5));
    play.cluster.workloads.remove(&v2());
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (0, 10));
    assert_eq!(play.status().outcome.unwrap().reason, "WorkloadGone");
}

#[test]
fn a_source_that_is_another_object_is_gone() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    play.cluster.workloads.get_mut(&v1()).unwrap()["metadata"]["uid"] = "other".into();
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
}

#[test]
fn a_failure_is_left_as_it_is_or_taken_back() {
    for (on_failure, expected) in [("Stop", (5, 10)), ("Revert", (0, 10))] {
        let mut play = pair(&json!({"numBatches": 2}));
        play.spec(&json!({"onFailure": on_failure, "progressDeadline": "1m"}));
        play.cluster.broken.insert("web:2".into());
        play.run();
        play.pass(2);
        play.run();
        assert_eq!(play.state(), "rolloutFailed");
        assert_eq!(play.present(), expected, "{on_failure}");
        let stalled = find(&play.status().conditions, "Stalled").cloned().unwrap();
        assert_eq!(stalled.reason, "ProgressDeadlineExceeded");
        assert!(stalled.message.contains("sluice.dev/retry"));
        rests(&mut play);
    }
}

#[test]
fn one_that_has_failed_is_taken_back_when_it_is_deleted() {
    let mut play = pair(&json!({"numBatches": 2, "revertOnDelete": true}));
    play.spec(&json!({"progressDeadline": "1m"}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 10));
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{}", play.state());
    assert_eq!(play.present(), (0, 10));
}

/// Flux creates the Rollout again that somebody has deleted in the cluster.
#[test]
fn what_was_aborted_does_not_begin_again_by_itself() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true}));
    play.run();
    let mut again = play.cluster.rollout.clone().unwrap();
    play.cluster.delete(play.now);
    play.run();
    again.metadata.uid = Some("r-2".into());
    again.metadata.finalizers = None;
    again.status = None;
    play.cluster.rollout = Some(again);
    play.log.clear();
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: RunEnded");
    rests(&mut play);
    assert!(play.log.is_empty());
    play.retry("1");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
}

/// Midway another revision: a new target, of which the old target becomes a source.
#[test]
fn a_run_gives_way_to_another_one_and_the_total_stays() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.deployment("web-v3", 0, "web:3");
    play.spec(&json!({
        "targetRef": {"name": "web-v3"}, "revision": "3",
        "sourceRef": [
            {"kind": "Deployment", "name": "web-v1"}, {"kind": "Deployment", "name": "web-v2"},
        ],
        "rolloutPlan": {"lastBatchToRollout": null},
    }));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (0, 0));
    assert_eq!(play.cluster.replicas(&name(Kind::Deployment, "web-v3")), 10);
    let states: Vec<_> = play
        .status()
        .history
        .iter()
        .map(|it| it.state.as_str())
        .collect();
    assert_eq!(states, ["rolloutSucceed", "rolloutAbandoned"]);
}

/// A replica that has just become leader does not know the workloads yet. What is claimed is released first.
#[test]
fn the_finalizer_stays_until_the_workloads_are_known() {
    let mut play = pair(&json!({"numBatches": 1}));
    until(&mut play, "rolloutSucceed");
    play.log.clear();
    let mut given = play.given().unwrap();
    for of in [v1(), v2()] {
        given.workloads.insert(
            of,
            super::given::Sight::Unknown("it was not read yet".into()),
        );
    }
    let considered = consider(&given);
    let report = report(&given, &considered, &Answer::NotAsked);
    assert_eq!((report.changed, &*report.acts), (false, &[][..]));
    play.run();
    let expected = ["Release web-v2", "Release web-v1", "Finalize false"];
    assert_eq!(play.log, expected);
}

/// One version after another goes halfway, and back: the pods that the sources lack are with the target, and are not
/// taken away. What was scaled since counts as it is.
#[rstest]
#[case::another_version(&[("web-v2", "3"), ("web-v2", "4")], None, (10, 0))]
#[case::back(&[("web-v1", "1")], None, (0, 10))]
#[case::scaled_up(&[("web-v2", "3")], Some(12), (12, 0))]
#[case::scaled_down(&[("web-v2", "3")], Some(3), (5, 0))]
fn a_run_after_one_that_has_ended_halfway_keeps_the_total(
    #[case] runs: &[(&str, &str)],
    #[case] scaled: Option<u64>,
    #[case] left: (u64, u64),
) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    for (place, (target, revision)) in runs.iter().enumerate() {
        let mut next = play.cluster.rollout.clone().unwrap();
        play.cluster.delete(play.now);
        play.run();
        assert_eq!(play.present(), (5, 5));
        next.metadata.uid = Some(format!("r-{place}"));
        next.metadata.finalizers = None;
        next.status = None;
        play.cluster.rollout = Some(next);
        let source = if *target == "web-v2" {
            "web-v1"
        } else {
            "web-v2"
        };
        play.spec(&json!({
            "targetRef": {"name": target}, "revision": revision,
            "sourceRef": [{"kind": "Deployment", "name": source}],
        }));
        if let Some(size) = scaled {
            let old = name(Kind::Deployment, "web-v1");
            play.cluster
                .foreign(&old, "/spec/replicas", size.into(), "kubectl");
            play.cluster.settle();
        }
        if place + 1 < runs.len() {
            play.run();
        }
    }
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), left);
}

/// Half a batch of DecreaseFirst is settled, and then the old version comes back as the target.
#[test]
fn the_way_back_is_a_run_of_its_own() {
    let mut play = pair(&json!({"rolloutStrategy": "DecreaseFirst", "numBatches": 2}));
    while play.sizes().is_empty() {
        play.look();
    }
    play.spec(&json!({
        "targetRef": {"name": "web-v1"}, "revision": "1",
        "sourceRef": [{"kind": "Deployment", "name": "web-v2"}],
    }));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (0, 10));
    assert_eq!(play.status().rollout_target_size, Some(10));
}

#[test]
fn a_run_that_is_tried_again_has_another_number_and_goes_on() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    let first = play.status().run.unwrap();
    play.retry("1");
    play.run();
    // The first batch is there, and the next one may not go out yet.
    assert_eq!(play.state(), "verifyingSpec, held: LastBatch");
    assert_eq!(play.status().last_handled_retry_at.as_deref(), Some("1"));
    rests(&mut play);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert!(play.status().run.unwrap().id > first.id);
}

#[test]
fn a_status_that_makes_no_sense_fails() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    play.cluster
        .respecify(|it| it.status.as_mut().unwrap().current_batch = Some(7));
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.status().outcome.unwrap().reason, "IllegalState");
}

/// An answer that comes while the spec is refused is kept: the hook is not called a second time.
#[test]
fn an_answer_is_heard_once_the_spec_can_be_read_again() {
    let hook = json!({"type": "pre-batch-rollout", "name": "smoke", "url": "https://smoke/"});
    let mut play = pair(&json!({"numBatches": 2, "rolloutWebhooks": [hook]}));
    let calls = |play: &Play| play.log.iter().filter(|it| it.starts_with("Call")).count();
    while calls(&play) == 0 {
        assert!(play.look().unwrap().hears);
        play.cluster.tick();
    }
    play.spec(&json!({"progressDeadline": "1s"}));
    assert!(!play.look().unwrap().hears);
    play.spec(&json!({"progressDeadline": "10m"}));
    play.run();
    // One in each batch.
    assert_eq!((play.state().as_str(), calls(&play)), ("rolloutSucceed", 2));
}

#[test]
fn a_spec_that_is_refused_midway_holds() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    play.spec(&json!({"progressDeadline": "1s"}));
    play.run();
    assert_eq!(play.status().held.unwrap().reason, "InvalidSpec");
    assert_eq!(play.ready(), ("False".into(), "InvalidSpec".into()));
    rests(&mut play);
    play.spec(&json!({"progressDeadline": "10m"}));
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    play.spec(&json!({"progressDeadline": "1s"}));
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none());
}

/// What else is not known, as the autoscalers of the namespace, keeps none that is deleted from going back.
#[test]
fn a_rollout_that_is_deleted_goes_back_also_where_others_are_not_known() {
    let mut play = pair(
        &json!({"rolloutBatches": [{"replicas": 5}, {}], "lastBatchToRollout": 0, "revertOnDelete": true}),
    );
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.delete(play.now);
    until(&mut play, "rolloutDeleting");
    let mut given = play.given().unwrap();
    given.autoscalers = Err("nobody may list them".to_owned());
    given.unsure_since = Some(play.now - SignedDuration::from_hours(1));
    let considered = consider(&given);
    let report = report(&given, &considered, &Answer::NotAsked);
    let writes = report
        .acts
        .iter()
        .filter(|act| matches!(act, Act::Write(_)));
    assert_eq!(writes.count(), 1, "{:?}", report.acts);
    assert_ne!(
        report.status.rolling_state,
        Some(RollingState::RolloutFailed)
    );
    // What has just been written is behind for a moment.
    let of_v1 = given.workloads.get_mut(&v1()).unwrap();
    let object = std::sync::Arc::new(of_v1.object().unwrap().clone());
    let is_behind = true;
    *of_v1 = given::Sight::Here { object, is_behind };
    let report = super::report(&given, &consider(&given), &Answer::NotAsked);
    assert_eq!(
        report.status.rolling_state,
        Some(RollingState::RolloutDeleting)
    );
    // That is waited for as long as anything is, and then it goes, woken by itself.
    let deleted = given.object.metadata.deletion_timestamp.as_ref();
    let until = deleted.unwrap().0 + SignedDuration::from_mins(10);
    assert_eq!(report.wake, Some(until));
    given.now.at = report.wake.unwrap();
    let report = super::report(&given, &consider(&given), &Answer::NotAsked);
    assert_eq!(
        report.status.rolling_state,
        Some(RollingState::RolloutFailed)
    );
}
