//! When an address is read again, told as stories in minutes.

use std::sync::Arc;

use jiff::tz::TimeZone;
use rstest::rstest;
use sluice_core::time::calendar::{self, CalendarError};

use super::*;
use crate::schedule::text::{Reader, Zone};

const CALENDAR: &str = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20261225T000000Z\n\
                        DTEND:20261226T000000Z\nEND:VEVENT\nEND:VCALENDAR\n";

fn source(interval: &str) -> Calendar {
    Calendar {
        config_map_ref: None,
        url: Some("https://calendar.test/holidays.ics".to_owned()),
        interval: interval.into(),
        cert_secret_ref: None,
    }
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

/// Hourly, to the minute.
fn hourly() -> Cadence {
    let hour = SignedDuration::from_hours(1);
    Cadence {
        interval: hour,
        next: hour,
    }
}

async fn parsed(bytes: &str) -> Parsed {
    let zone = Zone {
        zone: TimeZone::UTC,
        name: "UTC".to_owned(),
    };
    Reader::default()
        .read(bytes.as_bytes(), &zone, "apps")
        .await
}

/// The same calendar over time, as attempts succeed and fail.
struct Story {
    cadence: Cadence,
    seen: Option<Seen>,
}

impl Story {
    fn new() -> Self {
        Self {
            cadence: hourly(),
            seen: None,
        }
    }

    async fn succeeds(&mut self, now: Timestamp) {
        let attempt = Ok(parsed(CALENDAR).await);
        let (reading, rereads) = after(&attempt, self.seen.as_ref(), &self.cadence, now);
        self.set(reading, rereads);
    }

    async fn gets(&mut self, bytes: &str, now: Timestamp) {
        let attempt = Ok(parsed(bytes).await);
        let (reading, rereads) = after(&attempt, self.seen.as_ref(), &self.cadence, now);
        self.set(reading, rereads);
    }

    fn fails(&mut self, why: &str, now: Timestamp) {
        let attempt = Err(why.to_owned());
        let (reading, rereads) = after(&attempt, self.seen.as_ref(), &self.cadence, now);
        self.set(reading, rereads);
    }

    fn passes(&mut self, now: Timestamp) {
        let seen = self.seen.as_mut().unwrap();
        seen.reading = meanwhile(seen, &self.cadence, now);
    }

    fn set(&mut self, reading: Reading, rereads: Rereads) {
        self.seen = Some(Seen {
            source: source("1h"),
            zone: "UTC".to_owned(),
            reading,
            kept: None,
            rereads: Some(rereads),
        });
    }

    fn seen(&self) -> &Seen {
        self.seen.as_ref().unwrap()
    }

    fn reading(&self) -> &Reading {
        &self.seen().reading
    }

    fn again(&self) -> Timestamp {
        self.seen().again().unwrap()
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.seen()
            .rereads
            .as_ref()
            .unwrap()
            .due
            .is_due(now, self.cadence.interval)
    }
}

#[tokio::test]
async fn what_was_read_is_good_for_three_intervals_and_read_again_after_one() {
    let mut story = Story::new();
    story.succeeds(at(0)).await;
    assert_eq!(
        (good_until(story.reading()), story.again()),
        (Some(at(180)), at(60))
    );
    assert!(!story.is_due(at(59)) && story.is_due(at(60)));
    story.succeeds(at(61)).await;
    assert_eq!(
        (good_until(story.reading()), story.again()),
        (Some(at(241)), at(121))
    );
}

#[tokio::test]
async fn failures_leave_what_was_read_until_it_has_run_out() {
    let mut story = Story::new();
    story.succeeds(at(0)).await;
    story.fails("status 500", at(60));
    assert_eq!(
        (good_until(story.reading()), story.again()),
        (Some(at(180)), at(61))
    );
    // The waits double up to the interval; the end of what was read comes between.
    for (now, next) in [
        (61, 63),
        (63, 67),
        (67, 75),
        (75, 91),
        (91, 123),
        (123, 180),
    ] {
        story.fails("status 500", at(now));
        assert_eq!(
            (good_until(story.reading()), story.again()),
            (Some(at(180)), at(next))
        );
    }
    assert!(!story.is_due(at(180)));
    story.passes(at(180));
    assert_eq!(
        *story.reading(),
        Reading::Unavailable("status 500".to_owned())
    );
    assert_eq!(story.again(), at(183));
    story.fails("timed out", at(183));
    assert_eq!(
        *story.reading(),
        Reading::Unavailable("timed out".to_owned())
    );
    assert_eq!(story.again(), at(243));
    story.succeeds(at(243)).await;
    assert_eq!(
        (good_until(story.reading()), story.again()),
        (Some(at(423)), at(303))
    );
    // And a new failure starts the count again.
    story.fails("status 500", at(303));
    assert_eq!(story.again(), at(304));
}

/// Three intervals are a long time in which nobody would know.
#[tokio::test]
async fn what_is_kept_says_why_it_is_not_read_again() {
    let overdue = |reading: &Reading| match reading {
        Reading::Read { overdue, .. } => overdue.as_ref().map(ToString::to_string),
        Reading::Unavailable(_) | Reading::Broken(_) => panic!("it is not kept: {reading:?}"),
    };
    let kept = "kept as it was read Thu 1970-01-01 00:00 UTC; reading it again fails: ";
    let mut story = Story::new();
    story.succeeds(at(0)).await;
    assert_eq!(overdue(story.reading()), None);
    story.fails("status 500", at(60));
    let first = story.reading().clone();
    assert_eq!(overdue(&first), Some(format!("{kept}status 500")));
    // The same failure once more is no news.
    story.fails("status 500", at(61));
    assert_eq!(*story.reading(), first);
    story.passes(at(62));
    assert_eq!(*story.reading(), first);
    story.gets("<html>", at(63)).await;
    let broken = CalendarError::NotACalendar;
    assert_eq!(overdue(story.reading()), Some(format!("{kept}{broken}")));
    story.succeeds(at(67)).await;
    assert_eq!(overdue(story.reading()), None);
}

/// What was read before a clock was set back is good for no longer than what is read now.
#[tokio::test]
async fn a_clock_that_was_set_back_makes_nothing_good_for_years() {
    let mut story = Story::new();
    story.succeeds(at(1_000_000)).await;
    story.fails("status 500", at(0));
    assert_eq!(good_until(story.reading()), Some(at(180)));
    story.fails("status 500", at(100));
    assert_eq!(good_until(story.reading()), Some(at(180)));
    story.passes(at(180));
    assert_eq!(
        *story.reading(),
        Reading::Unavailable("status 500".to_owned())
    );
    let mut story = Story::new();
    story.succeeds(at(50)).await;
    story.passes(at(0));
    assert_eq!(good_until(story.reading()), Some(at(180)));
}

#[tokio::test]
async fn what_was_never_read_is_unavailable_at_once() {
    let mut story = Story::new();
    story.fails("status 404", at(0));
    assert_eq!(
        *story.reading(),
        Reading::Unavailable("status 404".to_owned())
    );
    assert_eq!(story.again(), at(1));
}

/// A page of some proxy must not pass for a calendar, nor end one that is still good.
#[tokio::test]
async fn a_text_that_is_no_calendar_is_broken_once_the_last_good_one_has_run_out() {
    let broken = Reading::Broken(CalendarError::NotACalendar);
    let mut story = Story::new();
    story.gets("<html>", at(0)).await;
    assert_eq!((story.reading(), story.again()), (&broken, at(1)));
    story.succeeds(at(1)).await;
    story.gets("<html>", at(61)).await;
    assert_eq!(
        (good_until(story.reading()), story.again()),
        (Some(at(181)), at(62))
    );
    story.passes(at(181));
    assert_eq!(*story.reading(), broken);
}

#[tokio::test]
async fn a_clock_that_was_set_back_is_no_reason_to_wait_for_years() {
    let mut story = Story::new();
    story.succeeds(at(1_000_000)).await;
    assert!(story.is_due(at(0)));
    assert!(!story.is_due(at(1_000_000 - 50)));
}

#[tokio::test]
async fn somebody_who_asks_for_a_look_gets_one() {
    let mut story = Story::new();
    story.succeeds(at(0)).await;
    story.seen.as_mut().unwrap().make_due();
    assert!(story.is_due(at(1)));
    assert!(story.again() <= at(1));
}

#[rstest]
#[case("1h", 3600)]
#[case("168h", 604_800)]
#[case("1m", 60)]
fn the_interval_is_jittered_by_a_tenth_and_always_alike(
    #[case] interval: &str,
    #[case] seconds: i64,
) {
    let source = source(interval);
    let nexts: Vec<_> = (0..500)
        .map(|n| Cadence::of(&source, &format!("uid-{n}")).next)
        .collect();
    let (shortest, longest) = (nexts.iter().min().unwrap(), nexts.iter().max().unwrap());
    let whole = SignedDuration::from_secs(seconds);
    assert!(
        *shortest >= whole * 9 / 10 && *shortest < whole * 92 / 100,
        "{shortest}"
    );
    assert!(
        *longest <= whole * 11 / 10 && *longest > whole * 108 / 100,
        "{longest}"
    );
    let again = Cadence::of(&source, "uid-7");
    assert_eq!((again.next, again.interval), (nexts[7], whole));
}

/// Two readings that hold the same calendar hold the very same one.
pub(in crate::schedule) fn is_same(one: &Reading, other: &Reading) -> bool {
    match (one, other) {
        (
            Reading::Read { calendar: one, .. },
            Reading::Read {
                calendar: other, ..
            },
        ) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

#[test]
fn the_limit_of_a_reply_is_that_of_a_calendar() {
    assert_eq!(sluice_egress::Limits::default().body, calendar::MAX_TEXT);
}
