//! When gates are asked, and by which of their answers something goes out.

use super::*;

#[test]
fn each_batch_asks_its_own_question() {
    let mut play = pair(&json!({"numBatches": 3}));
    play.gate("open");
    play.run();
    let asked: Vec<_> = play
        .told
        .iter()
        .map(|it| {
            let subject = &it.subject;
            let step = subject.step.clone().unwrap_or_default();
            format!(
                "{} {step} {}",
                subject.action,
                subject.revision.as_deref().unwrap()
            )
        })
        .collect();
    // What lets the run begin lets no pod out: the first batch is asked about again.
    assert_eq!(asked, ["rollout 1/3 2", "advance 2/3 2", "advance 3/3 2"]);
    let batches = play.status().batches;
    let decided = batches.iter().filter_map(|it| it.decision.as_ref());
    assert!(decided.clone().all(|it| it.decided_by == ["shop/g"]));
    assert_eq!(decided.count(), 3);
}

/// Gates are asked at each look, also while a hook is called for long. What lets a batch out is told once.
#[test]
fn a_yes_by_which_nothing_goes_out_is_not_told() {
    let hook =
        |name: &str| json!([{"type": "pre-batch-rollout", "name": name, "url": "https://a/b"}]);
    let mut play = pair(&json!({"rolloutBatches": [
        {"replicas": 5, "batchRolloutWebhooks": hook("first")},
        {"batchRolloutWebhooks": hook("second")},
    ]}));
    play.gate("open");
    play.silent = ["first", "second"].map(str::to_owned).into();
    for (batch, hook) in ["first", "second"].into_iter().enumerate() {
        for _ in 0..3 {
            play.run();
            play.pass(1);
        }
        assert_eq!(play.state(), format!("batchInitializing {batch}"));
        let considered = consider(&play.given().unwrap());
        assert!(considered.question.is_some() && !considered.takes_effect);
        assert_eq!(play.told.len(), batch);
        play.silent.remove(hook);
    }
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.told.len(), 2);
}

/// A gate of the second batch alone.
#[test]
fn a_batch_may_have_gates_of_its_own() {
    let gates = json!({"refs": [{"name": "g"}]});
    let mut play = pair(&json!({"rolloutBatches": [{"replicas": 3}, {"gates": gates}]}));
    play.gate("closed");
    play.cluster.respecify(|it| it.spec.gates = None);
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: GatesClosed");
    play.gate("open");
    play.cluster.respecify(|it| it.spec.gates = None);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    let told: Vec<_> = play.told.iter().map(|it| it.subject.step.clone()).collect();
    assert_eq!(told, [Some("2/2".to_owned())]);
}

/// A target that has pods gets more at the start: not while the gate of the first batch is closed, however long it
/// was open before.
#[test]
fn what_the_start_makes_asks_the_gates_again() {
    let mut play = pair(&json!({
        "targetSize": 16, "numBatches": 4,
        "rolloutWebhooks": [{"type": "initialize-rollout", "name": "first", "url": "https://a/b"}],
    }));
    play.cluster
        .foreign(&v2(), "/spec/replicas", json!(2), "kubectl");
    play.cluster.settle();
    play.gate("open");
    play.silent.insert("first".into());
    play.run();
    assert_eq!(play.state(), "initializing");
    play.gate("closed");
    play.silent.clear();
    play.log.clear();
    play.run();
    assert_eq!(play.state(), "initializing, held: GatesClosed");
    assert_eq!(play.ready(), ("True".into(), "GatesClosed".into()));
    assert_eq!(play.present(), (2, 10));
    rests(&mut play);
    let told = play.told.len();
    play.gate("open");
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.sizes(), ["Scale web-v2 6"]);
    // What has let it was recorded.
    assert_eq!(play.told.len(), told + 1);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// A Deployment that is paused has pods of its former template: once it is paused no longer, they get the new one.
#[test]
fn a_target_with_pods_that_is_paused_asks_the_gates_before_it_goes_on() {
    let mut play = pair(&json!({"numBatches": 2}));
    for (field, value) in [("/spec/replicas", json!(2)), ("/spec/paused", json!(true))] {
        play.cluster.foreign(&v2(), field, value, "kubectl");
    }
    play.cluster.settle();
    play.gate("open");
    while play.state() != "initializing" {
        play.look();
    }
    play.spec(&json!({"rolloutPlan": {"paused": true}}));
    play.run();
    assert_eq!(play.state(), "initializing, held: Paused");
    play.gate("closed");
    play.spec(&json!({"rolloutPlan": {"paused": false}}));
    play.run();
    assert_eq!(play.state(), "initializing, held: GatesClosed");
    assert_eq!(play.cluster.workloads[&v2()]["spec"]["paused"], json!(true));
    play.gate("open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// A start that makes no pods asks nobody.
#[test]
fn a_start_without_pods_does_not_ask() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.gate("open");
    while play.state() != "initializing" {
        play.look();
    }
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "batchInitializing 0, held: GatesClosed");
}
