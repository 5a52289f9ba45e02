//! How instants are written in messages.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// An instant as its readers know it: the weekday, the date and the wall clock of their zone.
///
/// Always in full, never "tomorrow": a message must not change while nothing else does.
pub fn instant(at: Timestamp, zone: &TimeZone, zone_name: &str) -> String {
    let zoned = at.to_zoned(zone.clone());
    let form = if zoned.second() == 0 {
        "%a %Y-%m-%d %H:%M"
    } else {
        "%a %Y-%m-%d %H:%M:%S"
    };
    format!("{} {zone_name}", zoned.strftime(form))
}

/// The same for instants that belong to no zone.
pub fn instant_utc(at: Timestamp) -> String {
    instant(at, &TimeZone::UTC, "UTC")
}
