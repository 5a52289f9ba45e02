//! The deadline: when it fails a run, and where it stands still.

use rstest::rstest;

use super::*;

#[test]
fn pods_that_never_come_fail_by_the_deadline() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(9);
    play.run();
    assert_eq!(play.state(), "batchInRolling 0");
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 10));
    let message = play.status().outcome.unwrap().message;
    assert!(
        message.contains("batch 0 (1/2) waits for pods: 0 of 5 are available"),
        "{message}"
    );
}

#[test]
fn the_deadline_stands_still_while_it_is_held_and_while_the_clock_is_doubted() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(5);
    play.spec(&json!({"rolloutPlan": {"paused": true}}));
    play.run();
    play.pass(600);
    play.spec(&json!({"rolloutPlan": {"paused": false}}));
    play.run();
    assert_eq!(play.state(), "batchInRolling 0");
    play.trust = Trust::Lost(SignedDuration::from_hours(1));
    play.pass(60);
    play.run();
    play.pass(60);
    play.run();
    assert_eq!(play.state(), "batchInRolling 0");
    // What was written by the wrong clock does not count: it has all its time again.
    play.trust = Trust::Good;
    play.run();
    play.pass(9);
    play.run();
    assert_eq!(play.state(), "batchInRolling 0");
    play.pass(1);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
}

/// Since when it is held is then wrong as well: how long that was is not known.
#[rstest]
#[case::of_a_person("Paused", json!({"rolloutPlan": {"paused": true}}), json!({"rolloutPlan": {"paused": false}}))]
#[case::of_a_spec_that_is_refused("InvalidSpec", json!({"progressDeadline": "1s"}), json!({"progressDeadline": "10m"}))]
fn a_hold_that_begins_by_a_wrong_clock_leaves_all_the_time(
    #[case] reason: &str,
    #[case] holds: Value,
    #[case] lets_go: Value,
) {
    for (wrong, works_by_it) in [(-60, true), (-60, false), (60, true), (60, false)] {
        let mut play = pair(&json!({"numBatches": 2}));
        play.cluster.broken.insert("web:2".into());
        play.run();
        play.pass(5 + wrong);
        play.trust = Trust::Lost(SignedDuration::from_mins(wrong));
        if works_by_it {
            play.run();
        }
        play.spec(&holds);
        play.run();
        play.pass(30 - wrong);
        play.trust = Trust::Good;
        play.run();
        assert_eq!(play.state(), format!("batchInRolling 0, held: {reason}"));
        play.spec(&lets_go);
        for minutes in [0, 9] {
            play.pass(minutes);
            play.run();
            assert_eq!(play.state(), "batchInRolling 0", "{wrong} {works_by_it}");
        }
        play.pass(1);
        play.run();
        assert_eq!(play.state(), "rolloutFailed", "{wrong} {works_by_it}");
    }
}
