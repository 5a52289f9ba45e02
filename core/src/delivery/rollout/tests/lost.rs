//! What is lost: a status, or a process in the middle of what it does.

use rstest::rstest;

use super::super::claim::{Claim, Ended};
use super::ends::{STATES, go_on, measure, stay, until, with_hooks};
use super::scaled::scaled;
use super::*;

/// In each state the status is lost: the run goes on to the same end, under the same number.
#[test]
fn a_status_that_is_lost_is_found_again() {
    for strategy in ["IncreaseFirst", "DecreaseFirst"] {
        for state in STATES.into_iter().skip(2) {
            let mut play = with_hooks(strategy, false);
            measure(&mut play);
            stay(&mut play, state);
            play.look();
            until(&mut play, state);
            go_on(&mut play);
            let run = play.status().run.unwrap().id;
            play.cluster.respecify(|it| it.status = None);
            play.run();
            let case = format!("{strategy} {state}");
            assert_eq!(
                play.state(),
                "rolloutSucceed",
                "{case}: {:?}",
                play.status()
            );
            assert_eq!(play.present(), (10, 0), "{case}");
            if state != "rolloutSucceed" {
                assert_eq!(play.status().run.unwrap().id, run, "{case}");
            }
            // Hooks know their calls again.
            let most = if state == "rolloutSucceed" { 9 } else { 8 };
            assert!(
                (1..=most).contains(&play.keys.len()),
                "{case}: {:?}",
                play.keys
            );
        }
    }
}

/// What somebody else has written meanwhile is no size to go on from, and is not written over.
#[rstest]
fn a_size_of_somebody_else_is_not_taken_for_that_of_the_run(
    #[values(true, false)] is_retried: bool,
) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    let source = |play: &mut Play, size: u64| {
        play.cluster
            .foreign(&v1(), "/spec/replicas", size.into(), "kubectl");
        play.cluster.settle();
    };
    source(&mut play, 2);
    play.cluster.respecify(|it| it.status = None);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: FieldOverwritten");
    assert_eq!(play.present(), (5, 2));
    match is_retried {
        true => play.retry("1"),
        false => source(&mut play, 5),
    }
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
}

/// The sources are at 0. That there is nothing left to roll out is known from what the target has kept; also where the
/// Rollout is another object of the same name.
#[rstest]
fn a_run_that_is_over_is_found_again(#[values("r-1", "r-2")] uid: &str) {
    let mut play = pair(&json!({"numBatches": 2}));
    play.run();
    let claim = Claim::of(&play.cluster.workloads[&v2()]);
    assert_eq!(claim.unwrap().ended, Some(Ended::Done));
    play.cluster.respecify(|it| {
        it.metadata.uid = Some(uid.to_owned());
        it.status = None;
    });
    play.log.clear();
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.status().outcome.unwrap().reason, "AlreadyThere");
    assert!(play.log.is_empty(), "{:?}", play.log);
}

/// db of 4 pods gets another image.
fn updated(kind: Kind) -> Play {
    let mut play = in_place(kind, &json!({}));
    let (of, image) = (name(kind, "db"), json!([{"name": "c", "image": "db:2"}]));
    play.cluster
        .foreign(&of, "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    play
}

/// It is known from which sizes the run goes to which, what it was before, and under which number hooks know it.
#[rstest]
#[case::stateful_set(updated(Kind::StatefulSet), [2, 4])]
#[case::clone_set(updated(Kind::CloneSet), [2, 4])]
#[case::scaled(scaled(&json!({})), [8, 12])]
fn a_status_that_is_lost_between_two_batches_is_found_again(
    #[case] mut play: Play,
    #[case] goals: [i32; 2],
) {
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 0}}));
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    let known = |play: &Play| {
        let run = play.status().run.unwrap();
        let [of] = &run.workloads[..] else {
            panic!("{run:?}");
        };
        (run.id, of.was, of.start, of.former.clone())
    };
    let first = known(&play);
    play.cluster.respecify(|it| it.status = None);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(known(&play), first);
    let batches = play.status().batches;
    assert!(batches.iter().map(|it| it.goal).eq(goals), "{batches:?}");
}

/// A process is killed between what the API server accepts and what follows from it, at every such place.
#[test]
fn a_process_may_be_killed_anywhere() {
    for strategy in ["IncreaseFirst", "DecreaseFirst"] {
        let mut reference = with_hooks(strategy, false);
        measure(&mut reference);
        reference.run();
        let sizes = reference.sizes();
        for killed in 0..60 {
            let mut play = with_hooks(strategy, false);
            measure(&mut play);
            for look in 0..600 {
                let Some(report) = play.decide() else {
                    break;
                };
                match look == killed {
                    // The status was accepted, and of what follows only the first.
                    true => {
                        let mut half = report;
                        half.report.acts.truncate(1);
                        play.carry_out(&half);
                        play.arrived.clear();
                    }
                    false => play.carry_out(&report),
                }
                play.cluster.tick();
                play.now += SignedDuration::from_secs(1);
                let goes = play.log.last().is_some_and(|it| it == "Finalize false");
                if goes && look > killed {
                    break;
                }
            }
            assert_eq!(play.state(), "rolloutSucceed", "{strategy} {killed}");
            assert_eq!(play.sizes(), sizes, "{strategy} {killed}");
        }
    }
}

/// Everybody who may write a workload may write a claim. One that nobody of us can have written changes nothing.
#[test]
fn a_forged_claim_is_taken_over_without_what_it_says() {
    let forged = |uid: &str| {
        let claim = json!({
            "name": "x", "uid": uid, "workload": "shop/OF", "run": i64::MAX, "identity": "i", "of": i32::MAX,
            "was": -3, "start": i32::MIN, "former": "../../secrets/x", "wrote": {"replicas": -1},
        });
        claim.to_string()
    };
    let nonsense = ["x".repeat(100_000), "{}".to_owned()];
    for text in [forged("nobody"), forged("r-1")]
        .into_iter()
        .chain(nonsense)
    {
        let mut play = pair(&json!({"numBatches": 2}));
        for workload in play.cluster.workloads.values_mut() {
            let metadata = &mut workload["metadata"];
            let text = text.replace("OF", metadata["name"].as_str().unwrap());
            metadata["annotations"] = json!({ marks::CLAIM: text });
        }
        play.run();
        assert_eq!(play.state(), "rolloutSucceed", "{text}");
        assert_eq!(play.present(), (10, 0), "{text}");
        let run = play.status().run.unwrap();
        assert!(run.id < i64::MAX / 2, "{}", run.id);
        let sizes: Vec<_> = run.workloads.iter().map(|it| (it.was, it.start)).collect();
        assert_eq!(sizes, [(0, 0), (10, 10)], "{text}");
    }
}
