//! Cron expressions of five fields, as the minutes of the days that they name.
//!
//! `croner` reads them (OCPS 1.4: `L`, `W`, `#`, names; day of month and day of week together mean
//! either; 0 and 7 are Sunday). It is asked only about civil dates: what a change of the clocks
//! does to a window is decided in [`crate::time::window`], in one place.
//!
//! Which of the two days counts as not restricted is decided here, as in Kubernetes: for `croner`
//! that is a bare `*` alone, so that `0 9 */1 * MON-FRI` would also match at the weekend.

use croner::parser::{CronParser, Seconds, Year};
use croner::{CronComponent, Weekday};
use jiff::civil::{Date, date};

mod mistake;

pub use mistake::Mistake;

const NICKNAMES: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// The years in which an occurrence is looked for before an expression is called unsatisfiable:
/// the Gregorian calendar repeats after 400.
const CYCLE: (Date, Date) = (date(2000, 1, 1), date(2399, 12, 31));

/// A cron expression that occurs.
#[derive(Clone, Debug)]
pub struct Cron {
    /// The months, January as bit 1.
    months: u16,
    days: Days,
    /// The minutes of a matching day that match, 0 to 1439, ascending; at least one.
    minutes: Vec<u16>,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        refuse_foreign_forms(text)?;
        // croner does not know this nickname, which others do.
        let known = match text.trim().eq_ignore_ascii_case("@midnight") {
            true => "@daily",
            false => text,
        };
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let parse = |known: &str| {
            let parsed = parser.parse(known);
            parsed.map_err(|error| Mistake::unread(text, &plain(&error)))
        };
        // Beside a star there may be nonsense.
        let mut cron = parse(known)?;
        let plain_stars = with_plain_stars(known);
        if plain_stars != *known {
            cron = parse(&plain_stars)?;
        }
        // croner keeps 5,000 bytes for the years, of which five fields name none; a controller
        // holds thousands of these.
        cron.pattern.years = CronComponent::new(1, 1, 0, 0);
        let parsed = Self {
            months: months(&cron),
            minutes: minutes(&cron),
            days: Days::new(cron, &plain_stars),
        };
        if parsed.occurs() {
            Ok(parsed)
        } else {
            let problem = format!("`{text}` never occurs: no date matches it");
            Err(Mistake::new(problem))
        }
    }

    /// The minutes of every matching day that match, 0 to 1439, ascending.
    pub fn minutes(&self) -> &[u16] {
        &self.minutes
    }

    /// Whether it matches on that day.
    pub fn matches(&self, day: Date) -> bool {
        self.has_month_of(day) && self.days.match_in_month(day)
    }

    /// The first day from `day` to `last`, both included, on which it matches.
    pub fn first_match(&self, day: Date, last: Date) -> Option<Date> {
        let mut day = Some(day);
        while let Some(candidate) = day.filter(|day| *day <= last) {
            day = if !self.has_month_of(candidate) {
                candidate.last_of_month().tomorrow().ok()
            } else if self.days.match_in_month(candidate) {
                return Some(candidate);
            } else {
                candidate.tomorrow().ok()
            };
        }
        None
    }

    /// Whether it matches on every day.
    pub fn is_daily(&self) -> bool {
        const EVERY_MONTH: u16 = 0b1_1111_1111_1110;
        const EVERY_WEEKDAY: u8 = 0b111_1111;
        self.months == EVERY_MONTH
            && match &self.days {
                Days::Weekdays(days) => days.iter().skip(1).all(|days| *days == EVERY_WEEKDAY),
                Days::Special(_) => false,
            }
    }

    fn has_month_of(&self, day: Date) -> bool {
        self.months & (1 << day.month()) != 0
    }

    fn occurs(&self) -> bool {
        let (first, last) = CYCLE;
        !self.minutes.is_empty() && self.first_match(first, last).is_some()
    }
}

/// Which days of a month match.
#[derive(Clone, Debug)]
enum Days {
    /// By day of the month: the weekdays on which it matches, Sunday as bit 0. Where the
    /// expression has no special forms, nothing else matters.
    Weekdays([u8; 32]),
    /// `L`, `W` and `#` depend on the month that the day is in.
    Special(Box<croner::Cron>),
}

impl Days {
    fn new(cron: croner::Cron, text: &str) -> Self {
        let field = |place| text.split_whitespace().nth(place).unwrap_or_default();
        if field(2).contains(['L', 'l', 'W', 'w']) || field(4).contains(['L', 'l', '#']) {
            return Days::Special(Box::new(cron));
        }
        // A month with as many days as any; its own weekdays do not matter here.
        let matches = |of_month, weekday| {
            matches!(
                cron.pattern
                    .day_match(2000, 1, of_month, Weekday::from_days_from_sunday(weekday)),
                Ok(true)
            )
        };
        let mut days = [0; 32];
        for (of_month, weekdays) in (1..).zip(days.iter_mut().skip(1)) {
            let bit = |weekday| u8::from(matches(of_month, weekday)) << weekday;
            *weekdays = (0..7).map(bit).sum();
        }
        Days::Weekdays(days)
    }

    fn match_in_month(&self, day: Date) -> bool {
        let weekday = day.weekday().to_sunday_zero_offset().unsigned_abs();
        let of_month = day.day().unsigned_abs();
        match self {
            Days::Weekdays(days) => days[usize::from(of_month)] & (1 << weekday) != 0,
            Days::Special(cron) => matches!(
                cron.pattern.day_match(
                    day.year().into(),
                    day.month().unsigned_abs().into(),
                    of_month.into(),
                    Weekday::from_days_from_sunday(weekday.into()),
                ),
                Ok(true)
            ),
        }
    }
}

/// Refuses what other schedulers write in the same place, naming what to do instead.
fn refuse_foreign_forms(text: &str) -> Result<(), Mistake> {
    if text.to_ascii_uppercase().contains("TZ=") {
        return Err(Mistake::new(format!(
            "`{text}` names a time zone inside the expression, which belongs in timeZone"
        )));
    }
    if text.contains('@') {
        return if NICKNAMES.contains(&text.trim().to_ascii_lowercase().as_str()) {
            Ok(())
        } else {
            let known = NICKNAMES.join(", ");
            Err(Mistake::new(format!("`{text}` is not one of {known}")))
        };
    }
    match text.split_whitespace().count() {
        5 => Ok(()),
        0 => Err(Mistake::new("the expression is empty")),
        1 => Err(Mistake::new(format!("`{text}` has 1 field, not five"))),
        fields => Err(Mistake::new(format!(
            "`{text}` has {fields} fields, not five"
        ))),
    }
}

/// The same expression, in which day of month and day of week are `*` where they restrict nothing:
/// where a part of their list is `*` or `?`, also with the step 1 (robfig/cron, which Kubernetes
/// uses, calls that a star).
fn with_plain_stars(text: &str) -> String {
    let is_star = |part: &str| match part.split_once('/') {
        Some(("*" | "?", step)) => step.parse() == Ok(1),
        Some(_) => false,
        None => matches!(part, "*" | "?"),
    };
    let plain = |(place, field): (usize, &str)| match place {
        2 | 4 if field.split(',').any(is_star) => "*".to_owned(),
        _ => field.to_owned(),
    };
    let fields: Vec<_> = text.split_whitespace().enumerate().map(plain).collect();
    fields.join(" ")
}

/// The library's own words, as part of a sentence.
fn plain(error: &croner::errors::CronError) -> String {
    let text = error.to_string();
    text.trim_end_matches('.').to_owned()
}

fn months(cron: &croner::Cron) -> u16 {
    let bit = |month: u8| {
        let matches = matches!(cron.pattern.month_match(month.into()), Ok(true));
        u16::from(matches) << month
    };
    (1..=12).map(bit).sum()
}

fn minutes(cron: &croner::Cron) -> Vec<u16> {
    let pattern = &cron.pattern;
    let hour = |hour: &u16| matches!(pattern.hour_match((*hour).into()), Ok(true));
    let minute = |minute: &u16| matches!(pattern.minute_match((*minute).into()), Ok(true));
    let of_hour: Vec<u16> = (0..60).filter(minute).collect();
    (0..24)
        .filter(hour)
        .flat_map(|hour| of_hour.iter().map(move |minute| hour * 60 + minute))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::weekdays("0 9 * * MON-FRI", "2026-11-20", true)]
    #[case::not_at_the_weekend("0 9 * * MON-FRI", "2026-11-21", false)]
    #[case::sunday_is_0("0 9 * * 0", "2026-11-22", true)]
    #[case::sunday_is_7("0 9 * * 7", "2026-11-22", true)]
    #[case::third_saturday("0 9 * * SAT#3", "2026-11-21", true)]
    #[case::last_friday("0 9 * * 5L", "2026-11-27", true)]
    #[case::last_day("0 9 L * *", "2026-11-30", true)]
    #[case::either_day_of_month("0 0 13 * FRI", "2026-12-13", true)]
    #[case::or_day_of_week("0 0 13 * FRI", "2026-12-11", true)]
    #[case::leap_day("0 0 29 2 *", "2028-02-29", true)]
    #[case::a_step_of_one_is_a_star("0 9 */1 * MON-FRI", "2026-11-21", false)]
    #[case::a_step_of_one_is_a_star_in_the_week("0 9 13 * */1", "2026-11-20", false)]
    #[case::question_mark("0 9 ? * MON-FRI", "2026-11-21", false)]
    #[case::question_mark_with_a_step_of_one("0 9 ?/1 * MON-FRI", "2026-11-21", false)]
    #[case::question_mark_in_the_week("0 9 13 * ?/1", "2026-11-20", false)]
    #[case::star_in_a_list("0 9 */1,15 * MON-FRI", "2026-11-21", false)]
    #[case::a_longer_step_is_none("0 9 */2 * MON-FRI", "2026-11-21", true)]
    #[case::all_days_by_number_are_none("0 9 1-31 * MON-FRI", "2026-11-21", true)]
    #[case::nickname("@daily", "2026-11-20", true)]
    #[case::midnight("@midnight", "2026-11-20", true)]
    #[case::lower_case("0 9 * * mon-fri", "2026-11-20", true)]
    fn days_match(#[case] cron: &str, #[case] day: &str, #[case] expected: bool) {
        assert_eq!(
            Cron::parse(cron).unwrap().matches(day.parse().unwrap()),
            expected
        );
    }

    #[rstest]
    #[case::too_few("* * *", "3 fields")]
    #[case::seconds("0 0 9 * * 1", "6 fields")]
    #[case::empty(" ", "empty")]
    #[case::never("0 0 30 2 *", "never occurs")]
    #[case::backwards("0 0 * * tue-mon", "not a cron expression")]
    #[case::zone_inside("TZ=UTC 0 9 * * *", "timeZone")]
    #[case::cron_zone_inside("CRON_TZ=Europe/London 0 9 * * *", "timeZone")]
    #[case::every("@every 1h", "not one of")]
    #[case::reboot("@reboot", "not one of")]
    #[case::out_of_range("61 * * * *", "not a cron expression")]
    #[case::hour_out_of_range("0 24 * * *", "not a cron expression")]
    #[case::nonsense("a b c d e", "not a cron expression")]
    #[case::zero_step("*/0 * * * *", "not a cron expression")]
    #[case::zero_step_of_days("0 9 */0 * *", "not a cron expression")]
    #[case::nonsense_beside_a_star("0 9 */1,32 * *", "not a cron expression")]
    fn what_is_no_cron_is_refused(#[case] cron: &str, #[case] problem: &str) {
        let error = Cron::parse(cron).unwrap_err();
        assert!(error.problem.contains(problem), "{error}");
    }

    #[test]
    fn minutes_are_those_of_a_matching_day() {
        let cron = Cron::parse("0,30 9-10 * * *").unwrap();
        assert_eq!(cron.minutes(), [540, 570, 600, 630]);
    }
}
