//! From text to properties: lines are unfolded, components matched, and of the VEVENTs the
//! properties kept that say when.
//!
//! Each line goes through the parser of the `icalendar` crate by itself. Given a whole text, that
//! parser recurses as deep as components nest, searches the rest of the text at each line where
//! lines end in LF, and lets a line without a colon swallow the next.

use std::borrow::Cow;
use std::collections::HashMap;

use icalendar::parser;

use super::{CalendarError, MAX_EVENTS, MAX_LINE, clean};
use crate::Refusal;

/// What a calendar says, as it says it.
pub(super) struct Written {
    pub events: Vec<WrittenEvent>,
    /// The X-LIC-LOCATION of each VTIMEZONE, by TZID.
    pub zones: HashMap<String, String>,
}

/// The properties of a VEVENT, in its order.
pub(super) struct WrittenEvent {
    /// The line of its BEGIN, from 1.
    pub line: usize,
    properties: Vec<Property>,
}

/// A property with the parameters that matter.
#[derive(Default)]
pub(super) struct Property {
    pub name: &'static str,
    pub value: String,
    /// TZID.
    pub zone: Option<String>,
    /// VALUE, in upper case.
    pub kind: Option<String>,
    /// Whether there is a RANGE.
    pub ranges: bool,
}

/// The properties that are kept.
const KEPT: [&str; 13] = [
    "UID",
    "SUMMARY",
    "STATUS",
    "DTSTART",
    "DTEND",
    "DURATION",
    "RRULE",
    "EXRULE",
    "RDATE",
    "EXDATE",
    "RECURRENCE-ID",
    "TZID",
    "X-LIC-LOCATION",
];

impl WrittenEvent {
    /// The property of that name, of which there may be one.
    ///
    /// # Errors
    /// There are two.
    pub fn one(&self, name: &'static str) -> Result<Option<&Property>, Refusal> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            None => Ok(first),
            Some(_) => Err(Refusal::new(
                name,
                "is written more than once",
                format!("write one {name} per event"),
            )),
        }
    }

    /// All the properties of that name.
    pub fn all(&self, name: &'static str) -> impl Iterator<Item = &Property> {
        self.properties.iter().filter(move |p| p.name == name)
    }
}

/// Reads a text of at most [`super::MAX_TEXT`] bytes.
///
/// # Errors
/// It is no calendar, has no or too many events, or a line is out of place.
pub(super) fn read(text: &str) -> Result<Written, CalendarError> {
    let mut reader = Reader::default();
    for (line, content) in Lines::of(text) {
        reader.take(line, &content)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    /// The components that are open, from the outermost, each with its line.
    open: Vec<(String, usize)>,
    calendars: usize,
    events: Vec<WrittenEvent>,
    zones: HashMap<String, String>,
    /// The properties of the VTIMEZONE that is open.
    zone: Vec<Property>,
}

impl Reader {
    fn take(&mut self, line: usize, content: &str) -> Result<(), CalendarError> {
        let (name, value) = content.split_once(':').unwrap_or((content, ""));
        if name.eq_ignore_ascii_case("BEGIN") {
            self.begin(line, value.trim().to_ascii_uppercase())
        } else if self.open.is_empty() {
            Err(match self.calendars {
                0 => CalendarError::NotACalendar,
                _ => wrong(line, "stands outside of the calendar", "remove it"),
            })
        } else if name.eq_ignore_ascii_case("END") {
            self.end(line, &value.trim().to_ascii_uppercase())
        } else {
            self.property(line, content)
        }
    }

    fn begin(&mut self, line: usize, name: String) -> Result<(), CalendarError> {
        let inside = self.open.last().map(|(name, _)| name.as_str());
        match (name.as_str(), inside) {
            ("VCALENDAR", None) => self.calendars += 1,
            (_, None) if self.calendars == 0 => return Err(CalendarError::NotACalendar),
            ("VEVENT", Some("VCALENDAR")) => {
                if self.events.len() == MAX_EVENTS {
                    return Err(CalendarError::TooManyEvents);
                }
                self.events.push(WrittenEvent {
                    line,
                    properties: Vec::new(),
                });
            }
            ("VCALENDAR" | "VEVENT", _) | (_, None) => {
                let (name, place) = (clean(&name, 40), clean(inside.unwrap_or("nothing"), 40));
                return Err(wrong(
                    line,
                    format!("BEGIN:{name} stands inside of {place}"),
                    "end the component before it, and write events directly in a VCALENDAR",
                ));
            }
            _ => {}
        }
        self.open.push((name, line));
        Ok(())
    }

    fn end(&mut self, line: usize, name: &str) -> Result<(), CalendarError> {
        match self.open.pop() {
            Some((open, _)) if open == name => {}
            Some((open, begin)) => {
                let open = clean(&open, 40);
                return Err(wrong(
                    line,
                    format!(
                        "END:{} does not match BEGIN:{open} in line {begin}",
                        clean(name, 40)
                    ),
                    format!("write END:{open} first"),
                ));
            }
            None => return Err(wrong(line, "END without BEGIN", "remove it")),
        }
        if name == "VTIMEZONE" && self.open.len() == 1 {
            let mut value = |name| {
                let at = self.zone.iter().position(|p| p.name == name)?;
                Some(self.zone.swap_remove(at).value)
            };
            if let (Some(id), Some(place)) = (value("TZID"), value("X-LIC-LOCATION")) {
                self.zones.insert(id, place);
            }
            self.zone.clear();
        }
        Ok(())
    }

    fn property(&mut self, line: usize, content: &str) -> Result<(), CalendarError> {
        let into = match self.open.as_slice() {
            [_, (name, _)] if name == "VEVENT" => self.events.last_mut().map(|e| &mut e.properties),
            [_, (name, _)] if name == "VTIMEZONE" => Some(&mut self.zone),
            _ => None,
        };
        let Some(into) = into else { return Ok(()) };
        let Some(end) = content.find([':', ';']) else {
            return Err(wrong(
                line,
                "is not of the form NAME:VALUE",
                "begin it with a space if it continues the line before",
            ));
        };
        let Some(name) = KEPT
            .into_iter()
            .find(|name| name.eq_ignore_ascii_case(&content[..end]))
        else {
            return Ok(());
        };
        if content.len() > MAX_LINE {
            return Err(wrong(
                line,
                format!("{name} has more than {MAX_LINE} bytes"),
                "write it in several lines of the same name, or shorter",
            ));
        }
        into.push(parse(name, content).ok_or_else(|| {
            wrong(
                line,
                format!("{name} cannot be read"),
                "write NAME;PARAMETER=VALUE:VALUE",
            )
        })?);
        Ok(())
    }

    fn finish(self) -> Result<Written, CalendarError> {
        if let Some((name, line)) = self.open.last() {
            let name = clean(name, 40);
            return Err(wrong(
                *line,
                format!("BEGIN:{name} has no end"),
                format!("write END:{name}; the file may be cut short"),
            ));
        }
        match (self.calendars, self.events.is_empty()) {
            (0, _) => Err(CalendarError::NotACalendar),
            (_, true) => Err(CalendarError::NoEvents),
            (_, false) => Ok(Written {
                events: self.events,
                zones: self.zones,
            }),
        }
    }
}

fn parse(name: &'static str, content: &str) -> Option<Property> {
    let read = parser::Property::try_from(content).ok()?;
    let parameter = |key: &str| {
        let found = read
            .params
            .iter()
            .find(|p| p.key.as_str().eq_ignore_ascii_case(key))?;
        Some(found.val.as_ref()?.as_str().trim().to_owned())
    };
    let (zone, kind) = (parameter("TZID"), parameter("VALUE"));
    let ranges = parameter("RANGE").is_some();
    // The parser leaves the escapes of text in place where a name is in lower case.
    let lower = read.name.as_str().contains(|c: char| c.is_lowercase());
    let value = match name {
        "UID" | "SUMMARY" | "STATUS" | "TZID" | "X-LIC-LOCATION" if lower => {
            read.val.unescape_text()
        }
        _ => read.val,
    };
    Some(Property {
        name,
        value: value.as_str().trim().to_owned(),
        zone,
        kind: kind.map(|kind| kind.to_ascii_uppercase()),
        ranges,
    })
}

fn wrong(line: usize, problem: impl Into<String>, remedy: impl Into<String>) -> CalendarError {
    CalendarError::Line {
        line,
        problem: problem.into(),
        remedy: remedy.into(),
    }
}

/// The lines of a text, unfolded, without blank ones, each with its number in the text, from 1.
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            rest: text.trim_start_matches('\u{feff}'),
            number: 1,
        }
    }

    /// The next line with those that continue it, still folded.
    fn folded(&mut self) -> (usize, &'a str) {
        let number = self.number;
        let mut end = 0;
        loop {
            let line = self.rest[end..]
                .find('\n')
                .map_or(self.rest.len(), |n| end + n + 1);
            self.number += 1;
            end = line;
            if !self.rest[end..].starts_with([' ', '\t']) {
                break;
            }
        }
        let (folded, rest) = self.rest.split_at(end);
        self.rest = rest;
        (number, folded.trim_end_matches(['\r', '\n']))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (number, folded) = self.folded();
            if !folded.trim().is_empty() {
                let line = match folded.contains('\n') {
                    true => parser::unfold(folded).into(),
                    false => folded.into(),
                };
                return Some((number, line));
            }
        }
        None
    }
}
