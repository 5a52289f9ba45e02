//! Calendars as people and programs write them, and what they cover.

mod bounds;
mod changed;
mod exporters;
mod feeds;
mod hostile;
mod oracle;
mod recurring;
mod refused;
mod revised;
mod times;
mod zones;

use super::*;
use crate::time::zone;

/// A calendar of one event with these properties, one per line.
fn event(properties: &str) -> String {
    let lines: String = properties
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    calendar(&format!("BEGIN:VEVENT\n{lines}END:VEVENT\n"))
}

fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\nVERSION:2.0\n{components}END:VCALENDAR\n")
}

fn read(text: &str, zone: &str) -> Result<Calendar, CalendarError> {
    Calendar::parse(text, &zone::find(zone).unwrap())
}

fn span(from: &str, until: &str) -> Span {
    Span {
        start: from.parse().unwrap(),
        end: until.parse().unwrap(),
    }
}

/// What a calendar covers, as local times in `zone`: `2026-03-08T09:00/17:00`, with the day of
/// the end only where it is another one, and the offset where the two differ.
fn local(calendar: &Calendar, zone: &str, from: &str, until: &str) -> Vec<String> {
    let zone = zone::find(zone).unwrap();
    let found = calendar.occurrences(span(from, until)).unwrap();
    let written = found.iter().map(|Occurrence { span, .. }| {
        let start = span.start.to_zoned(zone.clone());
        let end = span.end.to_zoned(zone.clone());
        let (mut starts, mut ends) = ("%Y-%m-%dT%H:%M".to_owned(), "%H:%M".to_owned());
        if start.date() != end.date() {
            ends.insert_str(0, "%Y-%m-%dT");
        }
        if start.offset() != end.offset() {
            starts.push_str("%:z");
            ends.push_str("%:z");
        }
        format!("{}/{}", start.strftime(&starts), end.strftime(&ends))
    });
    written.collect()
}

/// What a calendar covers in 2026, in `zone`.
fn year_2026(calendar: &Calendar, zone: &str) -> Vec<String> {
    local(
        calendar,
        zone,
        "2026-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )
}

/// What one event with these properties covers in 2026, in `zone`.
fn in_2026(properties: &str, zone: &str) -> Vec<String> {
    let calendar = read(&event(properties), zone).unwrap();
    year_2026(&calendar, zone)
}
