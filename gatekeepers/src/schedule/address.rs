//! Calendars at https addresses: read again at their interval, good for three.
//!
//! When to read again, and what a failure means, is [`Rereads`]: a pure rule over instants.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use sluice_core::gatekeeper::schedule::{Overdue, Reading};
use sluice_core::time::calendar::CalendarError;
use sluice_core::time::duration;
use sluice_core::time::span::later;
use sluice_crds::gatekeeper::Calendar;
use sluice_egress::secrets;
use sluice_egress::{Body, Request};

use super::text::Parsed;
use super::{Look, Seen, text};
use crate::polling::{Due, retry};

/// What was read stays good for so many intervals.
const GOOD_FOR: i32 = 3;
/// The interval of a calendar whose own cannot be read, which the schedule refuses.
const DEFAULT: SignedDuration = SignedDuration::from_hours(1);
/// By how many thousandths the interval is drawn out or shortened at most, so that those who
/// began together do not stay together.
const JITTER: u64 = 100;

/// When an address is read again, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rereads {
    due: Due,
    /// In a row.
    failures: u32,
    /// What to judge from once the last good reading has run out.
    problem: Option<Problem>,
    /// When a good one was had last.
    read_at: Option<Timestamp>,
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq)]
enum Problem {
    /// It does not answer as it should.
    Unavailable(String),
    /// It answers what is no calendar.
    Broken(CalendarError),
}

impl Problem {
    fn reading(&self) -> Reading {
        match self {
            Problem::Unavailable(why) => Reading::Unavailable(why.clone()),
            Problem::Broken(error) => Reading::Broken(error.clone()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unavailable(why) => f.write_str(why),
            Problem::Broken(error) => error.fmt(f),
        }
    }
}

impl Rereads {
    /// When to look again: to read, or to say that what was read has run out.
    pub(super) fn again(&self, reading: &Reading) -> Timestamp {
        let due = self.due.again();
        match (&self.problem, good_until(reading)) {
            (Some(_), Some(end)) => due.min(end),
            (_, _) => due,
        }
    }

    pub(super) fn make_due(&mut self) {
        self.due = Due::AtOnce;
    }
}

/// How often an address is read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cadence {
    interval: SignedDuration,
    /// The same, a little longer or shorter.
    next: SignedDuration,
}

impl Cadence {
    /// The interval of `source`, with a jitter that is always the same for the same object.
    fn of(source: &Calendar, uid: &str) -> Self {
        let interval = duration::parse(&source.interval).unwrap_or(DEFAULT);
        let mut hash = Sha256::new();
        hash.update(uid);
        hash.update(source.url.as_deref().unwrap_or_default());
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        let drawn = u64::from(u32::from_be_bytes([a, b, c, d])) % (2 * JITTER + 1);
        let thousandths = i32::try_from(1000 - JITTER + drawn).unwrap_or(1000);
        let next = interval
            .checked_mul(thousandths)
            .map_or(interval, |scaled| scaled / 1000);
        Self { interval, next }
    }
}

/// What to judge from after an attempt at `now`, and when the next one is due. A failure leaves
/// what was read before, for as long as that is good.
fn after(
    attempt: &Result<Parsed, String>,
    last: Option<&Seen>,
    cadence: &Cadence,
    now: Timestamp,
) -> (Reading, Rereads) {
    let end = later(now, cadence.interval * GOOD_FOR);
    let problem = match attempt {
        Ok(parsed @ Ok(_)) => {
            let due = Due::At(later(now, cadence.next));
            let rereads = Rereads {
                due,
                failures: 0,
                problem: None,
                read_at: Some(now),
            };
            return (text::reading(parsed, Some(end)), rereads);
        }
        Ok(Err(error)) => Problem::Broken(error.clone()),
        Err(why) => Problem::Unavailable(why.clone()),
    };
    let before = last.and_then(|last| last.rereads.as_ref());
    let failures = before.map_or(1, |before| before.failures.saturating_add(1));
    let read_at = before.and_then(|before| before.read_at);
    let overdue = read_at.map(|read_at| Overdue {
        read_at,
        why: problem.to_string(),
    });
    let kept = last.and_then(|last| keep(&last.reading, overdue, cadence, now));
    let reading = kept.unwrap_or_else(|| problem.reading());
    let wait = retry(failures).map_or(cadence.interval, |wait| wait.min(cadence.interval));
    let rereads = Rereads {
        due: Due::At(later(now, wait)),
        failures,
        problem: Some(problem),
        read_at,
    };
    (reading, rereads)
}

/// What was read, for as long as it is good; after a clock was set back, for no longer than if it
/// had been read just now.
fn keep(
    reading: &Reading,
    overdue: Option<Overdue>,
    cadence: &Cadence,
    now: Timestamp,
) -> Option<Reading> {
    let Reading::Read {
        calendar,
        good_until,
        overdue: _,
    } = reading
    else {
        return None;
    };
    let good_until = good_until.filter(|end| now < *end)?;
    Some(Reading::Read {
        calendar: Arc::clone(calendar),
        good_until: Some(good_until.min(later(now, cadence.interval * GOOD_FOR))),
        overdue,
    })
}

/// What to judge from at `now` when it is not yet time to read again.
fn meanwhile(last: &Seen, cadence: &Cadence, now: Timestamp) -> Reading {
    let overdue = match &last.reading {
        Reading::Read { overdue, .. } => overdue.clone(),
        Reading::Unavailable(_) | Reading::Broken(_) => None,
    };
    let problem = || Some(last.rereads.as_ref()?.problem.as_ref()?.reading());
    keep(&last.reading, overdue, cadence, now)
        .or_else(problem)
        .unwrap_or_else(|| last.reading.clone())
}

fn good_until(reading: &Reading) -> Option<Timestamp> {
    match reading {
        Reading::Read { good_until, .. } => *good_until,
        Reading::Unavailable(_) | Reading::Broken(_) => None,
    }
}

impl Look<'_> {
    pub(super) async fn at_address(
        &self,
        source: &Calendar,
        url: &str,
        last: Option<&Seen>,
    ) -> Seen {
        let cadence = Cadence::of(source, &self.uid);
        if let Some(last) = last
            && let Some(rereads) = &last.rereads
            && !rereads.due.is_due(self.now, cadence.interval)
        {
            return Seen {
                reading: meanwhile(last, &cadence, self.now),
                ..last.clone()
            };
        }
        let attempt = match self.fetch(source, url).await {
            Ok(body) => {
                let reader = &self.clients.reader;
                Ok(reader.read(&body, &self.zone, &self.namespace).await)
            }
            Err(why) => Err(why),
        };
        let (reading, rereads) = after(&attempt, last, &cadence, self.now);
        self.tell(url, last.and_then(|last| last.rereads.as_ref()), &rereads);
        let fresh = attempt.ok().and_then(Result::ok);
        let kept = fresh.or_else(|| last.and_then(|last| last.kept.clone()));
        self.seen(source, reading, kept, Some(rereads))
    }

    /// Logs what went wrong, and that it is right again, once for each.
    fn tell(&self, url: &str, before: Option<&Rereads>, rereads: &Rereads) {
        let before = before.and_then(|before| before.problem.as_ref());
        let (namespace, name, host) = (&self.namespace, &self.name, sluice_egress::shown(url));
        match (before, &rereads.problem) {
            (before, Some(problem)) if before != Some(problem) => {
                tracing::warn!(namespace, name, host, why = %problem, "a calendar cannot be read");
            }
            (Some(_), None) => tracing::info!(namespace, name, host, "a calendar is read again"),
            (_, Some(_)) | (None, None) => {}
        }
    }

    async fn fetch(&self, source: &Calendar, url: &str) -> Result<Body, String> {
        let authorities = match &source.cert_secret_ref {
            Some(reference) => {
                let (client, name) = (&self.clients.kubernetes, &reference.name);
                Some(secrets::authorities(client, &self.namespace, name).await?)
            }
            None => None,
        };
        let request = Request {
            namespace: &self.namespace,
            authorities: authorities.as_deref(),
            body_waits: true,
            ..Request::to(url)
        };
        let body = self.clients.egress.get(&request).await;
        body.map_err(|error| format!("{}: {error}", sluice_egress::shown(url)))
    }
}

#[cfg(test)]
pub(super) mod tests;
