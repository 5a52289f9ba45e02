//! From the rules in a VTIMEZONE to a zone, for those whose name is not known.
//!
//! Read are the shapes that have one meaning, and that Outlook and Exchange write: one STANDARD for
//! good, or one STANDARD and one DAYLIGHT that take turns every year, on such a day as the last
//! Sunday of a month. Everything else is refused: a zone that is nearly right opens gates too early.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::parts::Frequency;
use super::read::{Component, WrittenZone};
use super::recur::Rule;
use super::values::{self, When};
use crate::text::refusal::Refusal;

/// How far from UTC a zone may be: no place is further.
const FURTHEST: i32 = 14 * 3600;
/// How far apart STANDARD and DAYLIGHT may begin. Where it is more, there was a time in which one of
/// them did not apply.
const APART: SignedDuration = SignedDuration::from_hours(24 * 366);

/// A zone, and since when it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub zone: TimeZone,
    pub since: Timestamp,
}

/// The zone that the rules make, and since when they hold.
///
/// # Errors
/// Why they are not understood.
pub(super) fn zone(written: &WrittenZone) -> Result<Known, String> {
    if written.garbled {
        return Err("a line in it cannot be read".to_owned());
    }
    match (written.standard.as_slice(), written.daylight.as_slice()) {
        ([standard], []) => alone(&Change::read(standard)?),
        ([standard], [daylight]) => by_turns(&Change::read(standard)?, &Change::read(daylight)?),
        (standard, daylight) => Err(format!(
            "it has {} STANDARD and {} DAYLIGHT, not one and at most one",
            standard.len(),
            daylight.len()
        )),
    }
}

/// A zone that has one offset, maybe since a change.
fn alone(standard: &Change) -> Result<Known, String> {
    let zone = TimeZone::fixed(standard.to);
    if standard.from == standard.to {
        let since = Timestamp::MIN;
        return Ok(Known { zone, since });
    }
    if standard.yearly.is_some() {
        return Err("it has a STANDARD every year, and no DAYLIGHT".to_owned());
    }
    let since = standard.begins()?;
    Ok(Known { zone, since })
}

/// A zone that changes its clocks twice a year.
fn by_turns(standard: &Change, daylight: &Change) -> Result<Known, String> {
    if (standard.from, standard.to) != (daylight.to, daylight.from) {
        return Err("its STANDARD and DAYLIGHT do not begin from each other's offset".to_owned());
    }
    let (Some(back), Some(forth)) = (&standard.yearly, &daylight.yearly) else {
        return Err("its STANDARD and DAYLIGHT do not both recur every year".to_owned());
    };
    if standard.to == daylight.to {
        return alone(standard);
    }
    let begins = (standard.begins()?, daylight.begins()?);
    if begins.0.duration_since(begins.1).abs() > APART {
        return Err("its STANDARD and DAYLIGHT begin more than a year apart".to_owned());
    }
    let rule = format!(
        "<STD>{}<DST>{},{},{}",
        posix(standard.to),
        posix(daylight.to),
        forth.posix(),
        back.posix()
    );
    let zone = TimeZone::posix(&rule).map_err(|_| "its rules make no time zone".to_owned())?;
    // Before the first change its TZOFFSETFROM holds: as long as the rules say that, too.
    let before = zone.preceding(begins.0.min(begins.1)).next();
    let since = before.map_or(Timestamp::MIN, |change| change.timestamp());
    Ok(Known { zone, since })
}

/// An offset as POSIX has it: what to add to the clock to get UTC.
fn posix(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds > 0 { '-' } else { '+' };
    let seconds = seconds.abs();
    let (minutes, second) = (seconds / 60, seconds % 60);
    format!("{sign}{:02}:{:02}:{second:02}", minutes / 60, minutes % 60)
}

/// A STANDARD or a DAYLIGHT.
struct Change {
    from: Offset,
    to: Offset,
    /// When it first applies, on the clock before it.
    first: DateTime,
    yearly: Option<Yearly>,
}

impl Change {
    fn read(written: &Component) -> Result<Self, String> {
        for name in ["RDATE", "EXDATE", "EXRULE"] {
            if written.all(name).next().is_some() {
                return Err(format!("{name} in it is not read"));
            }
        }
        let first = one(written, "DTSTART")?.ok_or("DTSTART is missing in it")?;
        let first = values::written(first)
            .filter(|first| !first.utc)
            .and_then(|first| Some(first.date.to_datetime(first.time?)))
            .ok_or("its DTSTART is no local time")?;
        let yearly = one(written, "RRULE")?.map(|rule| Yearly::read(rule, first));
        Ok(Self {
            from: offset(written, "TZOFFSETFROM")?,
            to: offset(written, "TZOFFSETTO")?,
            first,
            yearly: yearly.transpose()?,
        })
    }

    fn begins(&self) -> Result<Timestamp, String> {
        let begins = self.from.to_timestamp(self.first);
        begins.map_err(|_| "its DTSTART is too far from today".to_owned())
    }
}

fn one<'a>(written: &'a Component, name: &'static str) -> Result<Option<&'a str>, String> {
    match written.one(name) {
        Ok(found) => Ok(found.map(|property| property.value.as_str())),
        Err(Refusal { field, problem, .. }) => Err(format!("{field} in it {problem}")),
    }
}

/// `+0100`, `-0330` or `+053045`.
fn offset(written: &Component, name: &'static str) -> Result<Offset, String> {
    let text = one(written, name)?.ok_or_else(|| format!("{name} is missing in it"))?;
    let parsed = strtime::parse("%z", text).ok();
    let offset = parsed.and_then(|parsed| parsed.offset());
    offset
        .filter(|offset| offset.seconds().abs() <= FURTHEST)
        .ok_or_else(|| format!("its {name} is no offset such as +0100"))
}

/// The nth day of the week in a month, every year, at a time of the clock before it.
struct Yearly {
    month: i16,
    /// From 1 to 4, or 5 for the last one.
    nth: i16,
    /// Sunday is 0.
    weekday: i16,
    time: (i16, i16, i16),
}

impl Yearly {
    fn read(text: &str, first: DateTime) -> Result<Self, String> {
        let wrong = || "its RRULE is not of the form FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU".to_owned();
        let first = When {
            wall: first,
            zone: TimeZone::UTC,
            all_day: false,
        };
        let rule = Rule::parse(text, &first).map_err(|_| wrong())?;
        let plain = rule.frequency == Frequency::Yearly
            && rule.interval == 1
            && rule.last == DateTime::MAX
            && rule.count.is_none();
        let others = [
            &rule.weeks,
            &rule.year_days,
            &rule.month_days,
            &rule.positions,
        ];
        if !plain || others.iter().any(|list| !list.is_empty()) {
            return Err(wrong());
        }
        let lists = (
            rule.months.as_slice(),
            rule.week_days.as_slice(),
            rule.hours.as_slice(),
            rule.minutes.as_slice(),
            rule.seconds.as_slice(),
        );
        let (&[month], &[(day, nth)], &[hour], &[minute], &[second]) = lists else {
            return Err(wrong());
        };
        let nth = match nth {
            1..=4 => nth,
            -1 => 5,
            // The fifth of a month that has four is none here, and the last one in POSIX.
            _ => return Err(wrong()),
        };
        Ok(Self {
            month,
            nth,
            weekday: (day + 1) % 7,
            time: (hour, minute, second),
        })
    }

    /// `M10.5.0/03:00:00`
    fn posix(&self) -> String {
        let Self {
            month,
            nth,
            weekday,
            time: (hour, minute, second),
        } = self;
        format!("M{month}.{nth}.{weekday}/{hour:02}:{minute:02}:{second:02}")
    }
}
