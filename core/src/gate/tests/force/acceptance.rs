//! When a force counts: what the controller notes, and what it means.

use rstest::rstest;
use sluice_crds::Setting;

use super::*;
use crate::time::clock::Trust;

#[rstest]
#[case::without_an_end(&OPEN_FOR_REASON)]
#[case::with_an_end(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T18:00:00Z")])]
#[case::requested(&[(RFC_OPEN, FRIDAY_10)])]
fn one_that_opens_counts_once_it_is_accepted(#[case] annotations: &[(&str, &str)]) {
    let mut scene = Scene::new(forced(annotations), vec![]);
    for instant in [FRIDAY_10, "2026-11-20T10:30:00Z"] {
        assert_eq!(answer(&scene.view(), now(instant)).state, State::Closed);
        let asked = read(&scene.gate, instant);
        let asked = asked.asked_for(at(instant)).unwrap();
        assert_eq!((asked.state, asked.accepted), (Setting::Open, false));
    }
    scene.gate = accepted(scene.gate, "2026-11-20T10:30:00Z");
    assert_eq!(
        answer(&scene.view(), now("2026-11-20T10:30:00Z")).state,
        State::Open
    );
}

#[rstest]
#[case::without_an_end(&[(FORCE, "closed"), (FORCE_BY, "a"), (FORCE_REASON, "b")])]
#[case::with_an_end(&[(FORCE, "closed"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-20T18:00:00Z")])]
#[case::requested(&[(RFC_CLOSE, FRIDAY_10)])]
fn one_that_closes_counts_at_once(#[case] annotations: &[(&str, &str)]) {
    let mut gate = forced(annotations);
    gate.spec.default = Setting::Open;
    let scene = Scene::new(gate, vec![]);
    for instant in [FRIDAY_10, "2026-11-20T10:59:00Z"] {
        let answer = answer(&scene.view(), now(instant));
        assert_eq!(
            (answer.state, answer.reason),
            (State::Closed, Reason::Forced)
        );
    }
}

/// Nobody knows since when: the words must not change from one try to the next.
#[rstest]
#[case::open(&OPEN_FOR_REASON, "closed by default: no gatekeeper keeps the gate. \
    metadata.annotations[sluice.dev/force-seen]: the controller has not accepted the force open \
    by alice@example.com, so it does not count yet: cannot patch gates")]
#[case::closed(&[(FORCE, "closed"), (FORCE_BY, "bob"), (FORCE_REASON, "b")], "forced closed by bob: b. \
    metadata.annotations[sluice.dev/force-seen]: the controller has not accepted the force closed \
    by bob, so it counts, but its end is not fixed yet: cannot patch gates")]
#[case::too_long(&[(FORCE, "open"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-28T10:00:00Z")],
    "closed by default: no gatekeeper keeps the gate. \
    metadata.annotations[sluice.dev/force-until]: the force would last longer than 24h; write an \
    end at most 24h (spec.maxOverride) ahead")]
fn one_that_cannot_be_accepted_is_told_and_does_not_slide(
    #[case] annotations: &[(&str, &str)],
    #[case] message: &str,
) {
    let mut scene = Scene::new(forced(annotations), vec![]);
    let uncompleted = |scene: &Scene, instant| {
        report_uncompleted(&scene.view(), now(instant), "cannot patch gates")
    };
    let first = uncompleted(&scene, FRIDAY_10);
    assert_eq!(first.status.message.as_deref(), Some(message));
    assert_eq!(first.completion, None);
    assert_eq!(first.status.r#override, None);
    assert_eq!(first.status.upcoming, []);
    scene.write(first);
    for later in ["2026-11-20T10:00:01Z", "2026-11-25T10:00:00Z"] {
        let again = uncompleted(&scene, later);
        assert!(!again.changed, "{later}: {:?}", again.status);
    }
}

#[test]
fn a_lost_clock_accepts_nothing_and_says_so() {
    let by = |seconds| Now {
        trust: Trust::from_difference(jiff::SignedDuration::from_secs(seconds)),
        ..now(FRIDAY_10)
    };
    let scene = Scene::new(forced(&OPEN_FOR_REASON), vec![]);
    let lost = scene.report(by(-90));
    assert_eq!(
        (lost.answer.state, &lost.completion),
        (State::Closed, &None)
    );
    let told = lost.status.message.unwrap();
    let words = "so it does not count yet: its clock differs by -90s from the API server's";
    assert!(told.contains(words), "{told}");
    // What is reported only is less than what clocks may be apart.
    assert_eq!(scene.report(by(-20)).answer.state, State::Open);
}

/// By a clock that is behind, what is right looks wrong: that must not be for good.
#[rstest]
#[case::a_request(&[(RFC_CLOSE, "2026-11-20T12:00:00Z")])]
#[case::the_longest(&[(FORCE, "closed"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-21T12:00:00Z")])]
fn nothing_is_refused_for_good_by_a_clock_that_is_off(#[case] annotations: &[(&str, &str)]) {
    let scene = Scene::new(forced(annotations), vec![]);
    for seconds in [-10, -7200] {
        let trust = Trust::from_difference(jiff::SignedDuration::from_secs(seconds));
        let report = scene.report(Now {
            trust,
            ..now(FRIDAY_10)
        });
        assert_eq!(report.completion, None);
        assert_eq!(report.answer.reason, Reason::Default);
    }
    assert!(scene.report(now(FRIDAY_10)).completion.is_some());
    let right = scene.report(now("2026-11-20T12:00:00Z"));
    assert_eq!(right.answer.reason, Reason::Forced);
}

/// The clock that wrote the end may be ahead of ours.
#[test]
fn the_longest_force_may_be_a_minute_longer() {
    let gate = accepted(open_until("2026-11-21T10:01:00Z"), FRIDAY_10);
    assert!(in_effect(&gate, FRIDAY_10).is_some());
    assert_eq!(in_effect(&gate, "2026-11-21T10:01:00Z"), None);
}

#[rstest]
#[case(&OPEN_FOR_REASON)]
#[case(&[(FORCE, "closed"), (FORCE_BY, "bob"), (FORCE_REASON, "x"), (FORCE_UNTIL, "2026-11-20T12:00:00.5Z")])]
#[case(&[(RFC_OPEN, "2026-11-20T09:59:00Z")])]
#[case(&[(FORCE, "open"), (FORCE_BY, "bob"), (FORCE_REASON, "x"), (RFC_CLOSE, "2026-11-20T10:00:30Z")])]
fn a_force_is_completed_once_and_stays_as_it_was(#[case] annotations: &[(&str, &str)]) {
    let mut gate = forced(annotations);
    let at_first = "2026-11-20T10:00:00.123456789Z";
    let first = read(&gate, at_first);
    let completion = first.completion.clone().unwrap();
    for (annotation, name) in [(FORCE, "force"), (RFC_OPEN, "open"), (RFC_CLOSE, "close")] {
        let noted = completion.contains_key(annotation).then_some(at_first);
        let noted = noted.unwrap_or_default();
        assert_eq!(seen(&completion, name), noted, "{name}");
    }
    assert_eq!(
        completion.contains_key(FORCE),
        completion.contains_key(FORCE_UNTIL)
    );
    complete(&mut gate, Some(completion));
    let first = read(&gate, at_first);
    for later in [
        at_first,
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

#[rstest]
#[case::another_reason(FORCE_REASON, "hotfix 4712")]
#[case::another_person(FORCE_BY, "bob@example.com")]
#[case::another_end(FORCE_UNTIL, "2026-11-21T10:29:00Z")]
#[case::another_state(FORCE, "closed")]
fn other_annotations_are_another_force(#[case] annotation: &str, #[case] value: &str) {
    const LATER: &str = "2026-11-20T10:30:00Z";
    let mut gate = accepted(open_until("2026-11-20T12:00:00Z"), FRIDAY_10);
    let annotations = gate.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation.into(), value.into());
    let again = read(&gate, LATER);
    assert!(!again.asked_for(at(LATER)).unwrap().accepted);
    let completion = again.completion.as_ref().unwrap();
    assert_eq!(seen(completion, "force"), LATER);
    assert_eq!(in_effect(&accepted(gate, LATER), LATER).unwrap().1, LATER);
}

#[rstest]
#[case::of_another_force(r#""is":""#, r#""is":"0"#)]
#[case::of_other_words(r#""with":""#, r#""with":"0"#)]
#[case::of_another_kind(r#"{"force":"#, r#"{"open":"#)]
#[case::with_a_window_that_is_not_asked_for(r#""at":"#, r#""window":"1h","at":"#)]
#[case::nonsense(r#"{"force":"#, "yesterday")]
fn a_note_that_is_not_about_this_force_does_not_count(#[case] part: &str, #[case] other: &str) {
    let mut gate = accepted(open_until("2026-11-20T12:00:00Z"), FRIDAY_10);
    let annotations = gate.metadata.annotations.as_mut().unwrap();
    let note = annotations[FORCE_SEEN].replacen(part, other, 1);
    assert_ne!(note, annotations[FORCE_SEEN]);
    annotations.insert(FORCE_SEEN.into(), note);
    let forces = read(&gate, FRIDAY_10);
    assert_eq!(forces.in_effect(at(FRIDAY_10)), None);
    assert!(forces.completion.is_some());
}

#[rstest]
#[case::without_the_window("")]
#[case::of_another_form(r#","window":1"#)]
#[case::of_no_length(r#","window":"""#)]
fn the_note_of_a_request_has_its_window(#[case] rest: &str) {
    let mut gate = accepted(forced(&[(RFC_OPEN, FRIDAY_10)]), FRIDAY_10);
    let annotations = gate.metadata.annotations.as_mut().unwrap();
    let note = annotations[FORCE_SEEN].replace(r#","window":"1h""#, rest);
    annotations.insert(FORCE_SEEN.into(), note);
    assert_eq!(in_effect(&gate, FRIDAY_10), None);
    assert!(in_effect(&accepted(gate, FRIDAY_10), FRIDAY_10).is_some());
}

#[test]
fn a_note_from_the_future_does_not_count() {
    let gate = accepted(open_until("2026-11-20T18:00:00Z"), "2026-11-20T12:00:00Z");
    assert_eq!(in_effect(&gate, FRIDAY_10), None);
    let again = accepted(gate, FRIDAY_10);
    assert_eq!(in_effect(&again, FRIDAY_10).unwrap().1, FRIDAY_10);
}

/// What is refused and cannot be noted is looked at when it becomes right.
#[rstest]
#[case::too_long(&[(FORCE, "closed"), (FORCE_BY, "a"), (FORCE_REASON, "b"), (FORCE_UNTIL, "2026-11-21T16:01:00Z")], "2026-11-20T16:00:00Z")]
#[case::ahead(&[(RFC_CLOSE, "2026-11-20T10:02:00Z")], "2026-11-20T10:01:00Z")]
fn a_refusal_that_is_not_noted_ripens(#[case] annotations: &[(&str, &str)], #[case] ripe: &str) {
    let scene = Scene::new(forced(annotations), vec![]);
    let refused = report_uncompleted(&scene.view(), now(FRIDAY_10), "cannot patch gates");
    assert_eq!(refused.answer.reason, Reason::Default);
    assert_eq!(refused.wake, Some(at(ripe)));
    assert_eq!(complaints(&scene.gate, ripe), [""; 0]);
}
