//! The requests of the gating RFC.

use rstest::rstest;
use sluice_crds::Setting;

use super::*;

#[rstest]
#[case::a_request(
    RFC_OPEN,
    "2026-11-20T09:30:00Z",
    Setting::Open,
    "2026-11-20T10:30:00Z"
)]
#[case::to_close(
    RFC_CLOSE,
    "2026-11-20T10:00:00Z",
    Setting::Closed,
    "2026-11-20T11:00:00Z"
)]
#[case::with_an_offset(
    RFC_OPEN,
    "2026-11-20T10:59:59+01:00",
    Setting::Open,
    "2026-11-20T10:59:59Z"
)]
fn a_request_counts_from_its_own_instant(
    #[case] annotation: &str,
    #[case] since: &str,
    #[case] state: Setting,
    #[case] until: &str,
) {
    let expected = (state, at(since).to_string(), until.to_owned());
    let gate = accepted(forced(&[(annotation, since)]), FRIDAY_10);
    assert_eq!(in_effect(&gate, FRIDAY_10), Some(expected));
    assert_eq!(in_effect(&gate, until), None);
}

#[test]
fn a_request_that_has_run_out_is_over_and_nothing_to_complain_of() {
    let gate = forced(&[(RFC_OPEN, "2026-11-20T09:00:00Z")]);
    assert_eq!(in_effect(&gate, FRIDAY_10), None);
    let forces = read(&gate, FRIDAY_10);
    assert_eq!((forces.complaints.len(), forces.completion), (0, None));
}

#[rstest]
#[case::longer("3h")]
#[case::shorter("5m")]
fn how_long_a_request_lasts_is_fixed_when_it_is_accepted(#[case] window: &str) {
    let mut gate = accepted(forced(&[(RFC_OPEN, FRIDAY_10)]), FRIDAY_10);
    let note = &gate.metadata.annotations.as_ref().unwrap()[FORCE_SEEN];
    assert!(note.contains(r#""window":"1h""#), "{note}");
    gate.spec.window = window.into();
    assert!(in_effect(&gate, "2026-11-20T10:59:59Z").is_some());
    assert_eq!(in_effect(&gate, "2026-11-20T11:00:00Z"), None);
    assert_eq!(read(&gate, "2026-11-20T11:30:00Z").completion, None);
}

#[test]
fn a_lower_maximum_ends_a_request_as_it_ends_any_force() {
    let mut gate = forced(&[(RFC_OPEN, FRIDAY_10)]);
    gate.spec.window = "3h".into();
    let mut gate = accepted(gate, FRIDAY_10);
    gate.spec.window = "5m".into();
    gate.spec.max_override = "2h".into();
    assert!(in_effect(&gate, "2026-11-20T11:59:59Z").is_some());
    assert_eq!(in_effect(&gate, "2026-11-20T12:00:00Z"), None);
}

#[test]
fn a_request_a_little_ahead_waits_for_its_instant() {
    let gate = accepted(forced(&[(RFC_OPEN, "2026-11-20T10:01:00Z")]), FRIDAY_10);
    assert_eq!(complaints(&gate, FRIDAY_10), [""; 0]);
    assert_eq!(in_effect(&gate, "2026-11-20T10:00:59.999Z"), None);
    let started = in_effect(&gate, "2026-11-20T10:01:00Z");
    assert_eq!(started.unwrap().1, "2026-11-20T10:01:00Z");
    let report = Scene::new(gate, vec![]).report(now(FRIDAY_10));
    assert_eq!(report.wake, Some(at("2026-11-20T10:01:00Z")));
}

/// What closes counts as soon as it is seen, and is over when it says.
#[test]
fn a_request_to_close_a_little_ahead_counts_at_once() {
    let gate = forced(&[(RFC_CLOSE, "2026-11-20T10:01:00Z")]);
    let begins = |gate: &Gate, instant: &str| in_effect(gate, instant).map(|(_, since, _)| since);
    let at_once = at(FRIDAY_10).to_string();
    assert_eq!(begins(&gate, FRIDAY_10), Some(at_once.clone()));
    let gate = accepted(gate, FRIDAY_10);
    assert_eq!(complaints(&gate, FRIDAY_10), [""; 0]);
    for instant in [
        FRIDAY_10,
        "2026-11-20T10:00:59Z",
        "2026-11-20T10:01:00Z",
        "2026-11-20T11:00:59Z",
    ] {
        assert_eq!(begins(&gate, instant), Some(at_once.clone()), "{instant}");
    }
    assert_eq!(in_effect(&gate, "2026-11-20T11:01:00Z"), None);
    let report = Scene::new(gate, vec![]).report(now(FRIDAY_10));
    assert_eq!(report.answer.reason, Reason::Forced);
    assert_eq!(report.wake, Some(at("2026-11-20T11:01:00Z")));
    // One that lies further ahead is refused, and closes nothing.
    let gate = forced(&[(RFC_CLOSE, "2026-11-20T10:01:01Z")]);
    assert_eq!(begins(&gate, FRIDAY_10), None);
}

#[test]
fn a_request_further_ahead_is_refused_and_does_not_become_right_by_waiting() {
    let gate = forced(&[(RFC_OPEN, "2026-11-20T10:01:01Z")]);
    let told = "metadata.annotations[open.gate.fluxcd.io/requestedAt]: \
                Fri 2026-11-20 10:01:01 UTC is in the future; write the current time";
    assert_eq!(complaints(&gate, FRIDAY_10), [told]);
    let gate = accepted(gate, FRIDAY_10);
    for instant in [
        "2026-11-20T10:01:00Z",
        "2026-11-20T10:01:01Z",
        "2026-11-20T10:30:00Z",
    ] {
        assert_eq!(in_effect(&gate, instant), None, "{instant}");
        assert_eq!(complaints(&gate, instant), [told], "{instant}");
    }
}
