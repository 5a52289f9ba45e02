//! Cron expressions as a grammar: each can be written, and says by itself which minutes match. It
//! shares nothing with the parser under test.

use std::fmt;

use jiff::civil::Date;
use proptest::prelude::*;
use proptest::sample::select;

const MONTHS: [&str; 13] = [
    "", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
/// Sunday ends a range, too.
const WEEKDAYS: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// One part of a comma-separated list.
#[derive(Clone, Copy, Debug)]
enum Part {
    Step(u8),
    One(u8),
    Range(u8, u8),
    SteppedRange(u8, u8, u8),
}

/// A field of numbers: `*`, or a list.
#[derive(Clone, Debug)]
struct Field {
    /// Empty: `*`.
    parts: Vec<Part>,
    low: u8,
    high: u8,
    /// Names of the numbers, where they are written as names.
    names: &'static [&'static str],
}

#[derive(Clone, Debug)]
enum OfMonth {
    Field(Field),
    /// `L`: the last day.
    Last,
}

#[derive(Clone, Debug)]
enum OfWeek {
    Field(Field),
    /// `FRI#2`: the second Friday.
    Nth(u8, i8),
    /// `5L`: the last Friday.
    Last(u8),
}

/// Five fields.
#[derive(Clone, Debug)]
pub struct Expression {
    minute: Field,
    hour: Field,
    of_month: OfMonth,
    month: Field,
    of_week: OfWeek,
}

impl Expression {
    pub fn matches_minute(&self, minute_of_day: i64) -> bool {
        let of_day = |number: i64| u8::try_from(number).unwrap();
        self.hour.matches(of_day(minute_of_day / 60))
            && self.minute.matches(of_day(minute_of_day % 60))
    }

    /// Day of month and day of week are alternatives, unless one of them is `*`, or has a `*/1`.
    pub fn matches_day(&self, day: Date) -> bool {
        let (of_month, of_week) = (self.of_month.matches(day), self.of_week.matches(day));
        self.month.matches(day.month().unsigned_abs())
            && match (self.of_month.is_star(), self.of_week.is_star()) {
                (false, false) => of_month || of_week,
                _ => of_month && of_week,
            }
    }
}

impl Field {
    fn is_star(&self) -> bool {
        let is_star = |part: &Part| matches!(part, Part::Step(1));
        self.parts.is_empty() || self.parts.iter().any(is_star)
    }

    fn matches(&self, number: u8) -> bool {
        self.is_star() || self.parts.iter().any(|&part| self.covers(part, number))
    }

    fn covers(&self, part: Part, number: u8) -> bool {
        match part {
            Part::Step(step) => (number - self.low).is_multiple_of(step),
            Part::One(one) => one == number,
            Part::Range(first, last) => (first..=last).contains(&number),
            Part::SteppedRange(first, last, step) => {
                (first..=last).contains(&number) && (number - first).is_multiple_of(step)
            }
        }
    }

    fn name(&self, number: u8) -> String {
        match self.names.get(usize::from(number)) {
            Some(name) => (*name).to_owned(),
            None => number.to_string(),
        }
    }
}

impl OfMonth {
    fn is_star(&self) -> bool {
        matches!(self, OfMonth::Field(field) if field.is_star())
    }

    fn matches(&self, day: Date) -> bool {
        match self {
            OfMonth::Field(field) => field.matches(day.day().unsigned_abs()),
            OfMonth::Last => day.day() == day.days_in_month(),
        }
    }
}

impl OfWeek {
    fn is_star(&self) -> bool {
        matches!(self, OfWeek::Field(field) if field.is_star())
    }

    fn matches(&self, day: Date) -> bool {
        let weekday = day.weekday().to_sunday_zero_offset().unsigned_abs();
        match self {
            // Sunday is 0 and 7.
            OfWeek::Field(field) => {
                field.matches(weekday) || (weekday == 0 && field.high == 7 && field.matches(7))
            }
            OfWeek::Nth(wanted, nth) => *wanted == weekday && (day.day() - 1) / 7 + 1 == *nth,
            OfWeek::Last(wanted) => *wanted == weekday && day.day() + 7 > day.days_in_month(),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_star() {
            return f.write_str("*");
        }
        for (n, part) in self.parts.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            match *part {
                Part::Step(step) => write!(f, "*/{step}")?,
                Part::One(one) => f.write_str(&self.name(one))?,
                Part::Range(first, last) => {
                    write!(f, "{}-{}", self.name(first), self.name(last))?;
                }
                Part::SteppedRange(first, last, step) => {
                    write!(f, "{}-{}/{step}", self.name(first), self.name(last))?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expression {
            minute,
            hour,
            of_month,
            month,
            of_week,
        } = self;
        write!(f, "{minute} {hour} ")?;
        match of_month {
            OfMonth::Field(field) => write!(f, "{field}")?,
            OfMonth::Last => f.write_str("L")?,
        }
        write!(f, " {month} ")?;
        match of_week {
            OfWeek::Field(field) => write!(f, "{field}"),
            OfWeek::Nth(day, nth) => write!(f, "{}#{nth}", WEEKDAYS[usize::from(*day)]),
            OfWeek::Last(day) => write!(f, "{day}L"),
        }
    }
}

fn part(low: u8, high: u8) -> impl Strategy<Value = Part> {
    // `SUN-SUN` is a week, so ranges have two ends.
    let range = (low..high, low..high).prop_map(|(a, b)| (a.min(b), a.max(b) + 1));
    prop_oneof![
        4 => (low..=high).prop_map(Part::One),
        2 => range.clone().prop_map(|(first, last)| Part::Range(first, last)),
        1 => (1..=(high - low).min(30)).prop_map(Part::Step),
        1 => (range, 1..=5u8).prop_map(|((first, last), step)| Part::SteppedRange(first, last, step)),
    ]
}

fn list(low: u8, high: u8, names: &'static [&'static str]) -> impl Strategy<Value = Field> {
    prop::collection::vec(part(low, high), 1..=3).prop_map(move |parts| Field {
        parts,
        low,
        high,
        names,
    })
}

fn star(low: u8, high: u8) -> Field {
    Field {
        parts: Vec::new(),
        low,
        high,
        names: &[],
    }
}

/// `*` as often as people write it: `stars` times against 10.
fn field(low: u8, high: u8, stars: u32) -> impl Strategy<Value = Field> {
    prop_oneof![stars => Just(star(low, high)), 10 => list(low, high, &[])]
}

fn months() -> impl Strategy<Value = Field> {
    prop_oneof![
        20 => Just(star(1, 12)),
        2 => list(1, 12, &[]),
        2 => list(1, 12, &MONTHS),
    ]
}

fn days_of_month() -> impl Strategy<Value = OfMonth> {
    prop_oneof![
        9 => Just(OfMonth::Field(star(1, 31))),
        5 => list(1, 31, &[]).prop_map(OfMonth::Field),
        1 => Just(OfMonth::Last),
    ]
}

fn days_of_week() -> impl Strategy<Value = OfWeek> {
    prop_oneof![
        9 => Just(OfWeek::Field(star(0, 7))),
        3 => list(0, 7, &[]).prop_map(OfWeek::Field),
        3 => list(0, 7, &WEEKDAYS).prop_map(OfWeek::Field),
        1 => (0..=6u8, 1..=4i8).prop_map(|(day, nth)| OfWeek::Nth(day, nth)),
        1 => (0..=6u8).prop_map(OfWeek::Last),
    ]
}

/// Any expression that is well formed. A few never occur.
pub fn expression() -> impl Strategy<Value = Expression> {
    let clock = prop_oneof![
        10 => (field(0, 59, 2), field(0, 23, 4)),
        // Around the hours at which clocks are changed.
        10 => (field(0, 59, 2), list(0, 4, &[])),
    ];
    (clock, days_of_month(), months(), days_of_week()).prop_map(
        |((minute, hour), of_month, month, of_week)| Expression {
            minute,
            hour,
            of_month,
            month,
            of_week,
        },
    )
}

/// An expression that the `cron` crate reads in the same way once seconds are put before it: no
/// `L`, no `#`, weekdays by name, and not both kinds of days.
pub fn translatable() -> impl Strategy<Value = Expression> {
    let days = prop_oneof![
        Just((star(1, 31), star(0, 6))),
        list(1, 31, &[]).prop_map(|field| (field, star(0, 6))),
        named_weekdays().prop_map(|field| (star(1, 31), field)),
    ];
    (field(0, 59, 2), field(0, 23, 4), days, months()).prop_map(|(minute, hour, days, month)| {
        Expression {
            minute,
            hour,
            of_month: OfMonth::Field(days.0),
            month,
            of_week: OfWeek::Field(days.1),
        }
    })
}

fn named_weekdays() -> impl Strategy<Value = Field> {
    let range = (0..6u8, 0..6u8).prop_map(|(a, b)| Part::Range(a.min(b), a.max(b) + 1));
    let part = prop_oneof![select(&[0u8, 1, 2, 3, 4, 5, 6]).prop_map(Part::One), range];
    prop::collection::vec(part, 1..=3).prop_map(|parts| Field {
        parts,
        low: 0,
        high: 6,
        names: &WEEKDAYS,
    })
}
