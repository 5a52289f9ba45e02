//! `schedule`: windows that open and close, from their spec to the state at an instant.

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sluice_crds::State;
use sluice_crds::gatekeeper::{self as api, Calendar as CalendarSource};

use crate::text::refusal::Refusals;
use crate::time::calendar::{Calendar, CalendarError};
use crate::time::span::{Span, later};
use crate::time::timeline::{Cause, Extent, Moment, States, Timeline};
use crate::time::window::{Reach, Window};
use crate::verdict::status::UPCOMING;

mod covers;
mod events;
mod kind;
mod read;
#[cfg(test)]
mod tests;
mod times;
mod words;

use covers::{Share, WindowCovers};
use words::{cause, explain};

/// How far ahead changes are looked for. Behind this nothing is expected any more: the rarest
/// dates that a cron can name (a 29 February on one weekday, across 2100) are 40 years apart.
const FARTHEST: SignedDuration = SignedDuration::from_hours(41 * 366 * 24);
/// How many events, days and times are looked at for one timeline before it ends where it is: some
/// milliseconds of work. Only windows that open and close for years without any effect take more,
/// and calendars in which thousands of events recur.
const MOST_STEPS: u32 = 200_000;
/// How many may be looked at for the calendars of the day that is asked about, if the others do
/// not even suffice for that: of a day that takes more, nothing is known.
const MOST_STEPS_OF_A_DAY: u32 = 500_000;
/// The same for a stretch of time that was asked for.
const MOST_STEPS_WITHIN: u32 = 4_000_000;
/// How many stretches with one cause a timeline holds.
const MOST_SEGMENTS: usize = 256;

/// A schedule as its spec describes it, read.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    zone_name: String,
    open: Vec<Entry>,
    closed: Vec<Entry>,
    /// The state where a calendar that cannot be read could decide, and no window does.
    undecided: State,
}

/// One window of a list.
#[derive(Clone, Debug)]
struct Entry {
    label: String,
    reason: Option<String>,
    when: When,
    last_start: SignedDuration,
}

#[derive(Clone, Debug)]
enum When {
    Window(Window),
    /// The events of a calendar, which is evidence: the source, and its place among
    /// [`Schedule::calendars`].
    Calendar(CalendarSource, usize),
}

/// What came of reading one calendar: the evidence of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It was read.
    Read {
        /// What it says.
        calendar: Arc<Calendar>,
        /// Until when that may be relied on. None: until it is seen to change.
        good_until: Option<Timestamp>,
        /// Why it has not been read again since. None: it was, whenever it was due.
        overdue: Option<Overdue>,
    },
    /// It cannot be read, and why: what the other windows do not decide, `onError` does.
    Unavailable(String),
    /// It was read and makes no sense: closed until somebody fixes it.
    Broken(CalendarError),
}

/// A calendar that is kept as it was, because it cannot be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// When it was last read.
    pub read_at: Timestamp,
    /// What stands in the way.
    pub why: String,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read_at, why } = self;
        let read_at = crate::text::words::instant_utc(*read_at);
        write!(
            f,
            "kept as it was read {read_at}; reading it again fails: {why}"
        )
    }
}

/// Why a schedule's states cannot be known: one of its calendars.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The calendar was not read yet.
    #[error("the calendar of window '{window}' has not been read yet")]
    Unread {
        /// The label of its window.
        window: String,
    },
    /// It was had and makes no sense.
    #[error("the calendar of window '{window}' is broken: {error}")]
    Broken {
        /// The label of its window.
        window: String,
        /// What is wrong with it.
        error: Box<CalendarError>,
        /// Where it is: a day on which too much is on. None: everywhere.
        within: Option<Span>,
    },
    /// Its windows cannot even be followed to where they are asked about.
    #[error(
        "its windows take too many steps to follow; write fewer, or split the schedule into several gatekeepers"
    )]
    TooMuch,
}

impl Fault {
    /// The only time that it is about, if there is such.
    pub fn within(&self) -> Option<Span> {
        match self {
            Fault::Unread { .. } | Fault::TooMuch => None,
            Fault::Broken { within, .. } => *within,
        }
    }
}

/// A calendar that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing<'a> {
    /// The label of its window.
    window: &'a str,
    /// What stood in the way.
    why: &'a str,
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, why } = self;
        write!(f, "the calendar of window '{window}' is unavailable: {why}")
    }
}

impl Schedule {
    /// Reads a spec, whose path in its object is `path` (such as `spec.schedule`).
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(spec: &api::Schedule, path: &str) -> Result<Self, Refusals> {
        read::schedule(spec, path)
    }

    /// The same for an `onError`: the state where a calendar that cannot be read could decide and no
    /// window does. Without this, it is closed.
    #[must_use]
    pub fn on_error(self, state: State) -> Self {
        Self {
            undecided: state,
            ..self
        }
    }

    /// The zone in which its windows are written.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The name of that zone.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The calendars it needs, each with the label of its window. Evidence is given in this order.
    pub fn calendars(&self) -> impl Iterator<Item = (&str, &CalendarSource)> {
        self.open
            .iter()
            .chain(&self.closed)
            .filter_map(|entry| match &entry.when {
                When::Calendar(source, _) => Some((entry.label.as_str(), source)),
                When::Window(_) => None,
            })
    }

    /// The states from `from` on, as far as it takes to know the next [`UPCOMING`] changes, or
    /// that there are none.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, makes no sense, or holds too much on the day
    /// that it starts.
    pub fn timeline(&self, readings: &[Reading], from: Timestamp) -> Result<Timeline, Fault> {
        self.ahead(readings, from, UPCOMING)
    }

    /// What holds at `at`, and when that changes: for a single question.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, makes no sense, or holds too much on that
    /// day.
    pub fn moment(&self, readings: &[Reading], at: Timestamp) -> Result<Moment, Fault> {
        self.ahead(readings, at, 0)?.at(at).ok_or(Fault::TooMuch)
    }

    /// The states within `span`, or the beginning of it where it holds millions of times.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, makes no sense, or holds too much on the day
    /// that it starts.
    pub fn timeline_within(&self, readings: &[Reading], span: Span) -> Result<Timeline, Fault> {
        let reach = reach(span.start, MOST_STEPS_WITHIN);
        let walk = self.walk(readings, reach, MOST_STEPS_OF_A_DAY)?;
        let extent = Extent {
            span,
            changes: usize::MAX,
            segments: usize::MAX,
        };
        Ok(Timeline::new(walk, extent).up_to(span.end))
    }

    /// The states from `from` on, found as they are asked for, in no more steps than a timeline
    /// takes.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, or makes no sense.
    pub(crate) fn states<'a>(
        &'a self,
        readings: &'a [Reading],
        from: Timestamp,
    ) -> Result<States<WindowCovers<'a>>, Fault> {
        let reach = reach(from, MOST_STEPS);
        let span = Span {
            start: from,
            end: reach.limit,
        };
        Ok(States::new(self.walk(readings, reach, 0)?, span))
    }

    fn ahead(
        &self,
        readings: &[Reading],
        from: Timestamp,
        changes: usize,
    ) -> Result<Timeline, Fault> {
        let reach = reach(from, MOST_STEPS);
        let span = Span {
            start: from,
            end: reach.limit,
        };
        let extent = Extent {
            span,
            changes,
            segments: MOST_SEGMENTS,
        };
        let walk = self.walk(readings, reach, MOST_STEPS_OF_A_DAY)?;
        Ok(Timeline::new(walk, extent))
    }

    /// Why its states are not known: first what somebody has to fix.
    fn fault(&self, readings: &[Reading]) -> Option<Fault> {
        let windows = self.open.iter().chain(&self.closed);
        let faults = windows.filter_map(|entry| {
            let When::Calendar(_, place) = entry.when else {
                return None;
            };
            let window = entry.label.clone();
            match readings.get(place) {
                Some(Reading::Read { .. } | Reading::Unavailable(_)) => None,
                Some(Reading::Broken(error)) => Some(Fault::Broken {
                    window,
                    error: Box::new(error.clone()),
                    within: None,
                }),
                None => Some(Fault::Unread { window }),
            }
        });
        faults.min_by_key(|fault| matches!(fault, Fault::Unread { .. }))
    }

    /// The first of its calendars that cannot be read.
    pub(crate) fn missing<'a>(&'a self, readings: &'a [Reading]) -> Option<Missing<'a>> {
        missing(&self.open, readings).or_else(|| missing(&self.closed, readings))
    }

    fn entry(&self, cause: Cause) -> Option<&Entry> {
        match cause {
            Cause::Inside(source) | Cause::LastStart(source) => {
                self.open.get(usize::from(source.window))
            }
            Cause::ClosedBy(source) => self.closed.get(usize::from(source.window)),
            Cause::Unbounded | Cause::Outside | Cause::Undecided(_) => None,
        }
    }
}

fn reach(from: Timestamp, steps: u32) -> Reach {
    let limit = later(from, FARTHEST);
    Reach { from, limit, steps }
}

/// A calendar, if it could be read.
fn calendar(readings: &[Reading], place: usize) -> Option<&Calendar> {
    match readings.get(place)? {
        Reading::Read { calendar, .. } => Some(calendar),
        Reading::Unavailable(_) | Reading::Broken(_) => None,
    }
}

fn missing<'a>(entries: &'a [Entry], readings: &'a [Reading]) -> Option<Missing<'a>> {
    entries.iter().find_map(|entry| {
        let When::Calendar(_, place) = entry.when else {
            return None;
        };
        match readings.get(place)? {
            Reading::Unavailable(why) => Some(Missing {
                window: &entry.label,
                why,
            }),
            Reading::Read { .. } | Reading::Broken(_) => None,
        }
    })
}
