//! The times that a cron expression covers, one after the other.

use std::collections::VecDeque;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::lasts::{DAY, Lasts, MINUTE};
use super::minutes::blocks;
use super::wall::{self, WallClock};
use super::{Next, Reach};
use crate::time::cron::Cron;
use crate::time::span::{Span, earlier, later};

/// Windows of one day are taken to touch those of the next if less time than this lies between
/// them: it is more than clocks are put forward by.
const CLOSE: SignedDuration = SignedDuration::from_hours(3);
/// How many days in which nothing matches are one step.
const DAYS_A_STEP: i64 = 4;

/// The times that a cron expression covers.
pub struct Recurrence<'a> {
    cron: &'a Cron,
    lasts: Lasts,
    /// The minutes of a matching day, as runs that touch: first and last.
    blocks: Vec<(u16, u16)>,
    /// Whether times of one day may touch those of the next.
    seamless: bool,
    /// Whether those of each day do touch those of the next: then the clocks have to be changed
    /// for a gap.
    endless: bool,
    wall: WallClock<'a>,
    limit: Timestamp,
    steps: u32,
    /// The next day to look at.
    day: Option<Date>,
    last: Date,
    /// The midnight of a regular day, and the next of its blocks.
    regular_day: Option<(Timestamp, usize)>,
    /// Times of other days that were looked at, ascending by start; they may overlap.
    around_change: VecDeque<Span>,
    /// Times that end no later do not matter.
    after: Timestamp,
    /// The next time, as far as it is known: it may be longer.
    chain: Option<Span>,
}

impl<'a> Recurrence<'a> {
    pub(super) fn new(cron: &'a Cron, lasts: Lasts, zone: &'a TimeZone, reach: Reach) -> Self {
        let blocks = blocks(cron.minutes(), lasts);
        let wall = WallClock::new(zone, reach.from);
        let gap = gap_at_night(&blocks, lasts);
        let mut new = Self {
            seamless: gap < CLOSE,
            endless: blocks.len() == 1 && gap <= SignedDuration::ZERO && cron.is_daily(),
            last: later_day(wall.day(reach.limit)),
            cron,
            lasts,
            blocks,
            wall,
            limit: reach.limit,
            steps: reach.steps,
            day: None,
            regular_day: None,
            around_change: VecDeque::new(),
            after: Timestamp::MIN,
            chain: None,
        };
        new.start(reach.from, false);
        new
    }

    /// Starts again, early enough to find every time that ends later than `from`.
    fn start(&mut self, from: Timestamp, whole: bool) {
        let first = self.wall.day(earlier(from, self.lasts.longest()));
        // If clocks are turned back over midnight, they show the day before again.
        self.day = Some(first.yesterday().unwrap_or(first));
        self.after = if whole { Timestamp::MIN } else { from };
        self.regular_day = None;
        self.around_change.clear();
        self.chain = None;
    }

    pub(super) fn skip(&mut self, to: Timestamp, whole: bool) {
        let Some(day) = self.day else { return };
        // Nearer than this it is less work to go on.
        let near = self.lasts.longest() + DAY * 4;
        if self.wall.day(earlier(to, near)) > day && !(whole && self.seamless) {
            self.start(to, whole);
        }
    }

    pub(super) fn next_span(&mut self) -> Next<Span> {
        while let Some(span) = self.occurrence() {
            match &mut self.chain {
                Some(chain) if span.start <= chain.end => chain.end = chain.end.max(span.end),
                Some(chain) => return Next::Some(std::mem::replace(chain, span)),
                None => self.chain = Some(span),
            }
        }
        match (self.chain.take(), self.day) {
            (Some(chain), None) if chain.end >= self.limit => Next::Some(Span {
                end: Timestamp::MAX,
                ..chain
            }),
            (Some(chain), _) => Next::Some(chain),
            (None, None) => Next::Never,
            (None, Some(day)) => Next::Unknown(wall::earliest(day)),
        }
    }

    /// The next occurrence. None: there is none any more (`self.day` is None), or the steps are
    /// used up.
    fn occurrence(&mut self) -> Option<Span> {
        loop {
            if let Some(span) = self
                .around_change
                .pop_front()
                .or_else(|| self.in_regular_day())
            {
                self.steps = self.steps.saturating_sub(1);
                return Some(span);
            }
            if self.steps == 0 {
                return None;
            }
            self.day = self.fill();
            self.day?;
        }
    }

    fn in_regular_day(&mut self) -> Option<Span> {
        let (midnight, place) = self.regular_day?;
        let Some(&block) = self.blocks.get(place) else {
            self.regular_day = None;
            return None;
        };
        self.regular_day = Some((midnight, place + 1));
        Some(self.span_of(midnight, block))
    }

    fn span_of(&self, midnight: Timestamp, (first, last): (u16, u16)) -> Span {
        Span {
            start: later(midnight, MINUTE * i32::from(first)),
            end: later(midnight, self.lasts.end(last)),
        }
    }

    /// Makes the times of the next matching day ready. Returns the day after.
    fn fill(&mut self) -> Option<Date> {
        let from = self.day?;
        let day = self.cron.first_match(from, self.last)?;
        let days = from.duration_until(day).as_hours() / 24;
        let steps = u32::try_from(days / DAYS_A_STEP).unwrap_or(u32::MAX);
        self.steps = self.steps.saturating_sub(steps);
        match self.wall.midnight_of_regular(day) {
            Some(midnight) if self.endless => self.fill_many_days(day, midnight),
            Some(midnight) => {
                let ended = |&block: &(u16, u16)| self.span_of(midnight, block).end <= self.after;
                self.regular_day = Some((midnight, self.blocks.partition_point(ended)));
                day.tomorrow().ok()
            }
            None => self.fill_around_a_change(day),
        }
    }

    /// A regular day and all those after it that are regular, too.
    fn fill_many_days(&mut self, day: Date, midnight: Timestamp) -> Option<Date> {
        let block = *self.blocks.first()?;
        let end = self.wall.end_of_regular_days().min(self.limit);
        let days = (end.duration_since(midnight).as_hours() / 24).max(0);
        let first = self.span_of(midnight, block);
        self.around_change.push_back(Span {
            start: first.start,
            end: later(first.end, SignedDuration::from_hours(days * 24)),
        });
        day.checked_add(SignedDuration::from_hours((days + 1) * 24))
            .ok()
    }

    /// On days around a change of the clocks, some of one day may be shown after some of the next.
    fn fill_around_a_change(&mut self, first: Date) -> Option<Date> {
        let mut day = first;
        let mut spans = Vec::new();
        let next = loop {
            spans.extend(match self.lasts {
                Lasts::Minute => self.wall.readings(day, &self.blocks),
                lasts => self.wall.starts(day, self.cron.minutes(), lasts),
            });
            let next = day.tomorrow().ok();
            // Two days without a match between them, and they do not mix.
            let soon = later_day(later_day(later_day(day))).min(self.last);
            match next.and_then(|next| self.cron.first_match(next, soon)) {
                Some(close) if self.wall.midnight_of_regular(close).is_none() => day = close,
                Some(_) | None => break next,
            }
        };
        spans.sort_unstable();
        self.around_change.extend(spans);
        next
    }
}

fn later_day(day: Date) -> Date {
    day.tomorrow().unwrap_or(day)
}

/// How much time lies between the last block of one day and the first of the next; less than none
/// if they overlap.
fn gap_at_night(blocks: &[(u16, u16)], lasts: Lasts) -> SignedDuration {
    match (blocks.first(), blocks.last()) {
        (Some(&(first, _)), Some(&(_, last))) => DAY + MINUTE * i32::from(first) - lasts.end(last),
        _ => DAY,
    }
}
