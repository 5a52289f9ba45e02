//! An oracle that knows no shortcut: it looks at the wall clock minute by minute.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

use crate::cases::{Case, When, Window};
use crate::expression::Expression;

const DAY: i64 = 1440;
/// How far ahead of the instant the scanner looks, in minutes.
pub const AHEAD: i64 = 3 * DAY;

/// Whether the schedule of `case` is open in each minute from that of `case.at` on, for
/// [`AHEAD`] minutes.
pub fn open(case: &Case) -> Vec<bool> {
    let windows = case.open.iter().chain(&case.closed);
    let longest = windows.map(Window::longest).max().unwrap_or(0);
    let first = case.at.as_second().div_euclid(60);
    // A day more, so that what was shown before is known where clocks are turned back; and as much
    // behind as it takes to see the ends of what has started.
    let behind = longest + 2 * DAY;
    let wall = Wall::new(&case.zone(), first - behind, first + AHEAD + longest);
    let inside = |windows: &[Window]| {
        let mut any = vec![false; usize::try_from(AHEAD).unwrap()];
        for window in windows {
            let scanned = wall.inside(window);
            let asked = scanned.iter().skip(usize::try_from(behind).unwrap());
            any.iter_mut().zip(asked).for_each(|(any, one)| *any |= one);
        }
        any
    };
    let (open, closed) = (inside(&case.open), inside(&case.closed));
    let bounded = !case.open.is_empty();
    open.into_iter()
        .zip(closed)
        .map(|(open, closed)| (open || !bounded) && !closed)
        .collect()
}

/// What the clock on the wall reads, minute by minute, in minutes since 1970-01-01T00:00.
pub struct Wall {
    readings: Vec<i64>,
}

impl Wall {
    /// From the minute `first` of the epoch to `last`, itself outside. Every zone is off by whole
    /// minutes since 1972.
    pub fn new(zone: &TimeZone, first: i64, last: i64) -> Self {
        let reading = |minute: i64| {
            let offset = zone.to_offset(Timestamp::from_second(minute * 60).unwrap());
            minute + i64::from(offset.seconds()) / 60
        };
        Self {
            readings: (first..last).map(reading).collect(),
        }
    }

    /// Whether each minute is inside `window`.
    pub fn inside(&self, window: &Window) -> Vec<bool> {
        match &window.when {
            When::Cron {
                expression,
                duration: None,
            } => {
                let mut days = Days::new(expression);
                self.readings
                    .iter()
                    .map(|&reading| days.match_minute(reading))
                    .collect()
            }
            When::Cron {
                expression,
                duration: Some(duration),
            } => self.started(expression, duration - window.last_start.unwrap_or(0)),
            When::Until { expression, minute } => {
                let late = window.last_start.unwrap_or(0);
                let mut inside = vec![false; self.readings.len()];
                for (start, end) in self.until(expression, *minute) {
                    let end = end - usize::try_from(late).unwrap().min(end);
                    inside
                        .iter_mut()
                        .take(end)
                        .skip(start)
                        .for_each(|it| *it = true);
                }
                inside
            }
            When::Dated { from, until } => self
                .shown()
                .map(|shown| (*from..*until).contains(&shown))
                .collect(),
        }
    }

    /// The latest reading that has been shown, or skipped, by each minute: clocks that are turned
    /// back show nothing new for a while.
    fn shown(&self) -> impl Iterator<Item = i64> {
        self.readings.iter().scan(i64::MIN, |shown, &reading| {
            *shown = reading.max(*shown);
            Some(*shown)
        })
    }

    /// The clock shows each reading once: one that is shown again was shown before, and one that
    /// is skipped is shown, as it were, together with the first reading after it.
    fn started(&self, expression: &Expression, lasts: i64) -> Vec<bool> {
        let mut days = Days::new(expression);
        let mut before = self.readings[0] - 1;
        let mut left = 0;
        let mut inside = Vec::with_capacity(self.readings.len());
        for shown in self.shown() {
            if (before + 1..=shown).any(|reading| days.match_minute(reading)) {
                left = lasts;
            }
            before = shown;
            inside.push(left > 0);
            left -= 1;
        }
        inside
    }

    /// The first minutes inside and outside of what starts by `expression` and ends at a minute of
    /// the day, as numbers of minutes from the first that is scanned.
    pub fn until(&self, expression: &Expression, minute: i64) -> Vec<(usize, usize)> {
        let mut days = Days::new(expression);
        let shown: Vec<i64> = self.shown().collect();
        let mut before = self.readings[0] - 1;
        let mut found = Vec::new();
        for (start, &now) in shown.iter().enumerate() {
            for reading in (before + 1..=now).filter(|reading| days.match_minute(*reading)) {
                let same_day = reading.div_euclid(DAY) * DAY + minute;
                let next = if same_day > reading {
                    same_day
                } else {
                    same_day + DAY
                };
                let end = match next <= now {
                    // Skipped together with its start.
                    true => start + usize::try_from(next - reading).unwrap(),
                    false => shown.partition_point(|shown| *shown < next),
                };
                found.push((start, end));
            }
            before = now;
        }
        found
    }
}

/// Remembers the day it was last asked about.
struct Days<'a> {
    expression: &'a Expression,
    last: Option<(i64, bool)>,
}

impl<'a> Days<'a> {
    fn new(expression: &'a Expression) -> Self {
        Self {
            expression,
            last: None,
        }
    }

    fn match_minute(&mut self, reading: i64) -> bool {
        if !self.expression.matches_minute(reading.rem_euclid(DAY)) {
            return false;
        }
        let day = reading.div_euclid(DAY);
        match self.last {
            Some((last, matches)) if last == day => matches,
            _ => {
                let matches = self.expression.matches_day(date(day));
                self.last = Some((day, matches));
                matches
            }
        }
    }
}

/// The date that is `day` days after 1970-01-01.
fn date(day: i64) -> Date {
    Offset::UTC
        .to_datetime(Timestamp::from_second(day * 86_400).unwrap())
        .date()
}
