//! What windows cost: to ask, to prepare, and to decide a gate by; beside the `cron` crate.
//!
//! `cargo bench -p sluice-core --bench windows`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may fail loudly, and criterion's macros write no docs"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use sluice_core::Now;
use sluice_core::gate::Named;
use sluice_core::gate::{Identity, View, answer, report};
use sluice_core::gatekeeper::schedule::{Reading, Schedule};
use sluice_core::gatekeeper::{Evidence, Keeper};
use sluice_core::time::calendar::Calendar;
use sluice_crds::gatekeeper as api;
use sluice_crds::{Gate, Gatekeeper};

const WEEKLY: &str = "{timeZone: Europe/London, open: [{cron: 0 9 * * MON, duration: 8h}]}";
const MEMBERSHIP: &str = "{timeZone: Europe/London, closed: [{cron: '* * 20-30 11 *'}]}";
const OFFICE: &str = "{timeZone: Europe/London, open: [{cron: 0 9 * * MON-FRI, duration: 8h}]}";
const FRIDAYS: &str = "{timeZone: Europe/London, closed: [{cron: 0 0 * * FRI, duration: 24h}]}";
const CALENDAR: &str =
    "{timeZone: Europe/London, closed: [{calendar: {configMapRef: {name: days, key: a.ics}}}]}";

fn from() -> Timestamp {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

fn hundred_windows() -> String {
    let mut windows = String::new();
    for n in 0..100 {
        let (minute, hour, day) = (n * 7 % 60, n * 5 % 24, n % 7);
        let _ = write!(
            windows,
            "{{cron: {minute} {hour} * * {day}, duration: {}m}}, ",
            20 + n
        );
    }
    format!("{{timeZone: Europe/London, open: [{windows}]}}")
}

/// The text of 200 events that recur every year, month or week.
fn two_hundred_events() -> String {
    let mut text = "BEGIN:VCALENDAR\r\n".to_owned();
    for n in 0..200 {
        let rule = match n % 10 {
            0 => "FREQ=WEEKLY;BYDAY=SA",
            1..=3 => "FREQ=MONTHLY;BYDAY=1MO",
            _ => "FREQ=YEARLY",
        };
        let (month, day) = (1 + n % 12, 1 + n % 28);
        let _ = write!(
            text,
            "BEGIN:VEVENT\r\nUID:{n}\r\nSUMMARY:Event {n}\r\nDTSTART;TZID=Europe/London:2020{month:02}{day:02}T{:02}0000\r\nDURATION:PT2H\r\nRRULE:{rule}\r\nEND:VEVENT\r\n",
            n % 24,
        );
    }
    text + "END:VCALENDAR\r\n"
}

fn calendar(text: &str) -> Calendar {
    Calendar::parse(
        text,
        &sluice_core::time::zone::find("Europe/London").unwrap(),
    )
    .unwrap()
}

fn events_read() -> Vec<Reading> {
    vec![Reading::Read {
        calendar: Arc::new(calendar(&two_hundred_events())),
        good_until: None,
        overdue: None,
    }]
}

struct Case {
    name: &'static str,
    spec: api::Schedule,
    readings: Vec<Reading>,
}

impl Case {
    fn schedule(&self) -> Schedule {
        Schedule::read(&self.spec, "spec.schedule").unwrap()
    }
}

fn cases() -> Vec<Case> {
    let case = |name, yaml: &str, readings| Case {
        name,
        spec: serde_saphyr::from_str(yaml).unwrap(),
        readings,
    };
    vec![
        case("weekly", WEEKLY, vec![]),
        case("membership", MEMBERSHIP, vec![]),
        case("100 windows", &hundred_windows(), vec![]),
        case("200 events", CALENDAR, events_read()),
    ]
}

/// The weekly question, as the `cron` crate takes it: the next start.
struct OtherCrate {
    schedule: cron::Schedule,
    at: DateTime<chrono_tz::Tz>,
}

impl OtherCrate {
    fn new() -> Self {
        let at = DateTime::<Utc>::from_timestamp(from().as_second(), 0).unwrap();
        Self {
            schedule: cron::Schedule::from_str("0 0 9 * * MON").unwrap(),
            at: at.with_timezone(&chrono_tz::Europe::London),
        }
    }

    fn next(&self) -> Option<DateTime<chrono_tz::Tz>> {
        self.schedule.after(black_box(&self.at)).next()
    }
}

/// "Open at t, and when does it change?", prepared.
fn ask(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ask");
    for case in cases() {
        let schedule = case.schedule();
        let timeline = schedule.timeline(&case.readings, from()).unwrap();
        // In the midst of what the timeline knows.
        let reach = timeline.changes().last().unwrap().0.duration_since(from());
        let at = from() + reach / 2;
        assert!(timeline.at(at).unwrap().next.is_some());
        group.bench_function(case.name, |bencher| {
            bencher.iter(|| timeline.at(black_box(at)));
        });
    }
    let other = OtherCrate::new();
    group.bench_function("weekly, by the cron crate", |bencher| {
        bencher.iter(|| other.next());
    });
    group.finish();
}

/// The same question once, with nothing prepared but the spec read.
fn ask_once(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ask once");
    for case in cases() {
        let schedule = case.schedule();
        group.bench_function(case.name, |bencher| {
            bencher.iter(|| schedule.moment(&case.readings, black_box(from())));
        });
    }
    group.finish();
}

/// From the spec, and from the spec read, to what answers.
fn prepare(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prepare");
    for case in cases() {
        group.bench_function(format!("{}: read the spec", case.name), |bencher| {
            bencher.iter(|| Schedule::read(black_box(&case.spec), "spec.schedule"));
        });
        let schedule = case.schedule();
        group.bench_function(format!("{}: look ahead", case.name), |bencher| {
            bencher.iter(|| schedule.timeline(&case.readings, black_box(from())));
        });
    }
    let text = two_hundred_events();
    group.bench_function("200 events: read the calendar", |bencher| {
        bencher.iter(|| calendar(black_box(&text)));
    });
    group.bench_function("weekly: parse, by the cron crate", |bencher| {
        bencher.iter(|| cron::Schedule::from_str(black_box("0 0 9 * * MON")));
    });
    group.finish();
}

fn keeper(name: &str, schedule: &str) -> Keeper {
    let spec = serde_saphyr::from_str(&format!("{{schedule: {schedule}}}")).unwrap();
    Keeper::new(
        Arc::new(Gatekeeper::new(name, spec)),
        Evidence::default(),
        from(),
    )
}

/// A gate of three gatekeepers.
fn decide(criterion: &mut Criterion) {
    let keepers = [
        keeper("office", OFFICE),
        keeper("fridays", FRIDAYS),
        keeper("freeze", MEMBERSHIP),
    ];
    let spec = "{gatekeepers: [{name: office}, {name: fridays}, {name: freeze}]}";
    let gate = Gate::new("production", serde_saphyr::from_str(spec).unwrap());
    let mut found = keepers.iter();
    let view = View::new(&gate, Identity::Verified, |_| {
        Named::Here(found.next().unwrap())
    });
    let now = Now::given(from() + SignedDuration::from_secs(1));
    let mut group = criterion.benchmark_group("decide");
    group.bench_function("opinion of one gatekeeper", |bencher| {
        bencher.iter(|| keepers[0].opinion(black_box(now)));
    });
    group.bench_function("answer of a gate with 3", |bencher| {
        bencher.iter(|| answer(black_box(&view), black_box(now)));
    });
    group.bench_function("report of a gate with 3", |bencher| {
        bencher.iter(|| report(black_box(&view), black_box(now)));
    });
    group.finish();
}

criterion_group!(benches, ask, ask_once, prepare, decide);
criterion_main!(benches);
