//! Windows by calendars that hold a lot: bounded work, and the same answer whenever it is asked.

use std::time::{Duration, Instant};

use rstest::rstest;
use sluice_crds::State;

use super::*;

/// Far more than the work takes without optimization, far less than it would without bounds.
const SOON: Duration = Duration::from_secs(20);
const MANY: usize = 6;

fn reading(event: &str, times: usize) -> Reading {
    let events = format!("BEGIN:VEVENT\n{event}\nEND:VEVENT\n").repeat(times);
    let text = format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR\n");
    Reading::Read {
        calendar: Arc::new(Calendar::parse(&text, &TimeZone::UTC).unwrap()),
        good_until: None,
        overdue: None,
    }
}

/// So many windows by calendars, in the list `closed` or `open`.
fn calendars(list: &str, times: usize, last_start: &str) -> Schedule {
    let window = format!("{{calendar: {{configMapRef: {{name: days, key: ics}}}}{last_start}}}");
    let windows = vec![window; times].join(", ");
    let spec = serde_saphyr::from_str(&format!("{{{list}: [{windows}]}}")).unwrap();
    Schedule::read(&spec, "spec.schedule").unwrap()
}

fn state(schedule: &Schedule, readings: &[Reading], instant: &str) -> Option<State> {
    let moment = schedule.moment(readings, at(instant)).ok()?;
    Some(moment.cause.state())
}

#[rstest]
#[case::that_takes_no_time("closed", "", "DTSTART:20200101T000000\nRRULE:FREQ=DAILY", State::Open)]
#[case::that_is_too_short_to_start_in(
    "open",
    ", lastStart: 5m",
    "DTSTART:20200101T000000\nDURATION:PT1M\nRRULE:FREQ=DAILY",
    State::Closed
)]
#[case::that_never_ends(
    "closed",
    "",
    "DTSTART:20200101T000000\nDURATION:P1D\nRRULE:FREQ=DAILY",
    State::Closed
)]
fn many_calendars_share_the_steps(
    #[case] list: &str,
    #[case] last_start: &str,
    #[case] event: &str,
    #[case] expected: State,
) {
    let schedule = calendars(list, MANY, last_start);
    let different = |n| reading(&format!("SUMMARY:{n}\n{event}"), 2_000);
    let readings: Vec<Reading> = (0..MANY).map(different).collect();
    let begun = Instant::now();
    assert_eq!(
        state(&schedule, &readings, "2026-11-20T10:00:00Z"),
        Some(expected)
    );
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// The same calendar under many windows is looked at once.
#[test]
fn a_calendar_that_is_named_often_costs_no_more_than_one() {
    let daily = "DTSTART:20200101T000000\nDURATION:PT1M\nRRULE:FREQ=DAILY";
    let now = at("2026-11-20T10:00:00Z");
    let ahead = |times| {
        let schedule = calendars("closed", times, "");
        let readings: Vec<Reading> = (0..times).map(|_| reading(daily, 200)).collect();
        let timeline = schedule.timeline(&readings, now).unwrap();
        timeline.changes().last()
    };
    assert!(ahead(1).is_some());
    assert_eq!(ahead(128), ahead(1));
}

const HOURLY: &str =
    "DTSTART:20261201T000000\nDURATION:PT30M\nRRULE:FREQ=HOURLY;UNTIL=20261210T235959Z";

#[test]
fn what_is_dense_for_many_days_is_no_worse_than_on_each_of_them() {
    let schedule = calendars("closed", 1, "");
    let readings = [reading(HOURLY, 90)];
    for (instant, expected) in [
        ("2026-11-25T00:00:00Z", State::Open),
        ("2026-12-01T00:00:00Z", State::Closed),
        ("2026-12-01T00:30:00Z", State::Open),
        ("2026-12-10T23:29:59Z", State::Closed),
        ("2026-12-20T00:00:00Z", State::Open),
    ] {
        assert_eq!(
            state(&schedule, &readings, instant),
            Some(expected),
            "{instant}"
        );
    }
}

/// Whenever it is asked, a day on which too much is on is broken, and no other is.
#[test]
fn a_day_that_is_too_dense_is_a_fault_that_ends_with_it() {
    let schedule = calendars("closed", 1, "");
    let readings = [reading(HOURLY, 900)];
    let ask = |instant: &str| schedule.timeline(&readings, at(instant));
    let fault = ask("2026-12-01T12:00:00Z").unwrap_err();
    let day = Span {
        start: at("2026-12-01T00:00:00Z"),
        end: at("2026-12-02T00:00:00Z"),
    };
    assert_eq!(fault.within(), Some(day));
    assert!(
        fault.to_string().contains(
            "recur more than 20000 times from 2026-12-01T00:00:00Z to 2026-12-02T00:00:00Z"
        ),
        "{fault}"
    );
    assert!(ask("2026-12-10T23:59:59Z").is_err());
    assert_eq!(
        state(&schedule, &readings, "2026-12-11T00:00:00Z"),
        Some(State::Open)
    );
    // What was prepared before knows no farther than to the first of those days.
    for from in [
        "2026-11-01T00:00:00Z",
        "2026-11-25T00:00:00Z",
        "2026-11-30T23:59:59Z",
    ] {
        let before = ask(from).unwrap();
        let moment = before.at(at(from)).unwrap();
        assert_eq!(
            (moment.cause, moment.until, moment.next),
            (Cause::Unbounded, None, None)
        );
        let end = moment.end.unwrap();
        assert!(at(from) < end && end <= day.start, "{end}");
        assert_eq!(before.at(day.start), None);
    }
}

#[test]
fn what_goes_on_for_longer_than_anyone_looked_is_told_so() {
    let schedule = calendars("closed", 1, "");
    let daily = "DTSTART:20200101T000000\nDURATION:P1D\nRRULE:FREQ=DAILY";
    let readings = [reading(daily, 2_000)];
    let now = at("2026-11-20T10:00:00Z");
    let moment = schedule.timeline(&readings, now).unwrap().at(now).unwrap();
    assert_eq!(
        explain(&schedule, &readings, &moment),
        "closed by window '#1', with no change known ahead"
    );
    assert!(moment.end.is_some_and(|end| end > now));
}

#[test]
fn calendars_that_have_ended_are_known_for_ever() {
    let schedule = calendars("closed", 1, "");
    let past = "DTSTART:20200101T000000\nDURATION:PT1H\nRRULE:FREQ=HOURLY;UNTIL=20200601T000000Z";
    let now = at("2026-11-20T10:00:00Z");
    let moment = schedule
        .timeline(&[reading(past, 2_000)], now)
        .unwrap()
        .at(now)
        .unwrap();
    assert_eq!((moment.until, moment.end), (None, None));
}

/// A feed of freezes while none is planned: it closes nothing, and opens nothing.
#[rstest]
#[case("closed", State::Open)]
#[case("open", State::Closed)]
fn a_calendar_without_events_covers_nothing(#[case] list: &str, #[case] expected: State) {
    let schedule = calendars(list, 1, "");
    let readings = [reading("", 0)];
    for instant in ["1970-01-01T00:00:00Z", "2026-11-20T10:00:00Z"] {
        assert_eq!(state(&schedule, &readings, instant), Some(expected));
    }
    let moment = schedule.moment(&readings, at("2026-11-20T10:00:00Z"));
    assert!(moment.is_ok_and(|moment| moment.until.is_none()));
}
