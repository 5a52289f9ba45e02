//! Calendars: the parts of iCalendar (RFC 5545) that say when events are.
//!
//! What comes in: the text of a calendar, and the zone for the times in it that name none. What
//! goes out: the times that its events cover, each half open, `[DTSTART, DTEND)`.
//!
//! Read are the VEVENTs with their time zones, durations, recurrences (RRULE, RDATE, EXDATE) and
//! changed or cancelled instances (RECURRENCE-ID, STATUS), and of several revisions of one event the
//! newest (SEQUENCE). Everything else is not looked at:
//! - TRANSP, because the feeds of public holidays mark their all-day events as transparent, and
//!   a user who names such a feed here means that its events count;
//! - VTIMEZONE, where its name or its place says which zone it means: zone data come with the
//!   binary, so that all replicas agree;
//! - VTODO, VJOURNAL, VFREEBUSY and VALARM, which are no events.
//!
//! The work is bounded on any input: by [`MAX_TEXT`], [`MAX_EVENTS`], [`MAX_OCCURRENCES`], and by
//! a count of the steps that it takes.

mod draft;
mod event;
mod expand;
mod lines;
mod parts;
mod read;
mod recur;
mod revisions;
mod rules;
#[cfg(test)]
mod tests;
mod values;
mod zones;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::ConfigMap;
use sha2::{Digest, Sha256};

use super::span::Span;
use crate::text::refusal::Refusal;
use crate::text::words::clean;
use event::Event;
use expand::MAX_STEPS;
pub(crate) use expand::Steps;
use zones::Zones;

/// How long the text of a calendar may be, in bytes: 1 MiB.
pub const MAX_TEXT: usize = 1 << 20;
/// How long one line that matters may be once unfolded, in bytes.
pub const MAX_LINE: usize = 64 << 10;
/// How many VEVENTs a calendar may have.
pub const MAX_EVENTS: usize = 2_000;
/// How long one occurrence may be, in days.
pub const MAX_DAYS: i64 = 366;
/// How many occurrences one question may have for an answer.
pub const MAX_OCCURRENCES: usize = 20_000;
/// How long a summary may be, in characters.
const MAX_SUMMARY: usize = 80;

/// A calendar, read once and ready to be asked for the times its events cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    digest: String,
    events: Vec<Event>,
    /// When the last of them is over. None: they go on.
    end: Option<Timestamp>,
}

/// A time that an event covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// From when until when.
    pub span: Span,
    /// Which event, for [`Calendar::summary`].
    pub event: u16,
}

/// Why a calendar cannot be read, or cannot answer.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
pub enum CalendarError {
    /// The text is longer than [`MAX_TEXT`].
    #[error(
        "the calendar has {bytes} bytes, more than {MAX_TEXT}; leave out past events, or split it"
    )]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The text is something else.
    #[error(
        "the text does not begin with BEGIN:VCALENDAR; give the text of an iCalendar (.ics) file"
    )]
    NotACalendar,
    /// There are more than [`MAX_EVENTS`].
    #[error("the calendar has more than {MAX_EVENTS} events; leave out past events, or split it")]
    TooManyEvents,
    /// A line cannot be read.
    #[error("line {line}: {problem}; {remedy}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// An event cannot be understood.
    #[error("event {event}: {refusal}")]
    Event {
        /// Its summary and UID, or else its line.
        event: String,
        /// The line of the property that is wrong, from 1, or that of the event.
        line: usize,
        /// The property, what is wrong with it, and what to write instead.
        refusal: Refusal,
    },
    /// There are more than [`MAX_OCCURRENCES`] between two instants.
    #[error(
        "the events recur more than {MAX_OCCURRENCES} times from {from} to {until}; write fewer, longer events, or split the calendar", 
        from = within.start,
        until = within.end,
    )]
    TooManyOccurrences {
        /// The time asked for.
        within: Span,
    },
    /// The recurrences take more steps than is reasonable, mostly without finding anything.
    #[error(
        "the recurrences take too many steps to follow; write simpler RRULEs, UNTIL instead of a high COUNT, or split the calendar"
    )]
    TooManySteps,
}

impl Calendar {
    /// Reads a calendar. Floating times and all-day events are in `zone`. One without events is
    /// a calendar, too, and covers nothing: so is a feed of freezes while none is planned.
    ///
    /// # Errors
    /// What cannot be read or understood, where it stands, and what to write instead. One bad
    /// event refuses the whole calendar: a holiday must not be left out without a word.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, CalendarError> {
        Self::read(text.as_bytes(), zone)
    }

    /// Reads a calendar from bytes that should be text.
    ///
    /// # Errors
    /// Those of [`Calendar::parse`], or the line that is not UTF-8.
    pub fn read(bytes: &[u8], zone: &TimeZone) -> Result<Self, CalendarError> {
        if bytes.len() > MAX_TEXT {
            return Err(CalendarError::TooLong { bytes: bytes.len() });
        }
        let written = read::read(bytes)?;
        let zones = Zones::new(zone, &written.zones);
        let events = event::events(&written.events, &zones)?;
        let ends: Option<Vec<Timestamp>> = events.iter().map(Event::end).collect();
        Ok(Self {
            digest: digest(bytes),
            end: ends.map(|ends| ends.into_iter().max().unwrap_or(Timestamp::MIN)),
            events,
        })
    }

    /// How many events there are. Cancelled ones, older revisions and those that take no time do
    /// not count; a changed instance of a series counts as one more event.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The first 12 hexadecimal digits of the SHA-256 of the text.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the event is called: at most 80 characters, none of them a control character. None
    /// if it has no name, or if there is no such event.
    pub fn summary(&self, event: u16) -> Option<&str> {
        self.events.get(usize::from(event))?.summary.as_deref()
    }

    /// The times events cover that overlap `within`, in full, ascending by start. They may
    /// overlap each other.
    ///
    /// # Errors
    /// More than [`MAX_OCCURRENCES`], or recurrences that take too many steps to follow.
    pub fn occurrences(&self, within: Span) -> Result<Vec<Occurrence>, CalendarError> {
        self.look(within, &mut Steps::new(MAX_STEPS))
    }

    /// The same, in no more than these steps.
    ///
    /// # Errors
    /// More than [`MAX_OCCURRENCES`], or more steps.
    pub(crate) fn look(
        &self,
        within: Span,
        steps: &mut Steps,
    ) -> Result<Vec<Occurrence>, CalendarError> {
        #[cfg(test)]
        LOOKED_THROUGH.with(|all| all.set(all.get() + 1));
        let mut found = Vec::new();
        for (event, number) in self.events.iter().zip(0_u16..) {
            steps.take()?;
            event.visit(within, steps, |span| {
                found.push(Occurrence {
                    span,
                    event: number,
                });
                if found.len() > MAX_OCCURRENCES {
                    return Err(CalendarError::TooManyOccurrences { within });
                }
                Ok(())
            })?;
        }
        found.sort_unstable();
        // A time that is written twice, by RRULE and RDATE, is one time.
        found.dedup();
        Ok(found)
    }

    /// When the last event is over. None: they go on for ever, as far as can be seen.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        self.end
    }
}

/// What a ConfigMap has under `key`: text, or `binaryData`.
pub fn in_config_map<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a [u8]> {
    let text = map.data.as_ref().and_then(|data| data.get(key));
    let binary = || Some(map.binary_data.as_ref()?.get(key)?.0.as_slice());
    text.map(String::as_bytes).or_else(binary)
}

fn digest(text: &[u8]) -> String {
    let mut digits = String::with_capacity(12);
    for byte in Sha256::digest(text).iter().take(6) {
        digits.push_str(&format!("{byte:02x}"));
    }
    digits
}

#[cfg(test)]
thread_local! {
    /// How often this thread has looked through a calendar.
    pub(crate) static LOOKED_THROUGH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
