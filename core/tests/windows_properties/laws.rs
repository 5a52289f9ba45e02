//! Laws that hold whatever the windows are.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sluice_core::time::span::Span;
use sluice_crds::gatekeeper as api;

use crate::cases::{
    self, Case, Window, days_away, matching, place, schedule, several, with_more_closed,
};
use crate::{ask, config, is_open, scanner};

const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

fn read(case: &Case) -> Result<sluice_core::gatekeeper::schedule::Schedule, TestCaseError> {
    case.schedule()
        .ok_or_else(|| TestCaseError::reject("never occurs"))
}

/// The instants at `permille` of the way from `from` to `to`, itself outside.
fn between(from: Timestamp, to: Timestamp, permille: i32) -> Timestamp {
    let part = to.duration_since(from).as_nanos() * i128::from(permille) / 1000;
    from + SignedDuration::from_nanos_i128(part)
}

proptest! {
    #![proptest_config(config(180))]

    #[test]
    fn nothing_changes_before_next_and_everything_at_it(
        case in several(),
        permille in 0..1000i32,
    ) {
        let schedule = read(&case)?;
        let now = ask(&schedule, case.at);
        let end = now.next.unwrap_or(case.at + SignedDuration::from_hours(10_000));
        for still in [between(case.at, end, permille), end - INSTANT] {
            let then = ask(&schedule, still);
            prop_assert_eq!(is_open(&then), is_open(&now), "at {}", still);
            // Each answer looks for a change some years ahead: a later one finds later changes.
            let is_found_later = now.next.is_none() && then.next >= Some(end);
            prop_assert!(is_found_later || then.next == now.next, "{:?} at {}", then, still);
        }
        if let Some(next) = now.next {
            prop_assert!(next > case.at);
            prop_assert_ne!(is_open(&ask(&schedule, next)), is_open(&now), "at {}", next);
        }
    }

    #[test]
    fn the_cause_holds_until_and_no_longer(case in several(), permille in 0..1000i32) {
        let schedule = read(&case)?;
        let now = ask(&schedule, case.at);
        if let Some(until) = now.until {
            prop_assert!(case.at < until && now.next.is_none_or(|next| until <= next));
            for still in [between(case.at, until, permille), until - INSTANT] {
                prop_assert_eq!(ask(&schedule, still).cause, now.cause, "at {}", still);
            }
            prop_assert_ne!(ask(&schedule, until).cause, now.cause, "at {}", until);
        } else {
            prop_assert_eq!(now.next, None);
        }
    }

    #[test]
    fn windows_of_one_list_are_a_union_and_closed_ones_win(case in several()) {
        let schedule_of_all = read(&case)?;
        let alone = |n: usize, list: &[Window], as_open: bool| {
            let one = std::slice::from_ref(&list[n]);
            let (open, closed): (&[_], &[_]) = if as_open { (one, &[]) } else { (&[], one) };
            is_open(&ask(&schedule(case.zone, open, closed).unwrap(), case.at))
        };
        let in_open = (0..case.open.len()).any(|n| alone(n, &case.open, true));
        let in_closed = (0..case.closed.len()).any(|n| !alone(n, &case.closed, false));
        let admits = (in_open || case.open.is_empty()) && !in_closed;
        prop_assert_eq!(is_open(&ask(&schedule_of_all, case.at)), admits);
    }

    #[test]
    fn a_further_closed_window_never_opens((case, more) in with_more_closed()) {
        let before = read(&case)?;
        let closed: Vec<_> = case.closed.iter().chain(&more).cloned().collect();
        let Some(after) = schedule(case.zone, &case.open, &closed) else {
            return Err(TestCaseError::reject("never occurs"));
        };
        let (before, after) = (ask(&before, case.at), ask(&after, case.at));
        prop_assert!(is_open(&before) || !is_open(&after));
    }

    #[test]
    fn the_answer_is_the_same_whenever_it_was_prepared(
        case in several(),
        earlier in days_away(20),
    ) {
        let schedule = read(&case)?;
        let prepared = schedule.timeline(&[], case.at - earlier.abs()).unwrap();
        let Some(moment) = prepared.at(case.at) else { return Ok(()) };
        let fresh = ask(&schedule, case.at);
        prop_assert_eq!((moment.cause, moment.until), (fresh.cause, fresh.until));
        // The last change that a timeline knows is its end.
        prop_assert_eq!(moment.next, fresh.next);
    }

    #[test]
    fn a_stretch_says_what_its_instants_say(case in several(), away in days_away(8)) {
        let schedule = read(&case)?;
        let from = case.at - SignedDuration::from_hours(24);
        let span = Span { start: from, end: case.at + SignedDuration::from_hours(9 * 24) };
        let stretch = schedule.timeline_within(&[], span).unwrap();
        let at = case.at + away.abs();
        let (said, asked) = (stretch.at(at).unwrap(), ask(&schedule, at));
        prop_assert_eq!(said.cause, asked.cause);
        let clipped = |change: Option<Timestamp>| change.filter(|change| *change < span.end);
        prop_assert_eq!(clipped(said.until), clipped(asked.until));
        prop_assert_eq!(clipped(said.next), clipped(asked.next));
        // Listed one by one, the changes are those that asking again and again finds.
        let mut changes = stretch.changes();
        let mut moment = ask(&schedule, from);
        for _ in 0..20 {
            let next = clipped(moment.next);
            if let Some(next) = next {
                moment = ask(&schedule, next);
            }
            prop_assert_eq!(changes.next(), next.map(|next| (next, moment.cause.state())));
        }
    }
}

/// How far the clocks are turned back, or forward, within `span`, each in its sum.
fn turned(zone: &TimeZone, span: Span) -> (SignedDuration, SignedDuration) {
    let mut offset = zone.to_offset(span.start).seconds();
    let (mut back, mut forward) = (0, 0);
    let changes = zone.following(span.start).map(|change| change.timestamp());
    for change in changes.take_while(|change| *change <= span.end) {
        let by = zone.to_offset(change).seconds() - offset;
        offset += by;
        back += (-by).max(0);
        forward += by.max(0);
    }
    let length = |seconds: i32| SignedDuration::from_secs(seconds.into());
    (length(back), length(forward))
}

proptest! {
    #![proptest_config(config(1500))]

    /// Of one start and its end alone: a day on the clock is the longest, and no end is before its
    /// start.
    #[test]
    fn what_lasts_until_a_time_of_day_ends_when_the_clock_shows_it(
        (name, at) in place(),
        start in 0..1440i64,
        minute in prop_oneof![0..1440i64, 0..=4 * 60i64],
    ) {
        let zone = sluice_core::time::zone::find(name).unwrap();
        let cron = format!("{} {} * * *", start % 60, start / 60);
        let window = api::Window {
            cron: Some(cron),
            until: Some(format!("{:02}:{:02}", minute / 60, minute % 60)),
            ..api::Window::default()
        };
        let spec = api::Schedule { time_zone: name.into(), open: vec![window], closed: Vec::new() };
        let schedule = cases::read(&spec).unwrap();
        let mut moment = ask(&schedule, at);
        if is_open(&moment) {
            // Its start is not known.
            moment = match moment.next {
                Some(next) => ask(&schedule, next),
                None => return Ok(()),
            };
        }
        let Some(opens) = moment.next else { return Ok(()) };
        let Some(closes) = ask(&schedule, opens).next else {
            prop_assert_eq!(start, minute, "it touches the next");
            return Ok(());
        };
        let lasts = closes.duration_since(opens);
        let span = Span { start: opens, end: closes };
        let (back, forward) = turned(&zone, span);
        prop_assert!(lasts > SignedDuration::ZERO);
        // The next window may follow at once where the clocks skip what lies between.
        let days = if start == minute || forward > SignedDuration::ZERO { 2 } else { 1 };
        prop_assert!(lasts <= SignedDuration::from_hours(24 * days) + back + forward);
        let shown = zone.to_datetime(closes).time();
        let wanted = jiff::civil::time(
            i8::try_from(minute / 60).unwrap(),
            i8::try_from(minute % 60).unwrap(),
            0,
            0,
        );
        let is_skipped = zone.following(closes - INSTANT).next()
            .is_some_and(|change| change.timestamp() == closes);
        let before = Span { start: opens - INSTANT, end: opens };
        let started_late = turned(&zone, before).1 > SignedDuration::ZERO;
        prop_assert!(shown == wanted || is_skipped || started_late, "{span:?} shows {shown}");
    }
}

proptest! {
    // Cheap, and the clocks have many ways of being changed.
    #![proptest_config(config(1500))]

    #[test]
    fn a_cron_without_a_duration_is_a_predicate_of_every_minute(case in matching()) {
        let schedule = read(&case)?;
        let first = case.at.as_second().div_euclid(60);
        let wall = scanner::Wall::new(&case.zone(), first, first + 1440);
        let day = Span { start: case.at, end: case.at + SignedDuration::from_hours(24) };
        let timeline = schedule.timeline_within(&[], day).unwrap();
        for (minute, inside) in (first + 1..).zip(wall.inside(&case.open[0]).into_iter().skip(1)) {
            let at = Timestamp::from_second(minute * 60).unwrap();
            let moment = timeline.at(at).unwrap();
            prop_assert_eq!(is_open(&moment), inside, "at {}", at);
            let last = timeline.at(at + SignedDuration::from_secs(60) - INSTANT);
            prop_assert!(last.is_none_or(|last| is_open(&last) == inside), "before the end of {}", at);
        }
    }
}
