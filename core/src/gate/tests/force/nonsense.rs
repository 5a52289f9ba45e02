//! Annotations that make no sense, and what is shown of them.

use rstest::rstest;

use super::*;

#[rstest]
#[case::state(&[(FORCE, "Open"), (FORCE_BY, "a"), (FORCE_REASON, "b")], FORCE, "`Open` is not a state; write open or closed")]
#[case::empty_state(&[(FORCE, ""), (FORCE_BY, "a"), (FORCE_REASON, "b")], FORCE, "`` is not a state")]
#[case::no_reason(&[(FORCE, "open"), (FORCE_BY, "a")], FORCE_REASON, "it is missing, so the force does not count; say why")]
#[case::blank_reason(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, " ")], FORCE_REASON, "it is missing")]
#[case::nobody(&[(FORCE, "open"), (FORCE_REASON, "b")], FORCE_BY, "it is missing, so the force does not count; write the user name")]
#[case::end_is_a_duration(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2h")], FORCE_UNTIL, "`2h` is not an instant; write RFC 3339")]
#[case::end_without_offset(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T18:00:00")], FORCE_UNTIL, "is not an instant")]
#[case::end_has_passed(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T10:00:00Z")], FORCE_UNTIL, "the end Fri 2026-11-20 10:00 UTC has passed; write a later end")]
#[case::too_long(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-21T10:01:01Z")], FORCE_UNTIL, "the force would last 24h1m1s; write an end at most 24h (spec.maxOverride) ahead")]
#[case::end_alone(&[(FORCE_UNTIL, "2026-11-20T18:00:00Z")], FORCE_UNTIL, "it does nothing without sluice.dev/force; write sluice.dev/force too")]
#[case::request(&[(RFC_OPEN, "now")], RFC_OPEN, "`now` is not an instant")]
#[case::request_to_close(&[(RFC_CLOSE, "1700000000")], RFC_CLOSE, "is not an instant")]
fn nonsense_is_told_at_its_annotation_and_changes_nothing(
    #[case] annotations: &[(&str, &str)],
    #[case] annotation: &str,
    #[case] problem: &str,
) {
    let mut gate = forced(annotations);
    let completion = read(&gate, FRIDAY_10).completion;
    complete(&mut gate, completion);
    let told = complaints(&gate, FRIDAY_10);
    assert_eq!(told.len(), 1, "{told:?}");
    let start = format!("metadata.annotations[{annotation}]: ");
    assert!(told[0].starts_with(&start), "{told:?}");
    assert!(told[0].contains(problem), "{told:?}");
    assert_eq!(in_effect(&gate, FRIDAY_10), None);
    let (state, reason, message) = Scene::new(gate, vec![]).says(FRIDAY_10);
    assert_eq!((state, reason.as_str()), (State::Closed, "Default"));
    assert!(message.ends_with(&told[0]), "{message}");
}

#[test]
fn a_malformed_dialect_does_not_spoil_the_other() {
    let gate = accepted(forced(&[(FORCE, "ajar"), (RFC_OPEN, FRIDAY_10)]), FRIDAY_10);
    assert!(in_effect(&gate, FRIDAY_10).is_some());
    assert_eq!(complaints(&gate, FRIDAY_10).len(), 1);
}

#[test]
fn what_people_wrote_is_shown_cut_and_on_one_line() {
    let long = format!("\u{1b}[2Jhotfix\n\u{202e}{}", "x".repeat(200_000));
    for (annotations, shown) in [
        (
            [
                (FORCE, "open"),
                (FORCE_BY, "a"),
                (FORCE_REASON, long.as_str()),
            ],
            "[2Jhotfix xxx",
        ),
        (
            [
                (FORCE, "open"),
                (FORCE_BY, long.as_str()),
                (FORCE_REASON, "b"),
            ],
            "by [2Jhotfix xxx",
        ),
        (
            [(FORCE, long.as_str()), (FORCE_BY, "a"), (FORCE_REASON, "b")],
            "`[2Jhotfix xxx",
        ),
        (
            [
                (RFC_OPEN, FRIDAY_10),
                (FORCE_BY, "a"),
                (FORCE_REASON, long.as_str()),
            ],
            "[2Jhotfix xxx",
        ),
        (
            [
                (RFC_OPEN, long.as_str()),
                (FORCE_BY, "a"),
                (FORCE_REASON, "b"),
            ],
            "`[2Jhotfix xxx",
        ),
        (
            [
                (FORCE_UNTIL, long.as_str()),
                (FORCE_BY, "a"),
                (FORCE_REASON, "b"),
            ],
            "does nothing",
        ),
    ] {
        let status = Scene::new(forced(&annotations), vec![])
            .report(now(FRIDAY_10))
            .status;
        let told = serde_json::to_string(&status).unwrap();
        assert!(told.len() < 4000, "{}", told.len());
        let message = status.message.unwrap();
        assert!(!message.contains(|c: char| c.is_control() || c == '\u{202e}'));
        assert!(message.contains(shown), "{message}");
    }
}

#[test]
fn a_reason_of_which_nothing_can_be_shown_is_missing() {
    let gate = forced(&[
        (FORCE, "open"),
        (FORCE_BY, "a"),
        (FORCE_REASON, "\u{1b}\u{202e}"),
    ]);
    let told = complaints(&gate, FRIDAY_10);
    assert!(told[0].contains("force-reason]: it is missing"), "{told:?}");
}

#[test]
fn a_spec_that_is_refused_does_not_say_how_long_a_force_may_last() {
    let mut gate = open_until("2026-11-20T11:00:00Z");
    gate.spec.window = "2d".into();
    let (state, reason, message) = Scene::new(gate.clone(), vec![]).says(FRIDAY_10);
    assert_eq!((state, reason.as_str()), (State::Closed, "InvalidSpec"));
    let words = ". metadata.annotations: the spec is refused, which says how long a force may \
                 last, so the force does not count; fix the spec";
    assert!(message.ends_with(words), "{message}");
    assert_eq!(read(&gate, FRIDAY_10).completion, None);
}
