//! Gatekeepers judged and reported: what each test needs of objects, evidence and instants.

use jiff::SignedDuration;
use sluice_crds::gatekeeper::GatekeeperStatus;

use super::schedule::Reading;
use super::*;
use crate::time::calendar::Calendar;

mod dense;
mod evidence;
mod report;
mod restarted;
mod undecided;
mod verdict;

const FRIDAY_10: &str = "2026-11-20T10:00:00Z";
const OFFICE: &str = "{schedule: {timeZone: Europe/London, open: [{name: office-hours, cron: 0 9 * * MON-FRI, duration: 8h, lastStart: 30m}]}}";
const FRIDAYS: &str = "{schedule: {timeZone: Europe/London, closed: [{name: fridays, cron: 0 0 * * FRI, duration: 24h, reason: No deploys on Fridays}]}}";
const FREEZE: &str = "{schedule: {closed: [{name: freeze, cron: '* * 20-30 11 *'}]}}";
const HOLIDAYS: &str = "{schedule: {timeZone: Europe/London, closed: [{name: holidays, calendar: {configMapRef: {name: days, key: uk.ics}}}]}}";
/// Christmas, every year.
const CHRISTMAS: &str = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Christmas\r\nDTSTART;VALUE=DATE:20201225\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now(text: &str) -> Now {
    Now::given(at(text))
}

/// With the clock this many seconds away from the API server's.
fn off_by(seconds: i64, text: &str) -> Now {
    Now {
        trust: Trust::from_difference(SignedDuration::from_secs(seconds)),
        ..now(text)
    }
}

fn object(spec: &str) -> Gatekeeper {
    let mut object = Gatekeeper::new("rule", serde_saphyr::from_str(spec).unwrap());
    object.metadata.generation = Some(3);
    object
}

fn keeper_with(spec: &str, calendars: Vec<Reading>, from: &str) -> Keeper {
    Keeper::new(Arc::new(object(spec)), Evidence::of(calendars), at(from))
}

fn keeper(spec: &str) -> Keeper {
    keeper_with(spec, Vec::new(), FRIDAY_10)
}

fn christmas(good_until: Option<&str>) -> Reading {
    let zone = crate::time::zone::find("Europe/London").unwrap();
    Reading::Read {
        calendar: Arc::new(Calendar::parse(CHRISTMAS, &zone).unwrap()),
        good_until: good_until.map(at),
        overdue: None,
    }
}

/// The same gatekeeper with `status` written, prepared again at `from`.
fn written(keeper: &Keeper, status: GatekeeperStatus, from: Timestamp) -> Keeper {
    let mut object = Gatekeeper::clone(keeper.object());
    object.status = Some(status);
    Keeper::new(Arc::new(object), keeper.evidence().clone(), from)
}

fn status(keeper: &Keeper, instant: &str) -> GatekeeperStatus {
    super::report(keeper, now(instant)).status
}

/// Every condition as `Type=Status Reason`.
fn conditions(keeper: &Keeper, now: Now) -> Vec<String> {
    let conditions = super::report(keeper, now).status.conditions;
    let said = |c: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        format!("{}={} {}", c.type_, c.status, c.reason)
    };
    conditions.iter().map(said).collect()
}
