//! From the TZID of a time to a zone whose rules are known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::{Offset, TimeZone};

use super::clean;
use super::read::{Property, WrittenZone};
use super::rules::{self, Known};
use super::values::{self, When};
use crate::text::refusal::Refusal;
use crate::time::zone;

/// Names that IANA has for one offset, and people use for clocks that change: a VTIMEZONE beside them
/// knows better.
const AMBIGUOUS: [&str; 4] = ["EST", "MST", "HST", "GMT"];

/// The zones that times of a calendar can be in.
pub(super) struct Zones<'a> {
    /// The zone of floating times and of all-day events.
    pub default: &'a TimeZone,
    /// What its VTIMEZONEs say, by TZID.
    defined: HashMap<String, Defined>,
}

/// What a VTIMEZONE says.
#[derive(PartialEq, Eq)]
struct Defined {
    /// The zone that its X-LIC-LOCATION names.
    place: Option<TimeZone>,
    /// The zone that its rules make, or why they are not understood.
    rules: Result<Known, String>,
}

impl<'a> Zones<'a> {
    pub fn new(default: &'a TimeZone, written: &[WrittenZone]) -> Self {
        let mut defined = HashMap::new();
        for zone in written {
            let text = |name| zone.own.all(name).next().map(|p| plain(&p.value));
            let Some(id) = text("TZID") else { continue };
            let new = Defined {
                place: text("X-LIC-LOCATION").and_then(|place| known(&place)),
                rules: rules::zone(zone),
            };
            match defined.entry(id) {
                Entry::Vacant(vacant) => {
                    vacant.insert(new);
                }
                Entry::Occupied(mut first) if *first.get() != new => {
                    let why = "it is written more than once, with other rules".to_owned();
                    let (place, rules) = (None, Err(why));
                    first.insert(Defined { place, rules });
                }
                Entry::Occupied(_) => {}
            }
        }
        Self { default, defined }
    }

    /// The zone that a TZID means: by its own name, else by the place its VTIMEZONE names. The
    /// rules inside a VTIMEZONE are read only where the name says nothing for sure: they are
    /// not kept up to date.
    ///
    /// # Errors
    /// What is wrong with the TZID, without a remedy.
    pub fn find(&self, id: &str) -> Result<Known, String> {
        let id = plain(id);
        let defined = self.defined.get(&id);
        let place = || defined.and_then(|defined| defined.place.clone());
        let named = match defined {
            Some(_) if AMBIGUOUS.contains(&id.as_str()) => place(),
            _ => known(&id).or_else(place).or_else(|| nearly_known(&id)),
        };
        if let Some(zone) = named {
            let since = Timestamp::MIN;
            return Ok(Known { zone, since });
        }
        let shown = clean(&id, 60);
        match defined.map(|defined| &defined.rules) {
            Some(Ok(known)) => Ok(known.clone()),
            Some(Err(why)) => Err(format!(
                "there is no time zone `{shown}`, and its VTIMEZONE is not understood: {why}"
            )),
            None => Err(format!("there is no time zone `{shown}`")),
        }
    }

    /// The one time that a property has for its value.
    ///
    /// # Errors
    /// It is no time, or in no known zone.
    pub fn when(&self, property: &Property) -> Result<When, Refusal> {
        self.moment(property, &property.value)
    }

    /// One time of the value of a property.
    ///
    /// # Errors
    /// It is no time, or in no known zone, or of another kind than VALUE says.
    pub fn moment(&self, property: &Property, text: &str) -> Result<When, Refusal> {
        let refused = |problem: String| Refusal::new(property.name, problem, values::REMEDY);
        let wrong = || refused(format!("`{}` is not a date or time", clean(text, 40)));
        let written = values::written(text).ok_or_else(wrong)?;
        let shown = clean(text, 40);
        match (property.kind.as_deref(), written.time) {
            (Some("DATE"), Some(_)) => {
                return Err(refused(format!("VALUE=DATE, and `{shown}` is a time")));
            }
            (Some("DATE-TIME"), None) => {
                return Err(refused(format!("VALUE=DATE-TIME, and `{shown}` is a date")));
            }
            _ => {}
        }
        let (zone, since) = match (&property.zone, written.time) {
            // Days are those of the place where the schedule applies.
            (_, None) => (self.default.clone(), Timestamp::MIN),
            (_, Some(_)) if written.utc => (TimeZone::UTC, Timestamp::MIN),
            (None, Some(_)) => (self.default.clone(), Timestamp::MIN),
            (Some(id), Some(_)) => {
                let found = self.find(id);
                let Known { zone, since } = found.map_err(|problem| of_zone(property, problem))?;
                (zone, since)
            }
        };
        let when = When {
            wall: written
                .date
                .to_datetime(written.time.unwrap_or(Time::midnight())),
            zone,
            all_day: written.time.is_none(),
        };
        match when.instant() {
            Some(instant) if instant < since => Err(of_zone(
                property,
                format!("its VTIMEZONE says nothing of `{shown}`, only of times since {since}"),
            )),
            Some(_) => Ok(when),
            None => Err(wrong()),
        }
    }
}

fn of_zone(property: &Property, problem: String) -> Refusal {
    Refusal::new(format!("{};TZID", property.name), problem, zone::REMEDY)
}

/// A TZID without what some programs put around and into it: NUL characters, escapes of commas.
fn plain(id: &str) -> String {
    let around = |c: char| c == '\0' || c.is_whitespace();
    id.trim_matches(around).replace('\\', "")
}

fn named(name: &str) -> Option<TimeZone> {
    zone::find(name).ok()
}

/// An IANA name, a Windows name, or an id such as `/example.org/20260101/Europe/London` or
/// `tzone://Microsoft/Utc` that ends in one.
fn known(id: &str) -> Option<TimeZone> {
    if let Some(found) = named(id).or_else(|| zone::windows::iana(id).and_then(named)) {
        return Some(found);
    }
    if !id.starts_with('/') && !id.contains("://") {
        return None;
    }
    // IANA names have at most three parts; the longest that fits is meant.
    let parts: Vec<&str> = id.rsplit('/').take(3).collect();
    (1..=parts.len())
        .rev()
        .map(|n| {
            parts[..n]
                .iter()
                .rev()
                .copied()
                .collect::<Vec<_>>()
                .join("/")
        })
        .find_map(|name| named(&name))
}

/// A name that some programs make of a known one:
/// - `(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna`, as Windows shows it to people;
/// - `Eastern Standard Time 1`, as Outlook numbers zones of one name;
/// - `US-Eastern`, without the slash;
/// - `UTC+01`, for a zone that has this offset for good.
fn nearly_known(id: &str) -> Option<TimeZone> {
    if let Some(windows) = zone::shown::windows(id) {
        return zone::windows::iana(windows).and_then(named);
    }
    if let Some((name, number)) = id.rsplit_once(' ')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return zone::windows::iana(name).and_then(named);
    }
    if let Some(offset) = offset(id) {
        return Some(TimeZone::fixed(offset));
    }
    if id.contains('/') {
        return None;
    }
    // Three parts at most, and names such as America/Port-au-Prince have dashes of their own.
    (1..=2)
        .map(|count| id.replacen('-', "/", count))
        .find_map(|name| named(&name))
}

/// The offset of `UTC+1`, `UTC+01`, `UTC+0100` or `UTC+01:00`: east of Greenwich is plus.
fn offset(id: &str) -> Option<Offset> {
    let (utc, rest) = id.split_at_checked(3)?;
    let (sign, rest) = rest.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "00"),
    };
    let digits = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        let plain = lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if plain {
            text.parse::<i32>().ok()
        } else {
            None
        }
    };
    let (hours, minutes) = (digits(hours, 1..=2)?, digits(minutes, 2..=2)?);
    let whole = hours * 60 + minutes;
    let fits = utc.eq_ignore_ascii_case("UTC") && minutes < 60 && whole <= 14 * 60;
    fits.then(|| Offset::from_seconds(sign * whole * 60).ok())?
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn find(id: &str) -> Result<TimeZone, String> {
        let found = Zones::new(&TimeZone::UTC, &[]).find(id)?;
        assert_eq!(found.since, Timestamp::MIN);
        Ok(found.zone)
    }

    #[rstest]
    #[case("Europe/London", "Europe/London")]
    #[case("W. Europe Standard Time", "Europe/Berlin")]
    #[case("W. Europe Standard Time\0\0\0", "Europe/Berlin")]
    #[case("/freeassociation.sourceforge.net/Europe/London", "Europe/London")]
    #[case("/citadel.org/20100714_1/America/New_York", "America/New_York")]
    #[case("/x/America/Argentina/Ushuaia", "America/Argentina/Ushuaia")]
    #[case("tzone://Microsoft/Utc", "UTC")]
    #[case("(UTC+01:00) Brussels, Copenhagen, Madrid, Paris", "Europe/Paris")]
    #[case(
        "(UTC+01:00) Brussels\\, Copenhagen\\, Madrid\\, Paris",
        "Europe/Paris"
    )]
    #[case("Eastern Standard Time 1", "America/New_York")]
    #[case("Russia Time Zone 11", "Asia/Kamchatka")]
    #[case("US-Eastern", "US/Eastern")]
    #[case("America-Port-au-Prince", "America/Port-au-Prince")]
    #[case("America-Argentina-Ushuaia", "America/Argentina/Ushuaia")]
    #[case("UTC+13", "Etc/GMT-13")]
    fn zones_are_known_by_many_names(#[case] id: &str, #[case] expected: &str) {
        assert_eq!(find(id), Ok(zone::find(expected).unwrap()));
    }

    #[rstest]
    #[case("UTC+01", 60)]
    #[case("UTC+1", 60)]
    #[case("utc-03:30", -210)]
    #[case("UTC+0545", 345)]
    #[case("UTC-00", 0)]
    fn zones_are_known_by_their_offset(#[case] id: &str, #[case] minutes: i32) {
        let offset = Offset::from_seconds(60 * minutes).unwrap();
        assert_eq!(find(id), Ok(TimeZone::fixed(offset)));
    }

    #[rstest]
    #[case("Customized Time Zone")]
    #[case("tzone://Microsoft/Custom")]
    #[case("Mars/Europe/London")]
    #[case("Etc/Unknown")]
    #[case("Etc-Unknown")]
    #[case("/example.org/Etc/Unknown")]
    #[case("Europe/London 1")]
    #[case("Mexico Standard Time 2")]
    #[case("UTC+15")]
    #[case("UTC+01:60")]
    #[case("UTC+100")]
    #[case("UTC01")]
    #[case("UTC+é")]
    // Plus is east in some programs, and west in POSIX.
    #[case("GMT+1")]
    #[case("GMT +0100 (Standard) / GMT +0200 (Daylight)")]
    #[case("")]
    #[case("/")]
    #[case("-")]
    fn other_names_are_refused(#[case] id: &str) {
        assert!(find(id).is_err());
    }
}
