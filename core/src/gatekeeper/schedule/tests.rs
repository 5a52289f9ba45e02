//! The cases of the promise: which instant is inside which window, and when that changes.

use rstest::rstest;
use sluice_crds::gatekeeper::{self as api, Window};

use super::*;

mod calendars;
mod until;

fn cron(cron: &str, duration: Option<&str>) -> Window {
    Window {
        cron: Some(cron.into()),
        duration: duration.map(Into::into),
        ..Window::default()
    }
}

fn spec(zone: &str, open: Vec<Window>, closed: Vec<Window>) -> api::Schedule {
    api::Schedule {
        time_zone: zone.into(),
        open,
        closed,
    }
}

fn at(instant: &str) -> Timestamp {
    instant.parse().unwrap()
}

/// Inside or outside at an instant, and the next change.
fn ask(spec: &api::Schedule, instant: &str) -> (bool, Option<String>) {
    let schedule = Schedule::read(spec, "spec.schedule").unwrap();
    let instant = at(instant);
    let moment = schedule
        .timeline(&[], instant)
        .unwrap()
        .at(instant)
        .unwrap();
    let open = moment.cause.state() == sluice_crds::State::Open;
    (open, moment.next.map(|next| next.to_string()))
}

#[rstest]
#[case(
    "0 9 * * 1",
    "1h",
    "UTC",
    "2026-07-06T09:00:00Z",
    true,
    "2026-07-06T10:00:00Z"
)]
#[case(
    "0 9 * * 1",
    "1h",
    "UTC",
    "2026-07-06T10:00:00Z",
    false,
    "2026-07-13T09:00:00Z"
)]
#[case(
    "0 9 * * 1-5",
    "8h",
    "UTC",
    "2026-07-06T10:00:00Z",
    true,
    "2026-07-06T17:00:00Z"
)]
#[case(
    "0 9 * * 1-5",
    "8h",
    "UTC",
    "2026-07-06T06:00:00Z",
    false,
    "2026-07-06T09:00:00Z"
)]
#[case(
    "0 10 * * 6",
    "4h",
    "UTC",
    "2026-07-11T11:00:00Z",
    true,
    "2026-07-11T14:00:00Z"
)]
#[case(
    "0 0 25 12 *",
    "48h",
    "UTC",
    "2026-12-25T12:00:00Z",
    true,
    "2026-12-27T00:00:00Z"
)]
#[case(
    "0 9 * * 1-5",
    "8h",
    "America/New_York",
    "2026-07-06T14:00:00Z",
    true,
    "2026-07-06T21:00:00Z"
)]
#[case(
    "0 11 * * 1-5",
    "6h",
    "Europe/Paris",
    "2026-07-06T10:00:00Z",
    true,
    "2026-07-06T15:00:00Z"
)]
#[case(
    "@daily",
    "30m",
    "UTC",
    "2000-05-30T23:00:00Z",
    false,
    "2000-05-31T00:00:00Z"
)]
#[case(
    "30 6 * * SUN",
    "6h",
    "UTC",
    "2024-01-07T00:00:00Z",
    false,
    "2024-01-07T06:30:00Z"
)]
#[case::eight_elapsed_hours(
    "0 22 * * *",
    "8h",
    "America/New_York",
    "2026-11-01T09:59:59Z",
    true,
    "2026-11-01T10:00:00Z"
)]
#[case::a_start_in_the_gap(
    "0 2 * * *",
    "1h",
    "America/New_York",
    "2026-03-08T07:00:00Z",
    true,
    "2026-03-08T08:00:00Z"
)]
#[case::before_the_gap(
    "0 2 * * *",
    "1h",
    "America/New_York",
    "2026-03-08T06:59:59Z",
    false,
    "2026-03-08T07:00:00Z"
)]
#[case::once_in_the_overlap(
    "30 1 * * *",
    "15m",
    "America/New_York",
    "2026-11-01T06:30:00Z",
    false,
    "2026-11-02T06:30:00Z"
)]
#[case::both_once_in_the_overlap(
    "0,30 1 * * *",
    "10m",
    "America/New_York",
    "2026-11-01T06:05:00Z",
    false,
    "2026-11-02T06:00:00Z"
)]
#[case::leap_day(
    "0 0 29 2 *",
    "24h",
    "UTC",
    "2026-01-01T00:00:00Z",
    false,
    "2028-02-29T00:00:00Z"
)]
#[case::no_leap_day_in_2100(
    "0 0 29 2 *",
    "24h",
    "UTC",
    "2096-03-01T00:00:00Z",
    false,
    "2104-02-29T00:00:00Z"
)]
#[case::overnight_friday(
    "0 22 * * FRI",
    "8h",
    "UTC",
    "2026-11-21T03:00:00Z",
    true,
    "2026-11-21T06:00:00Z"
)]
fn windows_open_and_close(
    #[case] expression: &str,
    #[case] duration: &str,
    #[case] zone: &str,
    #[case] instant: &str,
    #[case] inside: bool,
    #[case] next: &str,
) {
    let spec = spec(zone, vec![cron(expression, Some(duration))], vec![]);
    assert_eq!(ask(&spec, instant), (inside, Some(next.to_owned())));
}

#[rstest]
#[case::every_minute_for_two_hours("* * * * *", Some("2h"))]
#[case::every_minute_that_matches("* * * * *", None)]
fn windows_that_touch_never_close(#[case] expression: &str, #[case] duration: Option<&str>) {
    let spec = spec("UTC", vec![cron(expression, duration)], vec![]);
    assert_eq!(ask(&spec, "2026-11-21T10:00:00Z"), (true, None));
}

#[rstest]
#[case::the_rfcs_own(
    "* * 20-30 11 *",
    "UTC",
    "2026-11-21T10:00:00Z",
    true,
    "2026-12-01T00:00:00Z"
)]
#[case::a_year_later(
    "* * 20-30 11 *",
    "UTC",
    "2026-12-01T00:00:00Z",
    false,
    "2027-11-20T00:00:00Z"
)]
#[case::the_repeated_hour_too(
    "* 1 * * *",
    "America/New_York",
    "2026-11-01T06:30:00Z",
    true,
    "2026-11-01T07:00:00Z"
)]
#[case::the_skipped_hour_never(
    "* 2 * * *",
    "America/New_York",
    "2026-03-08T07:30:00Z",
    false,
    "2026-03-09T06:00:00Z"
)]
#[case::repeated_before_midnight(
    "* 23 * * *",
    "America/Santiago",
    "2026-04-05T03:30:00Z",
    true,
    "2026-04-05T04:00:00Z"
)]
#[case::turned_back_over_midnight(
    "* * 6-7 11 *",
    "America/St_Johns",
    "2010-11-06T12:00:00Z",
    true,
    "2010-11-08T03:30:00Z"
)]
#[case::the_day_before_once_more(
    "* 23 * * *",
    "America/St_Johns",
    "2010-11-07T02:30:30Z",
    false,
    "2010-11-07T02:31:00Z"
)]
fn a_cron_without_a_duration_is_a_predicate(
    #[case] expression: &str,
    #[case] zone: &str,
    #[case] instant: &str,
    #[case] inside: bool,
    #[case] next: &str,
) {
    let spec = spec(zone, vec![cron(expression, None)], vec![]);
    assert_eq!(ask(&spec, instant), (inside, Some(next.to_owned())));
}

#[test]
fn closed_beats_open_and_nothing_starts_late() {
    let hours = Window {
        last_start: Some("30m".into()),
        ..cron("0 9 * * MON-FRI", Some("8h"))
    };
    let spec = spec(
        "Europe/London",
        vec![hours],
        vec![cron("0 0 * * FRI", Some("24h"))],
    );
    // Thursday 19 November 2026.
    assert_eq!(
        ask(&spec, "2026-11-19T16:29:59Z"),
        (true, Some("2026-11-19T16:30:00Z".into()))
    );
    assert_eq!(
        ask(&spec, "2026-11-19T16:30:00Z"),
        (false, Some("2026-11-23T09:00:00Z".into()))
    );
    assert_eq!(
        ask(&spec, "2026-11-20T10:00:00Z"),
        (false, Some("2026-11-23T09:00:00Z".into()))
    );
}

#[test]
fn dated_windows_are_read_on_the_wall_clock_of_the_zone() {
    let year_end = Window {
        from: Some("2026-12-19T00:00:00".into()),
        until: Some("2027-01-04T00:00:00".into()),
        ..Window::default()
    };
    let spec = spec("America/New_York", vec![], vec![year_end]);
    assert_eq!(
        ask(&spec, "2026-12-19T04:59:59Z"),
        (true, Some("2026-12-19T05:00:00Z".into()))
    );
    assert_eq!(
        ask(&spec, "2026-12-19T05:00:00Z"),
        (false, Some("2027-01-04T05:00:00Z".into()))
    );
    assert_eq!(ask(&spec, "2027-01-04T05:00:00Z"), (true, None));
}

#[test]
fn a_message_names_the_window_its_reason_and_both_ends() {
    let fridays = Window {
        name: Some("fridays".into()),
        reason: Some("No deploys on Fridays".into()),
        ..cron("0 0 * * FRI", Some("24h"))
    };
    let hours = Window {
        name: Some("office-hours".into()),
        ..cron("0 9 * * MON-FRI", Some("8h"))
    };
    let spec = spec("Europe/London", vec![hours], vec![fridays]);
    let schedule = Schedule::read(&spec, "spec.schedule").unwrap();
    let now = at("2026-11-20T10:00:00Z");
    let moment = schedule.timeline(&[], now).unwrap().at(now).unwrap();
    assert_eq!(
        explain(&schedule, &[], &moment),
        "closed by window 'fridays' (No deploys on Fridays) until Sat 2026-11-21 00:00 \
         Europe/London; opens Mon 2026-11-23 09:00 Europe/London"
    );
}

/// Of a window that opens and closes all year nobody has looked to the end: that is no change.
#[test]
fn the_end_of_what_is_known_is_not_told_as_a_change() {
    let year = Window {
        from: Some("2027-01-01T00:00:00".into()),
        until: Some("2028-01-01T00:00:00".into()),
        ..Window::default()
    };
    let often = cron("*/2 * * * *", Some("1m"));
    let now = at("2027-01-01T00:00:00Z");
    let spec = spec("UTC", vec![], vec![year, often]);
    let schedule = Schedule::read(&spec, "spec.schedule").unwrap();
    let moment = schedule.timeline(&[], now).unwrap().at(now).unwrap();
    assert_eq!(
        explain(&schedule, &[], &moment),
        "closed by window '2027-01-01T00:00:00' until Sat 2028-01-01 00:00 UTC"
    );
    assert_eq!(moment.until, Some(at("2028-01-01T00:00:00Z")));
}

#[rstest]
#[case::unknown_zone(spec("Mars/Olympus", vec![cron("0 9 * * *", Some("1h"))], vec![]), "spec.schedule.timeZone")]
#[case::no_windows(spec("UTC", vec![], vec![]), "spec.schedule")]
#[case::zero(spec("UTC", vec![cron("0 9 * * *", Some("0s"))], vec![]), "spec.schedule.open[0].duration")]
#[case::unit(spec("UTC", vec![cron("0 9 * * *", Some("1000days"))], vec![]), "spec.schedule.open[0].duration")]
#[case::unsatisfiable(spec("UTC", vec![], vec![cron("0 0 30 2 *", Some("1h"))]), "spec.schedule.closed[0].cron")]
#[case::nothing(spec("UTC", vec![Window::default()], vec![]), "spec.schedule.open[0]")]
#[case::late_closed(spec("UTC", vec![], vec![Window { last_start: Some("5m".into()), ..cron("0 9 * * *", Some("1h")) }]), "spec.schedule.closed[0].lastStart")]
#[case::late_without_end(spec("UTC", vec![Window { last_start: Some("5m".into()), ..cron("0 9 * * *", None) }], vec![]), "spec.schedule.open[0].lastStart")]
#[case::all_late(spec("UTC", vec![Window { last_start: Some("1h".into()), ..cron("0 9 * * *", Some("1h")) }], vec![]), "spec.schedule.open[0].lastStart")]
#[case::half_dated(spec("UTC", vec![Window { from: Some("2026-12-19T00:00:00".into()), ..Window::default() }], vec![]), "spec.schedule.open[0]")]
#[case::offset(spec("UTC", vec![Window { from: Some("2026-12-19T00:00:00Z".into()), until: Some("2026-12-20T00:00:00Z".into()), ..Window::default() }], vec![]), "spec.schedule.open[0].from")]
#[case::backwards(spec("UTC", vec![Window { from: Some("2026-12-19T00:00:00".into()), until: Some("2026-12-18T00:00:00".into()), ..Window::default() }], vec![]), "spec.schedule.open[0].until")]
#[case::no_such_day(spec("UTC", vec![Window { from: Some("2026-02-30T00:00:00".into()), until: Some("2026-12-18T00:00:00".into()), ..Window::default() }], vec![]), "spec.schedule.open[0].from")]
fn mistakes_are_refused_at_their_field(#[case] spec: api::Schedule, #[case] field: &str) {
    let refusals = Schedule::read(&spec, "spec.schedule").unwrap_err();
    assert_eq!(refusals.iter().next().unwrap().field, field);
}
