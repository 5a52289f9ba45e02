//! Recurrences are those that other, slower ways find.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, ToSpan};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rrule::{RRuleSet, Tz};

use super::*;
use crate::time::calendar::expand::Go;
use crate::time::calendar::recur::Rule;
use crate::time::calendar::values::When;

const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

proptest! {
    /// A weekly event beside one that goes through the days one by one.
    #[test]
    fn weekly_rules_are_what_going_through_the_days_finds(
        zone in select(&["Europe/London", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Pacific/Apia"][..]),
        start in 0..12_000_i64,
        hour in 0..24_i8,
        hours in 1..60_i64,
        days in subsequence((0..7_usize).collect::<Vec<_>>(), 1..=7),
        weeks in 1..5_i64,
        by_clock in any::<bool>(),
        asked in 0..400_i64,
    ) {
        let first_day = Date::constant(1995, 1, 1).checked_add(start.days()).unwrap();
        let first = first_day.at(hour, 30, 0, 0);
        let length = SignedDuration::from_hours(hours);
        let lasts = match by_clock {
            true => format!("DTEND:{}", first.checked_add(length).unwrap().strftime("%Y%m%dT%H%M%S")),
            false => format!("DURATION:PT{hours}H"),
        };
        let names: Vec<&str> = days.iter().map(|day| DAYS[*day]).collect();
        let text = event(&format!(
            "DTSTART:{}\n{lasts}\nRRULE:FREQ=WEEKLY;INTERVAL={weeks};BYDAY={}",
            first.strftime("%Y%m%dT%H%M%S"),
            names.join(",")
        ));
        let tz = zone::find(zone).unwrap();
        let from = first.checked_add(asked.days()).unwrap();
        let within = Span {
            start: zone::resolve(&tz, from).unwrap(),
            end: zone::resolve(&tz, from.checked_add(40.days()).unwrap()).unwrap(),
        };

        let monday = |day: Date| day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).unwrap();
        let mut expected = Vec::new();
        let mut wall = first;
        while wall < from.checked_add(45.days()).unwrap() {
            let week = (monday(wall.date()) - monday(first.date())).get_days() / 7;
            let weekday = usize::try_from(wall.weekday().to_monday_zero_offset()).unwrap();
            if wall == first || i64::from(week) % weeks == 0 && days.contains(&weekday) {
                let begin = zone::resolve(&tz, wall).unwrap();
                let by_clock = by_clock
                    .then(|| zone::resolve(&tz, wall.checked_add(length).unwrap()).unwrap())
                    .filter(|end| *end > begin);
                let end = by_clock.unwrap_or_else(|| begin.checked_add(length).unwrap());
                if begin < within.end && end > within.start && begin < end {
                    expected.push(Span { start: begin, end });
                }
            }
            wall = wall.checked_add(1.day()).unwrap();
        }
        let found = read(&text, zone).unwrap().occurrences(within).unwrap();
        let mut found: Vec<Span> = found.into_iter().map(|occurrence| occurrence.span).collect();
        expected.dedup();
        found.dedup();
        prop_assert_eq!(found, expected, "{}", text);
    }
}

/// Rules on which the `rrule` crate and RFC 5545 agree. Left out are plain days beside numbered
/// ones, of which it finds none; BYWEEKNO without BYDAY, for which it takes all days; BYSETPOS with
/// FREQ=WEEKLY, for which it begins the first week with DTSTART; and weeks in two years, which it
/// counts in one of them.
fn rule() -> impl Strategy<Value = String> {
    let numbers = |least: i16, most: i16, backwards: bool| {
        let sign = if backwards { -1..=1_i16 } else { 1..=1 };
        let number = (least..=most, sign).prop_map(|(n, sign)| if sign < 0 { -n } else { n });
        vec(number, 1..5).prop_map(|list| {
            list.iter()
                .map(i16::to_string)
                .collect::<Vec<_>>()
                .join(",")
        })
    };
    let part = |name: &'static str, values: BoxedStrategy<String>| {
        let some = values.prop_map(move |list| format!(";{name}={list}"));
        prop_oneof![2 => Just(String::new()), 1 => some].boxed()
    };
    let plain = subsequence(DAYS.to_vec(), 1..5)
        .prop_map(|days| days.join(","))
        .boxed();
    // It also refuses the last but four of a month.
    let numbered = |most: i16| {
        let number = prop_oneof![1..=most, 1 - most..=-1];
        vec((number, select(&DAYS[..])), 1..4)
            .prop_map(|days| {
                let names = days.iter().map(|(number, day)| format!("{number}{day}"));
                names.collect::<Vec<_>>().join(",")
            })
            .boxed()
    };
    let months = || part("BYMONTH", numbers(1, 12, false).boxed());
    let month_days = || part("BYMONTHDAY", numbers(1, 31, true).boxed());
    let week_days = || part("BYDAY", plain.clone());
    let times = || {
        (
            part("BYHOUR", numbers(0, 23, false).boxed()),
            part("BYMINUTE", numbers(0, 59, false).boxed()),
        )
            .prop_map(|(hours, minutes)| hours + &minutes)
    };
    let positions = || part("BYSETPOS", numbers(1, 5, true).boxed());
    let joined = |parts: Vec<BoxedStrategy<String>>| parts.prop_map(|parts| parts.concat()).boxed();
    let body = prop_oneof![
        joined(vec![
            Just("YEARLY".to_owned()).boxed(),
            months(),
            month_days(),
            times().boxed(),
            positions()
        ]),
        joined(vec![
            Just("YEARLY".to_owned()).boxed(),
            months(),
            part("BYDAY", prop_oneof![plain.clone(), numbered(5)].boxed()),
            positions()
        ]),
        joined(vec![
            Just("YEARLY".to_owned()).boxed(),
            part("BYDAY", numbered(52)),
            times().boxed()
        ]),
        joined(vec![
            Just("YEARLY;BYYEARDAY=".to_owned()).boxed(),
            numbers(1, 365, true).boxed(),
            week_days()
        ]),
        joined(vec![
            Just("YEARLY;BYWEEKNO=".to_owned()).boxed(),
            numbers(2, 51, true).boxed(),
            Just(";BYDAY=".to_owned()).boxed(),
            plain.clone()
        ]),
        joined(vec![
            Just("MONTHLY".to_owned()).boxed(),
            months(),
            month_days(),
            week_days(),
            times().boxed(),
            positions()
        ]),
        joined(vec![
            Just("MONTHLY".to_owned()).boxed(),
            part("BYDAY", numbered(5)),
            positions()
        ]),
        joined(vec![
            Just("WEEKLY".to_owned()).boxed(),
            months(),
            week_days(),
            times().boxed()
        ]),
        joined(vec![
            Just("DAILY".to_owned()).boxed(),
            months(),
            month_days(),
            week_days(),
            times().boxed(),
            positions()
        ]),
        joined(vec![
            Just("HOURLY".to_owned()).boxed(),
            months(),
            week_days(),
            times().boxed()
        ]),
    ];
    (body, 1..5_i32, select(&DAYS[..])).prop_map(|(body, interval, week_start)| {
        // BYSETPOS by itself chooses among what is nowhere listed.
        let body = match body.matches("BY").count() {
            1 if body.contains("BYSETPOS") => body.split(";BYSETPOS").next().unwrap().to_owned(),
            _ => body,
        };
        format!("FREQ={body};INTERVAL={interval};WKST={week_start}")
    })
}

/// The times after `first` and before `until` that the `rrule` crate finds.
fn generated(rule: &str, first: DateTime, until: DateTime) -> Option<Vec<DateTime>> {
    let text = format!("DTSTART:{}\nRRULE:{rule}", first.strftime("%Y%m%dT%H%M%SZ"));
    let set: RRuleSet = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut found = Vec::new();
    for time in set.limit().into_iter().take(5_000) {
        assert_eq!(time.timezone(), Tz::UTC);
        let time: DateTime = time.naive_utc().to_string().parse().unwrap();
        if time >= until {
            return Some(found);
        }
        found.push(time);
    }
    // It gave up, or there are too many to compare.
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The membership of days beside a generation from DTSTART.
    #[test]
    fn rules_are_what_generation_from_the_start_finds(
        rule in rule(),
        start in 0..9_000_i64,
        hour in 0..24_i8,
        after in 0..1_500_i64,
        count in proptest::option::of(1..40_u32),
    ) {
        let day = Date::constant(2000, 1, 1).checked_add(start.days()).unwrap();
        let first = day.at(hour, 15, 0, 0);
        let from = day.checked_add(after.days()).unwrap();
        let to = from.checked_add(300.days()).unwrap();
        let until = to.tomorrow().unwrap().at(0, 0, 0, 0);
        let Some(mut expected) = generated(&rule, first, until) else {
            return Ok(());
        };
        // The first instance counts, whether or not it matches; the crate has it only if so.
        expected.retain(|time| *time > first);
        if let Some(count) = count {
            expected.truncate(count as usize - 1);
        }
        expected.retain(|time| from <= time.date());

        let counted = count.map_or(String::new(), |count| format!(";COUNT={count}"));
        let when = When { wall: first, zone: TimeZone::UTC, all_day: false };
        let mut ours = Rule::parse(&format!("{rule}{counted}"), &when).unwrap();
        let mut steps = Steps::new(MAX_STEPS);
        ours.settle(&mut steps).unwrap();
        let mut found = Vec::new();
        ours.visit(from, to, &mut Steps::new(MAX_STEPS), |time| {
            found.push(time);
            Ok(Go::Continue(()))
        }).unwrap();
        prop_assert_eq!(found, expected, "DTSTART {} RRULE {} from {}", first, rule, from);
    }
}
