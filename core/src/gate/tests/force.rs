//! Forces in both dialects.

use rstest::rstest;
use sluice_crds::Setting;
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};

use super::*;

/// Annotations of a static gate that is closed by default; a force without an end lasts an hour,
/// the longest a day.
fn forced(annotations: &[(&str, &str)]) -> Gate {
    gate("{}", annotations)
}

fn read(gate: &Gate, instant: &str) -> Forces {
    crate::gate::force::read(gate, Identity::Trusted, at(instant))
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
fn a_force_is_in_effect_from_when_it_is_seen(
    #[case] annotations: &[(&str, &str)],
    #[case] state: Setting,
    #[case] until: &str,
) {
    let whole = [annotations, &[(FORCE_BY, "alice"), (FORCE_REASON, "why")]].concat();
    let expected = (state, FRIDAY_10.to_owned(), until.to_owned());
    assert_eq!(in_effect(&forced(&whole), FRIDAY_10), Some(expected));
}

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
    let gate = forced(&[(annotation, since)]);
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

#[test]
fn a_request_a_little_ahead_waits_for_its_instant() {
    let gate = forced(&[(RFC_OPEN, "2026-11-20T10:01:00Z")]);
    assert_eq!(complaints(&gate, FRIDAY_10), [""; 0]);
    assert_eq!(in_effect(&gate, "2026-11-20T10:00:59.999Z"), None);
    let started = in_effect(&gate, "2026-11-20T10:01:00Z");
    assert_eq!(started.unwrap().1, "2026-11-20T10:01:00Z");
    let report = Scene::new(gate, vec![]).report(now(FRIDAY_10));
    assert_eq!(report.wake, Some(at("2026-11-20T10:01:00Z")));
}

#[test]
fn a_request_further_ahead_is_refused_and_does_not_become_right_by_waiting() {
    let mut gate = forced(&[(RFC_OPEN, "2026-11-20T10:01:01Z")]);
    let told = "metadata.annotations[open.gate.fluxcd.io/requestedAt]: \
                Fri 2026-11-20 10:01:01 UTC lies ahead; write the present instant";
    assert_eq!(complaints(&gate, FRIDAY_10), [told]);
    let completion = read(&gate, FRIDAY_10).completion;
    assert!(completion.is_some());
    complete(&mut gate, completion);
    for instant in [
        "2026-11-20T10:01:00Z",
        "2026-11-20T10:01:01Z",
        "2026-11-20T10:30:00Z",
    ] {
        assert_eq!(in_effect(&gate, instant), None, "{instant}");
        assert_eq!(complaints(&gate, instant), [told], "{instant}");
    }
}

#[rstest]
#[case::state(&[(FORCE, "Open"), (FORCE_BY, "a"), (FORCE_REASON, "b")], FORCE, "`Open` is no state; write open or closed")]
#[case::empty_state(&[(FORCE, ""), (FORCE_BY, "a"), (FORCE_REASON, "b")], FORCE, "`` is no state")]
#[case::no_reason(&[(FORCE, "open"), (FORCE_BY, "a")], FORCE_REASON, "it is missing, so the force does not count; say why")]
#[case::blank_reason(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, " ")], FORCE_REASON, "it is missing")]
#[case::nobody(&[(FORCE, "open"), (FORCE_REASON, "b")], FORCE_BY, "it is missing, so the force does not count; write the user name")]
#[case::end_is_a_duration(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2h")], FORCE_UNTIL, "`2h` is no instant; write RFC 3339")]
#[case::end_without_offset(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T18:00:00")], FORCE_UNTIL, "is no instant")]
#[case::end_has_passed(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T10:00:00Z")], FORCE_UNTIL, "the end Fri 2026-11-20 10:00 UTC has passed; write a later end")]
#[case::too_long(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-21T10:00:01Z")], FORCE_UNTIL, "the force would last 24h1s; write an end at most 24h (spec.maxOverride) ahead")]
#[case::end_alone(&[(FORCE_UNTIL, "2026-11-20T18:00:00Z")], FORCE_UNTIL, "it does nothing without sluice.dev/force; write sluice.dev/force too")]
#[case::request(&[(RFC_OPEN, "now")], RFC_OPEN, "`now` is no instant")]
#[case::request_to_close(&[(RFC_CLOSE, "1700000000")], RFC_CLOSE, "is no instant")]
fn nonsense_is_told_at_its_annotation_and_changes_nothing(
    #[case] annotations: &[(&str, &str)],
    #[case] annotation: &str,
    #[case] problem: &str,
) {
    let gate = forced(annotations);
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
    let gate = forced(&[(FORCE, "ajar"), (RFC_OPEN, FRIDAY_10)]);
    assert!(in_effect(&gate, FRIDAY_10).is_some());
    assert_eq!(complaints(&gate, FRIDAY_10).len(), 1);
}

#[rstest]
#[case(&OPEN_FOR_REASON)]
#[case(&[(FORCE, "closed"), (FORCE_BY, "bob"), (FORCE_REASON, "x"), (FORCE_UNTIL, "2026-11-20T12:00:00.5Z")])]
#[case(&[(RFC_OPEN, "2026-11-20T09:59:00Z")])]
#[case(&[(FORCE, "open"), (FORCE_BY, "bob"), (FORCE_REASON, "x"), (RFC_CLOSE, "2026-11-20T10:00:30Z")])]
fn a_force_is_completed_once_and_stays_as_it_was(#[case] annotations: &[(&str, &str)]) {
    let mut gate = forced(annotations);
    let seen = "2026-11-20T10:00:00.123456789Z";
    let first = read(&gate, seen);
    let completion = first.completion.clone().unwrap();
    assert!(completion[FORCE_SEEN].starts_with(seen));
    assert_eq!(
        completion.contains_key(FORCE),
        completion.contains_key(FORCE_UNTIL)
    );
    complete(&mut gate, Some(completion));
    for later in [
        seen,
        "2026-11-20T10:00:31Z",
        "2026-11-20T10:59:59Z",
        "2026-11-21T09:00:00Z",
    ] {
        let again = read(&gate, later);
        assert_eq!(again.completion, None, "{later}");
        assert_eq!(
            again.in_effect(at(later)),
            first.in_effect(at(later)),
            "{later}"
        );
        assert_eq!(again.complaints, first.complaints, "{later}");
    }
}

#[test]
fn a_force_ends_and_stays_ended_even_if_a_backup_brings_it_back() {
    let mut gate = forced(&OPEN_FOR_REASON);
    let completion = read(&gate, FRIDAY_10).completion;
    complete(&mut gate, completion);
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
    let mut gate = open_until("2026-11-21T16:00:00Z");
    let completion = read(&gate, FRIDAY_10).completion;
    complete(&mut gate, completion);
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
#[case::another_reason(FORCE_REASON, "hotfix 4712")]
#[case::another_person(FORCE_BY, "bob@example.com")]
#[case::another_end(FORCE_UNTIL, "2026-11-21T10:29:00Z")]
#[case::another_state(FORCE, "closed")]
#[case::a_request_too(RFC_OPEN, "2026-11-20T10:30:00Z")]
fn other_annotations_are_another_force(#[case] annotation: &str, #[case] value: &str) {
    let mut gate = open_until("2026-11-20T12:00:00Z");
    let completion = read(&gate, FRIDAY_10).completion;
    complete(&mut gate, completion);
    let annotations = gate.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation.into(), value.into());
    let again = read(&gate, "2026-11-20T10:30:00Z");
    let completion = again.completion.as_ref().unwrap();
    assert!(completion[FORCE_SEEN].starts_with("2026-11-20T10:30:00Z "));
    assert_eq!(
        again.in_effect(at("2026-11-20T10:30:00Z")).unwrap().since,
        at("2026-11-20T10:30:00Z")
    );
}

#[rstest]
#[case::of_other_content("2026-11-20T09:00:00Z 000000000000")]
#[case::nonsense("yesterday")]
#[case::empty("")]
fn a_note_that_is_not_about_this_force_does_not_count(#[case] note: &str) {
    let mut gate = forced(&OPEN_FOR_REASON);
    let annotations = gate.metadata.annotations.as_mut().unwrap();
    annotations.insert(FORCE_SEEN.into(), note.into());
    let forces = read(&gate, FRIDAY_10);
    assert_eq!(
        forces.in_effect(at(FRIDAY_10)).unwrap().since,
        at(FRIDAY_10)
    );
    assert!(forces.completion.is_some());
}

#[test]
fn a_note_from_the_future_does_not_count() {
    let mut gate = open_until("2026-11-20T18:00:00Z");
    let completion = read(&gate, "2026-11-20T12:00:00Z").completion;
    complete(&mut gate, completion);
    let set_back = read(&gate, FRIDAY_10);
    assert_eq!(
        set_back.in_effect(at(FRIDAY_10)).unwrap().since,
        at(FRIDAY_10)
    );
}

#[rstest]
#[case::own_over_request((FORCE, "closed"), (RFC_OPEN, FRIDAY_10))]
#[case::request_over_own((FORCE, "open"), (RFC_CLOSE, FRIDAY_10))]
#[case::request_over_request((RFC_OPEN, FRIDAY_10), (RFC_CLOSE, "2026-11-20T09:30:00Z"))]
fn closed_beats_open(#[case] one: (&str, &str), #[case] other: (&str, &str)) {
    let gate = forced(&[one, other, (FORCE_BY, "a"), (FORCE_REASON, "b")]);
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
