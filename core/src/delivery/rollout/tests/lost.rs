//! What is lost: a status, or a process in the middle of what it does.

use super::ends::{STATES, go_on, measure, stay, until, with_hooks};
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
    let forged = json!({
        "name": "x", "uid": "nobody", "run": i64::MAX, "identity": "i", "of": i32::MAX,
        "was": -3, "start": i32::MIN, "former": "../../secrets/x", "wrote": {"replicas": -1},
    });
    for text in [forged.to_string(), "x".repeat(100_000), "{}".to_owned()] {
        let mut play = pair(&json!({"numBatches": 2}));
        for workload in play.cluster.workloads.values_mut() {
            workload["metadata"]["annotations"] = json!({ marks::CLAIM: text });
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
