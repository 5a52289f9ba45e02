//! Windows: when each one starts and ends.
//!
//! A window is `[start, start + duration)`. `start` is an occurrence of its cron on the wall clock
//! of its zone; the duration is elapsed time. A start that a change of the clocks skips moves to
//! the first instant after the gap; one that it repeats happens once, the first time. A cron
//! without a duration is a predicate instead: every minute whose wall-clock reading matches is
//! inside, the repeated ones both times, the skipped ones never.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::cron::Cron;
use crate::span::{self, Span};
use crate::zone;

/// More than any zone's wall clock is ahead of, or behind, UTC.
const FARTHEST_OFFSET: SignedDuration = SignedDuration::from_hours(26);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// When a window is, calendars apart.
#[derive(Clone, Debug)]
pub enum Window {
    /// From each occurrence, for a duration.
    Recurring {
        /// The starts.
        cron: Cron,
        /// How long each lasts, more than zero.
        duration: SignedDuration,
    },
    /// Every minute that matches.
    Matching {
        /// The minutes.
        cron: Cron,
    },
    /// Once.
    Dated(Span),
}

impl Window {
    /// The times that this window covers and that overlap `within`: ascending, apart from each
    /// other, not clipped. `shortened` is taken off the end of each of them first.
    pub fn spans(&self, zone: &TimeZone, within: Span, shortened: SignedDuration) -> Vec<Span> {
        let spans = match self {
            Window::Recurring { cron, duration } => {
                recurring(cron, *duration - shortened, zone, within)
            }
            Window::Matching { cron } => matching(cron, zone, within),
            Window::Dated(span) => vec![span.shortened(shortened)],
        };
        let mut spans = span::union(spans);
        spans.retain(|span| span.within(&within).is_some());
        spans
    }
}

fn recurring(cron: &Cron, duration: SignedDuration, zone: &TimeZone, within: Span) -> Vec<Span> {
    let blocks = blocks(cron.minutes(), duration);
    let reach = Span {
        start: sooner(within.start, duration),
        end: within.end,
    };
    let mut spans = Vec::new();
    let mut wall = WallClock::new(zone, reach.start);
    for day in matching_days(cron, reach) {
        match wall.midnight_of_plain(day) {
            Some(midnight) => spans.extend(blocks.iter().map(|&(first, last)| Span {
                start: later(midnight, MINUTE * i32::from(first)),
                end: later(midnight, MINUTE * i32::from(last) + duration),
            })),
            None => spans.extend(cron.minutes().iter().filter_map(|&minute| {
                let start = zone::resolve(zone, at_minute(day, minute))?;
                Some(Span {
                    start,
                    end: later(start, duration),
                })
            })),
        }
    }
    spans
}

fn matching(cron: &Cron, zone: &TimeZone, within: Span) -> Vec<Span> {
    let blocks = blocks(cron.minutes(), MINUTE);
    let mut spans = Vec::new();
    let mut wall = WallClock::new(zone, within.start);
    for day in matching_days(cron, within) {
        let midnight = wall.midnight_of_plain(day);
        for &(first, last) in &blocks {
            let (start, end) = (MINUTE * i32::from(first), MINUTE * (i32::from(last) + 1));
            match midnight {
                Some(midnight) => {
                    spans.push(Span {
                        start: later(midnight, start),
                        end: later(midnight, end),
                    });
                }
                None => spans.extend(readings(day, start, end, zone)),
            }
        }
    }
    spans
}

/// When the wall clock reads from `start` to `end` after midnight of `day`, on a day on which it
/// is changed: once for each stretch of constant offset that shows a part of it.
fn readings(day: Date, start: SignedDuration, end: SignedDuration, zone: &TimeZone) -> Vec<Span> {
    let Ok(midnight) = Offset::UTC.to_timestamp(day.at(0, 0, 0, 0)) else {
        return Vec::new();
    };
    let last = later(midnight, DAY + FARTHEST_OFFSET);
    let mut steady = Steady::at(zone, sooner(midnight, FARTHEST_OFFSET));
    let mut spans = Vec::new();
    loop {
        let ahead = SignedDuration::from_secs(steady.offset.seconds().into());
        let shown = Span {
            start: later(midnight, start - ahead),
            end: later(midnight, end - ahead),
        };
        spans.extend(shown.within(&steady.span));
        if steady.span.end >= last {
            return spans;
        }
        steady = Steady::at(zone, steady.span.end);
    }
}

/// Runs of minutes whose windows of `duration` touch, as first and last minute.
fn blocks(minutes: &[u16], duration: SignedDuration) -> Vec<(u16, u16)> {
    let mut blocks: Vec<(u16, u16)> = Vec::new();
    for &minute in minutes {
        match blocks.last_mut() {
            Some((_, last)) if MINUTE * i32::from(minute - *last) <= duration => *last = minute,
            _ => blocks.push((minute, minute)),
        }
    }
    blocks
}

/// The days on which an occurrence could be inside `reach`, wherever on Earth.
fn matching_days(cron: &Cron, reach: Span) -> impl Iterator<Item = Date> {
    let day_of = |instant: Timestamp| Offset::UTC.to_datetime(instant).date();
    let first = day_of(sooner(reach.start, FARTHEST_OFFSET));
    let last = day_of(later(reach.end, FARTHEST_OFFSET));
    first
        .series(1.day())
        .take_while(move |day| *day <= last)
        .filter(|day| cron.matches(*day))
}

fn at_minute(day: Date, minute: u16) -> jiff::civil::DateTime {
    // Both fit: a minute of a day is below 1440.
    let (hour, minute) = ((minute / 60) as i8, (minute % 60) as i8);
    day.at(hour, minute, 0, 0)
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn sooner(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

/// A stretch of time through which a zone keeps one offset.
struct Steady {
    span: Span,
    offset: Offset,
}

impl Steady {
    fn at(zone: &TimeZone, instant: Timestamp) -> Self {
        let just_behind = later(instant, SignedDuration::from_nanos(1));
        let start = zone
            .preceding(just_behind)
            .next()
            .map(|change| change.timestamp());
        let end = zone
            .following(instant)
            .next()
            .map(|change| change.timestamp());
        Self {
            span: Span {
                start: start.unwrap_or(Timestamp::MIN),
                end: end.unwrap_or(Timestamp::MAX),
            },
            offset: zone.to_offset(instant),
        }
    }
}

/// Turns days into instants in ascending order, looking the zone up only when its offset changes.
struct WallClock<'a> {
    zone: &'a TimeZone,
    steady: Steady,
}

impl<'a> WallClock<'a> {
    fn new(zone: &'a TimeZone, near: Timestamp) -> Self {
        Self {
            zone,
            steady: Steady::at(zone, near),
        }
    }

    /// The first instant of `day`, if the clocks are not changed within a day of it: then every
    /// minute of the day is as many minutes after it, and none is shown a second time by clocks
    /// that are turned back at its end (by at most a day, as Kwajalein's were).
    fn midnight_of_plain(&mut self, day: Date) -> Option<Timestamp> {
        let midnight = day.at(0, 0, 0, 0);
        let mut start = self.steady.offset.to_timestamp(midnight).ok()?;
        if !self.steady.span.contains(start) {
            self.steady = Steady::at(self.zone, start);
            start = self.steady.offset.to_timestamp(midnight).ok()?;
        }
        let steady = self.steady.span;
        (steady.start <= sooner(start, DAY) && later(start, DAY * 2) <= steady.end).then_some(start)
    }
}
