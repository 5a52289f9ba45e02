//! Where a rule recurs: its wall-clock times between two days.
//!
//! A rule is followed by asking of each day whether it belongs, so the work grows with the time
//! asked about and not with the age of the rule, and a rule that never matches ends like any
//! other. The `rrule` crate, with which tests compare this, generates from DTSTART instead: it
//! cannot be interrupted while it searches, holds all instances of a year before it yields the
//! first, finds nothing for `BYDAY=MO,2TU`, and panics on a BYDAY that is not ASCII.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{SignedDuration, ToSpan};

use super::CalendarError;
use super::parts::{Frequency, number};
use super::recur::Rule;

/// How many events, days and times may be looked at for one answer: some 1,000 for each event of
/// the largest calendar.
pub(super) const MAX_STEPS: u32 = 2_000_000;

/// After so many years the calendar is the same again.
const YEARS_AROUND: i64 = 400;

/// The steps that are left: each event, day or time that is looked at takes one.
pub(crate) struct Steps(u32);

impl Steps {
    pub fn new(most: u32) -> Self {
        Self(most)
    }

    /// How many are left.
    pub fn left(&self) -> u32 {
        self.0
    }

    /// Takes one.
    ///
    /// # Errors
    /// There are none left.
    pub(super) fn take(&mut self) -> Result<(), CalendarError> {
        self.0 = self.0.checked_sub(1).ok_or(CalendarError::TooManySteps)?;
        Ok(())
    }
}

/// Whether to go on.
pub(super) type Go = std::ops::ControlFlow<()>;

impl Rule {
    /// Turns COUNT into the time of the last instance, once, so that no later question has to
    /// count from the first.
    ///
    /// # Errors
    /// Counting takes too many steps.
    pub fn settle(&mut self, steps: &mut Steps) -> Result<(), CalendarError> {
        let Some(count) = self.count.take() else {
            return Ok(());
        };
        // The first instance counts, whether or not it matches the rule.
        let (mut left, mut last) = (count - 1, self.first);
        if left > 0 {
            self.visit(self.first.date(), Date::MAX, steps, |start| {
                last = start;
                left -= 1;
                Ok(match left {
                    0 => Go::Break(()),
                    _ => Go::Continue(()),
                })
            })?;
        }
        self.last = last;
        Ok(())
    }

    /// Whether nothing matches it in the 400 years after the first instance, however far UNTIL or
    /// COUNT let it go: the days of the week and the leap years come around in that time. None:
    /// it takes too many steps to know.
    pub fn never_recurs(&self, steps: &mut Steps) -> Option<bool> {
        let from = self.first.date();
        let to = from.checked_add(YEARS_AROUND.years()).ok()?;
        let endless = Self {
            last: DateTime::MAX,
            ..self.clone()
        };
        let mut found = false;
        let visited = endless.visit(from, to, steps, |_| {
            found = true;
            Ok(Go::Break(()))
        });
        visited.ok().map(|()| !found)
    }

    /// Calls `each` with the instances after the first that start on the days from `from` to
    /// `to`, both included, ascending.
    ///
    /// # Errors
    /// Those of `each`, or too many steps.
    pub fn visit(
        &self,
        from: Date,
        to: Date,
        steps: &mut Steps,
        mut each: impl FnMut(DateTime) -> Result<Go, CalendarError>,
    ) -> Result<(), CalendarError> {
        let from = from.max(self.first.date());
        let to = to.min(self.last.date());
        let mut visit = |start: DateTime, steps: &mut Steps| {
            steps.take()?;
            let counts = start > self.first && start <= self.last;
            let asked = from <= start.date() && start.date() <= to;
            if counts && asked {
                each(start)
            } else {
                Ok(Go::Continue(()))
            }
        };
        let mut next = Some(from);
        while let Some(day) = next.filter(|day| *day <= to) {
            steps.take()?;
            next = self.ahead(day);
            if next != Some(day) {
                continue;
            }
            if self.positions.is_empty() {
                next = day.tomorrow().ok();
                for start in self.starts(day) {
                    if visit(start, steps)?.is_break() {
                        return Ok(());
                    }
                }
            } else {
                let (begin, end) = self.period(day);
                next = end.tomorrow().ok();
                for start in self.chosen(begin, end, steps)? {
                    if visit(start, steps)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The instances on a day, as far as BYSETPOS does not choose among them.
    fn starts(&self, day: Date) -> impl Iterator<Item = DateTime> {
        let hours = if self.matches(day) { 0..24 } else { 0..0 };
        hours
            .filter(move |hour| self.in_hour(day, *hour))
            .flat_map(move |hour| {
                self.minutes.iter().flat_map(move |minute| {
                    let at = move |second: &i16| time(day, hour, *minute, *second);
                    self.seconds.iter().map(at)
                })
            })
    }

    /// The instances in a period that BYSETPOS chooses, ascending.
    fn chosen(
        &self,
        begin: Date,
        end: Date,
        steps: &mut Steps,
    ) -> Result<Vec<DateTime>, CalendarError> {
        let mut days = Vec::new();
        let mut next = Some(begin);
        while let Some(day) = next.filter(|day| *day <= end) {
            steps.take()?;
            days.extend(self.matches(day).then_some(day));
            next = day.tomorrow().ok();
        }
        let (minutes, seconds) = (self.minutes.len(), self.seconds.len());
        let times = self.hours.len() * minutes * seconds;
        let all = days.len() * times;
        let mut chosen = Vec::new();
        for position in &self.positions {
            let back = usize::from(position.unsigned_abs());
            let index = match position {
                0.. => back.checked_sub(1).filter(|index| *index < all),
                _ => all.checked_sub(back),
            };
            let Some(index) = index else { continue };
            let of_day = index % times;
            let (hour, of_hour) = (of_day / (minutes * seconds), of_day % (minutes * seconds));
            chosen.push(time(
                days[index / times],
                self.hours[hour],
                self.minutes[of_hour / seconds],
                self.seconds[of_hour % seconds],
            ));
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    /// The first day not before `day` that is worth a look, or a day on the way to it. None: there
    /// is none.
    fn ahead(&self, day: Date) -> Option<Date> {
        let begin = self.period(day).0;
        let units = match self.frequency {
            Frequency::Yearly => i64::from(day.year() - self.first.year()),
            Frequency::Monthly => months(day) - months(self.first.date()),
            Frequency::Weekly => days_between(self.period(self.first.date()).0, begin) / 7,
            Frequency::Daily => days_between(self.first.date(), day),
            Frequency::Hourly => 0,
        };
        let over = units.rem_euclid(self.interval);
        if over != 0 {
            let skip = self.interval - over;
            return match self.frequency {
                Frequency::Yearly => of_month(months(begin) + 12 * skip),
                Frequency::Monthly => of_month(months(day) + skip),
                Frequency::Weekly => add_days(begin, 7 * skip),
                Frequency::Daily | Frequency::Hourly => add_days(day, skip),
            };
        }
        let next_month = || of_month(months(day) + 1);
        let month = i16::from(day.month());
        if !self.months.is_empty() && self.months.binary_search(&month).is_err() {
            return next_month();
        }
        let (Some(&low), Some(&high)) = (self.month_days.first(), self.month_days.last()) else {
            return Some(day);
        };
        match i16::from(day.day()) {
            // Days that count from the end of the month may be anywhere.
            _ if low < 0 => Some(day),
            today if today > high => next_month(),
            today if today < low => add_days(day, (low - today).into()).min(next_month()),
            _ => Some(day),
        }
    }

    /// The first and the last day of the period by which the rule counts.
    fn period(&self, day: Date) -> (Date, Date) {
        match self.frequency {
            Frequency::Yearly => (day.first_of_year(), day.last_of_year()),
            Frequency::Monthly => (day.first_of_month(), day.last_of_month()),
            Frequency::Weekly => {
                let begin = week_begin(day, self.week_start);
                (begin, add_days(begin, 6).unwrap_or(Date::MAX))
            }
            Frequency::Daily | Frequency::Hourly => (day, day),
        }
    }

    fn in_hour(&self, day: Date, hour: i16) -> bool {
        let listed = self.hours.is_empty() || self.hours.binary_search(&hour).is_ok();
        if self.frequency != Frequency::Hourly {
            return listed;
        }
        let hours = 24 * days_between(self.first.date(), day) + i64::from(hour);
        listed && (hours - i64::from(self.first.hour())).rem_euclid(self.interval) == 0
    }

    /// Whether a day of a period that counts is in all the lists.
    fn matches(&self, day: Date) -> bool {
        // A list admits a number counted from the front, and the same counted from the back.
        let either = |list: &[i16], at: i16, of: i16| {
            list.is_empty()
                || list.binary_search(&at).is_ok()
                || list.binary_search(&(at - of - 1)).is_ok()
        };
        let month = i16::from(day.month());
        (self.months.is_empty() || self.months.binary_search(&month).is_ok())
            && either(
                &self.month_days,
                day.day().into(),
                day.days_in_month().into(),
            )
            && either(&self.year_days, day.day_of_year(), day.days_in_year())
            && (self.weeks.is_empty() || {
                let (at, of) = week(day, self.week_start);
                either(&self.weeks, at, of)
            })
            && self.on_week_day(day)
    }

    fn on_week_day(&self, day: Date) -> bool {
        if self.week_days.is_empty() {
            return true;
        }
        // The second Tuesday is that of the month, unless the rule knows no months.
        let monthly = self.frequency == Frequency::Monthly || !self.months.is_empty();
        let (at, of) = if monthly {
            (day.day().into(), day.days_in_month().into())
        } else {
            (day.day_of_year(), day.days_in_year())
        };
        let name = number(day.weekday());
        [0, (at - 1) / 7 + 1, -((of - at) / 7 + 1)]
            .iter()
            .any(|nth| self.week_days.binary_search(&(name, *nth)).is_ok())
    }
}

/// The number of the week, and how many weeks its year has. The first week of a year is the first
/// with four days in it.
fn week(day: Date, start: Weekday) -> (i16, i16) {
    let middle = |day| add_days(week_begin(day, start), 3).unwrap_or(Date::MAX);
    let number = |middle: Date| (middle.day_of_year() - 1) / 7 + 1;
    let here = middle(day);
    // December 28 is always in the last week.
    let last = add_days(here.last_of_year(), -3).unwrap_or(here);
    (number(here), number(middle(last)))
}

fn week_begin(day: Date, start: Weekday) -> Date {
    let since = (number(day.weekday()) - number(start)).rem_euclid(7);
    add_days(day, -i64::from(since)).unwrap_or(Date::MIN)
}

fn days_between(from: Date, to: Date) -> i64 {
    to.duration_since(from).as_hours() / 24
}

fn add_days(day: Date, days: i64) -> Option<Date> {
    day.checked_add(SignedDuration::from_hours(24 * days)).ok()
}

/// The months since the year 0.
fn months(day: Date) -> i64 {
    12 * i64::from(day.year()) + i64::from(day.month()) - 1
}

/// The first day of the month that is so many months after the year 0.
fn of_month(months: i64) -> Option<Date> {
    let year = months.div_euclid(12).try_into().ok()?;
    let month = i8::try_from(months.rem_euclid(12)).ok()? + 1;
    Date::new(year, month, 1).ok()
}

fn time(day: Date, hour: i16, minute: i16, second: i16) -> DateTime {
    // The lists of a rule hold nothing that is no hour, minute or second.
    let clock = 3600 * i64::from(hour) + 60 * i64::from(minute) + i64::from(second);
    day.to_datetime(jiff::civil::Time::midnight())
        .saturating_add(SignedDuration::from_secs(clock))
}
