//! Windows: when each one starts and ends.
//!
//! A window is `[start, start + duration)`. `start` is an occurrence of its cron on the wall clock
//! of its zone; the duration is elapsed time. A start that a change of the clocks skips moves to
//! the first instant after the gap; one that it repeats happens once, the first time. A cron
//! without a duration is a predicate instead: every minute whose wall-clock reading matches is
//! inside, the repeated ones both times, the skipped ones never.
//!
//! What comes in: a window and a zone. What goes out: [`Spans`], one after the other and no more
//! of them than are asked for, because some windows have thousands a day and others one in forty
//! years.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cron::Cron;
use crate::span::Span;

mod minutes;
mod recurrence;
mod wall;

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
        match self {
            Window::Recurring { cron, duration } => {
                let lasts = Some(*duration - shortened);
                Spans::Cron(Box::new(Recurrence::new(cron, lasts, zone, reach)))
            }
            Window::Matching { cron } => {
                Spans::Cron(Box::new(Recurrence::new(cron, None, zone, reach)))
            }
            Window::Dated(span) => Spans::Once(Some(span.shortened(shortened))),
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
    /// the start may be told late, unless `whole` is asked for.
    pub fn skip(&mut self, to: Timestamp, whole: bool) {
        if let Spans::Cron(recurrence) = self {
            recurrence.skip(to, whole);
        }
    }
}
