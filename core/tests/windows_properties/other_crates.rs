//! An oracle that somebody else wrote: the `cron` crate over `chrono` and `chrono-tz`, where it
//! means the same.
//!
//! It wants seconds, counts weekdays from Sunday = 1, takes both kinds of days together as "and",
//! skips what a change of the clocks skips, and repeats what it repeats; and its zones are of
//! 2025. So the expressions are those that can be translated, and answers near a change of the
//! clocks, or where the zones differ, are passed over.

use std::str::FromStr;

use chrono::{DateTime, Offset, TimeZone as _, Utc};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sluice_crds::State;
use sluice_crds::gatekeeper as api;

use crate::cases;
use crate::config;
use crate::expression::translatable;

const AWAY: SignedDuration = SignedDuration::from_hours(48);
/// `cron` knows no years after 2100.
const LAST: &str = "2099-01-01T00:00:00Z";

/// The first occurrence after an instant, as the other crates have it.
fn occurrence_after(expression: &str, zone: chrono_tz::Tz, at: Timestamp) -> Option<Timestamp> {
    let schedule = cron::Schedule::from_str(&format!("0 {expression}")).unwrap();
    let after = DateTime::<Utc>::from_timestamp(at.as_second(), 0)
        .unwrap()
        .with_timezone(&zone);
    let next = schedule.after(&after).next()?;
    Some(Timestamp::from_second(next.timestamp()).unwrap())
}

/// Whether both zone databases put the same offset there, and keep it for two days around.
fn is_plain(zone: &TimeZone, other: chrono_tz::Tz, at: Timestamp) -> bool {
    let offset = zone.to_offset(at).seconds();
    [at - AWAY, at, at + AWAY].into_iter().all(|near| {
        let utc = DateTime::<Utc>::from_timestamp(near.as_second(), 0).unwrap();
        let theirs = other
            .offset_from_utc_datetime(&utc.naive_utc())
            .fix()
            .local_minus_utc();
        zone.to_offset(near).seconds() == offset && theirs == offset
    })
}

/// The first start after an instant, as Sluice has it. Windows of a second never touch.
fn start_after(expression: &str, zone: &str, at: Timestamp) -> Option<Option<Timestamp>> {
    let window = api::Window {
        cron: Some(expression.to_owned()),
        duration: Some("1s".into()),
        ..api::Window::default()
    };
    let spec = api::Schedule {
        time_zone: zone.into(),
        open: vec![window],
        closed: Vec::new(),
    };
    let timeline = cases::read(&spec)?.timeline(&[], at).unwrap();
    let start = timeline.changes().find(|(_, state)| *state == State::Open);
    Some(start.map(|(at, _)| at))
}

proptest! {
    #![proptest_config(config(1200))]

    #[test]
    fn windows_start_when_other_crates_say(
        expression in translatable(),
        (name, at) in cases::place(),
    ) {
        let at = Timestamp::from_second(at.as_second()).unwrap();
        let (text, last) = (expression.to_string(), LAST.parse::<Timestamp>().unwrap());
        let ours = start_after(&text, name, at);
        prop_assume!(at < last && ours.is_some_and(|ours| ours.is_none_or(|at| at < last)));
        let (zone, other) = (sluice_core::time::zone::find(name).unwrap(), name.parse().unwrap());
        let (ours, theirs) = (ours.flatten(), occurrence_after(&text, other, at));
        for at in [Some(at), ours, theirs].into_iter().flatten() {
            prop_assume!(is_plain(&zone, other, at));
        }
        prop_assert_eq!(ours, theirs, "{}", text);
    }
}
