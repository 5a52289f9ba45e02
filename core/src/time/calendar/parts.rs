//! The parts of an RRULE, each read from its text: `FREQ=WEEKLY;BYDAY=MO,FR` and so on.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone};

use super::clean;
use super::values::{self, When};
use crate::text::refusal::Refusal;
use crate::time::span::MOMENT;
use crate::time::zone;

pub(super) fn refused(problem: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    Refusal::new("RRULE", problem, remedy)
}

/// What a rule counts by. Only the days matter to what is below a day: times are combined with
/// each day that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Frequency {
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// Monday is 0.
pub(super) fn number(day: Weekday) -> i16 {
    i16::from(day.to_monday_zero_offset())
}

/// The parts of a rule, by name in upper case.
pub(super) struct Parts(Vec<(String, String)>);

const NAMES: [&str; 16] = [
    "FREQ",
    "UNTIL",
    "COUNT",
    "INTERVAL",
    "WKST",
    "BYMONTH",
    "BYWEEKNO",
    "BYYEARDAY",
    "BYMONTHDAY",
    "BYDAY",
    "BYHOUR",
    "BYMINUTE",
    "BYSECOND",
    "BYSETPOS",
    "RSCALE",
    "SKIP",
];

impl Parts {
    pub fn of(text: &str) -> Result<Self, Refusal> {
        let mut parts: Vec<(String, String)> = Vec::new();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let shown = clean(part, 40);
            let Some((name, value)) = part.split_once('=') else {
                return Err(refused(
                    format!("`{shown}` is not of the form NAME=VALUE"),
                    "write a rule such as FREQ=WEEKLY;BYDAY=MO,FR",
                ));
            };
            let name = name.trim().to_ascii_uppercase();
            if !NAMES.contains(&name.as_str()) {
                return Err(refused(
                    format!("`{shown}` is not known"),
                    format!("leave it out; known are {}", NAMES.join(", ")),
                ));
            }
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(refused(
                    format!("{name} is written more than once"),
                    "write one list, with commas",
                ));
            }
            parts.push((name, value.trim().to_ascii_uppercase()));
        }
        Ok(Self(parts))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name)?;
        Some(&found.1)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The calendar of the rule is the one that all rules have: RFC 7529 lets them name others.
    ///
    /// # Errors
    /// It is another one, or days that do not exist are to become other days.
    pub fn scale(&self) -> Result<(), Refusal> {
        let refuse = |name, remedy| {
            let value = clean(self.get(name).unwrap_or_default(), 40);
            Err(refused(format!("{name}={value} is not read"), remedy))
        };
        match (self.get("RSCALE"), self.get("SKIP")) {
            (Some(scale), _) if scale != "GREGORIAN" => {
                refuse("RSCALE", "write RSCALE=GREGORIAN, or the dates as RDATE")
            }
            (_, Some(skip)) if skip != "OMIT" => {
                refuse("SKIP", "write SKIP=OMIT, or the dates as RDATE")
            }
            _ => Ok(()),
        }
    }

    pub fn frequency(&self) -> Result<Frequency, Refusal> {
        match self.get("FREQ") {
            Some("YEARLY") => Ok(Frequency::Yearly),
            Some("MONTHLY") => Ok(Frequency::Monthly),
            Some("WEEKLY") => Ok(Frequency::Weekly),
            Some("DAILY") => Ok(Frequency::Daily),
            Some("HOURLY") => Ok(Frequency::Hourly),
            Some(often @ ("MINUTELY" | "SECONDLY")) => Err(refused(
                format!("FREQ={often} recurs too often"),
                "write FREQ=HOURLY or DAILY with a longer event, or a window with cron",
            )),
            Some(other) => Err(refused(
                format!("FREQ={} is not known", clean(other, 40)),
                "write YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY",
            )),
            None => Err(refused(
                "FREQ is missing",
                "write a rule such as FREQ=WEEKLY;BYDAY=MO,FR",
            )),
        }
    }

    /// A whole number from 1 to `most`.
    pub fn number(&self, name: &str, most: u32) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(refused(
                format!("{name}={} is out of range", clean(text, 40)),
                format!("write a number from 1 to {most}"),
            )),
        }
    }

    /// Whole numbers from `least` to `most`, and if `backwards` their negatives.
    pub fn list(
        &self,
        name: &str,
        least: i16,
        most: i16,
        backwards: bool,
    ) -> Result<Vec<i16>, Refusal> {
        let Some(text) = self.get(name) else {
            return Ok(Vec::new());
        };
        let range = least..=most;
        let mut numbers = Vec::new();
        for item in text.split(',').map(str::trim) {
            let number = item.strip_prefix('+').unwrap_or(item).parse::<i16>().ok();
            let fits =
                |n: &i16| range.contains(n) || backwards && range.contains(&n.saturating_neg());
            let Some(number) = number.filter(fits) else {
                let signs = if backwards {
                    ", or the same with a minus"
                } else {
                    ""
                };
                return Err(refused(
                    format!("{name} has `{}`", clean(item, 40)),
                    format!("write numbers from {least} to {most}{signs}"),
                ));
            };
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    pub fn week_start(&self) -> Result<Weekday, Refusal> {
        let Some(text) = self.get("WKST") else {
            return Ok(Weekday::Monday);
        };
        weekday(text).ok_or_else(|| {
            refused(
                format!("WKST={} is not a day of the week", clean(text, 40)),
                "write MO, TU, WE, TH, FR, SA or SU",
            )
        })
    }

    pub fn week_days(&self) -> Result<Vec<(i16, i16)>, Refusal> {
        let Some(text) = self.get("BYDAY") else {
            return Ok(Vec::new());
        };
        let mut days = Vec::new();
        for item in text.split(',').map(str::trim) {
            days.push(numbered(item).ok_or_else(|| {
                refused(
                    format!("BYDAY has `{}`", clean(item, 40)),
                    "write days such as MO, 2TU (the second Tuesday) or -1FR (the last Friday)",
                )
            })?);
        }
        days.sort_unstable();
        days.dedup();
        Ok(days)
    }

    /// The last wall-clock time that UNTIL admits: of a date, that whole day; of an instant, what
    /// the clocks of the event show then, or for an event of whole days the day that [`day_of`] it
    /// is.
    pub fn until(&self, first: &When) -> Result<Option<DateTime>, Refusal> {
        let Some(text) = self.get("UNTIL") else {
            return Ok(None);
        };
        let wrong = || {
            refused(
                format!("UNTIL={} is not a date or time", clean(text, 40)),
                "write a date such as 20261231, or a time in UTC such as 20261231T235959Z",
            )
        };
        let until = values::written(text).ok_or_else(wrong)?;
        let wall = until.date.to_datetime(until.time.unwrap_or(Time::MAX));
        if !until.utc {
            return Ok(Some(wall));
        }
        // The last instants of the year 9999 cannot be written: who writes them means no end.
        let Some(instant) = Offset::UTC.to_timestamp(wall).ok() else {
            return Ok(None);
        };
        if !first.all_day {
            return Ok(Some(last_to_begin_by(&first.zone, instant)));
        }
        let day = day_of(wall, first.zone.to_datetime(instant));
        let day = day.ok_or_else(|| {
            refused(
                format!("UNTIL={} is a time, and DTSTART is a date", clean(text, 40)),
                "write a date such as 20261231",
            )
        })?;
        Ok(Some(day.to_datetime(Time::MAX)))
    }
}

/// The last day of an event of whole days whose UNTIL is an instant, which RFC 5545 does not have
/// and some programs write: that of a midnight, or of the second before one, in UTC, else on the
/// clocks of the event. None: it cannot be known which day is meant.
fn day_of(in_utc: DateTime, on_its_clocks: DateTime) -> Option<Date> {
    let last_second = Time::constant(23, 59, 59, 0);
    let is_plain = |wall: &DateTime| [Time::midnight(), last_second].contains(&wall.time());
    [in_utc, on_its_clocks]
        .iter()
        .find(|wall| is_plain(wall))
        .map(|wall| wall.date())
}

/// The last time on the clocks of `zone` at which something begins by `instant`. While clocks show
/// an hour for the second time, that is the end of the hour: what begins in it began the first
/// time.
fn last_to_begin_by(zone: &TimeZone, instant: Timestamp) -> DateTime {
    let wall = zone.to_datetime(instant);
    let begins = zone::resolve(zone, wall);
    if begins.is_none_or(|begins| begins == instant) {
        return wall;
    }
    let turned_back = (instant.checked_add(MOMENT).ok())
        .and_then(|behind| zone.preceding(behind).next())
        .map(|change| change.timestamp());
    let before = turned_back.and_then(|change| change.checked_sub(MOMENT).ok());
    before.map_or(wall, |before| zone.to_datetime(before))
}

fn weekday(text: &str) -> Option<Weekday> {
    Some(match text {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    })
}

/// `FR`, `2TU`, `-1FR`.
fn numbered(text: &str) -> Option<(i16, i16)> {
    let (nth, day) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let day = number(weekday(day)?);
    if nth.is_empty() {
        return Some((day, 0));
    }
    let nth: i16 = nth.strip_prefix('+').unwrap_or(nth).parse().ok()?;
    ((-53..=53).contains(&nth) && nth != 0).then_some((day, nth))
}
