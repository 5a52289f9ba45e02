//! Instants, and text that others wrote, as messages show them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// An instant in the time zone of the reader: weekday, date and time of day.
///
/// Always in full, never "tomorrow": a message must not change when nothing else changes.
pub fn instant(at: Timestamp, zone: &TimeZone, zone_name: &str) -> String {
    let zoned = at.to_zoned(zone.clone());
    let form = if zoned.second() == 0 {
        "%a %Y-%m-%d %H:%M"
    } else {
        "%a %Y-%m-%d %H:%M:%S"
    };
    format!("{} {zone_name}", zoned.strftime(form))
}

/// The same in UTC, for instants without a time zone.
pub fn instant_utc(at: Timestamp) -> String {
    instant(at, &TimeZone::UTC, "UTC")
}

/// Text that others wrote, made safe for messages and terminals: one line, without control characters
/// or marks that turn the direction of writing, at most `max` characters.
pub fn clean(text: &str, max: usize) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String = text
        .chars()
        .filter(|&c| !turns(c))
        // Longer than `max`, so that a text that is cut differs from one that fits.
        .take(4 * max)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line;
    }
    let mut cut: String = line.chars().take(max - 1).collect();
    cut.push('…');
    cut
}
