//! What is asked at every decision allocates nothing once it is prepared; and what is prepared
//! stays small, whatever the windows are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::sync::Arc;

use allocation_counter::measure;
use jiff::{SignedDuration, Timestamp};
use sluice_core::Now;
use sluice_core::gate::Named;
use sluice_core::gate::{Identity, View, answer};
use sluice_core::gatekeeper::schedule::{Reading, Schedule};
use sluice_core::gatekeeper::{Evidence, Keeper};
use sluice_core::time::calendar::Calendar;
use sluice_crds::gatekeeper as api;
use sluice_crds::{Gate, Gatekeeper};

const WEEKLY: &str =
    "{timeZone: Europe/London, open: [{cron: 0 9 * * MON, duration: 8h, lastStart: 30m}]}";
const MEMBERSHIP: &str = "{closed: [{cron: '* * 20-30 11 *'}]}";
const CALENDAR: &str =
    "{closed: [{name: holidays, calendar: {configMapRef: {name: days, key: uk.ics}}}]}";
const CHRISTMAS: &str = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20201225\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn from() -> Timestamp {
    "2026-11-20T10:00:00Z".parse().unwrap()
}

fn hundred_windows() -> String {
    let windows: Vec<String> = (0..100)
        .map(|n| {
            format!(
                "{{cron: {} {} * * {}, duration: {}m}}",
                n % 60,
                n % 24,
                n % 7,
                30 + n
            )
        })
        .collect();
    format!(
        "{{timeZone: America/New_York, open: [{}]}}",
        windows.join(", ")
    )
}

fn spec(yaml: &str) -> api::Schedule {
    serde_saphyr::from_str(yaml).unwrap()
}

fn readings(yaml: &str) -> Vec<Reading> {
    let calendar = || Reading::Read {
        calendar: Arc::new(Calendar::parse(CHRISTMAS, &jiff::tz::TimeZone::UTC).unwrap()),
        good_until: None,
        overdue: None,
    };
    yaml.contains("calendar")
        .then(calendar)
        .into_iter()
        .collect()
}

fn keeper(name: &str, schedule: &str) -> Keeper {
    let spec = serde_saphyr::from_str(&format!("{{schedule: {schedule}}}")).unwrap();
    let evidence = Evidence::of(readings(schedule));
    Keeper::new(Arc::new(Gatekeeper::new(name, spec)), evidence, from())
}

#[test]
fn a_prepared_schedule_answers_without_allocating() {
    for yaml in [WEEKLY, MEMBERSHIP, CALENDAR, &hundred_windows()] {
        let schedule = Schedule::read(&spec(yaml), "spec.schedule").unwrap();
        let timeline = schedule.timeline(&readings(yaml), from()).unwrap();
        let mut answers = 0;
        let used = measure(|| {
            let mut at = from();
            while timeline.at(at).is_some() && answers < 10_000 {
                answers += 1;
                at += SignedDuration::from_mins(1);
            }
        });
        assert!(answers > 100, "{answers} answers for {yaml}");
        assert_eq!(used.count_total, 0, "{yaml}");
    }
}

#[test]
fn a_prepared_gatekeeper_gives_its_opinion_without_allocating() {
    let switch = serde_saphyr::from_str("{manual: {state: open}}").unwrap();
    let switch = Arc::new(Gatekeeper::new("switch", switch));
    for keeper in [
        keeper("weekly", WEEKLY),
        keeper("holidays", CALENDAR),
        Keeper::new(switch, Evidence::default(), from()),
    ] {
        let used = measure(|| {
            for seconds in 0..1000 {
                let now = Now::given(from() + SignedDuration::from_secs(seconds));
                std::hint::black_box(keeper.opinion(now));
            }
        });
        assert_eq!(used.count_total, 0, "{:?}", keeper.object().metadata.name);
    }
}

#[test]
fn a_gate_is_decided_without_allocating() {
    let keepers = [
        keeper("weekly", WEEKLY),
        keeper("freeze", MEMBERSHIP),
        keeper("days", CALENDAR),
    ];
    let spec = "{gatekeepers: [{name: weekly}, {name: freeze}, {name: days}]}";
    let gate = Gate::new("production", serde_saphyr::from_str(spec).unwrap());
    let mut found = keepers.iter();
    let view = View::new(&gate, Identity::Verified, |_| {
        Named::Here(found.next().unwrap())
    });
    let used = measure(|| {
        answer(&view, Now::given(from()));
    });
    assert_eq!(used.count_total, 0);
}

/// Windows that open and close many times a day without any effect for years: legal, and still
/// bounded.
#[test]
fn what_is_prepared_stays_small() {
    let windows = |count, cron: &str, duration: &str| {
        vec![format!("{{cron: '{cron}', duration: {duration}}}"); count].join(", ")
    };
    let often = windows(64, "*/2 * * * *", "1m");
    let odd = windows(64, "1-59/2 * * * *", "1m");
    let long = windows(128, "* * * * *", "8784h");
    let seldom = windows(1, "0 0 29 2 *", "24h");
    for yaml in [
        format!("{{open: [{often}], closed: [{{cron: '* * * * *'}}]}}"),
        format!("{{open: [{often}], closed: [{often}]}}"),
        format!("{{open: [{seldom}], closed: [{often}]}}"),
        format!("{{closed: [{often}, {odd}]}}"),
        format!("{{timeZone: Europe/London, open: [{long}]}}"),
    ] {
        let schedule = Schedule::read(&spec(&yaml), "spec.schedule").unwrap();
        let mut timeline = None;
        let used = measure(|| timeline = schedule.timeline(&[], from()).ok());
        assert!(timeline.unwrap().at(from()).is_some());
        assert!(
            used.bytes_max < 1 << 20,
            "{} bytes for {yaml:.80}",
            used.bytes_max
        );
        assert!(
            used.bytes_current < 32 << 10,
            "{} bytes for {yaml:.80}",
            used.bytes_current
        );
    }
}
