//! Time zones, and how a wall-clock time in one becomes an instant.
//!
//! The zones are those bundled with the binary, so that two replicas, a laptop and an audit agree
//! also where different zones are installed.

pub mod shown;
pub mod windows;

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use super::span::MOMENT;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// What to write where a time zone is wanted.
pub const REMEDY: &str = "write an IANA time zone such as UTC, Europe/London or America/New_York";

/// The zone of that IANA name.
///
/// # Errors
/// What is wrong with the name, without the remedy: see [`REMEDY`].
pub fn find(name: &str) -> Result<TimeZone, String> {
    let zone = ZONES.get(name).ok();
    // jiff knows `Etc/Unknown`, too, which behaves as UTC.
    zone.filter(|zone| !zone.is_unknown())
        .ok_or_else(|| format!("there is no time zone `{name}`"))
}

/// The instant at which the clocks of `zone` show `wall`. A time that a change of the clocks
/// skips becomes the first instant after the gap; one that it repeats, its first occurrence.
/// None beyond the range of instants (years -9999 to 9999).
pub fn resolve(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
        AmbiguousOffset::Gap { before, .. } => {
            // Read with the offset from before the gap, the time falls behind the change; the
            // change itself is the first instant after the gap.
            let behind = before.to_timestamp(wall).ok()?;
            let just_behind = behind.checked_add(MOMENT).ok()?;
            zone.preceding(just_behind)
                .next()
                .map(|change| change.timestamp())
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("Europe/London", "2026-11-20T09:00:00", "2026-11-20T09:00:00Z")]
    #[case::gap("America/New_York", "2026-03-08T02:30:00", "2026-03-08T07:00:00Z")]
    #[case::fold("America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z")]
    #[case::gap_at_midnight("America/Santiago", "2026-09-06T00:30:00", "2026-09-06T04:00:00Z")]
    #[case::half_hour_gap("Australia/Lord_Howe", "2026-10-04T02:15:00", "2026-10-03T15:30:00Z")]
    #[case::lost_day("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z")]
    #[case::two_hours("Antarctica/Troll", "2026-03-29T01:30:00", "2026-03-29T01:00:00Z")]
    fn wall_clock_times_become_instants(
        #[case] zone: &str,
        #[case] wall: &str,
        #[case] instant: &str,
    ) {
        let zone = find(zone).unwrap();
        let resolved = resolve(&zone, wall.parse().unwrap()).unwrap();
        assert_eq!(resolved.to_string(), instant);
    }

    #[rstest]
    #[case("")]
    #[case("Mars/Olympus")]
    #[case("Europe/Londn")]
    #[case("Local")]
    #[case("Etc/Unknown")]
    fn unknown_zones_are_refused_and_never_become_utc(#[case] name: &str) {
        assert!(find(name).is_err());
    }
}
