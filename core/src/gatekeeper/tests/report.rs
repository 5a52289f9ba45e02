//! Reports: quiet while nothing changes.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const SPECS: [&str; 9] = [
    OFFICE,
    FRIDAYS,
    FREEZE,
    "{schedule: {open: [{cron: '*/7 * * * *', duration: 3m}], closed: [{cron: 0 0 29 2 *, duration: 24h}]}}",
    "{schedule: {timeZone: America/Santiago, open: [{cron: 0 6 * * SAT#3, duration: 6h, lastStart: 1h}]}}",
    "{manual: {state: open, until: '2026-12-01T00:00:00Z'}}",
    "{manual: {state: closed, reason: incident}}",
    "{suspend: true, manual: {state: open}}",
    "{schedule: {open: [{cron: 0 9 * * *, duration: 2 hours}]}}",
];

fn second(text: &str) -> i64 {
    at(text).as_second()
}

/// A gatekeeper with what is known of its calendars around `at`.
fn keepers(at: Timestamp) -> impl Strategy<Value = Keeper> {
    let later = select(vec![-1i64, 1, 3600, 86_400]);
    let good_until =
        later.prop_map(move |seconds| (at + SignedDuration::from_secs(seconds)).to_string());
    let readings = prop_oneof![
        Just(vec![]),
        Just(vec![christmas(None)]),
        good_until.prop_map(|end| vec![christmas(Some(&end))]),
        Just(vec![Reading::Unavailable("no such ConfigMap".into())]),
    ];
    let on_calendars = (readings, any::<bool>()).prop_map(|(readings, open)| {
        let on_error = if open { "open" } else { "closed" };
        (
            HOLIDAYS.replacen('{', &format!("{{onError: {on_error}, "), 1),
            readings,
        )
    });
    let others = select(&SPECS[..]).prop_map(|spec| (spec.to_owned(), vec![]));
    prop_oneof![2 => others, 1 => on_calendars]
        .prop_map(move |(spec, readings)| keeper_with(&spec, readings, &at.to_string()))
}

fn looks() -> impl Strategy<Value = (Keeper, Now)> {
    let seconds = second("2026-08-01T00:00:00Z")..second("2027-04-01T00:00:00Z");
    let clocks = select(vec![0, 0, 0, 10, 60]);
    (seconds, 0..1_000_000_000i32, clocks).prop_flat_map(|(second, nanos, off)| {
        let at = Timestamp::new(second, nanos).unwrap();
        let trust = Trust::from_difference(SignedDuration::from_secs(off));
        (keepers(at), Just(Now { at, trust }))
    })
}

/// As many cases as `PROPTEST_CASES` says, or few enough for every day.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(100),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// If nothing changes, nothing is written before the instant that the report names; nor for a
    /// gatekeeper that was prepared again.
    #[test]
    fn what_was_written_stands_until_the_wake(
        (keeper, now) in looks(),
        permille in 0..1000i64,
        anew in any::<bool>(),
    ) {
        let first = super::super::report(&keeper, now);
        prop_assert!(first.changed);
        prop_assert!(first.wake.is_none_or(|wake| now.at < wake));
        let end = first.wake.unwrap_or(now.at + SignedDuration::from_hours(1000));
        let part = end.duration_since(now.at).as_millis() * i128::from(permille) / 1000;
        let part = SignedDuration::from_millis_i128(part);
        for later in [now.at, now.at + part, end - SignedDuration::from_nanos(1)] {
            let from = if anew { later } else { now.at };
            let keeper = written(&keeper, first.status.clone(), from);
            let again = super::super::report(&keeper, now.moved_to(later));
            prop_assert_eq!(&again.status, &first.status, "at {}", later);
            prop_assert!(!again.changed, "at {}", later);
            prop_assert_eq!(again.wake, first.wake, "at {}", later);
        }
    }

    /// A verdict's words and instants are those of the opinion.
    #[test]
    fn opinion_and_verdict_agree((keeper, now) in looks()) {
        let (opinion, verdict) = (keeper.opinion(now), keeper.verdict(now));
        prop_assert_eq!(opinion.state, verdict.state);
        prop_assert_eq!(opinion.reason.as_str(), verdict.reason);
        prop_assert!(opinion.until.is_none_or(|until| now.at < until));
        prop_assert!(!verdict.message.is_empty());
    }
}

#[test]
fn a_transition_keeps_the_time_of_conditions_that_did_not_change() {
    let office = keeper(OFFICE);
    let open = status(&office, FRIDAY_10);
    let office = written(&office, open.clone(), at(FRIDAY_10));
    let closed = super::super::report(&office, now("2026-11-20T17:00:00Z"));
    assert!(closed.changed);
    let (before, after) = (&open.conditions[0], &closed.status.conditions[0]);
    assert_eq!(before.last_transition_time, after.last_transition_time);
    assert_ne!(before.reason, after.reason);
    assert_eq!(
        closed.status.observed_at.unwrap().0,
        at("2026-11-20T17:00:00Z")
    );
}

#[test]
fn a_look_that_was_asked_for_is_answered_once() {
    let office = keeper(OFFICE);
    let mut object = Gatekeeper::clone(office.object());
    object.status = Some(status(&office, FRIDAY_10));
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert("reconcile.fluxcd.io/requestedAt".into(), "now".into());
    let asked = Keeper::new(Arc::new(object), Evidence::default(), at(FRIDAY_10));
    let answered = super::super::report(&asked, now("2026-11-20T10:05:00Z"));
    assert!(answered.changed);
    assert_eq!(
        answered.status.last_handled_reconcile_at.as_deref(),
        Some("now")
    );
    let again = written(&asked, answered.status, at(FRIDAY_10));
    assert!(!super::super::report(&again, now("2026-11-20T10:06:00Z")).changed);
}

#[test]
fn another_generation_is_written_even_if_it_says_the_same() {
    let office = keeper(OFFICE);
    let mut object = Gatekeeper::clone(office.object());
    object.status = Some(status(&office, FRIDAY_10));
    object.metadata.generation = Some(4);
    let next = Keeper::new(Arc::new(object), Evidence::default(), at(FRIDAY_10));
    let report = super::super::report(&next, now(FRIDAY_10));
    assert!(report.changed);
    assert_eq!(report.status.observed_generation, Some(4));
}

/// How many objects there are is no news, which of them is not as it should be is.
#[test]
fn of_objects_the_first_that_is_wrong_is_written() {
    use crate::gatekeeper::objects::{Observed, Sighting, Unsatisfied};

    const SPEC: &str = "{objects: {serviceAccountName: reader, of: [{apiVersion: apps/v1, kind: Deployment, selector: {}}]}}";
    let seen = |satisfied, wrong: &str| {
        Evidence::of(Observed::Seen(Sighting {
            seen: 9,
            satisfied,
            revision: None,
            first_unsatisfied: Some(Unsatisfied::Missing(wrong.to_owned())),
            satisfied_since: None,
            digest: None,
            good_until: at("2026-11-20T10:30:00Z"),
        }))
    };
    let keeper = Keeper::new(Arc::new(object(SPEC)), seen(1, "a"), at(FRIDAY_10));
    let written = written(&keeper, status(&keeper, FRIDAY_10), at(FRIDAY_10));
    let changed = |evidence| {
        let again = Keeper::new(Arc::clone(written.object()), evidence, at(FRIDAY_10));
        super::super::report(&again, now(FRIDAY_10)).changed
    };
    assert!(!changed(seen(1, "a")));
    assert!(!changed(seen(2, "a")));
    assert!(changed(seen(2, "b")));
}
