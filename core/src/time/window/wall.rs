//! The wall clock of a zone: what it shows when.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::lasts::{DAY, Ends, Lasts, MINUTE};
use super::minutes::{between, blocks};
use crate::time::span::{self, MOMENT, Span, earlier, later};

/// More than any zone's wall clock is ahead of, or behind, UTC.
const FARTHEST_OFFSET: SignedDuration = SignedDuration::from_hours(26);

/// A stretch of time through which a zone keeps one offset.
#[derive(Clone, Copy)]
struct Steady {
    span: Span,
    offset: Offset,
}

impl Steady {
    fn at(zone: &TimeZone, instant: Timestamp) -> Self {
        let start = zone.preceding(later(instant, MOMENT)).next();
        let end = zone.following(instant).next();
        Self {
            span: Span {
                start: start.map_or(Timestamp::MIN, |change| change.timestamp()),
                end: end.map_or(Timestamp::MAX, |change| change.timestamp()),
            },
            offset: zone.to_offset(instant),
        }
    }

    /// How long after midnight of a day, given as if it were in UTC, the clock shows `instant`.
    fn reading(&self, instant: Timestamp, midnight: Timestamp) -> SignedDuration {
        instant.duration_since(midnight) + self.ahead()
    }

    fn ahead(&self) -> SignedDuration {
        SignedDuration::from_secs(self.offset.seconds().into())
    }
}

/// Turns days into instants in ascending order, looking the zone up only when its offset changes.
pub(super) struct WallClock<'a> {
    zone: &'a TimeZone,
    steady: Steady,
}

impl<'a> WallClock<'a> {
    pub fn new(zone: &'a TimeZone, near: Timestamp) -> Self {
        Self {
            zone,
            steady: Steady::at(zone, near),
        }
    }

    /// The day that it shows at `instant`.
    pub fn day(&self, instant: Timestamp) -> Date {
        self.zone.to_datetime(instant).date()
    }

    /// The first instant of `day`, if the clocks are not changed within a day of it: then every
    /// minute of the day is as many minutes after it, and none is shown a second time by clocks
    /// that are turned back at its end (by at most a day, as Kwajalein's were).
    pub fn midnight_of_regular(&mut self, day: Date) -> Option<Timestamp> {
        let midnight = day.at(0, 0, 0, 0);
        let mut start = self.steady.offset.to_timestamp(midnight).ok()?;
        if !self.steady.span.contains(start) {
            self.steady = Steady::at(self.zone, start);
            start = self.steady.offset.to_timestamp(midnight).ok()?;
        }
        let steady = self.steady.span;
        (steady.start <= earlier(start, DAY) && later(start, DAY * 2) <= steady.end)
            .then_some(start)
    }

    /// The last midnight of a regular day before the clocks are changed next, or a little later.
    pub fn end_of_regular_days(&self) -> Timestamp {
        earlier(self.steady.span.end, DAY * 2)
    }

    /// The windows that start on `day`, on which the clocks may be changed: a reading that is
    /// skipped counts at the first instant after the gap, one that is repeated the first time.
    pub fn starts(&self, day: Date, minutes: &[u16], lasts: Lasts) -> Vec<Span> {
        let Some(midnight) = as_if_in_utc(day) else {
            return Vec::new();
        };
        let ends = lasts.on(day, self.zone);
        let mut spans = Vec::new();
        // Up to where readings have been shown, or skipped.
        let mut shown = None;
        for steady in self.stretches(midnight) {
            let first = steady.reading(steady.span.start, midnight);
            let end = steady.reading(steady.span.end, midnight);
            let before = *shown.get_or_insert(first);
            let at = |minute| later(midnight, MINUTE * i32::from(minute) - steady.ahead());
            let until_end = |start, minute| Span {
                start,
                end: ends.after(start, minute),
            };
            let skipped = between(minutes, before, first);
            spans.extend((skipped.iter()).map(|&minute| until_end(steady.span.start, minute)));
            let fresh = between(minutes, before.max(first), end);
            match ends {
                Ends::For(_) => {
                    let runs = blocks(fresh, lasts).into_iter();
                    spans.extend(runs.map(|(first, last)| Span {
                        start: at(first),
                        end: ends.after(at(last), last),
                    }));
                }
                Ends::Until { .. } => {
                    spans.extend(fresh.iter().map(|&minute| until_end(at(minute), minute)));
                }
            }
            shown = Some(before.max(end));
        }
        span::union(spans)
    }

    /// When it reads a minute of `blocks` (first and last) on `day`, on which the clocks may be
    /// changed: once for each stretch of constant offset that shows a part of a block.
    pub fn readings(&self, day: Date, blocks: &[(u16, u16)]) -> Vec<Span> {
        let Some(midnight) = as_if_in_utc(day) else {
            return Vec::new();
        };
        let mut spans = Vec::new();
        for steady in self.stretches(midnight) {
            let at = |minute: i32| later(midnight, MINUTE * minute - steady.ahead());
            let shown = |&(first, last): &(u16, u16)| {
                let whole = Span {
                    start: at(first.into()),
                    end: at(i32::from(last) + 1),
                };
                whole.within(&steady.span)
            };
            spans.extend(blocks.iter().filter_map(shown));
        }
        spans
    }

    /// The stretches of constant offset in which the day could be shown that begins at `midnight`
    /// in UTC.
    fn stretches(&self, midnight: Timestamp) -> Vec<Steady> {
        let last = later(midnight, DAY + FARTHEST_OFFSET);
        let mut stretches = vec![Steady::at(self.zone, earlier(midnight, FARTHEST_OFFSET))];
        while let Some(steady) = stretches.last()
            && steady.span.end < last
        {
            stretches.push(Steady::at(self.zone, steady.span.end));
        }
        stretches
    }
}

fn as_if_in_utc(day: Date) -> Option<Timestamp> {
    Offset::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()
}

/// Earlier than any clock shows `day`.
pub(super) fn earliest(day: Date) -> Timestamp {
    as_if_in_utc(day).map_or(Timestamp::MIN, |midnight| {
        earlier(midnight, FARTHEST_OFFSET)
    })
}
