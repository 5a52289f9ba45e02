//! Reports: quiet while nothing changes, and right about since when.

use proptest::prelude::*;
use proptest::sample::select;
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};

use super::*;
use crate::gatekeeper::schedule::Reading;
use crate::time::clock::Trust;

/// Gatekeepers of every kind and in every trouble, by name.
const KEEPERS: [(&str, &str); 13] = [
    ("office", OFFICE),
    ("fridays", FRIDAYS),
    ("open", OPEN),
    ("closed", CLOSED),
    ("unread", HOLIDAYS),
    (
        "freeze",
        "{schedule: {timeZone: America/New_York, closed: [{cron: '* * 20-30 11 *'}]}}",
    ),
    (
        "year-end",
        "{schedule: {closed: [{from: '2026-12-19T00:00:00', until: '2027-01-04T00:00:00'}]}}",
    ),
    (
        "saturday",
        "{schedule: {open: [{cron: 0 6 * * SAT#3, duration: 6h, lastStart: 1h}]}}",
    ),
    (
        "often",
        "{schedule: {open: [{cron: '*/7 * * * *', duration: 3m}]}}",
    ),
    (
        "seldom",
        "{schedule: {open: [{cron: 0 0 29 2 *, duration: 24h}]}}",
    ),
    (
        "until",
        "{manual: {state: open, until: '2026-12-01T00:00:00Z'}}",
    ),
    ("paused", "{suspend: true, manual: {state: open}}"),
    (
        "broken",
        "{schedule: {timeZone: Mars/Olympus, open: [{cron: 0 9 * * *}]}}",
    ),
];

fn second(text: &str) -> i64 {
    at(text).as_second()
}

/// A gate that names some of [`KEEPERS`] and perhaps one that is missing.
fn gates() -> impl Strategy<Value = Gate> {
    let names: Vec<&str> = KEEPERS
        .iter()
        .map(|keeper| keeper.0)
        .chain(["missing"])
        .collect();
    let listed = prop::sample::subsequence(names, 0..=4);
    (listed, any::<bool>(), prop::bool::weighted(0.1), any::<bool>()).prop_map(
        |(listed, all, suspend, open)| {
            let require = if all { "all" } else { "oneOf" };
            let default = if listed.is_empty() && open { "open" } else { "closed" };
            let names: Vec<String> = listed.iter().map(|name| format!("{{name: {name}}}")).collect();
            let names = names.join(", ");
            gate(&format!("{{require: {require}, default: {default}, suspend: {suspend}, gatekeepers: [{names}]}}"), &[])
        },
    )
}

/// Annotations as people write them around an instant, right and wrong.
fn annotations(near: Timestamp) -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let around = move |seconds: i64| (near + jiff::SignedDuration::from_secs(seconds)).to_string();
    let instants = select(vec![
        -7200i64, -1800, -1, 0, 30, 60, 61, 3600, 86_400, 90_000,
    ]);
    let state = select(vec!["open", "closed", "ajar"]);
    let own = (
        state,
        prop::option::of(instants.clone()),
        prop::bool::weighted(0.8),
    )
        .prop_map(move |(state, until, reason)| {
            let mut all = vec![(FORCE, state.to_owned()), (FORCE_BY, "alice".to_owned())];
            all.extend(until.map(|until| (FORCE_UNTIL, around(until))));
            all.extend(reason.then(|| (FORCE_REASON, "why".to_owned())));
            all
        });
    let request = |annotation| {
        instants
            .clone()
            .prop_map(move |seconds| vec![(annotation, around(seconds))])
    };
    prop_oneof![
        3 => Just(Vec::new()),
        2 => own.clone(),
        1 => request(RFC_OPEN),
        1 => request(RFC_CLOSE),
        1 => (own, request(RFC_OPEN)).prop_map(|(own, request)| [own, request].concat()),
    ]
}

fn scenes() -> impl Strategy<Value = (Scene, Now)> {
    let instants = second("2026-08-01T00:00:00Z")..second("2027-04-01T00:00:00Z");
    let clocks = select(vec![0, 0, 0, 10, 60]);
    (gates(), instants, 0..1_000_000_000i32, clocks).prop_flat_map(|(gate, second, nanos, off)| {
        let at = Timestamp::new(second, nanos).unwrap();
        let trust = Trust::from_difference(jiff::SignedDuration::from_secs(off));
        let identity = select(vec![
            Identity::Verified,
            Identity::Verified,
            Identity::Unverified,
        ]);
        (annotations(at), identity).prop_map(move |(annotations, identity)| {
            let mut gate = gate.clone();
            let owned = annotations
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            gate.metadata.annotations = Some(owned.collect());
            let mut scene = Scene::new(gate, keepers(at));
            scene.identity = identity;
            (scene, Now { at, trust })
        })
    })
}

fn keepers(from: Timestamp) -> Vec<Keeper> {
    let keeper = |(name, spec)| keeper_with(name, spec, Evidence::default(), from);
    KEEPERS.map(keeper).into()
}

/// As many cases as `PROPTEST_CASES` says, or few enough for every day.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(60),
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
        (mut scene, now) in scenes(),
        permille in 0..1000i64,
        anew in any::<bool>(),
    ) {
        let first = scene.report(now);
        prop_assert!(first.changed);
        prop_assert!(first.wake.is_none_or(|wake| now.at < wake));
        let (answer, wake) = (first.answer, first.wake);
        scene.write(first);
        let end = wake.unwrap_or(now.at + jiff::SignedDuration::from_hours(1000));
        let part = end.duration_since(now.at).as_millis() * i128::from(permille) / 1000;
        let part = jiff::SignedDuration::from_millis_i128(part);
        let last = end - jiff::SignedDuration::from_nanos(1);
        for later in [now.at, now.at + part, last] {
            if anew {
                scene.keepers = keepers(later);
            }
            let again = scene.report(now.moved_to(later));
            prop_assert_eq!(&again.status, scene.gate.status.as_ref().unwrap(), "at {}", later);
            prop_assert!(!again.changed, "at {}", later);
            prop_assert_eq!(again.completion, None, "at {}", later);
            prop_assert_eq!(again.answer, answer, "at {}", later);
            prop_assert_eq!(again.wake, wake, "at {}", later);
        }
    }

    /// Nor where the API server does not let us complete the annotations of a force, however often
    /// that is tried.
    #[test]
    fn what_cannot_be_completed_stands_until_the_wake(
        (mut scene, now) in scenes(),
        permille in 0..1000i64,
    ) {
        let uncompleted =
            |scene: &Scene, now| report_uncompleted(&scene.view(), now, "cannot patch gates");
        let first = uncompleted(&scene, now);
        let end = first.wake.unwrap_or(now.at + jiff::SignedDuration::from_hours(1000));
        prop_assert_eq!(&first.completion, &None);
        let wake = first.wake;
        scene.write(first);
        let part = end.duration_since(now.at).as_millis() * i128::from(permille) / 1000;
        let later = now.at + jiff::SignedDuration::from_millis_i128(part);
        let again = uncompleted(&scene, now.moved_to(later));
        prop_assert!(!again.changed, "at {}: {:?}", later, again.status);
        prop_assert_eq!(again.wake, wake, "at {}", later);
    }

    /// The changes that a report foretells are those that come.
    #[test]
    fn what_is_foretold_comes((mut scene, now) in scenes()) {
        let report = scene.report(now);
        // By a clock that is off nothing is refused for good: it may count yet.
        let message = report.status.message.clone().unwrap();
        let refused = message.contains("would last") || message.contains("is in the future");
        prop_assume!(now.trust == Trust::Good || !refused);
        let foretold = report.status.upcoming.clone();
        scene.write(report);
        for change in foretold {
            // Statuses have whole seconds.
            let second = jiff::SignedDuration::from_secs(1);
            let at = |instant| answer(&scene.view(), now.moved_to(instant)).state;
            prop_assert_eq!(at(change.at.0 + second), change.state);
            if change.at.0 - second > now.at {
                prop_assert_ne!(at(change.at.0 - second), change.state);
            }
        }
    }
}

fn office_gate() -> Scene {
    Scene::new(
        gate("{gatekeepers: [{name: office}]}", &[]),
        vec![keeper("office", OFFICE)],
    )
}

#[test]
fn a_transition_is_written_at_its_instant_and_since_is_kept() {
    let mut scene = office_gate();
    let opened = scene.report(now(FRIDAY_10));
    assert_eq!(opened.status.since.as_ref().unwrap().0, at(FRIDAY_10));
    let wake = opened.wake.unwrap();
    assert_eq!(wake, at("2026-11-20T17:00:00Z"));
    scene.write(opened);
    let closed = scene.report(Now::given(wake));
    assert!(closed.changed);
    assert_eq!(closed.status.state, Some(State::Closed));
    assert_eq!(closed.status.since.as_ref().unwrap().0, wake);
    scene.write(closed);
    // Another reason, the same state.
    scene.gate.spec.suspend = true;
    let suspended = scene.report(now("2026-11-20T18:00:00Z"));
    assert!(suspended.changed);
    assert_eq!(suspended.status.since.unwrap().0, wake);
}

#[test]
fn since_is_as_foretold_if_nobody_was_there() {
    let mut scene = office_gate();
    let report = scene.report(now(FRIDAY_10));
    scene.write(report);
    let late = scene.report(now("2026-11-20T18:30:00Z"));
    assert_eq!(late.status.since.unwrap().0, at("2026-11-20T17:00:00Z"));
    let much_later = scene.report(now("2026-11-24T12:00:00Z"));
    assert_eq!(
        much_later.status.since.unwrap().0,
        at(FRIDAY_10),
        "open before and after"
    );
}

#[test]
fn a_look_that_was_asked_for_is_answered_in_the_status() {
    let mut scene = office_gate();
    let report = scene.report(now(FRIDAY_10));
    scene.write(report);
    let annotations = scene.gate.metadata.annotations.as_mut().unwrap();
    annotations.insert("reconcile.fluxcd.io/requestedAt".into(), "soon".into());
    let asked = scene.report(now("2026-11-20T10:05:00Z"));
    assert!(asked.changed);
    assert_eq!(
        asked.status.last_handled_reconcile_at.as_deref(),
        Some("soon")
    );
    scene.write(asked);
    assert!(!scene.report(now("2026-11-20T10:06:00Z")).changed);
}

#[test]
fn a_new_generation_is_answered_and_a_refused_spec_stalls() {
    let mut scene = office_gate();
    let report = scene.report(now(FRIDAY_10));
    scene.write(report);
    scene.gate.metadata.generation = Some(2);
    assert!(scene.report(now(FRIDAY_10)).changed);
    scene.gate.spec.window = "2d".into();
    let status = scene.report(now(FRIDAY_10)).status;
    let said: Vec<_> = status
        .conditions
        .iter()
        .map(|c| (c.type_.as_str(), c.status.as_str()))
        .collect();
    assert_eq!(
        said,
        [("Ready", "False"), ("Opened", "False"), ("Stalled", "True")]
    );
    let message = status.message.unwrap();
    assert!(
        message.starts_with("the spec is refused: spec.window: "),
        "{message}"
    );
}

#[test]
fn a_restart_without_the_missing_calendar_writes_nothing() {
    let reading = Reading::Unavailable("there is no ConfigMap days".into());
    let before = keeper_with(
        "holidays",
        HOLIDAYS,
        Evidence::of(vec![reading]),
        at(FRIDAY_10),
    );
    let mut object = Gatekeeper::clone(before.object());
    object.status = Some(crate::gatekeeper::report(&before, now(FRIDAY_10)).status);
    let mut scene = Scene::new(gate("{gatekeepers: [{name: holidays}]}", &[]), vec![before]);
    let written = scene.report(now(FRIDAY_10));
    scene.write(written);
    scene.keepers = vec![Keeper::new(
        Arc::new(object),
        Evidence::default(),
        at(FRIDAY_10),
    )];
    let later = scene.report(now("2026-11-20T10:01:00Z"));
    assert!(!later.changed, "{:#?}", later.status);
}
