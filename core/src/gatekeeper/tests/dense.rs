//! A calendar that holds too much on some days is broken on those, and on no other.

use super::*;

/// 900 events, every hour from 1 to 10 December.
fn dense() -> Reading {
    let event = "BEGIN:VEVENT\nDTSTART:20261201T000000\nDURATION:PT30M\nRRULE:FREQ=HOURLY;UNTIL=20261210T235959\nEND:VEVENT\n";
    let text = format!("BEGIN:VCALENDAR\n{}END:VCALENDAR\n", event.repeat(900));
    let zone = crate::time::zone::find("Europe/London").unwrap();
    Reading::Read {
        calendar: Arc::new(Calendar::parse(&text, &zone).unwrap()),
        good_until: None,
        overdue: None,
    }
}

#[test]
fn what_is_too_dense_heals_when_its_day_is_over() {
    let keeper = keeper_with(HOLIDAYS, vec![dense()], "2026-12-01T12:00:00Z");
    let noon = now("2026-12-01T12:00:00Z");
    let opinion = keeper.opinion(noon);
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::EvidenceBroken)
    );
    let midnight = at("2026-12-02T00:00:00Z");
    assert_eq!(opinion.until, Some(midnight));
    let report = super::super::report(&keeper, noon);
    assert_eq!(report.wake, Some(midnight));
    // It is made again for instants that it does not reach.
    assert!(keeper.reaches(at("2026-12-01T00:00:00Z")) && !keeper.reaches(midnight));
    assert!(!keeper.reaches(at("2026-11-30T23:59:59Z")));
}

#[test]
fn the_answer_is_the_same_whenever_it_was_prepared() {
    let instants = [
        ("2026-11-25T10:00:00Z", Reason::NoClosedWindow),
        ("2026-12-10T23:59:59Z", Reason::EvidenceBroken),
        ("2026-12-20T10:00:00Z", Reason::NoClosedWindow),
    ];
    let dense = dense();
    for from in ["2026-11-25T10:00:00Z", "2026-12-01T00:00:00Z"] {
        let keeper = keeper_with(HOLIDAYS, vec![dense.clone()], from);
        for (instant, reason) in instants {
            let opinion = keeper.opinion(now(instant));
            assert_eq!(opinion.reason, reason, "at {instant}, prepared at {from}");
        }
    }
}
