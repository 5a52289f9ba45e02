//! `schedule`: windows that open and close, from their spec to the state at an instant.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sluice_crds::gatekeeper::{self as api, Calendar as CalendarSource};

use crate::calendar::{Calendar, CalendarError, Occurrence};
use crate::refusal::Refusals;
use crate::span::Span;
use crate::timeline::{Cause, Cover, Covers, Source, Timeline};
use crate::window::Window;

mod read;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use words::explain;

/// How many changes of state a gatekeeper tells ahead.
pub const UPCOMING: usize = 8;
/// How far ahead it tells them.
pub const HORIZON: SignedDuration = SignedDuration::from_hours(90 * 24);

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How far ahead changes are looked for, step by step, until there are enough of them. Behind the
/// last step nothing is expected any more: the rarest dates that a cron can name (a 29 February on
/// one weekday, across 2100) are 40 years apart.
const STEPS_IN_DAYS: [i32; 5] = [10, 90, 400, 6 * 366, 41 * 366];

/// A schedule as its spec describes it, read.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    zone_name: String,
    open: Vec<Entry>,
    closed: Vec<Entry>,
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
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// It was read.
    Read {
        /// What it says.
        calendar: Arc<Calendar>,
        /// Until when that may be relied on. None: until it is seen to change.
        good_until: Option<Timestamp>,
    },
    /// It cannot be had: `onError` says what then.
    Unavailable(String),
    /// It was had and makes no sense: closed until somebody mends it.
    Broken(CalendarError),
}

/// Why a schedule's states cannot be known: one of its calendars.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Nobody has tried to read it yet.
    #[error("the calendar of window '{window}' has not been read yet")]
    Unread {
        /// The label of its window.
        window: String,
    },
    /// It cannot be had.
    #[error("the calendar of window '{window}' cannot be had: {why}")]
    Unavailable {
        /// The label of its window.
        window: String,
        /// What stood in the way.
        why: String,
    },
    /// It was had and makes no sense.
    #[error("the calendar of window '{window}' is broken: {error}")]
    Broken {
        /// The label of its window.
        window: String,
        /// What is wrong with it.
        error: CalendarError,
    },
}

impl Schedule {
    /// Reads a spec, whose path in its object is `path` (such as `spec.schedule`).
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(spec: &api::Schedule, path: &str) -> Result<Self, Refusals> {
        read::schedule(spec, path)
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
    /// A calendar that is missing among the readings, could not be had, or makes no sense.
    pub fn timeline(&self, readings: &[Reading], from: Timestamp) -> Result<Timeline, Fault> {
        let mut span = Span {
            start: from,
            end: from,
        };
        for days in STEPS_IN_DAYS {
            span.end = from.saturating_add(DAY * days).unwrap_or(Timestamp::MAX);
            let timeline = self.timeline_within(readings, span)?;
            if timeline.changes().nth(UPCOMING).is_some() {
                return Ok(timeline.cut_behind(UPCOMING));
            }
        }
        // Fewer changes than asked for in 41 years: the last stretch goes on.
        self.timeline_within(readings, span).map(Timeline::for_ever)
    }

    /// The states within `span`.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, could not be had, or makes no sense.
    pub fn timeline_within(&self, readings: &[Reading], span: Span) -> Result<Timeline, Fault> {
        Ok(Timeline::new(&self.covers(readings, span)?, span))
    }

    fn covers(&self, readings: &[Reading], span: Span) -> Result<Covers, Fault> {
        let none = SignedDuration::ZERO;
        let mut covers = Covers {
            bounded: !self.open.is_empty(),
            ..Covers::default()
        };
        for (window, entry) in (0..).zip(&self.open) {
            covers
                .open
                .extend(self.cover(window, entry, readings, span, entry.last_start)?);
            if entry.last_start > none {
                covers
                    .whole
                    .extend(self.cover(window, entry, readings, span, none)?);
            }
        }
        for (window, entry) in (0..).zip(&self.closed) {
            covers
                .closed
                .extend(self.cover(window, entry, readings, span, none)?);
        }
        Ok(covers)
    }

    fn cover(
        &self,
        window: u16,
        entry: &Entry,
        readings: &[Reading],
        within: Span,
        shortened: SignedDuration,
    ) -> Result<Vec<Cover>, Fault> {
        match &entry.when {
            When::Window(when) => {
                let source = Source {
                    window,
                    event: None,
                };
                let spans = when.spans(&self.zone, within, shortened);
                Ok(spans
                    .into_iter()
                    .map(|span| Cover { source, span })
                    .collect())
            }
            When::Calendar(_, place) => {
                let broken = |error| Fault::Broken {
                    window: entry.label.clone(),
                    error,
                };
                let calendar = calendar(readings, *place, entry)?;
                let cover = |Occurrence { span, event }: Occurrence| Cover {
                    source: Source {
                        window,
                        event: Some(event),
                    },
                    span: span.shortened(shortened),
                };
                let occurrences = calendar.occurrences(within).map_err(broken)?;
                Ok(occurrences.into_iter().map(cover).collect())
            }
        }
    }

    fn entry(&self, cause: Cause) -> Option<&Entry> {
        match cause {
            Cause::Inside(source) | Cause::LastStart(source) => {
                self.open.get(usize::from(source.window))
            }
            Cause::ClosedBy(source) => self.closed.get(usize::from(source.window)),
            Cause::Unbounded | Cause::Outside => None,
        }
    }
}

/// The calendar of a window, if it could be read.
fn calendar<'a>(
    readings: &'a [Reading],
    place: usize,
    entry: &Entry,
) -> Result<&'a Calendar, Fault> {
    let window = || entry.label.clone();
    match readings.get(place) {
        Some(Reading::Read {
            calendar,
            good_until: _,
        }) => Ok(calendar),
        Some(Reading::Unavailable(why)) => Err(Fault::Unavailable {
            window: window(),
            why: why.clone(),
        }),
        Some(Reading::Broken(error)) => Err(Fault::Broken {
            window: window(),
            error: error.clone(),
        }),
        None => Err(Fault::Unread { window: window() }),
    }
}
