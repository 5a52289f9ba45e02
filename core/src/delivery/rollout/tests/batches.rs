//! What counts for a batch: its place in the plan, its own metrics, what is written at the start, and what is known
//! at the moment.

use super::*;

fn four() -> Value {
    json!([{"replicas": 1}, {"replicas": "25%"}, {"replicas": "50%"}, {}])
}

/// The plan ends with what is out: that are not all pods, and the run has not succeeded.
#[test]
fn a_plan_that_now_ends_with_what_is_out_holds() {
    let mut play = pair(&json!({"rolloutBatches": four(), "lastBatchToRollout": 1}));
    play.run();
    assert_eq!(play.state(), "batchReady 1, held: LastBatch");
    let short = json!([{"replicas": 1}, {"replicas": "25%"}]);
    play.spec(&json!({"rolloutPlan": {"rolloutBatches": short}}));
    play.run();
    assert_eq!(play.state(), "batchReady 1, held: PlanChanged");
    let message = play.status().held.unwrap().message;
    assert!(message.contains("the plan ends with it"), "{message}");
    assert!(message.contains("sluice.dev/retry"), "{message}");
    assert_eq!(play.present(), (4, 6));
    rests(&mut play);
    play.spec(&json!({"rolloutPlan": {"rolloutBatches": four(), "lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
}

/// The same of a batch that had nothing to do, so that nothing has let it out.
#[test]
fn a_plan_that_now_ends_with_what_was_there_already_holds() {
    let batches = json!([{"replicas": 1}, {"replicas": "0%"}, {}]);
    let mut play = pair(&json!({"rolloutBatches": batches, "lastBatchToRollout": 1}));
    play.run();
    assert_eq!(play.state(), "batchReady 1, held: LastBatch");
    let short = json!([{"replicas": 1}, {"replicas": "0%"}]);
    play.spec(&json!({"rolloutPlan": {"rolloutBatches": short}}));
    play.run();
    assert_eq!(play.state(), "batchReady 1, held: PlanChanged");
}

/// While its metrics are looked at, it does not wait for pods that nobody has let out, and fail.
#[test]
fn a_plan_that_ends_with_the_batch_that_is_verified_does_not_fail_it() {
    let metric = json!([{"name": "errors"}]);
    let second = json!({"replicas": "25%", "canaryMetric": metric});
    let long = json!([{"replicas": 1}, second, {"replicas": "50%"}, {}]);
    let mut play = pair(&json!({"rolloutBatches": long, "lastBatchToRollout": 1}));
    play.run();
    assert_eq!(play.state(), "batchVerifying 1, held: MetricBlind");
    play.spec(&json!({"rolloutPlan": {"rolloutBatches": [{"replicas": 1}, second]}}));
    play.run();
    for _ in 0..4 {
        play.pass(60);
        play.run();
        assert_eq!(play.state(), "batchVerifying 1, held: PlanChanged");
    }
}
