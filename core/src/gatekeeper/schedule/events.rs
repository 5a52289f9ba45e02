//! When the events of a calendar are, looked up piece by piece.
//!
//! Pieces are whole days of UTC, so that what one of them holds, and whether that is too much, does not
//! depend on when it is asked for.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::Share;
use crate::time::calendar::{Calendar, CalendarError, Occurrence, Steps};
use crate::time::span::{Span, later};
use crate::time::timeline::{Cover, Source};
use crate::time::window::{Next, Reach};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How many days are looked at first, and at most at once.
const FIRST_DAYS: i32 = 10;
const MOST_DAYS: i32 = 400;

/// When the events of a calendar are.
pub(crate) struct Events<'a> {
    window: u16,
    calendar: &'a Calendar,
    shortened: SignedDuration,
    ready: VecDeque<Occurrence>,
    /// Up to where it was looked at: a midnight.
    looked: Timestamp,
    /// From where a start counts: earlier ones were returned already.
    told: Timestamp,
    /// How many days are looked at next.
    days: i32,
    limit: Timestamp,
    steps: Steps,
}

/// A day on which a calendar holds too much.
pub(super) struct Dense {
    pub day: Span,
    pub error: Box<CalendarError>,
}

impl Dense {
    fn new(day: Span, error: CalendarError) -> Self {
        Self {
            day,
            error: Box::new(error),
        }
    }
}

impl<'a> Events<'a> {
    /// The events from `reach.from` on, in `share` steps.
    ///
    /// # Errors
    /// The day of `reach.from` by itself holds too much.
    pub(super) fn new(
        window: u16,
        calendar: &'a Calendar,
        reach: Reach,
        share: Share,
        shortened: SignedDuration,
    ) -> Result<Self, Dense> {
        let mut new = Self {
            window,
            calendar,
            shortened,
            ready: VecDeque::new(),
            looked: midnight(reach.from),
            told: Timestamp::MIN,
            days: FIRST_DAYS,
            limit: reach.limit,
            steps: Steps::new(share.ahead),
        };
        if new.look_further().is_err() && share.first_day > 0 {
            let day = new.piece(1);
            let found = calendar.look(day, &mut Steps::new(share.first_day));
            new.take(day, found.map_err(|error| Dense::new(day, error))?);
        }
        Ok(new)
    }

    /// Looks at the next days, at fewer of them where they hold too much.
    fn look_further(&mut self) -> Result<(), CalendarError> {
        loop {
            let piece = self.piece(self.days);
            match self.calendar.look(piece, &mut self.steps) {
                Ok(found) => {
                    self.take(piece, found);
                    self.days = (self.days * 2).min(MOST_DAYS);
                    return Ok(());
                }
                Err(error) if self.days == 1 || self.steps.left() == 0 => return Err(error),
                Err(_) => self.days /= 2,
            }
        }
    }

    fn piece(&self, days: i32) -> Span {
        Span {
            start: self.looked,
            end: later(self.looked, DAY * days),
        }
    }

    fn take(&mut self, piece: Span, found: Vec<Occurrence>) {
        let told = self.told;
        let new = found.into_iter().filter(|found| found.span.start >= told);
        self.ready.extend(new);
        self.looked = piece.end;
        // Events that overlap the next piece and started before it have been returned already.
        self.told = piece.end;
    }

    pub(super) fn next_cover(&mut self) -> Next<Cover> {
        loop {
            if let Some(Occurrence { span, event }) = self.ready.pop_front() {
                let span = span.shortened(self.shortened);
                if span.is_empty() {
                    continue;
                }
                return Next::Some(Cover {
                    source: Source {
                        window: self.window,
                        event: Some(event),
                    },
                    span,
                });
            }
            let over = self.calendar.end().is_some_and(|end| end <= self.looked);
            if over || self.looked >= self.limit {
                return Next::Never;
            }
            if self.look_further().is_err() {
                return Next::Unknown(self.looked);
            }
        }
    }

    pub(super) fn skip(&mut self, to: Timestamp) {
        if self.looked < to {
            self.ready.clear();
            self.looked = midnight(to);
            self.told = Timestamp::MIN;
        }
    }
}

/// The midnight of UTC before `at`, or at it.
fn midnight(at: Timestamp) -> Timestamp {
    let day = DAY.as_secs();
    let second = at.as_second().div_euclid(day).saturating_mul(day);
    Timestamp::from_second(second).unwrap_or(Timestamp::MIN)
}
