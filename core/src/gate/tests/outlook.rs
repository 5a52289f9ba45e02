//! When a gate changes next.

use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rstest::rstest;
use sluice_crds::Require;
use sluice_crds::gate::annotations::{FORCE, FORCE_BY, FORCE_REASON, FORCE_UNTIL};

use super::*;
use crate::gatekeeper::schedule::Reading;
use crate::time::calendar::{Calendar, LOOKED_THROUGH};
use crate::verdict::status::HORIZON;

const BOTH: &str = "{gatekeepers: [{name: office}, {name: fridays}]}";
const YEAR_END: &str = "{schedule: {closed: [{name: year-end, from: '2026-12-19T00:00:00', until: '2027-01-04T00:00:00'}]}}";
const NEXT_YEAR: &str = "{schedule: {closed: [{name: freeze, cron: '* * 20-30 11 *'}]}}";
const OFTEN: &str = "{schedule: {open: [{name: often, cron: '*/2 * * * *', duration: 1m}]}}";
const SELDOM: &str = "{schedule: {open: [{name: odd, cron: '1-59/2 * * * *', duration: 1m}]}}";

fn upcoming_of(gate: Gate, keepers: Vec<Keeper>, instant: &str) -> Vec<String> {
    let status = Scene::new(gate, keepers).report(now(instant)).status;
    let told = |change: &sluice_crds::Transition| format!("{} {}", change.at.0, change.state);
    status.upcoming.iter().map(told).collect()
}

fn office_and_fridays() -> Vec<Keeper> {
    vec![keeper("office", OFFICE), keeper("fridays", FRIDAYS)]
}

#[test]
fn instants_at_which_only_a_gatekeeper_changes_are_passed_over() {
    // On a Friday the office opens and closes in vain, and at its end Friday does.
    let told = upcoming_of(gate(BOTH, &[]), office_and_fridays(), FRIDAY_10);
    assert_eq!(
        told[..2],
        ["2026-11-23T09:00:00Z Open", "2026-11-23T17:00:00Z Closed"]
    );
    assert_eq!(told.len(), 8);
}

#[test]
fn of_one_of_any_may_open_and_all_have_to_close() {
    let spec = "{require: oneOf, gatekeepers: [{name: office}, {name: fridays}]}";
    let told = upcoming_of(
        gate(spec, &[]),
        office_and_fridays(),
        "2026-11-19T20:00:00Z",
    );
    let expected = [
        "2026-11-20T00:00:00Z Closed",
        "2026-11-20T09:00:00Z Open",
        "2026-11-20T17:00:00Z Closed",
        "2026-11-21T00:00:00Z Open",
    ];
    assert_eq!(told[..4], expected);
}

#[rstest]
#[case::into_a_closed_window("2026-11-20T12:00:00Z", &["2026-11-20T12:00:00Z Closed", "2026-11-23T09:00:00Z Open"])]
#[case::beyond_it("2026-11-20T10:00:30Z", &["2026-11-20T10:00:30Z Closed", "2026-11-23T09:00:00Z Open"])]
fn the_end_of_a_force_is_a_change_if_it_changes_anything(
    #[case] until: &str,
    #[case] expected: &[&str],
) {
    let by_alice = [(FORCE, "open"), (FORCE_BY, "alice"), (FORCE_REASON, "why")];
    let forced = gate(BOTH, &[&by_alice[..], &[(FORCE_UNTIL, until)]].concat());
    let told = upcoming_of(forced, office_and_fridays(), FRIDAY_10);
    assert_eq!(told[..2], *expected);
}

#[test]
fn a_force_that_ends_inside_an_open_window_changes_nothing_then() {
    let by_alice = [(FORCE, "open"), (FORCE_BY, "alice"), (FORCE_REASON, "why")];
    let spec = "{gatekeepers: [{name: office}]}";
    let keepers = vec![keeper("office", OFFICE)];
    let told = upcoming_of(gate(spec, &by_alice), keepers, FRIDAY_10);
    assert_eq!(told[0], "2026-11-20T17:00:00Z Closed");
}

#[test]
fn the_start_of_a_force_is_a_change_too() {
    let request = [("open.gate.fluxcd.io/requestedAt", "2026-11-20T10:00:30Z")];
    let gate = gate("{default: closed}", &request);
    let told = upcoming_of(gate, Vec::new(), FRIDAY_10);
    assert_eq!(
        told[..2],
        ["2026-11-20T10:00:30Z Open", "2026-11-20T11:00:30Z Closed"]
    );
}

#[rstest]
#[case::within_the_horizon("2026-10-05T00:00:00Z", &["2026-12-19T00:00:00Z Closed"])]
#[case::one_change_within("2026-09-21T00:00:00Z", &["2026-12-19T00:00:00Z Closed"])]
#[case::beyond("2026-09-19T00:00:00Z", &[])]
#[case::the_last_of_them("2027-01-03T00:00:00Z", &["2027-01-04T00:00:00Z Open"])]
#[case::none_is_left("2027-01-04T00:00:00Z", &[])]
fn changes_are_told_ninety_days_ahead(#[case] instant: &str, #[case] expected: &[&str]) {
    let gate = gate("{gatekeepers: [{name: year-end}]}", &[]);
    let keepers = vec![keeper_with(
        "year-end",
        YEAR_END,
        Evidence::default(),
        at(instant),
    )];
    assert_eq!(
        upcoming_of(gate, keepers, instant)[..expected.len()],
        *expected
    );
}

#[test]
fn the_look_at_which_a_change_comes_into_view_is_planned() {
    let keepers = vec![keeper("freeze", NEXT_YEAR)];
    let scene = Scene::new(gate("{gatekeepers: [{name: freeze}]}", &[]), keepers);
    let report = scene.report(now("2026-12-01T00:00:00Z"));
    assert_eq!(report.status.upcoming, []);
    // 90 days before 20 November 2027.
    assert_eq!(report.wake, Some(at("2027-08-22T00:00:00Z")));
    let in_view = scene.report(now("2027-08-22T00:00:00Z")).status.upcoming;
    assert_eq!(in_view[0].at.0, at("2027-11-20T00:00:00Z"));
}

#[test]
fn gatekeepers_that_never_agree_are_not_looked_through_for_ever() {
    let keepers = vec![keeper("often", OFTEN), keeper("seldom", SELDOM)];
    let gate = gate("{gatekeepers: [{name: often}, {name: seldom}]}", &[]);
    let report = Scene::new(gate, keepers).report(now(FRIDAY_10));
    assert_eq!(report.status.upcoming, []);
    assert_eq!(report.wake, Some(at("2026-11-20T10:01:00Z")));
}

#[test]
fn what_nothing_changes_has_nothing_ahead() {
    let keepers = vec![keeper("open", OPEN)];
    let report =
        Scene::new(gate("{gatekeepers: [{name: open}]}", &[]), keepers).report(now(FRIDAY_10));
    assert_eq!((report.status.upcoming.len(), report.wake), (0, None));
    let still = Scene::new(gate("{default: open}", &[]), vec![]).report(now(FRIDAY_10));
    assert_eq!((still.status.upcoming.len(), still.wake), (0, None));
}

#[test]
fn a_lost_clock_foretells_no_opening() {
    let lost = Now {
        trust: crate::time::clock::Trust::from_difference(jiff::SignedDuration::from_secs(31)),
        ..now("2026-11-20T20:00:00Z")
    };
    let scene = Scene::new(
        gate("{gatekeepers: [{name: office}]}", &[]),
        vec![keeper("office", OFFICE)],
    );
    assert_eq!(scene.report(lost).status.upcoming, []);
}

/// Evidence is renewed before it runs out.
#[test]
fn changes_are_foretold_beyond_what_is_read_already() {
    let spec = "{schedule: {open: [{cron: 0 9 * * MON-FRI, duration: 8h}], closed: [{calendar: {url: 'https://calendar.test/'}}]}}";
    let friday_18 = "2026-11-20T18:00:00Z";
    let calendars = vec![events(
        "DTSTART;VALUE=DATE:20261225",
        1,
        Some("2026-11-20T20:00:00Z"),
    )];
    let keepers = vec![keeper_with(
        "office",
        spec,
        Evidence::of(calendars),
        at(friday_18),
    )];
    let told = upcoming_of(
        gate("{gatekeepers: [{name: office}]}", &[]),
        keepers,
        friday_18,
    );
    assert_eq!(told[0], "2026-11-23T09:00:00Z Open");
    assert_eq!(told.len(), 8);
}

fn events(event: &str, times: usize, good_until: Option<&str>) -> Reading {
    let events = format!("BEGIN:VEVENT\n{event}\nEND:VEVENT\n").repeat(times);
    let text = format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR\n");
    Reading::Read {
        calendar: Arc::new(Calendar::parse(&text, &jiff::tz::TimeZone::UTC).unwrap()),
        good_until: good_until.map(at),
        overdue: None,
    }
}

/// Gatekeepers by calendars that never agree: each calendar is looked through once, and not for
/// every instant.
#[test]
fn calendars_are_not_looked_through_for_every_instant() {
    let by_calendar = |name: &str, start: &str| {
        let hourly = format!("DTSTART:20260101T{start}\nDURATION:PT30M\nRRULE:FREQ=HOURLY");
        let spec = "{schedule: {open: [{calendar: {configMapRef: {name: days, key: ics}}}]}}";
        let calendars = vec![events(&hourly, 50, None)];
        keeper_with(name, spec, Evidence::of(calendars), at(FRIDAY_10))
    };
    let keepers = vec![by_calendar("even", "000000"), by_calendar("odd", "003000")];
    let gate = gate("{gatekeepers: [{name: even}, {name: odd}]}", &[]);
    let looked = || LOOKED_THROUGH.with(std::cell::Cell::get);
    let before = looked();
    assert_eq!(upcoming_of(gate, keepers, FRIDAY_10), [""; 0]);
    let times = looked() - before;
    assert!((1..=20).contains(&times), "{times}");
}

const SPECS: [&str; 9] = [
    OFFICE,
    FRIDAYS,
    YEAR_END,
    OPEN,
    "{manual: {state: closed, until: '2026-12-24T12:00:00Z'}}",
    "{suspend: true, manual: {state: open}}",
    "{schedule: {open: [{cron: '0 */5 * * *', duration: 2h, lastStart: 30m}]}}",
    "{onError: open, schedule: {open: [{cron: 0 9 * * *, duration: 3h}], closed: [{calendar: {configMapRef: {name: days, key: ics}}}]}}",
    "{onError: open, schedule: {open: [{cron: 0 6 * * *, duration: 9h}, {calendar: {configMapRef: {name: days, key: ics}}}]}}",
];

/// What is found by asking every gatekeeper at every instant at which one of them says anything
/// else.
fn found_step_by_step(scene: &Scene, now: Now) -> Vec<(Timestamp, State)> {
    let horizon = now.at + HORIZON;
    let view = scene.view();
    let (mut at, mut state) = (now.at, answer(&view, now).state);
    let mut changes = Vec::new();
    loop {
        let then = now.moved_to(at);
        let untils = (scene.keepers.iter()).filter_map(|keeper| keeper.opinion(then).until);
        let forces = crate::gate::force::read(&scene.gate, scene.identity, now.at);
        let next = untils.chain(forces.ends()).filter(|next| *next > at).min();
        let Some(next) = next.filter(|next| *next <= horizon && changes.len() < 8) else {
            return changes;
        };
        at = next;
        let then = answer(&view, now.moved_to(at)).state;
        if then != state {
            changes.push((at, then));
            state = then;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 30,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_foretold_is_what_comes(
        specs in subsequence(&SPECS[..], 1..4),
        require in select(vec![Require::All, Require::OneOf]),
        hours in 0..4000_i64,
    ) {
        let now = Now::given(at("2026-09-01T00:00:00Z") + SignedDuration::from_hours(hours));
        let missing = || vec![Reading::Unavailable("there is no ConfigMap days".into())];
        let keepers: Vec<Keeper> = (specs.iter().enumerate())
            .map(|(n, spec)| {
                let evidence = Evidence::of(missing());
                keeper_with(&format!("k{n}"), spec, evidence, now.at)
            })
            .collect();
        let mut gate = gate("{}", &[]);
        gate.spec.require = require;
        gate.spec.gatekeepers = (0..keepers.len())
            .map(|n| serde_saphyr::from_str(&format!("{{name: k{n}}}")).unwrap())
            .collect();
        let scene = Scene::new(gate, keepers);
        let forces = crate::gate::force::read(&scene.gate, scene.identity, now.at);
        let told = upcoming(&scene.view(), &forces, now);
        prop_assert_eq!(told, found_step_by_step(&scene, now));
    }
}
