//! Forces in both dialects.

use rstest::rstest;
use sluice_crds::Setting;
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};

use super::*;

mod acceptance;
mod beside;
mod nonsense;
mod owner;
mod requests;

/// Annotations of a static gate that is closed by default; a force without an end lasts an hour,
/// the longest a day.
fn forced(annotations: &[(&str, &str)]) -> Gate {
    gate("{}", annotations)
}

fn read(gate: &Gate, instant: &str) -> Forces {
    crate::gate::force::read(gate, Identity::Trusted, at(instant))
}

/// The gate as it is when the controller has seen it at `instant`.
fn accepted(mut gate: Gate, instant: &str) -> Gate {
    let completion = read(&gate, instant).completion;
    assert!(completion.is_some());
    complete(&mut gate, completion);
    gate
}

/// The state that is forced, since when, until when.
fn in_effect(gate: &Gate, instant: &str) -> Option<(Setting, String, String)> {
    let forces = read(gate, instant);
    let force = forces.in_effect(at(instant))?;
    Some((
        force.state,
        force.since.to_string(),
        force.until.to_string(),
    ))
}

/// When the controller has seen the force on the gate of that name first, as it has noted it.
fn seen(annotations: &std::collections::BTreeMap<String, String>, force: &str) -> String {
    let notes: serde_json::Value = serde_json::from_str(&annotations[FORCE_SEEN]).unwrap();
    notes[force]["at"].as_str().unwrap_or_default().to_owned()
}

fn complaints(gate: &Gate, instant: &str) -> Vec<String> {
    let forces = read(gate, instant);
    forces.complaints.iter().map(ToString::to_string).collect()
}

const OPEN_FOR_REASON: [(&str, &str); 3] = [
    (FORCE, "open"),
    (FORCE_BY, "alice@example.com"),
    (FORCE_REASON, "hotfix 4711"),
];

fn open_until(until: &str) -> Gate {
    let [state, by, reason] = OPEN_FOR_REASON;
    forced(&[state, by, reason, (FORCE_UNTIL, until)])
}

#[rstest]
#[case::an_end(&[(FORCE, "open"), (FORCE_UNTIL, "2026-11-20T18:00:00Z")], Setting::Open, "2026-11-20T18:00:00Z")]
#[case::no_end(&[(FORCE, "open")], Setting::Open, "2026-11-20T11:00:00Z")]
#[case::closed(&[(FORCE, "closed")], Setting::Closed, "2026-11-20T11:00:00Z")]
#[case::an_end_with_an_offset(&[(FORCE, "open"), (FORCE_UNTIL, "2026-11-20T18:00:00+01:00")], Setting::Open, "2026-11-20T17:00:00Z")]
#[case::as_long_as_may_be(&[(FORCE, "open"), (FORCE_UNTIL, "2026-11-21T10:00:00Z")], Setting::Open, "2026-11-21T10:00:00Z")]
fn a_force_is_in_effect_from_when_it_is_accepted(
    #[case] annotations: &[(&str, &str)],
    #[case] state: Setting,
    #[case] until: &str,
) {
    let whole = [annotations, &[(FORCE_BY, "alice"), (FORCE_REASON, "why")]].concat();
    let expected = (state, FRIDAY_10.to_owned(), until.to_owned());
    let gate = accepted(forced(&whole), FRIDAY_10);
    assert_eq!(in_effect(&gate, FRIDAY_10), Some(expected));
}

#[test]
fn a_force_ends_and_stays_ended_even_if_a_backup_brings_it_back() {
    let gate = accepted(forced(&OPEN_FOR_REASON), FRIDAY_10);
    assert!(in_effect(&gate, "2026-11-20T10:59:59.999999999Z").is_some());
    for late in [
        "2026-11-20T11:00:00Z",
        "2026-11-20T11:00:01Z",
        "2027-11-20T10:30:00Z",
    ] {
        assert_eq!(in_effect(&gate, late), None, "{late}");
        let report = Scene::new(gate.clone(), vec![]).report(now(late));
        assert_eq!(report.answer.reason, Reason::Default, "{late}");
        assert_eq!(report.completion, None, "{late}");
        assert_eq!(report.status.r#override, None, "{late}");
    }
}

#[test]
fn one_that_lasts_too_long_does_not_become_right_by_waiting() {
    let gate = accepted(open_until("2026-11-21T16:00:00Z"), FRIDAY_10);
    let told = complaints(&gate, FRIDAY_10);
    assert!(told[0].contains("would last 30h"), "{told:?}");
    for later in [
        "2026-11-20T16:00:01Z",
        "2026-11-21T15:59:59Z",
        "2026-11-21T16:00:00Z",
    ] {
        assert_eq!(in_effect(&gate, later), None, "{later}");
        assert_eq!(complaints(&gate, later), told, "{later}");
    }
}

#[rstest]
#[case::own_over_request((FORCE, "closed"), (RFC_OPEN, FRIDAY_10))]
#[case::request_over_own((FORCE, "open"), (RFC_CLOSE, FRIDAY_10))]
#[case::request_over_request((RFC_OPEN, FRIDAY_10), (RFC_CLOSE, "2026-11-20T09:30:00Z"))]
fn closed_beats_open(#[case] one: (&str, &str), #[case] other: (&str, &str)) {
    let gate = forced(&[one, other, (FORCE_BY, "a"), (FORCE_REASON, "b")]);
    assert_eq!(in_effect(&gate, FRIDAY_10).unwrap().0, Setting::Closed);
    let gate = accepted(gate, FRIDAY_10);
    assert_eq!(in_effect(&gate, FRIDAY_10).unwrap().0, Setting::Closed);
}

#[test]
fn when_closed_runs_out_open_may_still_hold() {
    let annotations = [(FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE, "open")];
    let requests = [
        (FORCE_UNTIL, "2026-11-20T18:00:00Z"),
        (RFC_CLOSE, FRIDAY_10),
    ];
    let mut scene = Scene::new(forced(&[&annotations[..], &requests].concat()), vec![]);
    let report = scene.report(now(FRIDAY_10));
    assert_eq!(report.answer.state, State::Closed);
    assert_eq!(report.wake, Some(at("2026-11-20T11:00:00Z")));
    scene.write(report);
    assert_eq!(scene.says("2026-11-20T11:00:00Z").0, State::Open);
    assert_eq!(scene.says("2026-11-20T18:00:00Z").0, State::Closed);
}

#[test]
fn one_by_nobody_verified_does_not_count_and_says_so() {
    let mut scene = Scene::new(forced(&OPEN_FOR_REASON), vec![]);
    scene.identity = Identity::Unverified;
    let (state, reason, message) = scene.says(FRIDAY_10);
    assert_eq!((state, reason.as_str()), (State::Closed, "Default"));
    assert!(message.contains("identity nobody verified"), "{message}");
    assert!(message.contains("--trust-unverified-identity"), "{message}");
    assert_eq!(scene.report(now(FRIDAY_10)).completion, None);
    scene.identity = Identity::Verified;
    assert_eq!(scene.says(FRIDAY_10).0, State::Open);
}

#[test]
fn a_message_says_who_why_and_until_when() {
    let scene = Scene::new(open_until("2026-11-20T18:00:00Z"), vec![]);
    assert_eq!(
        scene.says(FRIDAY_10).2,
        "forced open by alice@example.com until Fri 2026-11-20 18:00 UTC: hotfix 4711"
    );
    let status = scene.report(now(FRIDAY_10)).status;
    let told = status.r#override.unwrap();
    assert_eq!(
        (told.state, told.by.as_str()),
        (Setting::Open, "alice@example.com")
    );
    assert_eq!(told.until.0, at("2026-11-20T18:00:00Z"));
}
