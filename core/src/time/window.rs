//! Windows: when each one starts and ends.
//!
//! A window is `[start, end)`. `start` is an occurrence of its cron on the wall clock of its zone;
//! the end is a duration later, which is elapsed time, or when the clock shows a time of day next.
//! Of starts and ends on the wall clock, what a change of the clocks skips moves to the first
//! instant after the gap; what it repeats happens once, the first time. A window that is skipped as
//! a whole, from start to end, lasts from there as long as the clock would have shown. A cron
//! without an end is a predicate instead: every minute whose wall-clock reading matches is inside,
//! the repeated ones both times, the skipped ones never.
//!
//! What comes in: a window and a zone. What goes out: [`Spans`], one after the other and no more
//! of them than are asked for, because some windows have thousands a day and others one in forty
//! years.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;
use super::span::Span;

mod lasts;
mod minutes;
mod recurrence;
mod wall;

use lasts::{Lasts, minutes_until};
use recurrence::Recurrence;

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
    /// From each occurrence, until the clock on the wall shows a time of day.
    Until {
        /// The starts.
        cron: Cron,
        /// The minute of the day at which each ends, 0 to 1439: the same day if that is later than
        /// the start, else the next.
        minute: u16,
    },
    /// Every minute that matches.
    Matching {
        /// The minutes.
        cron: Cron,
    },
    /// Once.
    Dated(Span),
}

/// How far windows are followed.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Times that end no later count for nothing.
    pub from: Timestamp,
    /// A time that lasts this long is taken to last for ever.
    pub limit: Timestamp,
    /// How many days and times may be looked at, about.
    pub steps: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// This.
    Some(T),
    /// Nothing within reach.
    Never,
    /// Nobody has looked farther than this: the steps are used up.
    Unknown(Timestamp),
}

impl Window {
    /// The times that this window covers within `reach`: ascending, apart from each other, not
    /// clipped. `shortened` is taken off the end of each of them first.
    pub fn spans<'a>(
        &'a self,
        zone: &'a TimeZone,
        reach: Reach,
        shortened: SignedDuration,
    ) -> Spans<'a> {
        let (cron, lasts) = match self {
            Window::Recurring { cron, duration } => (cron, Lasts::For(*duration - shortened)),
            &Window::Until { ref cron, minute } => (cron, Lasts::Until { minute, shortened }),
            Window::Matching { cron } => (cron, Lasts::Minute),
            Window::Dated(span) => return Spans::Once(Some(span.shortened(shortened))),
        };
        Spans::Cron(Box::new(Recurrence::new(cron, lasts, zone, reach)))
    }

    /// The longest that it lasts where no clocks are changed. None: it has no end.
    pub fn longest(&self) -> Option<SignedDuration> {
        match self {
            Window::Recurring { duration, .. } => Some(*duration),
            Window::Until { cron, minute } => {
                let lengths = (cron.minutes().iter()).map(|start| minutes_until(*start, *minute));
                lengths
                    .max()
                    .map(|longest| SignedDuration::from_mins(longest.into()))
            }
            Window::Matching { .. } => None,
            Window::Dated(span) => Some(span.end.duration_since(span.start)),
        }
    }
}

/// The times that a window covers: see [`Window::spans`].
pub enum Spans<'a> {
    /// By a cron expression.
    Cron(Box<Recurrence<'a>>),
    /// Once, if it is still to come.
    Once(Option<Span>),
}

impl Spans<'_> {
    /// The next time.
    pub fn next_span(&mut self) -> Next<Span> {
        match self {
            Spans::Cron(recurrence) => recurrence.next_span(),
            Spans::Once(span) => span.take().map_or(Next::Never, Next::Some),
        }
    }

    /// Gives up times that end at `to` or before, where that saves work. Of one that covers `to`
    /// the start may be later than it was, unless `whole` is asked for.
    pub fn skip(&mut self, to: Timestamp, whole: bool) {
        if let Spans::Cron(recurrence) = self {
            recurrence.skip(to, whole);
        }
    }
}
