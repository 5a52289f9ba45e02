//! Events with all that is known about them, and the times that they cover.

use std::collections::{BTreeSet, HashMap};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::draft::{self, Draft, Times};
use super::expand::{Go, MAX_STEPS, Steps};
use super::read::Component;
use super::recur::Rule;
use super::values::{Length, When, is_midnight};
use super::zones::Zones;
use super::{CalendarError, MAX_DAYS, revisions};
use crate::time::span::Span;
use crate::time::zone;

/// An event that is not cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub summary: Option<String>,
    /// What is written as such, ascending: DTSTART and RDATE.
    dates: Vec<Span>,
    series: Option<Series>,
}

/// The instances of an event after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Series {
    rule: Rule,
    zone: TimeZone,
    length: Length,
    without: Starts,
}

/// The starts of instances that are left out, as instants and as days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Starts {
    instants: BTreeSet<Timestamp>,
    days: BTreeSet<Date>,
}

impl Starts {
    /// Adds the start of an instance of an event of whole days, or of times.
    fn add(&mut self, start: &When, all_day: bool) {
        // A date leaves out what starts on that day. Outlook writes a midnight for a whole day.
        if start.all_day || all_day && is_midnight(start) {
            self.days.insert(start.wall.date());
        }
        if !start.all_day {
            self.instants.extend(start.instant());
        }
    }

    fn contain(&self, day: Date, instant: Timestamp) -> bool {
        self.instants.contains(&instant) || self.days.contains(&day)
    }
}

/// The events of a calendar. If an event has several revisions, the newest counts. An instance that has
/// a VEVENT of its own is left out of its series.
///
/// # Errors
/// Which event is wrong, and how.
pub(super) fn events(written: &[Component], zones: &Zones) -> Result<Vec<Event>, CalendarError> {
    let mut drafts = Vec::with_capacity(written.len());
    let mut steps = Steps::new(MAX_STEPS);
    for event in written {
        let draft = Draft::read(event, zones).and_then(|draft| {
            draft.check_recurrence(&mut steps)?;
            Ok(draft)
        });
        drafts.push(draft.map_err(|refusal| CalendarError::Event {
            event: draft::label(event),
            line: event.line_of(&refusal),
            refusal,
        })?);
    }
    let drafts = revisions::newest(drafts);
    let mut replaced: HashMap<String, Vec<When>> = HashMap::new();
    // Of each series, whether it is on. One that is written twice, and neither revision of which is
    // the newer one, is on unless both are cancelled.
    let mut alive: HashMap<String, bool> = HashMap::new();
    for draft in &drafts {
        let Some(uid) = draft.uid.clone() else {
            continue;
        };
        match &draft.replaces {
            Some(start) => replaced.entry(uid).or_default().push(start.clone()),
            None => *alive.entry(uid).or_default() |= draft.times.is_some(),
        }
    }
    let mut steps = Steps::new(MAX_STEPS);
    let mut events = Vec::new();
    for draft in drafts {
        let Some(times) = draft.times else { continue };
        let uid = draft.uid.unwrap_or_default();
        let replaced = match draft.replaces {
            // With its series, an instance is cancelled too.
            Some(_) if alive.get(&uid) == Some(&false) => continue,
            Some(_) => &[],
            None => replaced.get(&uid).map_or(&[][..], Vec::as_slice),
        };
        events.extend(Event::new(draft.summary, times, replaced, &mut steps)?);
    }
    Ok(events)
}

impl Event {
    /// None: it takes no time, so that it covers nothing (RFC 5545, section 3.6.1).
    fn new(
        summary: Option<String>,
        times: Times,
        replaced: &[When],
        steps: &mut Steps,
    ) -> Result<Option<Self>, CalendarError> {
        let mut without = Starts::default();
        for start in times.without.iter().chain(replaced) {
            without.add(start, times.start.all_day);
        }
        let mut rule = times.rule.filter(|_| !times.length.is_none());
        if let Some(rule) = &mut rule {
            rule.settle(steps)?;
        }
        // DTSTART is the first instance, whether or not it matches the rule (RFC 5545, section
        // 3.8.5.3); unless the rule has ended before it.
        let ended = rule.as_ref().is_some_and(|rule| rule.last < rule.first);
        let mut dates: Vec<Span> = times
            .dates
            .into_iter()
            .skip(usize::from(ended))
            .filter(|(start, span)| !without.contain(start.wall.date(), span.start))
            .map(|(_, span)| span)
            .collect();
        dates.sort_unstable();
        if times.length.is_none() {
            // A period of RDATE has a length of its own.
            dates.retain(|span| !span.is_empty());
            if dates.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(Self {
            summary,
            dates,
            series: rule.map(|rule| Series {
                rule,
                zone: times.start.zone,
                length: times.length,
                without,
            }),
        }))
    }

    /// When its last instance ends. None: it has no end.
    pub fn end(&self) -> Option<Timestamp> {
        let last = self.dates.iter().map(|span| span.end).max();
        let last = last.unwrap_or(Timestamp::MIN);
        match &self.series {
            Some(series) => Some(series.end()?.max(last)),
            None => Some(last),
        }
    }

    /// Calls `each` with the times that the event covers and that overlap `within`.
    ///
    /// # Errors
    /// Those of `each`, or too many steps.
    pub fn visit(
        &self,
        within: Span,
        steps: &mut Steps,
        mut each: impl FnMut(Span) -> Result<(), CalendarError>,
    ) -> Result<(), CalendarError> {
        let mut overlapping = |span: Span| match span.within(&within) {
            Some(_) => each(span),
            None => Ok(()),
        };
        // Each is shorter than this, changes of the clocks included.
        let early = SignedDuration::from_hours(24 * (MAX_DAYS + 2));
        let early = within.start.saturating_sub(early);
        let early = early.unwrap_or(Timestamp::MIN);
        let over = self.dates.partition_point(|span| span.start < early);
        let begun = self.dates.partition_point(|span| span.start < within.end);
        for span in self.dates.get(over..begun).unwrap_or_default() {
            steps.take()?;
            overlapping(*span)?;
        }
        match &self.series {
            Some(series) => series.visit(within, steps, overlapping),
            None => Ok(()),
        }
    }
}

impl Series {
    /// When its last instance ends, or a little later. None: it has no end.
    fn end(&self) -> Option<Timestamp> {
        let last = Some(self.rule.last).filter(|last| *last < DateTime::MAX)?;
        let last = zone::resolve(&self.zone, last)?;
        let length = SignedDuration::from_hours(24 * (self.length.days() + 2));
        last.checked_add(length).ok()
    }

    fn visit(
        &self,
        within: Span,
        steps: &mut Steps,
        mut each: impl FnMut(Span) -> Result<(), CalendarError>,
    ) -> Result<(), CalendarError> {
        if within.is_empty() {
            return Ok(());
        }
        // What overlaps has begun at most its length ago. A change of the clocks moves a start by
        // a day at most.
        let back = SignedDuration::from_hours(24 * (self.length.days() + 2));
        let ahead = SignedDuration::from_hours(24);
        let day = |instant| self.zone.to_datetime(instant).date();
        let from = day(within.start).saturating_sub(back);
        let to = day(within.end).saturating_add(ahead);
        self.rule.visit(from, to, steps, |wall| {
            if let Some(start) = zone::resolve(&self.zone, wall)
                && let Some(end) = self.length.end(&self.zone, wall)
                && !self.without.contain(wall.date(), start)
            {
                each(Span { start, end })?;
            }
            Ok(Go::Continue(()))
        })
    }
}
