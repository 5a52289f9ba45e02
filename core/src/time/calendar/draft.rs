//! From the properties of one VEVENT to its times, before it is known which instances of it
//! other VEVENTs replace.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};

use super::clean;
use super::expand::Steps;
use super::read::{Component, Property};
use super::recur::Rule;
use super::values::{self, Length, When};
use super::zones::Zones;
use crate::text::refusal::Refusal;
use crate::time::span::Span;

/// A VEVENT by itself.
pub(super) struct Draft {
    pub uid: Option<String>,
    pub summary: Option<String>,
    /// The start of the instance that this one replaces (RECURRENCE-ID).
    pub replaces: Option<When>,
    pub revision: Revision,
    /// None if it is cancelled.
    pub times: Option<Times>,
}

/// How new an event is.
pub(super) struct Revision {
    /// 0 if it is not written, as RFC 5545 has it.
    pub sequence: i64,
    /// DTSTAMP and LAST-MODIFIED, in UTC. None: there is none that can be read.
    pub stamped: Option<DateTime>,
    pub modified: Option<DateTime>,
}

impl Revision {
    /// # Errors
    /// SEQUENCE is no number.
    fn read(event: &Component) -> Result<Self, Refusal> {
        let sequence = event.one("SEQUENCE")?.map(|property| {
            property.value.parse().map_err(|_| {
                let shown = clean(&property.value, 40);
                let problem = format!("`{shown}` is not a number");
                Refusal::new("SEQUENCE", problem, "write a whole number such as 1")
            })
        });
        Ok(Self {
            sequence: sequence.transpose()?.unwrap_or(0),
            stamped: stamp(event, "DTSTAMP"),
            modified: stamp(event, "LAST-MODIFIED"),
        })
    }
}

fn stamp(event: &Component, name: &'static str) -> Option<DateTime> {
    let property = event.one(name).ok()??;
    let written = values::written(&property.value).filter(|written| written.utc)?;
    Some(written.date.to_datetime(written.time.unwrap_or(Time::MIN)))
}

/// When an event is on.
pub(super) struct Times {
    pub start: When,
    pub length: Length,
    /// What is written as such: the first instance, then those of RDATE.
    pub dates: Vec<(When, Span)>,
    pub rule: Option<Rule>,
    /// The starts of instances that are left out (EXDATE).
    pub without: Vec<When>,
}

impl Draft {
    /// Reads a VEVENT. If it is cancelled, only what it cancels is read.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(event: &Component, zones: &Zones) -> Result<Self, Refusal> {
        let text = |name| event.all(name).next().map(|p| p.value.as_str());
        let cancelled = text("STATUS").is_some_and(|s| s.eq_ignore_ascii_case("CANCELLED"));
        let replaces = replaces(event, zones)?;
        let times = match cancelled {
            true => None,
            false => Some(Times::read(event, zones, replaces.is_some())?),
        };
        Ok(Self {
            uid: text("UID").filter(|uid| !uid.is_empty()).map(str::to_owned),
            summary: text("SUMMARY")
                .map(|summary| clean(summary, super::MAX_SUMMARY))
                .filter(|summary| !summary.is_empty()),
            replaces,
            revision: Revision::read(event)?,
            times,
        })
    }

    /// # Errors
    /// Its rule never matches: the day for which somebody waits is not in any calendar.
    pub fn check_recurrence(&self, steps: &mut Steps) -> Result<(), Refusal> {
        let rule = (self.times.as_ref())
            .filter(|times| !times.length.is_none())
            .and_then(|times| times.rule.as_ref());
        match rule.and_then(|rule| rule.never_recurs(steps)) {
            Some(true) => Err(Refusal::new(
                "RRULE",
                "never occurs again: nothing matches it in 400 years",
                "correct its lists, or remove it",
            )),
            Some(false) | None => Ok(()),
        }
    }
}

/// `` `Christmas` (UID 4711) ``, or as much of that as there is.
pub(super) fn label(event: &Component) -> String {
    let text = |name| {
        let value = event.all(name).next().map(|p| clean(&p.value, 60));
        value.filter(|value| !value.is_empty())
    };
    match (text("SUMMARY"), text("UID")) {
        (Some(summary), Some(uid)) => format!("`{summary}` (UID {uid})"),
        (Some(summary), None) => format!("`{summary}`"),
        (None, Some(uid)) => format!("with UID {uid}"),
        (None, None) => format!("in line {}", event.line),
    }
}

fn replaces(event: &Component, zones: &Zones) -> Result<Option<When>, Refusal> {
    let refused = |problem: &str, remedy: &str| Refusal::new("RECURRENCE-ID", problem, remedy);
    let Some(id) = event.one("RECURRENCE-ID")? else {
        return Ok(None);
    };
    if event.all("UID").all(|uid| uid.value.is_empty()) {
        return Err(refused(
            "the event has no UID that says to which series it belongs",
            "write the UID of the series",
        ));
    }
    if id.ranges {
        return Err(refused(
            "RANGE, which changes all later instances, is not read",
            "end the series with UNTIL, and write a second one",
        ));
    }
    zones.when(id).map(Some)
}

impl Times {
    /// `one`: what has a RECURRENCE-ID is one instance. RRULE, RDATE and EXDATE beside it are copies
    /// of those of its series, which many programs write, and say nothing of it.
    fn read(event: &Component, zones: &Zones, one: bool) -> Result<Self, Refusal> {
        let written = event
            .one("DTSTART")?
            .ok_or_else(|| Refusal::new("DTSTART", "is missing", values::REMEDY))?;
        let start = zones.when(written)?;
        let (length, end) = length(event, &start, zones)?;
        let first = span("DTSTART", &start, end)?;
        let mut dates = vec![(start.clone(), first)];
        if one {
            return Ok(Self {
                start,
                length,
                dates,
                rule: None,
                without: Vec::new(),
            });
        }
        for property in event.all("RDATE") {
            for item in property.value.split(',') {
                dates.push(extra(property, item, &start, length, zones)?);
            }
        }
        let mut without = Vec::new();
        for property in event.all("EXDATE") {
            for item in property.value.split(',') {
                without.push(zones.moment(property, item)?);
            }
        }
        let rule = rule(event, &start)?;
        Ok(Self {
            start,
            length,
            dates,
            rule,
            without,
        })
    }
}

/// How long the event lasts, and the end of its first instance.
fn length(
    event: &Component,
    start: &When,
    zones: &Zones,
) -> Result<(Length, Option<Timestamp>), Refusal> {
    let length = match (event.one("DTEND")?, event.one("DURATION")?) {
        (Some(end), Some(duration)) => {
            let (length, end) = until(end, start, zones)?;
            if values::duration("DURATION", &duration.value)?.after(start) != end {
                return Err(Refusal::new(
                    "DURATION",
                    "ends at another time than DTEND",
                    "write one of the two",
                ));
            }
            return Ok((length, end));
        }
        (Some(end), None) => return until(end, start, zones),
        (None, Some(duration)) => values::duration("DURATION", &duration.value)?,
        (None, None) if start.all_day => Length::ONE_DAY,
        (None, None) => Length::NONE,
    };
    Ok((length, length.after(start)))
}

/// The length of an event with DTEND.
fn until(
    property: &Property,
    start: &When,
    zones: &Zones,
) -> Result<(Length, Option<Timestamp>), Refusal> {
    let end = zones.when(property)?;
    let refused = |problem: &str, remedy: &str| Refusal::new("DTEND", problem, remedy);
    match (start.all_day, end.all_day) {
        (true, false) => {
            return Err(refused("is a time, and DTSTART is a date", "write a date"));
        }
        (false, true) => {
            return Err(refused("is a date, and DTSTART is a time", "write a time"));
        }
        // By the RFC it covers nothing. But an author who writes a day that ends on the same day means
        // that day.
        (true, true) if start.wall == end.wall => {
            return Ok((Length::ONE_DAY, Length::ONE_DAY.after(start)));
        }
        _ => {}
    }
    let length = values::between(start, &end)
        .ok_or_else(|| refused("is before DTSTART", "write a later time"))?;
    let length = length.checked("DTEND")?;
    Ok((length, length.after(start)))
}

fn span(property: &'static str, start: &When, end: Option<Timestamp>) -> Result<Span, Refusal> {
    match (start.instant(), end) {
        (Some(start), Some(end)) => Ok(Span { start, end }),
        _ => Err(Refusal::new(
            property,
            "is too far from today",
            "write a year before 9999",
        )),
    }
}

/// One instance of RDATE: a date, a time, or a period, which has an end.
fn extra(
    property: &Property,
    item: &str,
    first: &When,
    length: Length,
    zones: &Zones,
) -> Result<(When, Span), Refusal> {
    let refused = |problem: &str, remedy: &str| Refusal::new("RDATE", problem, remedy);
    let (from, to) = match item.split_once('/') {
        Some((from, to)) => (from, Some(to.trim())),
        None => (item, None),
    };
    let start = zones.moment(property, from)?;
    let end = match to {
        None if start.all_day != first.all_day => {
            return Err(refused(
                "is a date and DTSTART a time, or the other way round",
                "write both as dates, or both as times",
            ));
        }
        None => length.after(&start),
        Some(to) if to.starts_with(['P', 'p', '+', '-']) => {
            values::duration("RDATE", to)?.after(&start)
        }
        Some(to) => {
            let end = zones.moment(property, to)?;
            let length = values::between(&start, &end).ok_or_else(|| {
                refused(
                    "has a period that ends before it starts",
                    "write a later end",
                )
            })?;
            length.checked("RDATE")?.after(&start)
        }
    };
    let span = span("RDATE", &start, end)?;
    Ok((start, span))
}

fn rule(event: &Component, start: &When) -> Result<Option<Rule>, Refusal> {
    if event.all("EXRULE").next().is_some() {
        // Without it, the event would cover times that its author left out.
        return Err(Refusal::new(
            "EXRULE",
            "is not part of iCalendar since 2009, and is not read",
            "write the dates to leave out as EXDATE",
        ));
    }
    let rule = event.one("RRULE")?;
    rule.map(|rule| Rule::parse(&rule.value, start)).transpose()
}
