//! Where a run ends: failure, another run, a status or a spec that makes no sense.

use rstest::rstest;

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

/// Half a batch of DecreaseFirst, and the target is pruned: the sources get everything back.
#[rstest]
fn a_target_that_is_gone_counts_as_nothing(#[values("Stop", "Revert")] on_failure: &str) {
    let mut play = pair(&json!({"rolloutStrategy": "DecreaseFirst", "numBatches": 2}));
    play.spec(&json!({ "onFailure": on_failure }));
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.present(), (0, 5));
    play.cluster.workloads.remove(&v2());
    until(&mut play, "rolloutFailed");
    assert_eq!(play.present(), (0, 10));
    if on_failure == "Revert" {
        assert_eq!(play.cluster.available(&v1()), 10);
    }
    play.run();
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
