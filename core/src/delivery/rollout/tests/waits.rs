//! What a run waits for, and what holds it: gates, people, hooks, metrics, pods.

use super::*;

fn hooks() -> Value {
    let hook = |type_: &str, name: &str| json!({"type": type_, "name": name, "url": "https://a/b"});
    json!({
        "numBatches": 2,
        "rolloutWebhooks": [
            hook("initialize-rollout", "init"), hook("pre-batch-rollout", "pre"),
            hook("post-batch-rollout", "post"), hook("finalize-rollout", "end"),
        ],
    })
}

#[test]
fn a_closed_gate_holds_and_an_open_one_lets_it_go_on() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: GatesClosed");
    assert_eq!(play.status().held.unwrap().by.as_deref(), Some("shop/g"));
    assert_eq!(play.ready(), ("True".into(), "GatesClosed".into()));
    assert!(play.log.is_empty());
    rests(&mut play);
    play.gate("open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// The window ends after the first batch, and the second one goes out in the morning.
#[test]
fn it_waits_over_the_night() {
    let mut play = pair(&json!({"numBatches": 2, "rolloutWebhooks": [
        {"type": "post-batch-rollout", "name": "post", "url": "https://a/b"},
    ]}));
    play.gate("open");
    let keeper: sluice_crds::Gatekeeper = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": {"name": "day", "namespace": "shop"},
        "spec": {"schedule": {"timeZone": "Europe/London",
            "open": [{"name": "day", "cron": "0 9 * * MON-FRI", "duration": "8h"}]}},
    }))
    .unwrap();
    play.world
        .gatekeepers
        .insert(Key::of(&keeper.metadata), keeper.into());
    let gate = play.world.gates.values_mut().next().unwrap();
    gate.spec = serde_json::from_value(json!({"gatekeepers": [{"name": "day"}]})).unwrap();
    play.silent.insert("post".into());
    play.now = "2026-11-23T16:59:00Z".parse().unwrap();
    play.run();
    assert_eq!(play.state(), "batchFinalizing 0");
    // The hook takes until after five.
    play.silent.clear();
    play.pass(2);
    play.arrived.clear();
    let key = play.look().unwrap().report.acts;
    assert!(key.iter().any(|act| matches!(act, Act::Call(_))), "{key:?}");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: GatesClosed");
    let wake = play.look().unwrap().wake.unwrap();
    assert_eq!(wake, "2026-11-24T09:00:00Z".parse::<Timestamp>().unwrap());
    let deadline = play.status().deadline;
    rests(&mut play);
    assert_eq!(play.status().deadline, deadline);
    play.now = wake;
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    let last = &play.status().batches[1];
    assert!(last.waited.unwrap() > 15 * 3600, "{last:?}");
    assert!(last.worked.unwrap() < 60, "{last:?}");
}

/// The answer that counts is that of the instant of the intent: a hook in between may take an hour.
#[test]
fn a_gate_that_closes_while_a_hook_is_called_stops_the_batch() {
    let mut play = pair(&hooks());
    play.gate("open");
    play.silent.insert("pre".into());
    play.run();
    assert_eq!(play.state(), "batchInitializing 0");
    play.gate("closed");
    play.silent.clear();
    let report = play.decide().unwrap();
    play.carry_out(&report);
    play.run();
    assert_eq!(play.state(), "batchInitializing 0, held: GatesClosed");
    assert!(play.sizes().is_empty(), "{:?}", play.log);
}

#[test]
fn a_gate_that_closes_in_a_batch_stops_nothing() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.gate("open");
    while play.sizes().is_empty() {
        play.look();
        play.cluster.tick();
    }
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: GatesClosed");
    assert_eq!(play.present(), (5, 5));
}

#[test]
fn a_person_raises_the_last_batch() {
    let mut play = pair(&json!({"numBatches": 3, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    assert_eq!(play.ready().0, "True");
    rests(&mut play);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 1}}));
    play.run();
    assert_eq!(play.state(), "batchReady 1, held: LastBatch");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_pause_carries_the_batch_to_its_end_and_begins_nothing() {
    let mut play = pair(&json!({"numBatches": 2}));
    while play.sizes().is_empty() {
        play.look();
        play.cluster.tick();
    }
    play.spec(&json!({"rolloutPlan": {"paused": true}}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    assert_eq!(play.state(), "batchInRolling 0, held: Paused");
    rests(&mut play);
    play.spec(&json!({"rolloutPlan": {"paused": false}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn hooks_are_called_in_their_order_once() {
    let mut play = pair(&hooks());
    play.run();
    let calls: Vec<_> = play
        .log
        .iter()
        .filter(|it| it.starts_with("Call"))
        .collect();
    assert_eq!(
        calls,
        [
            "Call init in initializing",
            "Call pre in rollingInBatches",
            "Call post in rollingInBatches",
            "Call pre in rollingInBatches",
            "Call post in rollingInBatches",
            "Call end in finalising",
        ]
    );
    assert_eq!(play.keys.len(), 6);
}

#[test]
fn a_hook_that_says_no_fails_the_batch_at_once() {
    let mut play = pair(&hooks());
    play.answers.insert("pre".into(), hook::Answer::Status(403));
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    let status = play.status();
    assert_eq!(
        status.batch_rolling_state,
        Some(sluice_crds::rollout::BatchRollingState::BatchVerifyFailed)
    );
    let outcome = status.outcome.unwrap();
    assert_eq!(outcome.reason, "HookVetoed");
    assert_eq!(outcome.message, "the hook pre has said no, with status 403");
    assert_eq!(play.present(), (0, 10));
    assert!(play.log.contains(&"Call end in rolloutFailing".to_owned()));
    rests(&mut play);
    play.answers.clear();
    play.retry("1");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_hook_at_the_end_that_says_no_changes_nothing() {
    let mut play = pair(&hooks());
    play.answers.insert("end".into(), hook::Answer::Status(403));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.status().outcome.unwrap().reason, "HookVetoed");
    rests(&mut play);
}

#[test]
fn a_hook_that_is_unavailable_is_called_again_until_the_deadline() {
    let mut play = pair(&hooks());
    play.spec(&json!({"progressDeadline": "2m"}));
    play.answers.insert("pre".into(), hook::Answer::Status(503));
    for _ in 0..60 {
        play.run();
        play.pass(1);
    }
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    let calls = play.log.iter().filter(|it| it.starts_with("Call pre"));
    assert!(calls.count() > 2, "{:?}", play.log);
    assert_eq!(
        play.status().outcome.unwrap().reason,
        "ProgressDeadlineExceeded"
    );
}

fn measured(play: &mut Play, value: Option<f64>) {
    let measure = Measure {
        range: sluice_crds::gatekeeper::Range {
            min: None,
            max: Some(0.02),
        },
        measured: value.map(|value| metric::Measured {
            value,
            at: play.now,
        }),
    };
    play.measures.insert("errors".into(), measure);
}

#[test]
fn a_metric_has_to_be_good_for_a_while() {
    let metric = json!([{"name": "errors", "interval": "5m"}]);
    let mut play = pair(&json!({"rolloutBatches": [{"replicas": 2, "canaryMetric": metric}, {}]}));
    play.run();
    // Nobody measures.
    assert_eq!(play.state(), "batchVerifying 0, held: MetricBlind");
    assert_eq!(
        play.status().held.unwrap().by.as_deref(),
        Some("Gatekeeper errors")
    );
    rests(&mut play);
    measured(&mut play, Some(0.01));
    play.run();
    assert_eq!(play.state(), "batchVerifying 0");
    for _ in 0..4 {
        play.pass(1);
        measured(&mut play, Some(0.01));
        play.run();
        assert_eq!(play.state(), "batchVerifying 0");
    }
    // Held meanwhile, and then outside: the row begins again.
    measured(&mut play, None);
    play.run();
    assert_eq!(play.state(), "batchVerifying 0, held: MetricBlind");
    for _ in 0..6 {
        play.pass(1);
        measured(&mut play, Some(0.01));
        play.run();
    }
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_metric_outside_its_range_fails_by_the_deadline() {
    let metric = json!([{"name": "errors"}]);
    let mut play = pair(&json!({"numBatches": 2, "canaryMetric": metric}));
    for _ in 0..12 {
        measured(&mut play, Some(0.5));
        play.run();
        play.pass(1);
    }
    assert_eq!(play.state(), "rolloutFailed");
    let message = play.status().outcome.unwrap().message;
    assert!(
        message.contains("the metric errors is 0.5, outside its range"),
        "{message}"
    );
    assert_eq!(play.present(), (5, 5));
}

/// That a good metric is good for long enough is no lack of progress. One that is not good by then fails.
#[test]
fn a_metric_has_the_time_that_its_row_needs_in_addition_to_the_deadline() {
    let metric = json!([{"name": "errors", "interval": "1h"}]);
    let plan = json!({"rolloutBatches": [{"replicas": 2, "canaryMetric": metric}, {}]});
    let after = |bad: std::ops::Range<i64>| {
        let mut play = pair(&plan);
        for minute in 0..75 {
            measured(
                &mut play,
                Some(if bad.contains(&minute) { 0.5 } else { 0.01 }),
            );
            play.run();
            play.pass(1);
        }
        play.state()
    };
    assert_eq!(after(0..0), "rolloutSucceed");
    assert_eq!(after(3..5), "rolloutSucceed");
    assert_eq!(after(30..31), "rolloutFailed");
    // A value that is missing begins the row again, and is no reason to fail.
    let mut play = pair(&plan);
    for minute in 0..100 {
        measured(&mut play, (minute != 30).then_some(0.01));
        play.run();
        play.pass(1);
    }
    assert_eq!(play.state(), "rolloutSucceed");
}

/// Nor has it for ever: pods that come and go, and a value that was bad before it was missing, fail in the end.
#[test]
fn a_row_that_is_broken_off_again_and_again_fails_in_the_end() {
    let metric = json!([{"name": "errors", "interval": "5m"}]);
    let plan = json!({"rolloutBatches": [{"replicas": 2, "canaryMetric": metric}, {}]});
    let mut flaps = pair(&plan);
    let mut bad = pair(&plan);
    for minute in 0..40 {
        match minute % 4 {
            3 => drop(flaps.cluster.broken.insert("web:2".into())),
            _ => drop(flaps.cluster.broken.remove("web:2")),
        }
        measured(&mut flaps, Some(0.01));
        flaps.cluster.settle();
        flaps.run();
        measured(&mut bad, [Some(0.5), None, Some(0.01)][minute % 3]);
        bad.run();
        for play in [&mut flaps, &mut bad] {
            play.pass(1);
        }
    }
    assert_eq!(flaps.state(), "rolloutFailed");
    assert_eq!(bad.state(), "rolloutFailed");
}

/// A value is missing for half a day. The deadline is as far away as before, and no further.
#[test]
fn the_length_of_a_hold_counts_once() {
    let metric = json!([{"name": "errors", "interval": "5m"}]);
    let mut play = pair(&json!({"rolloutBatches": [{"replicas": 2, "canaryMetric": metric}, {}]}));
    measured(&mut play, Some(0.01));
    play.run();
    measured(&mut play, None);
    play.run();
    assert_eq!(play.state(), "batchVerifying 0, held: MetricBlind");
    play.pass(12 * 60);
    measured(&mut play, Some(0.01));
    play.look();
    let left = play.status().deadline.unwrap().0 - play.now;
    assert!(left.get_seconds() <= 15 * 60, "{left}");
}

/// The time of its metrics is not added to that of a way back.
#[test]
fn a_rollout_that_is_deleted_during_a_long_metric_goes_soon() {
    let metric = json!([{"name": "errors", "interval": "24h"}]);
    let plan = json!({"rolloutBatches": [{"replicas": 2, "canaryMetric": metric}, {}], "revertOnDelete": true});
    let mut play = pair(&plan);
    measured(&mut play, Some(0.01));
    play.run();
    assert_eq!(play.state(), "batchVerifying 0");
    play.cluster.broken.insert("web:1".into());
    play.cluster.delete(play.now);
    play.run();
    assert_eq!(play.state(), "rolloutDeleting");
    play.pass(11);
    play.run();
    assert!(play.cluster.rollout.is_none());
}

/// What was measured before the pods were there is not said of them.
#[test]
fn a_value_from_before_the_batch_is_not_recorded() {
    let metric = json!([{"name": "errors"}]);
    let mut play = pair(&json!({"numBatches": 2, "canaryMetric": metric}));
    let value = |play: &Play| -> Vec<Option<String>> {
        let metrics = play.status().metrics;
        metrics.into_iter().map(|it| it.value).collect()
    };
    measured(&mut play, Some(0.001));
    play.pass(1);
    play.run();
    assert_eq!(play.state(), "batchVerifying 0");
    assert_eq!(value(&play), [None]);
    measured(&mut play, Some(0.5));
    play.run();
    assert_eq!(value(&play), [Some("0.5".to_owned())]);
    // The value by which the batch was good stays until the next one begins.
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 0}}));
    measured(&mut play, Some(0.002));
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    assert_eq!(value(&play), [Some("0.002".to_owned())]);
}

#[test]
fn workloads_that_are_missing_are_waited_for() {
    let mut play = pair(&json!({}));
    let gone = play.cluster.workloads.remove(&v2()).unwrap();
    play.run();
    assert_eq!(play.state(), "verifyingSpec");
    assert_eq!(play.ready(), ("False".into(), "Progressing".into()));
    play.cluster.workloads.insert(v2(), gone);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}
