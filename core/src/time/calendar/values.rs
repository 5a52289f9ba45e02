//! From the text of dates, times, periods and durations to values (RFC 5545, section 3.3).

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{MAX_DAYS, clean};
use crate::text::refusal::Refusal;
use crate::time::zone;

/// What to write where a date or a time is wanted.
pub(super) const REMEDY: &str = "write a date such as 20261225 with VALUE=DATE, or a time such as 20261225T090000 (with TZID, or Z for UTC)";

const LONGEST: SignedDuration = SignedDuration::from_hours(24 * MAX_DAYS);

/// A time as it is written: what the clocks of a zone show, or a whole day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct When {
    /// For a day, its midnight.
    pub wall: DateTime,
    pub zone: TimeZone,
    pub all_day: bool,
}

impl When {
    /// The instant, or None beyond the years that instants have.
    ///
    /// RFC 5545 reads a time that a change of the clocks skips with the offset from before it,
    /// so that 02:30 becomes 03:30. Here it becomes the first instant after the gap, as it does
    /// for cron: a window never starts later than the clocks pass its start.
    pub fn instant(&self) -> Option<Timestamp> {
        zone::resolve(&self.zone, self.wall)
    }
}

/// How long an event lasts, from each of its starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As far as the clocks say so. By the letter of RFC 5545, section 3.8.5.3, all instances of
    /// an event with DTEND last as long in elapsed time as the first. But who writes 22:00 to
    /// 06:00, or two whole days, means that on the day of a change of the clocks as well.
    Wall(SignedDuration),
    /// Days by the calendar, then elapsed time: what RFC 5545, section 3.3.6, has for DURATION.
    Nominal { days: i64, then: SignedDuration },
}

impl Length {
    pub const NONE: Self = Self::Nominal {
        days: 0,
        then: SignedDuration::ZERO,
    };
    pub const ONE_DAY: Self = Self::Nominal {
        days: 1,
        then: SignedDuration::ZERO,
    };

    /// The end of what begins at `start`; None beyond the years that instants have.
    ///
    /// What a change of the clocks skips from its start to its end would take no time. It takes as
    /// long as on any other day, from the first instant after the gap: so have it RFC 5545 and cron.
    pub fn end(self, zone: &TimeZone, start: DateTime) -> Option<Timestamp> {
        let (wall, then) = match self {
            Self::Wall(length) => (length, SignedDuration::ZERO),
            Self::Nominal { days, then } => (SignedDuration::from_hours(24 * days), then),
        };
        let resolved = zone::resolve(zone, start.checked_add(wall).ok()?)?;
        let end = resolved.checked_add(then).ok()?;
        let begin = zone::resolve(zone, start)?;
        match end > begin {
            true => Some(end),
            false => begin.checked_add(self.nominal()).ok(),
        }
    }

    /// The same for text.
    pub fn after(self, start: &When) -> Option<Timestamp> {
        self.end(&start.zone, start.wall)
    }

    /// Whether it is no time at all.
    pub fn is_none(self) -> bool {
        self.nominal() == SignedDuration::ZERO
    }

    /// How many days it lasts at most, without regard to changes of the clocks.
    pub fn days(self) -> i64 {
        self.nominal().as_secs() / 86_400 + 1
    }

    fn nominal(self) -> SignedDuration {
        match self {
            Self::Wall(length) => length,
            Self::Nominal { days, then } => {
                SignedDuration::from_hours(24 * days).saturating_add(then)
            }
        }
    }

    /// This length, if it is at most [`MAX_DAYS`].
    ///
    /// # Errors
    /// It is longer, as `property` has it.
    pub fn checked(self, property: &'static str) -> Result<Self, Refusal> {
        if self.nominal() <= LONGEST {
            return Ok(self);
        }
        Err(Refusal::new(
            property,
            format!("the event is longer than {MAX_DAYS} days"),
            "split it, or let it recur with RRULE",
        ))
    }
}

/// The length of an event from `start` until `end`: [`Length::Wall`] where the clocks of one zone
/// show both. The clocks of two zones do not compare, so there it is elapsed time. None if `end`
/// is the earlier one.
pub(super) fn between(start: &When, end: &When) -> Option<Length> {
    let (from, to) = (start.instant()?, end.instant()?);
    let same_clock = start.zone == end.zone;
    // Of two times in a gap, both are the first instant after it.
    if to < from || same_clock && end.wall < start.wall {
        return None;
    }
    Some(if same_clock {
        Length::Wall(end.wall.duration_since(start.wall))
    } else {
        Length::Nominal {
            days: 0,
            then: to.duration_since(from),
        }
    })
}

/// A date, maybe with a time, maybe in UTC.
pub(super) struct Digits {
    pub date: Date,
    pub time: Option<Time>,
    pub utc: bool,
}

/// Reads `20261225`, `20261225T090000` or `20261225T090000Z`. A leap second is read as the second
/// before it, as RFC 5545, section 3.3.12, has it.
pub(super) fn written(text: &str) -> Option<Digits> {
    let text = text.trim();
    let (text, utc) = match text.strip_suffix(['Z', 'z']) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let has_its_place = |(place, byte): (usize, u8)| match place {
        8 => matches!(byte, b'T' | b't'),
        _ => byte.is_ascii_digit(),
    };
    if !text.bytes().enumerate().all(has_its_place) {
        return None;
    }
    let (date, time) = match text.len() {
        8 if !utc => (text.parse().ok()?, None),
        15 => {
            let wall: DateTime = text.parse().ok()?;
            (wall.date(), Some(wall.time()))
        }
        _ => return None,
    };
    Some(Digits { date, time, utc })
}

/// The length of a DURATION: `P1W`, `P1D`, `PT8H`, `P1DT12H30M`.
///
/// # Errors
/// It is no duration, or negative, or longer than [`MAX_DAYS`].
pub(super) fn duration(name: &'static str, text: &str) -> Result<Length, Refusal> {
    let refused = |problem: &str| {
        Refusal::new(
            name,
            format!("`{}` {problem}", clean(text, 40)),
            "write a duration such as PT8H, P1D or P1DT12H",
        )
    };
    let upper = text.trim().to_ascii_uppercase();
    if upper.starts_with('-') {
        return Err(refused("is negative"));
    }
    let body = upper.trim_start_matches('+').strip_prefix('P');
    let (days, then) = body
        .and_then(units)
        .ok_or_else(|| refused("is not a duration"))?;
    Length::Nominal { days, then }.checked(name)
}

/// Days and elapsed time of what follows the P.
fn units(body: &str) -> Option<(i64, SignedDuration)> {
    let (dated, timed) = match body.split_once('T') {
        Some((_, "")) => return None,
        Some((dated, timed)) => (dated, timed),
        None if body.is_empty() => return None,
        None => (body, ""),
    };
    let days = sum(dated, &[('W', 7), ('D', 1)])?;
    let seconds = sum(timed, &[('H', 3600), ('M', 60), ('S', 1)])?;
    // Larger numbers are longer than any event may be; smaller ones cannot overflow below.
    (days <= 1_000_000).then(|| (days, SignedDuration::from_secs(seconds)))
}

/// Numbers with units, each unit at most once and in order, added up.
fn sum(text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut rest = text;
    let mut units = units.iter();
    let mut total = 0_i64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..end].parse().ok()?;
        let letter = rest[end..].chars().next()?;
        let (_, worth) = units.find(|(unit, _)| *unit == letter)?;
        total = total.checked_add(number.checked_mul(*worth)?)?;
        rest = &rest[end + letter.len_utf8()..];
    }
    Some(total)
}

/// Whether a time is a midnight.
pub(super) fn is_midnight(when: &When) -> bool {
    when.wall.time() == Time::midnight()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("PT8H", 0, 28_800)]
    #[case("P1D", 1, 0)]
    #[case("P2W", 14, 0)]
    #[case("+P1DT12H30M5S", 1, 45_005)]
    #[case("PT0S", 0, 0)]
    #[case("pt15m", 0, 900)]
    fn durations_are_read(#[case] text: &str, #[case] days: i64, #[case] seconds: i64) {
        let then = SignedDuration::from_secs(seconds);
        let read = duration("DURATION", text);
        assert_eq!(read, Ok(Length::Nominal { days, then }));
    }

    #[rstest]
    #[case("", "is not a duration")]
    #[case("P", "is not a duration")]
    #[case("PT", "is not a duration")]
    #[case("8H", "is not a duration")]
    #[case("P8H", "is not a duration")]
    #[case("PT8", "is not a duration")]
    #[case("PT1M1H", "is not a duration")]
    #[case("PTé", "is not a duration")]
    #[case("P99999999999999999999D", "is not a duration")]
    #[case("PT9223372036854775807H", "is not a duration")]
    #[case("-PT8H", "is negative")]
    #[case("P367D", "longer than 366 days")]
    #[case("P366DT1S", "longer than 366 days")]
    #[case("PT9223372036854775807S", "longer than 366 days")]
    fn other_durations_are_refused(#[case] text: &str, #[case] problem: &str) {
        let refusal = duration("DURATION", text).unwrap_err();
        assert!(refusal.problem.contains(problem), "{refusal}");
    }

    #[rstest]
    #[case("20261225", "2026-12-25T00:00:00", false)]
    #[case("20261225T090000", "2026-12-25T09:00:00", false)]
    #[case("20261231T235960Z", "2026-12-31T23:59:59", true)]
    fn times_are_read(#[case] text: &str, #[case] wall: &str, #[case] utc: bool) {
        let read = written(text).unwrap();
        let time = read.time.unwrap_or(Time::midnight());
        assert_eq!(read.date.to_datetime(time).to_string(), wall);
        assert_eq!(read.utc, utc);
    }

    #[rstest]
    #[case("")]
    #[case("2026-12-25")]
    #[case("20261325")]
    #[case("20260230")]
    #[case("20261225T")]
    #[case("20261225T0900")]
    #[case("20261225T240000")]
    #[case("20261225T090000+01")]
    #[case("20261225 090000")]
    #[case("2026122é")]
    #[case("+0261225")]
    fn other_times_are_refused(#[case] text: &str) {
        assert!(written(text).is_none());
    }
}
