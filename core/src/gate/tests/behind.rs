//! What lies behind gates that keep gates: evidence that is renewed, or that nobody has read yet.

use sluice_crds::GateReference;

use super::*;
use crate::gate::Named;
use crate::gate::nested::{self, Sources};
use crate::gatekeeper::schedule::Reading;
use crate::gatekeeper::{self, Evidence};
use crate::time::calendar::Calendar;

/// Closed on New Year's Day, as an address says.
const HOLIDAYS: &str =
    "{schedule: {closed: [{name: holidays, calendar: {url: 'https://calendar.test/'}}]}}";
const NEW_YEAR: &str = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20270101\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// The gate `inner`, kept by a calendar.
struct Behind {
    gate: Arc<Gate>,
    keeper: Arc<Keeper>,
}

impl Sources for Behind {
    fn gate(&self, _: &str, _: &GateReference) -> Named<Arc<Gate>> {
        Named::Here(Arc::clone(&self.gate))
    }

    fn gatekeeper(
        &self,
        _: &str,
        _: &sluice_crds::gate::GatekeeperReference,
        _: Timestamp,
    ) -> Named<Arc<Keeper>> {
        Named::Here(Arc::clone(&self.keeper))
    }

    fn identity(&self, _: &Gate) -> Identity {
        Identity::Trusted
    }
}

/// A calendar that was read and may be relied on until then.
fn read_until(good_until: &str) -> Evidence {
    let zone = crate::time::zone::find("UTC").unwrap();
    Evidence::of(vec![Reading::Read {
        calendar: Arc::new(Calendar::parse(NEW_YEAR, &zone).unwrap()),
        good_until: Some(at(good_until)),
        overdue: None,
    }])
}

/// A gatekeeper of the kind `gates` over a gate that is kept by `inner`, with the status that was
/// written of it before.
fn outer(inner: Keeper, status: Option<sluice_crds::GatekeeperStatus>) -> Keeper {
    let sources = Behind {
        gate: Arc::new(gate("{gatekeepers: [{name: holidays}]}", &[])),
        keeper: Arc::new(inner),
    };
    let mut object = gatekeeper("outer", "{gates: {refs: [{name: inner}]}}");
    object.status = status;
    let keeper = Keeper::new(Arc::new(object), Evidence::default(), at(FRIDAY_10));
    nested::complete(&sources, &keeper, at(FRIDAY_10))
}

fn holidays(evidence: Evidence) -> Keeper {
    let object = Arc::new(gatekeeper("holidays", HOLIDAYS));
    Keeper::new(object, evidence, at(FRIDAY_10))
}

#[test]
fn evidence_behind_a_gate_is_renewed_before_it_runs_out() {
    let keeper = outer(holidays(read_until("2026-11-20T12:00:00Z")), None);
    let new_year = (at("2027-01-01T00:00:00Z"), State::Closed);
    assert_eq!(keeper.upcoming(now(FRIDAY_10))[0], new_year);
    // By the evidence so far, that is no promise; and what has expired already is not renewed.
    assert_eq!(
        keeper.opinion(now(FRIDAY_10)).until,
        Some(at("2026-11-20T12:00:00Z"))
    );
    let noon = now("2026-11-20T12:00:00Z");
    assert_eq!(keeper.opinion(noon).state, State::Closed);
    assert_eq!(keeper.upcoming(noon), []);
}

#[test]
fn reading_the_same_again_behind_a_gate_is_not_written() {
    let first = outer(holidays(read_until("2026-11-20T12:00:00Z")), None);
    let written = gatekeeper::report(&first, now(FRIDAY_10)).status;
    let until = written.verdict.as_ref().unwrap().valid_until.clone();
    assert_eq!(until.unwrap().0, at("2026-11-20T12:00:00Z"));
    // A quarter of an hour later it was read again.
    let again = holidays(read_until("2026-11-20T12:15:00Z"));
    let again = outer(again, Some(written));
    let report = gatekeeper::report(&again, now("2026-11-20T10:15:00Z"));
    assert!(!report.changed);
    // Others rely on it: it is written when half of that is spent.
    assert!(gatekeeper::report(&again, now("2026-11-20T11:01:00Z")).changed);
}

#[test]
fn what_is_not_read_yet_behind_a_gate_is_no_news() {
    let read = holidays(read_until("2026-11-20T12:00:00Z"));
    let mut unread = Gatekeeper::clone(read.object());
    unread.status = Some(gatekeeper::report(&read, now(FRIDAY_10)).status);
    let written = gatekeeper::report(&outer(read, None), now(FRIDAY_10)).status;
    // After a restart.
    let restarted = |status| {
        let unread = Keeper::new(Arc::new(unread.clone()), Evidence::default(), at(FRIDAY_10));
        gatekeeper::report(&outer(unread, status), now("2026-11-20T11:30:00Z"))
    };
    assert!(!restarted(Some(written.clone())).changed);
    // But it is where nothing is reported, or something else.
    assert!(restarted(None).changed);
    let mut closed = written;
    closed.verdict.as_mut().unwrap().state = State::Closed;
    assert!(restarted(Some(closed)).changed);
}
