//! Cron expressions, by themselves and as the windows of a schedule.

use bolero::TypeGenerator;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan};
use sluice_core::gatekeeper::schedule::Schedule;
use sluice_core::time::cron::Cron;
use sluice_core::time::timeline::Moment;
use sluice_core::time::zone;
use sluice_crds::gatekeeper as api;
use sluice_crds::{Duration, State};

use super::target::Target;

pub const TARGET: Target = Target {
    name: "cron",
    words: &[
        "*", "?", "L", "W", "LW", "15W", "#", "#2", "5L", "/", "-", ",", " ", "\t", "*/5", "1-5",
        "MON", "sun", "JAN", "dec", "0", "7", "23", "24", "28", "29", "30", "31", "59", "60",
        "@daily", "@hourly", "@reboot", "TZ=UTC ", "٣", "é", "L-3", "1/1", "0-59/59",
    ],
    texts: 400,
};

/// Zones that change their clocks at odd times, by odd amounts, or not at all.
const ZONES: [&str; 5] = [
    "UTC",
    "Europe/London",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Santiago",
];

/// When, where, and how long the windows last.
#[derive(Debug, Default, TypeGenerator)]
pub struct Question {
    /// A second between 1970 and 2100.
    #[generator(0..4_102_444_800_i64)]
    at: i64,
    zone: u8,
    /// In minutes. None: each minute that matches.
    #[generator(bolero::produce_with::<Option<i64>>().value(1..=366 * 24 * 60_i64))]
    lasts: Option<i64>,
    /// How far into what comes next to look again, in parts of 256.
    part: u8,
}

impl Question {
    fn at(&self) -> Timestamp {
        Timestamp::from_second(self.at).unwrap()
    }

    fn zone(&self) -> &'static str {
        ZONES[usize::from(self.zone) % ZONES.len()]
    }
}

/// Days are found, case does not matter, and a schedule changes when it says and not before.
pub fn holds(text: &str, question: &Question) -> bool {
    let Ok(cron) = Cron::parse(text) else {
        return false;
    };
    let day = question.at().to_zoned(jiff::tz::TimeZone::UTC).date();
    assert!(cron.minutes().is_sorted_by(|one, next| one < next));
    assert!(!cron.minutes().is_empty() && cron.minutes().last() < Some(&1440));
    finds_the_first_day(&cron, day, text);
    is_the_same_in_capitals(&cron, day, text);
    changes_when_it_says(&cron, text, question);
    true
}

fn finds_the_first_day(cron: &Cron, day: Date, text: &str) {
    let last = day.saturating_add(60.days());
    let mut days = day.series(1.day()).take_while(|day| *day <= last);
    let scanned = days.find(|day| cron.matches(*day));
    assert_eq!(cron.first_match(day, last), scanned, "{text:?} from {day}");
    assert!(
        !cron.is_daily() || scanned == Some(day),
        "{text:?} on {day}"
    );
}

fn is_the_same_in_capitals(cron: &Cron, day: Date, text: &str) {
    for otherwise in [text.to_ascii_uppercase(), text.to_ascii_lowercase()] {
        let other = Cron::parse(&otherwise);
        let other = other.unwrap_or_else(|problem| panic!("{text:?}, but {problem}"));
        assert_eq!(other.minutes(), cron.minutes(), "{text:?}");
        let last = day.saturating_add(2.years());
        assert_eq!(
            other.first_match(day, last),
            cron.first_match(day, last),
            "{text:?}"
        );
    }
}

fn changes_when_it_says(cron: &Cron, text: &str, question: &Question) {
    let spec = api::Schedule {
        time_zone: question.zone().to_owned(),
        open: vec![api::Window {
            cron: Some(text.to_owned()),
            duration: question
                .lasts
                .map(|minutes| Duration(format!("{minutes}m"))),
            ..api::Window::default()
        }],
        closed: Vec::new(),
    };
    let schedule = Schedule::read(&spec, "spec.schedule");
    let schedule = schedule.unwrap_or_else(|refusals| panic!("{text:?}, but {refusals}"));
    let ask = |at| -> Moment { schedule.moment(&[], at).unwrap() };
    let at = question.at();
    let moment = ask(at);
    let state = moment.cause.state();
    let said = || format!("{text:?}, {question:?}: {moment:?}");
    if question.lasts.is_none() {
        assert_eq!(
            state == State::Open,
            shows(cron, question.zone(), at),
            "{}",
            said()
        );
    }
    // Where it has not looked farther, it says nothing.
    let ahead = moment.next.or(moment.end);
    let far = ahead.unwrap_or(at + SignedDuration::from_hours(24 * 366));
    assert!(far > at, "{}", said());
    let between = at + far.duration_since(at) * i32::from(question.part) / 256;
    assert_eq!(
        ask(between).cause.state(),
        state,
        "at {between}: {}",
        said()
    );
    if let Some(next) = moment.next {
        let before = next - SignedDuration::from_nanos(1);
        assert_eq!(ask(before).cause.state(), state, "just before: {}", said());
        assert_ne!(ask(next).cause.state(), state, "then: {}", said());
    }
}

/// Whether the clocks of a zone show a minute that matches.
fn shows(cron: &Cron, zone: &str, at: Timestamp) -> bool {
    let wall = at.to_zoned(zone::find(zone).unwrap());
    let minute =
        u16::from(wall.hour().unsigned_abs()) * 60 + u16::from(wall.minute().unsigned_abs());
    cron.matches(wall.date()) && cron.minutes().contains(&minute)
}
