//! What counts for a batch: its place in the plan, its own metrics, what is written at the start, and what is known
//! at the moment.

use std::sync::Arc;

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

/// What a Gatekeeper measures now.
fn measures(play: &mut Play, gatekeeper: &str, value: f64) {
    let measure = Measure {
        range: metric::ANY,
        measured: Some(metric::Measured {
            value,
            at: play.now,
        }),
    };
    play.measures.insert(gatekeeper.to_owned(), measure);
}

/// The plan and a batch have metrics of one name, which are not the same: each is good since its own instant.
#[test]
fn a_metric_of_the_plan_does_not_count_for_one_of_the_batch() {
    let range = json!({"max": 0.02});
    let of = |gatekeeper: &str| {
        json!([{
            "name": "errors", "interval": "5m", "metricsRange": range,
            "templateRef": {"name": gatekeeper},
        }])
    };
    let batches = json!([{"replicas": 2, "canaryMetric": of("of-batch")}, {}]);
    let mut play = pair(&json!({
        "canaryMetric": of("of-plan"), "rolloutBatches": batches, "lastBatchToRollout": 0,
    }));
    let mut minute = |of_batch: f64| {
        measures(&mut play, "of-plan", 0.01);
        measures(&mut play, "of-batch", of_batch);
        play.run();
        play.pass(1);
        play.state()
    };
    for _ in 0..7 {
        assert_eq!(minute(0.5), "batchVerifying 0");
    }
    for _ in 0..5 {
        assert_eq!(minute(0.01), "batchVerifying 0");
    }
    assert_eq!(minute(0.01), "batchReady 0, held: LastBatch");
}

/// Another range, another Gatekeeper, another interval: what was good before says nothing of that.
#[test]
fn a_metric_that_is_changed_begins_again() {
    let with = |field: &str, value: Value| {
        let mut metric = json!({"name": "errors", "interval": "5m", "metricsRange": {"max": 0.02}});
        metric[field] = value;
        json!([metric])
    };
    let first = with("name", json!("errors"));
    for other in [
        with("metricsRange", json!({"max": 0.015})),
        with("templateRef", json!({"name": "others"})),
        with("interval", json!("4m")),
    ] {
        let mut play = pair(&json!({
            "canaryMetric": first, "rolloutBatches": [{"replicas": 2}, {}], "lastBatchToRollout": 0,
        }));
        let minute = |play: &mut Play| {
            measures(play, "errors", 0.01);
            measures(play, "others", 0.01);
            play.run();
            play.pass(1);
            play.state()
        };
        for _ in 0..4 {
            assert_eq!(minute(&mut play), "batchVerifying 0");
        }
        play.spec(&json!({"rolloutPlan": {"canaryMetric": other}}));
        for _ in 0..4 {
            assert_eq!(minute(&mut play), "batchVerifying 0", "{other}");
        }
        minute(&mut play);
        assert_eq!(
            minute(&mut play),
            "batchReady 0, held: LastBatch",
            "{other}"
        );
    }
}

/// Held by a person, and then another replica leads, which has read nothing yet: that is not told, and costs no write.
#[test]
fn what_is_not_known_for_a_moment_changes_nothing_of_the_status() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    let mut given = play.given().unwrap();
    let unknown = given::Sight::Unknown("it was not read yet".into());
    given.workloads.insert(v2(), unknown.clone());
    given.workloads.insert(v1(), unknown);
    given.unsure_since = Some(given.now.at);
    let look = |given: &Given| report(given, &consider(given), &Answer::NotAsked);
    let first = look(&given);
    assert!(!first.changed, "{:#?}", first.status);
    assert!(first.acts.is_empty());
    // Of another spec nothing is known: what is said stays about the one before.
    let mut other = given.clone();
    let object = Arc::make_mut(&mut other.object);
    object.metadata.generation = Some(7);
    assert!(!look(&other).changed);
    given.now = Now::given(given.now.at + SignedDuration::from_secs(30));
    assert!(look(&given).changed);
}

/// A Deployment whose controller has not seen its newest spec yet: the metric is measured all the same.
#[test]
fn a_row_is_not_broken_by_what_is_not_up_to_date_for_a_moment() {
    let metric = json!([{"name": "errors", "interval": "5m", "metricsRange": {"max": 0.02}}]);
    let mut play = pair(&json!({"numBatches": 2, "canaryMetric": metric}));
    for _ in 0..3 {
        measures(&mut play, "errors", 0.01);
        play.run();
        play.pass(1);
    }
    let row = play.status().metrics;
    assert!(row[0].within_since.is_some(), "{row:?}");
    let mut given = play.given().unwrap();
    let Some(given::Sight::Here { is_behind, object }) = given.workloads.get_mut(&v2()) else {
        panic!("{given:?}");
    };
    *is_behind = true;
    Arc::make_mut(object)["metadata"]["generation"] = 99.into();
    let look = |given: &Given| report(given, &consider(given), &Answer::NotAsked).report;
    assert_eq!(look(&given).status.metrics, row);
    // A value that is missing breaks it.
    given.measures.clear();
    assert_eq!(look(&given).status.metrics[0].within_since, None);
}

/// Somebody scales between the latch and the claim: that is theirs, and is not written over.
#[test]
fn what_is_scaled_before_the_claim_is_not_written_over() {
    for (of, before, after) in [(v1(), 10, 15), (v1(), 10, 7), (v2(), 2, 5), (v2(), 2, 1)] {
        let mut play = pair(&json!({"numBatches": 2}));
        play.cluster
            .foreign(&v2(), "/spec/replicas", json!(2), "kubectl");
        play.cluster.settle();
        while play.state() != "initializing" {
            play.look();
        }
        assert!(play.log.is_empty(), "{:?}", play.log);
        play.cluster
            .foreign(&of, "/spec/replicas", json!(after), "autoscaler");
        play.run();
        let case = format!("{of} {after}");
        let held = play.status().held.unwrap();
        assert_eq!(held.reason, "FieldOverwritten", "{case}");
        assert_eq!(held.by.as_deref(), Some("autoscaler"), "{case}");
        assert_eq!(play.cluster.replicas(&of), after, "{case}");
        assert!(play.sizes().is_empty(), "{case}: {:?}", play.log);
        rests(&mut play);
        play.cluster
            .foreign(&of, "/spec/replicas", json!(before), "kubectl");
        play.run();
        assert_eq!(play.state(), "rolloutSucceed", "{case}");
    }
}

/// A deadline of a day becomes one of ten minutes: numbers are not withheld until the old one is that near.
#[test]
fn numbers_are_written_when_the_deadline_becomes_shorter() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.spec(&json!({"progressDeadline": "24h"}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    assert_eq!(play.state(), "batchInRolling 0");
    play.spec(&json!({"progressDeadline": "10m"}));
    play.run();
    assert_eq!(play.status().upgraded_ready_replicas, Some(0));
    play.cluster.broken.clear();
    play.cluster.tick();
    play.pass(1);
    play.look();
    let available = play.cluster.available(&v2());
    assert!(available > 0);
    let said = play.status().upgraded_ready_replicas;
    assert_eq!(said, i32::try_from(available).ok());
}

/// db of 4 pods, of which the second half is out, with a metric that nobody measures.
fn half_of_a_set() -> Play {
    let metric = json!([{"name": "errors"}]);
    let plan = json!({"numBatches": 2, "canaryMetric": metric, "lastBatchToRollout": 0});
    let mut play = in_place(Kind::StatefulSet, &json!({ "rolloutPlan": plan }));
    let image = json!([{"name": "c", "image": "db:2"}]);
    let db = name(Kind::StatefulSet, "db");
    play.cluster
        .foreign(&db, "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    play.run();
    assert_eq!(play.state(), "batchVerifying 0, held: MetricBlind");
    play
}

/// A pod that is being deleted is ready for a while, and a pod of any name may have the labels of those of a set.
#[test]
fn only_pods_that_stay_in_their_places_are_available() {
    let play = half_of_a_set();
    let given = play.given().unwrap();
    let available = |change: &dyn Fn(&mut given::Pod)| {
        let mut given = given.clone();
        let pods = given.pods.iter_mut().flatten();
        pods.filter(|pod| pod.name == "db-3").for_each(change);
        // A number that is new is withheld for a while.
        given.now = Now::given(given.now.at + SignedDuration::from_mins(1));
        let report = report(&given, &consider(&given), &Answer::NotAsked);
        report.status.upgraded_ready_replicas
    };
    assert_eq!(available(&|_| {}), Some(2));
    assert_eq!(available(&|pod| pod.is_going = true), Some(1));
    assert_eq!(available(&|pod| pod.name = "db-4".to_owned()), Some(1));
    assert_eq!(available(&|pod| pod.name = "forged".to_owned()), Some(1));
}

/// To list them costs a request at each look, and a run may be held for days.
#[test]
fn pods_are_listed_only_while_they_count() {
    let lists = |play: &Play| needs_pods(play.cluster.rollout.as_ref().unwrap());
    let mut play = half_of_a_set();
    assert!(lists(&play));
    measures(&mut play, "errors", 0.0);
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    assert!(!lists(&play));
    assert_eq!(play.status().upgraded_ready_replicas, Some(2));
    rests(&mut play);
    // Deleted without a revert, nothing of them counts; with one, a broken one is deleted.
    for (revert, expected) in [(false, false), (true, true)] {
        let mut play = half_of_a_set();
        play.spec(&json!({"rolloutPlan": {"revertOnDelete": revert}}));
        play.cluster.delete(play.now);
        while play.state() != "rolloutDeleting" {
            play.look();
        }
        assert_eq!(lists(&play), expected, "{revert}");
    }
}

/// A replica that begins to lead knows no workload: what was good may be bad by now, and what was bad is no new row.
#[test]
fn what_is_not_known_breaks_a_row_and_forgets_no_bad_value() {
    let metric = json!([{"name": "errors", "interval": "5m", "metricsRange": {"max": 0.02}}]);
    for (value, is_kept) in [(0.01, false), (0.5, true)] {
        let mut play = pair(&json!({"numBatches": 2, "canaryMetric": metric}));
        for _ in 0..3 {
            measures(&mut play, "errors", value);
            play.run();
            play.pass(1);
        }
        let row = play.status().metrics;
        let mut given = play.given().unwrap();
        let unknown = given::Sight::Unknown("it was not read yet".into());
        given.workloads.insert(v2(), unknown);
        given.unsure_since = Some(given.now.at);
        let now = report(&given, &consider(&given), &Answer::NotAsked).report;
        let expected = if is_kept { row } else { Vec::new() };
        assert_eq!(now.status.metrics, expected, "{value}");
    }
}
