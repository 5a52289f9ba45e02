//! What the properties are tried on: windows, zones, and instants near the odd days of each zone.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::collection::SizeRange;
use proptest::prelude::*;
use proptest::sample::select;
use sluice_core::gatekeeper::schedule::Schedule;
use sluice_crds::gatekeeper as api;

use crate::expression::{Expression, expression};

/// Zones that change their clocks at odd times, by odd amounts, or not at all.
pub const ZONES: [&str; 12] = [
    "UTC",
    "Europe/London",
    "America/New_York",
    // By half an hour.
    "Australia/Lord_Howe",
    // Back for Ramadan.
    "Africa/Casablanca",
    // At midnight.
    "America/Santiago",
    // At a minute past midnight, until 2011.
    "America/St_Johns",
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

/// A window, its lengths in minutes.
#[derive(Clone, Debug)]
pub struct Window {
    pub when: When,
    pub last_start: Option<i64>,
}

/// When a window is.
#[derive(Clone, Debug)]
pub enum When {
    /// From each match on, or, without a duration, in each minute that matches.
    Cron {
        expression: Box<Expression>,
        duration: Option<i64>,
    },
    /// From each match on, until the clock shows that minute of the day next.
    Until {
        expression: Box<Expression>,
        minute: i64,
    },
    /// In minutes since 1970-01-01T00:00 on the wall.
    Dated { from: i64, until: i64 },
}

impl Window {
    /// A cron without a duration.
    pub fn matching(expression: Expression) -> Self {
        let when = When::Cron {
            expression: Box::new(expression),
            duration: None,
        };
        Self {
            when,
            last_start: None,
        }
    }

    pub fn spec(&self) -> api::Window {
        let length = |minutes: i64| sluice_crds::Duration(format!("{minutes}m"));
        let last_start = self.last_start.map(length);
        match &self.when {
            When::Cron {
                expression,
                duration,
            } => api::Window {
                cron: Some(expression.to_string()),
                duration: duration.map(length),
                last_start,
                ..api::Window::default()
            },
            When::Until { expression, minute } => api::Window {
                cron: Some(expression.to_string()),
                until: Some(format!("{:02}:{:02}", minute / 60, minute % 60)),
                last_start,
                ..api::Window::default()
            },
            When::Dated { from, until } => api::Window {
                from: Some(local(*from)),
                until: Some(local(*until)),
                last_start,
                ..api::Window::default()
            },
        }
    }

    /// How long it lasts after it started, if that is always the same.
    pub fn duration(&self) -> Option<i64> {
        match self.when {
            When::Cron { duration, .. } => duration,
            When::Until { .. } | When::Dated { .. } => None,
        }
    }

    /// How many minutes it lasts at most, whatever the clocks do.
    pub fn longest(&self) -> i64 {
        match self.when {
            When::Cron { duration, .. } => duration.unwrap_or(0),
            When::Until { .. } => 2 * 1440,
            When::Dated { .. } => 0,
        }
    }
}

/// A local time as specs have it.
fn local(minutes: i64) -> String {
    let read = Timestamp::from_second(minutes * 60).unwrap();
    read.strftime("%Y-%m-%dT%H:%M:%S").to_string()
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
        sluice_core::time::zone::find(self.zone).unwrap()
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

/// None: one of the expressions never occurs, or none of its windows is longer than the last start.
/// Nothing else is refused.
pub fn read(spec: &api::Schedule) -> Option<Schedule> {
    match Schedule::read(spec, "spec.schedule") {
        Ok(schedule) => Some(schedule),
        Err(refusals) => {
            assert!(
                refusals
                    .iter()
                    .all(|r| r.problem.contains("never occurs")
                        || r.problem.contains("leaves nothing")),
                "{refusals}"
            );
            None
        }
    }
}

/// A window near an instant.
fn window(at: Timestamp) -> impl Strategy<Value = Window> {
    let minutes = prop_oneof![
        3 => 1..=59i64,
        4 => 60..=24 * 60i64,
        2 => (1..=96i64).prop_map(|hours| hours * 60),
    ];
    let by_cron =
        (expression(), prop::option::weighted(0.75, minutes)).prop_map(|(expression, duration)| {
            When::Cron {
                expression: Box::new(expression),
                duration,
            }
        });
    let near = at.as_second().div_euclid(60);
    let lengths = prop_oneof![1..=1440i64, 1440..=100 * 1440i64];
    let dated = (-60 * 1440..=10 * 1440i64, lengths).prop_map(move |(away, length)| When::Dated {
        from: near + away,
        until: near + away + length,
    });
    let until = until().prop_map(|(expression, minute)| When::Until {
        expression: Box::new(expression),
        minute,
    });
    prop_oneof![7 => by_cron, 3 => until, 1 => dated].prop_map(|when| Window {
        when,
        last_start: None,
    })
}

/// Starts, and the minute of the day at which what has started ends: often in the hours in which
/// clocks are changed.
fn until() -> impl Strategy<Value = (Expression, i64)> {
    (expression(), prop_oneof![0..1440i64, 0..=4 * 60i64])
}

/// A window of the list `open`: of some, the last part is too late.
fn open_window(at: Timestamp) -> impl Strategy<Value = Window> {
    (window(at), prop::option::weighted(0.2, 0..1000i64)).prop_map(|(mut window, permille)| {
        if let (Some(duration), Some(permille)) = (window.duration(), permille)
            && duration > 1
        {
            window.last_start = Some(1 + (duration - 2) * permille / 1000);
        }
        if let (When::Until { .. }, Some(permille)) = (&window.when, permille) {
            window.last_start = Some(1 + permille);
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
        let zone = sluice_core::time::zone::find(zone).unwrap();
        let change = zone.following(near).next().map(|change| change.timestamp());
        match change {
            Some(change) if biased => change + away,
            _ => near,
        }
    })
}

/// So many windows in each list.
fn case_of(
    open: impl Into<SizeRange>,
    closed: impl Into<SizeRange>,
) -> impl Strategy<Value = Case> {
    let (open, closed) = (open.into(), closed.into());
    place().prop_flat_map(move |(zone, at)| {
        let open = prop::collection::vec(open_window(at), open.clone());
        let closed = prop::collection::vec(window(at), closed.clone());
        (open, closed).prop_map(move |(open, closed)| Case {
            zone,
            open,
            closed,
            at,
        })
    })
}

/// One `open` window.
pub fn single() -> impl Strategy<Value = Case> {
    case_of(1, 0)
}

/// One cron without a duration, under `open`.
pub fn matching() -> impl Strategy<Value = Case> {
    (place(), expression()).prop_map(|((zone, at), expression)| Case {
        zone,
        open: vec![Window::matching(expression)],
        closed: Vec::new(),
        at,
    })
}

/// Several windows in both lists, at least one.
pub fn several() -> impl Strategy<Value = Case> {
    prop_oneof![case_of(1..=3, 0..=2), case_of(0..=3, 1..=2)]
}

/// Any zone, with an instant.
pub fn place() -> impl Strategy<Value = (&'static str, Timestamp)> {
    select(&ZONES).prop_flat_map(|zone| (Just(zone), instant(zone)))
}

/// A case, and further `closed` windows.
pub fn with_more_closed() -> impl Strategy<Value = (Case, Vec<Window>)> {
    several().prop_flat_map(|case| {
        let more = prop::collection::vec(window(case.at), 1..=2);
        (Just(case), more)
    })
}

/// Up to `days` later, or earlier.
pub fn days_away(days: i32) -> impl Strategy<Value = SignedDuration> {
    let most = (DAY * days).as_secs();
    (-most..=most).prop_map(SignedDuration::from_secs)
}
