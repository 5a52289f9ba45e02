//! From the text of an RRULE to a rule (RFC 5545, section 3.3.10). How a rule is followed is in
//! [`super::expand`].

use jiff::civil::{DateTime, Weekday};

use super::parts::{Frequency, Parts, number, refused};
use super::values::When;
use crate::text::refusal::Refusal;

/// A recurrence in wall-clock time, after its first instance.
///
/// The lists are sorted, without doubles, and filled in from the first instance where the rule
/// leaves it to that. An empty list restricts nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub frequency: Frequency,
    pub interval: i64,
    pub week_start: Weekday,
    /// The first instance, which is not for the rule to find.
    pub first: DateTime,
    /// Nothing is later.
    pub last: DateTime,
    /// How many instances there are, the first included, until that is turned into `last`.
    pub count: Option<u32>,
    pub months: Vec<i16>,
    pub weeks: Vec<i16>,
    pub year_days: Vec<i16>,
    pub month_days: Vec<i16>,
    /// Days of the week, each with the how-manieth of its month or year, 0 for every one.
    pub week_days: Vec<(i16, i16)>,
    pub hours: Vec<i16>,
    pub minutes: Vec<i16>,
    pub seconds: Vec<i16>,
    /// Which ones of a period count, from 1, or from -1 backwards.
    pub positions: Vec<i16>,
}

impl Rule {
    /// Reads a rule for an event that first starts at `first`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, first: &When) -> Result<Self, Refusal> {
        let parts = Parts::of(text)?;
        let mut rule = Self {
            frequency: parts.frequency()?,
            interval: parts.number("INTERVAL", 9_999)?.unwrap_or(1).into(),
            week_start: parts.week_start()?,
            first: first.wall,
            last: parts.until(first)?.unwrap_or(DateTime::MAX),
            count: parts.number("COUNT", 1_000_000)?,
            months: parts.list("BYMONTH", 1, 12, false)?,
            weeks: parts.list("BYWEEKNO", 1, 53, true)?,
            year_days: parts.list("BYYEARDAY", 1, 366, true)?,
            month_days: parts.list("BYMONTHDAY", 1, 31, true)?,
            week_days: parts.week_days()?,
            hours: parts.list("BYHOUR", 0, 23, false)?,
            minutes: parts.list("BYMINUTE", 0, 59, false)?,
            seconds: parts.list("BYSECOND", 0, 59, false)?,
            positions: parts.list("BYSETPOS", 1, 366, true)?,
        };
        parts.scale()?;
        if first.all_day {
            rule.without_times()?;
        }
        rule.combines(&parts)?;
        rule.fill();
        Ok(rule)
    }

    /// Whole days have no times: what the rule says of them is ignored (RFC 5545, section
    /// 3.3.10).
    fn without_times(&mut self) -> Result<(), Refusal> {
        if self.frequency == Frequency::Hourly {
            return Err(refused(
                "FREQ=HOURLY has no meaning for whole days",
                "write FREQ=DAILY, or DTSTART as a time",
            ));
        }
        self.hours.clear();
        self.minutes.clear();
        self.seconds.clear();
        Ok(())
    }

    /// What RFC 5545 excludes, or leaves open.
    fn combines(&self, parts: &Parts) -> Result<(), Refusal> {
        use Frequency::{Hourly, Monthly, Weekly, Yearly};
        let nth = self.week_days.iter().any(|(_, nth)| *nth != 0);
        let by = self.frequency;
        let lists = [
            &self.months,
            &self.weeks,
            &self.year_days,
            &self.month_days,
            &self.hours,
            &self.minutes,
            &self.seconds,
        ];
        let chooses = !self.week_days.is_empty() || lists.iter().any(|list| !list.is_empty());
        let never = [
            (parts.has("COUNT") && parts.has("UNTIL"), "COUNT with UNTIL"),
            (
                !self.weeks.is_empty() && by != Yearly,
                "BYWEEKNO without FREQ=YEARLY",
            ),
            (
                !self.year_days.is_empty() && !matches!(by, Yearly | Hourly),
                "BYYEARDAY without FREQ=YEARLY",
            ),
            (
                !self.month_days.is_empty() && by == Weekly,
                "BYMONTHDAY with FREQ=WEEKLY",
            ),
            (
                nth && !matches!(by, Monthly | Yearly),
                "a numbered day in BYDAY without FREQ=MONTHLY or YEARLY",
            ),
            (
                nth && !self.weeks.is_empty(),
                "a numbered day in BYDAY with BYWEEKNO",
            ),
            (
                !self.positions.is_empty() && by == Hourly,
                "BYSETPOS with FREQ=HOURLY",
            ),
            (
                !self.positions.is_empty() && !chooses,
                "BYSETPOS without another BY list",
            ),
        ];
        match never.iter().find(|(found, _)| *found) {
            Some((_, what)) => Err(refused(
                format!("{what} has no meaning"),
                "leave out one of the two",
            )),
            None => Ok(()),
        }
    }

    /// Takes from the first instance what the rule does not say.
    fn fill(&mut self) {
        use Frequency::{Hourly, Monthly, Weekly, Yearly};
        let first = self.first;
        let days = self.month_days.is_empty() && self.year_days.is_empty();
        if self.week_days.is_empty() && days {
            match self.frequency {
                Yearly if !self.weeks.is_empty() => {
                    self.week_days = vec![(number(first.weekday()), 0)];
                }
                Yearly => {
                    self.month_days = vec![first.day().into()];
                    if self.months.is_empty() {
                        self.months = vec![first.month().into()];
                    }
                }
                Monthly => self.month_days = vec![first.day().into()],
                Weekly => self.week_days = vec![(number(first.weekday()), 0)],
                Frequency::Daily | Hourly => {}
            }
        }
        let fill = |list: &mut Vec<i16>, value: i8| {
            if list.is_empty() {
                list.push(value.into());
            }
        };
        if self.frequency != Hourly {
            fill(&mut self.hours, first.hour());
        }
        fill(&mut self.minutes, first.minute());
        fill(&mut self.seconds, first.second());
    }
}
