//! Windows that end by the wall clock.

use rstest::rstest;
use sluice_crds::gatekeeper::Window;

use super::super::*;
use super::{ask, at, cron, spec};

fn until(expression: &str, time: &str) -> Window {
    Window {
        until: Some(time.into()),
        ..cron(expression, None)
    }
}

#[rstest]
#[case::the_same_day(
    "0 2 * * *",
    "04:00",
    "UTC",
    "2026-07-06T02:00:00Z",
    "2026-07-06T04:00:00Z"
)]
#[case::the_next_day(
    "0 22 * * *",
    "06:00",
    "UTC",
    "2026-07-06T22:00:00Z",
    "2026-07-07T06:00:00Z"
)]
#[case::midnight(
    "0 22 * * *",
    "00:00",
    "UTC",
    "2026-07-06T22:00:00Z",
    "2026-07-07T00:00:00Z"
)]
#[case::the_first_minute(
    "59 23 * * *",
    "00:00",
    "UTC",
    "2026-07-06T23:59:00Z",
    "2026-07-07T00:00:00Z"
)]
#[case::the_same_time_is_a_day(
    "0 9 * * 1",
    "09:00",
    "UTC",
    "2026-07-06T09:00:00Z",
    "2026-07-07T09:00:00Z"
)]
#[case::several_starts_have_one_end(
    "0 1,3 * * *",
    "04:00",
    "UTC",
    "2026-07-06T01:00:00Z",
    "2026-07-06T04:00:00Z"
)]
#[case::two_ends(
    "0 3,20 * * *",
    "04:00",
    "UTC",
    "2026-07-06T20:00:00Z",
    "2026-07-07T04:00:00Z"
)]
#[case::over_the_gap(
    "0 22 * * *",
    "06:00",
    "America/New_York",
    "2026-03-08T03:00:00Z",
    "2026-03-08T10:00:00Z"
)]
#[case::over_the_overlap(
    "0 22 * * *",
    "06:00",
    "America/New_York",
    "2026-11-01T02:00:00Z",
    "2026-11-01T11:00:00Z"
)]
#[case::a_day_of_23_hours(
    "0 0 * * SUN",
    "00:00",
    "America/New_York",
    "2026-03-08T05:00:00Z",
    "2026-03-09T04:00:00Z"
)]
#[case::a_day_of_25_hours(
    "0 0 * * SUN",
    "00:00",
    "America/New_York",
    "2026-11-01T04:00:00Z",
    "2026-11-02T05:00:00Z"
)]
#[case::an_end_in_the_gap(
    "0 1 * * *",
    "02:30",
    "America/New_York",
    "2026-03-08T06:00:00Z",
    "2026-03-08T07:00:00Z"
)]
#[case::an_end_in_the_overlap(
    "0 0 * * *",
    "01:30",
    "America/New_York",
    "2026-11-01T04:00:00Z",
    "2026-11-01T05:30:00Z"
)]
#[case::an_end_behind_the_overlap(
    "0 0 * * *",
    "02:00",
    "America/New_York",
    "2026-11-01T04:00:00Z",
    "2026-11-01T07:00:00Z"
)]
#[case::both_in_the_overlap(
    "15 1 * * *",
    "01:45",
    "America/New_York",
    "2026-11-01T05:15:00Z",
    "2026-11-01T05:45:00Z"
)]
#[case::a_start_in_the_gap(
    "30 2 * * *",
    "05:00",
    "America/New_York",
    "2026-03-08T07:00:00Z",
    "2026-03-08T09:00:00Z"
)]
#[case::skipped_as_a_whole(
    "15 2 * * *",
    "02:45",
    "America/New_York",
    "2026-03-08T07:00:00Z",
    "2026-03-08T07:30:00Z"
)]
#[case::skipped_up_to_the_end_of_the_gap(
    "30 2 * * *",
    "03:00",
    "America/New_York",
    "2026-03-08T07:00:00Z",
    "2026-03-08T07:30:00Z"
)]
#[case::a_lost_day(
    "0 22 29 12 *",
    "04:00",
    "Pacific/Apia",
    "2011-12-30T08:00:00Z",
    "2011-12-30T10:00:00Z"
)]
fn the_clock_on_the_wall_ends_them(
    #[case] expression: &str,
    #[case] time: &str,
    #[case] zone: &str,
    #[case] opens: &str,
    #[case] closes: &str,
) {
    let spec = spec(zone, vec![until(expression, time)], vec![]);
    let moment = SignedDuration::from_nanos(1);
    let (before, last) = (at(opens) - moment, at(closes) - moment);
    // The window before may end where this one starts.
    let (was_open, next) = ask(&spec, &before.to_string());
    assert!(was_open || next == Some(opens.to_owned()), "{next:?}");
    for instant in [opens.to_owned(), last.to_string()] {
        assert_eq!(ask(&spec, &instant), (true, Some(closes.to_owned())));
    }
    assert!(!ask(&spec, closes).0);
}

/// Every day until the time at which it starts: it is always open, also where clocks are changed.
#[rstest]
#[case("0 0 * * *", "00:00")]
#[case("30 2 * * *", "02:30")]
#[case("*/5 * * * *", "01:30")]
fn windows_of_a_day_each_touch(#[case] expression: &str, #[case] time: &str) {
    let spec = spec("America/New_York", vec![until(expression, time)], vec![]);
    assert_eq!(ask(&spec, "2026-03-05T10:00:00Z"), (true, None));
}

#[test]
fn nothing_starts_in_the_last_part_before_the_end() {
    let night = Window {
        last_start: Some("1h".into()),
        ..until("0 22 * * *", "06:00")
    };
    let spec = spec("America/New_York", vec![night], vec![]);
    // Nine hours on 1 November: the last of them is too late.
    let late = "2026-11-01T10:00:00Z";
    let opens = "2026-11-02T03:00:00Z";
    assert_eq!(
        ask(&spec, "2026-11-01T02:00:00Z"),
        (true, Some(late.into()))
    );
    assert_eq!(ask(&spec, late), (false, Some(opens.into())));
}

/// Of starts that come later than the last one may, nothing is left.
#[test]
fn a_window_no_longer_than_its_last_start_never_admits() {
    let twice = Window {
        last_start: Some("2h".into()),
        ..until("0 1,3 * * *", "04:00")
    };
    let spec = spec("UTC", vec![twice], vec![]);
    let (first, next) = ("2026-11-20T02:00:00Z", "2026-11-21T01:00:00Z");
    assert_eq!(
        ask(&spec, "2026-11-20T01:00:00Z"),
        (true, Some(first.into()))
    );
    assert_eq!(ask(&spec, first), (false, Some(next.into())));
    assert_eq!(
        ask(&spec, "2026-11-20T03:00:00Z"),
        (false, Some(next.into()))
    );
}

#[rstest]
#[case::midnight(
    until("0 2 * * *", "24:00"),
    "spec.schedule.open[0].until: `24:00` is not a time of day; write 00:00"
)]
#[case::date(
    until("0 2 * * *", "2026-12-20T00:00:00"),
    "spec.schedule.open[0].until: `2026-12-20T00:00:00` is not a time of day; write one such as 04:00 beside cron; a date belongs to from, without cron"
)]
#[case::both(Window { duration: Some("2h".into()), ..until("0 2 * * *", "04:00") }, "spec.schedule.open[0].until: a window has one end, and this one has two; give either duration or until")]
#[case::alone(Window { cron: None, ..until("", "04:00") }, "spec.schedule.open[0]: from and until belong together; write both, or cron with until as a time of day")]
#[case::dated(Window { cron: None, from: Some("2026-12-19T00:00:00".into()), ..until("", "04:00") }, "spec.schedule.open[0].until: `04:00` is not a local date and time; write one such as 2026-12-19T00:00:00, without an offset: timeZone applies")]
#[case::cron_and_dates(Window { from: Some("2026-12-19T00:00:00".into()), ..until("0 2 * * *", "04:00") }, "spec.schedule.open[0]: a window is given in exactly one way; write cron, or from and until, or calendar")]
#[case::all_late(Window { last_start: Some("2h".into()), ..until("0 2,3 * * *", "04:00") }, "spec.schedule.open[0].lastStart: `2h` leaves nothing of the window; write less than the window lasts")]
#[case::no_end(Window { last_start: Some("2h".into()), ..cron("0 2 * * *", None) }, "spec.schedule.open[0].lastStart: a cron without an end has nothing to count from; write duration or until too")]
#[case::next_day(Window { from: Some("2026-11-19T00:00:00".into()), until: Some("2026-11-30T24:00:00".into()), ..Window::default() }, "spec.schedule.open[0].until: `2026-11-30T24:00:00` is not a local date and time; write the next day's midnight: 2026-12-01T00:00:00")]
fn mistakes_are_told_with_the_remedy(#[case] window: Window, #[case] told: &str) {
    let refusals = Schedule::read(&spec("UTC", vec![window], vec![]), "spec.schedule").unwrap_err();
    let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    assert_eq!(all, [told]);
}
