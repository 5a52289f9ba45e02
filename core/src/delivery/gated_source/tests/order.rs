//! Which candidate, and when.

use proptest::prelude::*;
use rstest::rstest;
use sha2::{Digest, Sha256};

use super::*;

#[test]
fn what_the_source_took_back_is_not_to_go_out() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    for digit in ['b', 'c', 'b'] {
        play.push(digit);
        play.settle();
    }
    assert_eq!(play.ours().candidates.len(), 1);
    assert_eq!(play.pending(), Some(revision('b').as_str()));
    play.push('a');
    play.settle();
    assert_eq!((play.pending(), play.ours().candidates.len()), (None, 0));
}

#[test]
fn twenty_candidates_are_kept_and_the_newest_goes_out() {
    let mut play = Play::new(&json!({}));
    let hex = |n: u32| format!("main@sha1:{n:040x}");
    for n in 0..30 {
        fetched(play.upstream.as_mut().unwrap(), &hex(n));
        play.settle();
    }
    assert_eq!(play.ours().candidates.len(), MOST);
    play.open();
    play.settle();
    assert_eq!(play.admitted(), Some(hex(29).as_str()));
}

#[rstest]
#[case::not_ready("Ready", "False")]
#[case::not_verified("SourceVerified", "False")]
fn a_source_that_is_not_sure_of_it_is_not_believed(#[case] type_: &str, #[case] status: &str) {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.push('b');
    let source = play.upstream.as_mut().unwrap();
    source
        .spec
        .insert("verify".to_owned(), json!({ "mode": "HEAD" }));
    let doubt = serde_json::from_value(condition(type_, status, "No", Some(1))).unwrap();
    source
        .status
        .conditions
        .retain(|condition| condition.type_ != type_);
    source.status.conditions.push(doubt);
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert!(play.message("Ready").contains("nothing newer is seen"));
}

#[test]
fn an_artifact_of_the_last_generation_is_not_believed() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.push('b');
    play.upstream.as_mut().unwrap().metadata.generation = Some(2);
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

#[test]
fn a_revision_that_is_asked_for_is_gated_and_no_other_goes_out() {
    let mut play = Play::new(&json!({}));
    play.open();
    for digit in ['a', 'b', 'c'] {
        play.push(digit);
        play.settle();
    }
    play.close();
    play.object.spec.revision = Some(commit('a'));
    play.settle();
    let asked = format!("sha1:{}", commit('a'));
    assert_eq!(play.pending(), Some(asked.as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    play.open();
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    play.push('d');
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    assert_eq!(play.pending(), Some(revision('d').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True NotAskedFor");
    play.object.spec.revision = None;
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('d'));
}

/// The end of a freeze: each waits for its turn, and is asked again then.
#[test]
fn what_was_held_waits_for_its_turn() {
    let mut play = Play::new(&json!({ "spread": "10m" }));
    play.settle();
    play.open();
    play.settle();
    let at = play.ours().pending.clone().unwrap().admit_at.unwrap().0;
    assert!(at > play.now && at <= play.now + SignedDuration::from_mins(10));
    assert_eq!(play.says("Blocked").unwrap(), "True Spread");
    assert_eq!(play.look().wake, Some(at));
    let mut closed = Play { now: at, ..play };
    closed.close();
    closed.settle();
    assert_eq!(
        (closed.admitted(), closed.says("Blocked").unwrap().as_str()),
        (None, "True GatesClosed")
    );
    closed.open();
    closed.settle();
    let again = closed.ours().pending.clone().unwrap().admit_at.unwrap().0;
    assert_eq!(
        again.duration_since(closed.now),
        at.duration_since(NOON.parse().unwrap())
    );
    closed.now = again;
    closed.settle();
    assert_eq!(closed.admitted(), Some(revision('a').as_str()));
    // What comes while the gates are open has no turn to wait for.
    closed.push('b');
    closed.settle();
    assert_eq!(closed.admitted(), Some(revision('b').as_str()));
}

/// One window follows the other, or ends without closing the gate: only what closes it cuts the time
/// short in which all of them go out.
#[rstest]
#[case::nothing_ahead("{manual: {state: open}}", 600)]
#[case::one_window_after_the_other(
    "{schedule: {open: [{name: noon, cron: '0 12 * * *', duration: 30s}, \
     {name: day, from: '2026-11-20T12:00:30', until: '2026-11-20T18:00:00'}]}}",
    600
)]
#[case::it_closes(
    "{schedule: {open: [{name: noon, cron: '0 12 * * *', duration: 30s}, \
     {name: day, from: '2026-11-20T12:00:30', until: '2026-11-20T12:05:00'}]}}",
    300
)]
fn a_spread_lasts_for_as_long_as_the_gates_are_open(#[case] keeper: &str, #[case] seconds: i64) {
    let mut play = Play::new(&json!({ "spread": "10m" }));
    play.settle();
    play.keep(keeper);
    play.settle();
    let at = play.ours().pending.clone().unwrap().admit_at.unwrap().0;
    let hash = Sha256::digest(play.object.metadata.uid.as_deref().unwrap().as_bytes());
    let share = f64::from(u16::from_be_bytes([hash[0], hash[1]])) / f64::from(u16::MAX);
    let expected = share * seconds as f64;
    let waits = at.duration_since(play.now).as_secs_f64();
    assert!((waits - expected).abs() <= 1.0, "{waits}s of {expected}s");
}

/// A candidate that took its time to be stored was not held back by any gate.
#[test]
fn what_the_gates_never_held_has_no_turn_to_wait_for() {
    let strategy = json!({ "strategy": "artifact", "spread": "10m" });
    let mut play = Play::new(&strategy);
    play.open();
    play.settle();
    assert_eq!(
        (play.admitted(), play.says("Blocked").unwrap().as_str()),
        (None, "True NotStored")
    );
    play.pass(1);
    play.store();
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    // Held back by the store and then by the gates, it has.
    play.close();
    play.push('b');
    play.settle();
    play.store();
    play.settle();
    play.open();
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True Spread");

    // Nor had they a say while another one was asked for.
    let asked = json!({ "spread": "10m", "revision": commit('a') });
    let mut play = Play::new(&asked);
    play.open();
    play.settle();
    play.push('b');
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True NotAskedFor");
    play.object.spec.revision = None;
    play.settle();
    assert_eq!(play.admitted(), Some(revision('b').as_str()));
}

proptest! {
    /// For any events in any order: nothing goes out that the gates have not admitted, nothing goes out
    /// twice in a row, the child is always pinned to what was admitted, and in the end nothing changes
    /// any more.
    #[test]
    fn nothing_goes_out_but_by_the_gates(steps in prop::collection::vec((0..6u8, 0..16u32), 1..40)) {
        let mut play = Play::new(&json!({}));
        let mut is_open = false;
        for (step, n) in steps {
            let digit = char::from_digit(n, 16).unwrap();
            let before = play.object.status.as_ref().and_then(|status| status.admitted.clone());
            match step {
                0 => { play.open(); is_open = true; }
                1 => { play.close(); is_open = false; }
                2 => play.push(digit),
                3 => play.pass(1),
                4 => {
                    // Killed between the status and the child.
                    let report = play.look();
                    play.write_status(&report);
                }
                _ => play.settle(),
            }
            let after = play.object.status.as_ref().and_then(|status| status.admitted.clone());
            if let Some(after) = &after && before.as_ref() != Some(after) {
                prop_assert!(is_open, "{after:?} went out while the gate was closed");
                prop_assert_ne!(before.map(|it| it.revision), Some(after.revision.clone()));
            }
        }
        play.settle();
        if let Some(admitted) = play.admitted() {
            let pinned = play.child("/ref/commit").unwrap();
            prop_assert!(admitted.ends_with(&pinned));
        }
    }
}
