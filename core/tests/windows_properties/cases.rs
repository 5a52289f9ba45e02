//! What the properties are tried on: windows, zones, and instants near the odd days of each zone.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use sluice_core::schedule::Schedule;
use sluice_crds::gatekeeper as api;

use crate::expression::{Expression, expression};

/// Zones that change their clocks at odd times, by odd amounts, or not at all.
pub const ZONES: [&str; 11] = [
    "UTC",
    "Europe/London",
    "America/New_York",
    // By half an hour.
    "Australia/Lord_Howe",
    // Back for Ramadan.
    "Africa/Casablanca",
    // At midnight.
    "America/Santiago",
    // By two hours.
    "Antarctica/Troll",
    // Lost 30 December 2011.
    "Pacific/Apia",
    // 45 minutes past the hour.
    "Asia/Kathmandu",
    // Stays in summer time from 2026.
    "America/Vancouver",
    // Turns its standard time back in winter.
    "Europe/Dublin",
];

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A window by cron, its lengths in minutes.
#[derive(Clone, Debug)]
pub struct Window {
    pub expression: Expression,
    pub duration: Option<i64>,
    pub last_start: Option<i64>,
}

impl Window {
    pub fn spec(&self) -> api::Window {
        let length = |minutes: &i64| sluice_crds::Duration(format!("{minutes}m"));
        api::Window {
            cron: Some(self.expression.to_string()),
            duration: self.duration.as_ref().map(length),
            last_start: self.last_start.as_ref().map(length),
            ..api::Window::default()
        }
    }
}

/// Windows in a zone, and an instant to ask about.
#[derive(Clone, Debug)]
pub struct Case {
    pub zone: &'static str,
    pub open: Vec<Window>,
    pub closed: Vec<Window>,
    pub at: Timestamp,
}

impl Case {
    pub fn zone(&self) -> TimeZone {
        sluice_core::zone::find(self.zone).unwrap()
    }

    /// None: one of the expressions never occurs.
    pub fn schedule(&self) -> Option<Schedule> {
        schedule(self.zone, &self.open, &self.closed)
    }
}

/// None: one of the expressions never occurs.
pub fn schedule(zone: &str, open: &[Window], closed: &[Window]) -> Option<Schedule> {
    let specs = |windows: &[Window]| windows.iter().map(Window::spec).collect();
    let spec = api::Schedule {
        time_zone: zone.into(),
        open: specs(open),
        closed: specs(closed),
    };
    read(&spec)
}

/// None: one of the expressions never occurs. Nothing else is refused.
pub fn read(spec: &api::Schedule) -> Option<Schedule> {
    match Schedule::read(spec, "spec.schedule") {
        Ok(schedule) => Some(schedule),
        Err(refusals) => {
            assert!(
                refusals.iter().all(|r| r.problem.contains("never occurs")),
                "{refusals}"
            );
            None
        }
    }
}

fn window(most_hours: i64) -> impl Strategy<Value = Window> {
    let minutes = prop_oneof![
        3 => 1..=59i64,
        4 => 60..=24 * 60i64,
        2 => (1..=most_hours).prop_map(|hours| hours * 60),
    ];
    (expression(), prop::option::weighted(0.75, minutes)).prop_map(|(expression, duration)| {
        Window {
            expression,
            duration,
            last_start: None,
        }
    })
}

/// A window of the list `open`: of some, the last part is too late.
fn open_window() -> impl Strategy<Value = Window> {
    (window(96), prop::option::weighted(0.2, 0..1000i64)).prop_map(|(mut window, permille)| {
        if let (Some(duration), Some(permille)) = (window.duration, permille)
            && duration > 1
        {
            window.last_start = Some(1 + (duration - 2) * permille / 1000);
        }
        window
    })
}

/// An instant of 1990 to 2100; three of four are within three days of a change of the clocks.
fn instant(zone: &'static str) -> impl Strategy<Value = Timestamp> {
    let years = "1990-01-01T00:00:00Z"
        .parse::<Timestamp>()
        .unwrap()
        .as_second()
        ..="2100-12-31T23:59:59Z"
            .parse::<Timestamp>()
            .unwrap()
            .as_second();
    let lost_day = "2011-12-29T00:00:00Z"
        .parse::<Timestamp>()
        .unwrap()
        .as_second();
    let near = prop_oneof![19 => years, 1 => Just(lost_day)];
    let away = prop_oneof![
        // On a whole minute, on a second, and anywhere.
        (-4320..=4320i64).prop_map(SignedDuration::from_mins),
        (-259_200..=259_200i64).prop_map(SignedDuration::from_secs),
        (-259_200_000..=259_200_000i64).prop_map(SignedDuration::from_millis),
    ];
    (near, prop::bool::weighted(0.75), away).prop_map(move |(second, biased, away)| {
        let near = Timestamp::from_second(second).unwrap();
        let zone = sluice_core::zone::find(zone).unwrap();
        let change = zone.following(near).next().map(|change| change.timestamp());
        match change {
            Some(change) if biased => change + away,
            _ => near,
        }
    })
}

fn case_of(
    open: impl Strategy<Value = Vec<Window>>,
    closed: impl Strategy<Value = Vec<Window>>,
) -> impl Strategy<Value = Case> {
    let place = select(&ZONES).prop_flat_map(|zone| (Just(zone), instant(zone)));
    (place, open, closed).prop_map(|((zone, at), open, closed)| Case {
        zone,
        open,
        closed,
        at,
    })
}

/// One `open` window.
pub fn single() -> impl Strategy<Value = Case> {
    case_of(prop::collection::vec(open_window(), 1), Just(Vec::new()))
}

/// Several windows in both lists, at least one.
pub fn several() -> impl Strategy<Value = Case> {
    let some = |least| prop::collection::vec(open_window(), least..=3);
    let closed = |least| prop::collection::vec(window(96), least..=2);
    prop_oneof![case_of(some(1), closed(0)), case_of(some(0), closed(1))]
}

/// Any zone, with an instant.
pub fn place() -> impl Strategy<Value = (&'static str, Timestamp)> {
    select(&ZONES).prop_flat_map(|zone| (Just(zone), instant(zone)))
}

/// Further `closed` windows.
pub fn more_closed() -> impl Strategy<Value = Vec<Window>> {
    prop::collection::vec(window(96), 1..=2)
}

/// Up to `days` later, or earlier.
pub fn days_away(days: i32) -> impl Strategy<Value = SignedDuration> {
    let most = (DAY * days).as_secs();
    (-most..=most).prop_map(SignedDuration::from_secs)
}
