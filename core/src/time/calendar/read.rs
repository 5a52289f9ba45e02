//! From text to properties: components matched, and of the VEVENTs and VTIMEZONEs the properties
//! kept that say when.

use super::lines::{Lines, wrong};
use super::{CalendarError, MAX_EVENTS, MAX_LINE, clean};
use crate::text::refusal::Refusal;

/// The content of a calendar, as it is written.
#[derive(Default)]
pub(super) struct Written {
    pub events: Vec<Component>,
    pub zones: Vec<WrittenZone>,
}

/// A VTIMEZONE.
pub(super) struct WrittenZone {
    /// Its own properties, without those of its parts.
    pub own: Component,
    pub standard: Vec<Component>,
    pub daylight: Vec<Component>,
    /// Whether a line of STANDARD or DAYLIGHT cannot be read. That matters only where these count.
    pub garbled: bool,
}

/// The properties of a component, in its order, without those of components inside of it.
pub(super) struct Component {
    /// The line of its BEGIN, from 1.
    pub line: usize,
    properties: Vec<Property>,
}

/// A property with the parameters that matter.
#[derive(Default)]
pub(super) struct Property {
    /// Its line, from 1.
    line: usize,
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
const KEPT: [&str; 18] = [
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
    "SEQUENCE",
    "DTSTAMP",
    "LAST-MODIFIED",
    "TZID",
    "X-LIC-LOCATION",
    "TZOFFSETFROM",
    "TZOFFSETTO",
];

/// Those that say nothing without a value: some programs write them so.
const MAY_BE_EMPTY: [&str; 5] = ["RRULE", "EXRULE", "RDATE", "EXDATE", "SEQUENCE"];

impl Component {
    fn begin(line: usize) -> Self {
        Self {
            line,
            properties: Vec::new(),
        }
    }

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

    /// The line of the property that a refusal names, or else of the component.
    pub fn line_of(&self, refusal: &Refusal) -> usize {
        let name = refusal.field.split(';').next().unwrap_or_default();
        let wrong = self.properties.iter().find(|p| p.name == name);
        wrong.map_or(self.line, |property| property.line)
    }

    /// All the properties of that name.
    pub fn all(&self, name: &'static str) -> impl Iterator<Item = &Property> {
        self.properties.iter().filter(move |p| p.name == name)
    }
}

impl WrittenZone {
    fn begin(line: usize) -> Self {
        Self {
            own: Component::begin(line),
            standard: Vec::new(),
            daylight: Vec::new(),
            garbled: false,
        }
    }

    fn list(&mut self, part: &str) -> Option<&mut Vec<Component>> {
        match part {
            "STANDARD" => Some(&mut self.standard),
            "DAYLIGHT" => Some(&mut self.daylight),
            _ => None,
        }
    }

    /// Takes a line of the part that is open.
    fn take(&mut self, part: &str, line: usize, content: &str) {
        let Some(last) = self.list(part).and_then(|list| list.last_mut()) else {
            return;
        };
        match property(line, content) {
            Ok(found) => last.properties.extend(found),
            Err(_) => self.garbled = true,
        }
    }
}

/// Reads a text of at most [`super::MAX_TEXT`] bytes.
///
/// # Errors
/// It is no calendar, is no UTF-8, has too many events, or a line is out of place.
pub(super) fn read(text: &[u8]) -> Result<Written, CalendarError> {
    let mut reader = Reader::default();
    for line in Lines::of(text) {
        let (number, content) = line?;
        reader.take(number, &content)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    /// The components that are open, from the outermost, each with its line.
    open: Vec<(String, usize)>,
    calendars: usize,
    written: Written,
}

impl Reader {
    fn take(&mut self, line: usize, content: &str) -> Result<(), CalendarError> {
        let (name, value) = content.split_once(':').unwrap_or((content, ""));
        if name.eq_ignore_ascii_case("BEGIN") {
            self.begin(line, value.trim().to_ascii_uppercase())
        } else if self.open.is_empty() {
            Err(match self.calendars {
                0 => CalendarError::NotACalendar,
                _ => wrong(line, "is outside of the calendar", "remove it"),
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
                if self.written.events.len() == MAX_EVENTS {
                    return Err(CalendarError::TooManyEvents);
                }
                self.written.events.push(Component::begin(line));
            }
            ("VTIMEZONE", Some("VCALENDAR")) => {
                self.written.zones.push(WrittenZone::begin(line));
            }
            (part, Some("VTIMEZONE")) if self.open.len() == 2 => {
                let zone = self.written.zones.last_mut();
                if let Some(list) = zone.and_then(|zone| zone.list(part)) {
                    list.push(Component::begin(line));
                }
            }
            ("VCALENDAR" | "VEVENT", _) | (_, None) => {
                let (name, place) = (clean(&name, 40), clean(inside.unwrap_or("nothing"), 40));
                return Err(wrong(
                    line,
                    format!("BEGIN:{name} is inside of {place}"),
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
        Ok(())
    }

    fn property(&mut self, line: usize, content: &str) -> Result<(), CalendarError> {
        let (events, zones) = (&mut self.written.events, &mut self.written.zones);
        let into = match self.open.as_slice() {
            [_, (name, _)] if name == "VEVENT" => events.last_mut(),
            [_, (name, _)] if name == "VTIMEZONE" => zones.last_mut().map(|zone| &mut zone.own),
            [_, (name, _), (part, _)] if name == "VTIMEZONE" => {
                if let Some(zone) = zones.last_mut() {
                    zone.take(part, line, content);
                }
                None
            }
            _ => None,
        };
        if let Some(into) = into {
            into.properties.extend(property(line, content)?);
        }
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
        match self.calendars {
            0 => Err(CalendarError::NotACalendar),
            _ => Ok(self.written),
        }
    }
}

/// What a line says. None: nothing that matters.
fn property(line: usize, content: &str) -> Result<Option<Property>, CalendarError> {
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
        return Ok(None);
    };
    if content.len() > MAX_LINE {
        return Err(wrong(
            line,
            format!("{name} has more than {MAX_LINE} bytes"),
            "write it in several lines of the same name, or shorter",
        ));
    }
    parse(line, name, &content[end..])
}

/// The property of which `rest` follows the name: `;PARAMETER=VALUE:VALUE` (RFC 5545, section 3.1).
/// None: it says nothing.
fn parse(line: usize, name: &'static str, rest: &str) -> Result<Option<Property>, CalendarError> {
    // Between quotes, a colon or a semicolon is a part of a parameter.
    let outside = |wanted| {
        let mut quoted = false;
        move |c: char| {
            quoted ^= c == '"';
            c == wanted && !quoted
        }
    };
    let colon = match rest.find(outside(':')) {
        Some(colon) => colon,
        // It is unknown where the parameters end.
        None if rest.matches('"').count() % 2 == 1 => {
            return Err(wrong(
                line,
                format!("{name} has a quote that is never closed"),
                "write NAME;PARAMETER=\"VALUE\":VALUE",
            ));
        }
        None => rest.len(),
    };
    let (parameters, value) = rest.split_at(colon);
    // A line that ends before its colon is cut short, and says nothing for sure.
    if value.trim_end() == ":" && MAY_BE_EMPTY.contains(&name) {
        return Ok(None);
    }
    let value = value.strip_prefix(':').unwrap_or_default().trim();
    let parameter = |wanted: &str| {
        let mut pairs = (parameters.split(outside(';'))).filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
        // An empty value is not a parameter; a blank one names nothing that exists.
        let value = Some(value).filter(|value| !value.is_empty())?;
        Some(value.trim().trim_matches('"').trim().to_owned())
    };
    Ok(Some(Property {
        line,
        name,
        value: match name {
            "UID" | "SUMMARY" | "STATUS" | "TZID" | "X-LIC-LOCATION" => {
                unescaped(value).trim().to_owned()
            }
            _ => value.to_owned(),
        },
        zone: parameter("TZID"),
        kind: parameter("VALUE").map(|kind| kind.to_ascii_uppercase()),
        ranges: parameter("RANGE").is_some(),
    }))
}

/// What a text means: RFC 5545, section 3.3.11. Some programs escape colons, too.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, rest.clone().next()) {
            ('\\', Some('n' | 'N')) => plain.push('\n'),
            ('\\', Some(it @ ('\\' | ',' | ';' | ':'))) => plain.push(it),
            _ => {
                plain.push(c);
                continue;
            }
        }
        rest.next();
    }
    plain
}
