//! What to write into a gatekeeper's status, and when to look again.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::GatekeeperStatus;
use sluice_crds::gatekeeper::{CalendarStatus, EvidenceStatus, VerdictStatus};

use super::schedule::{Reading, Schedule};
use super::{Keeper, Rule, http, objects};
use crate::time::clock::Now;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted};
use crate::verdict::{Reason, Verdict, status, transition};

/// What a gatekeeper's status should say.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status.
    pub status: GatekeeperStatus,
    /// Whether it differs from what the object says in anything that is worth a write.
    pub changed: bool,
    /// When to look again, if nothing happens before. None: when something changes.
    pub wake: Option<Timestamp>,
}

/// How many revisions a status names that were voted on.
const MOST_VOTED_ON: usize = 20;

/// What the status of `keeper` should say at `now`.
pub fn report(keeper: &Keeper, now: Now) -> Report {
    let object = keeper.object();
    let before = object.status.clone().unwrap_or_default();
    let opinion = keeper.opinion(now);
    let wake = status::wake(opinion.until, opinion.next, now.at);
    if keeper.stand_in(&opinion, now.into()).is_some() {
        // Nobody has looked yet: what the status says is all that is known.
        return Report {
            status: before,
            changed: false,
            wake,
        };
    }
    let verdict = keeper.verdict(now);
    let upcoming: Vec<_> = keeper.upcoming(now).into_iter().map(transition).collect();
    let generation = object.metadata.generation;
    let mut status = GatekeeperStatus {
        observed_generation: generation,
        upcoming,
        observed_at: Some(time(now.at)),
        evidence: evidence(keeper, now.at).map(Box::new),
        report: before.report.clone(),
        last_handled_reconcile_at: status::requested_at(&object.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        conditions: condition::settle(
            conditions(trouble(keeper, opinion.reason), &verdict),
            &before.conditions,
            generation,
            whole_second(now.at),
        ),
        verdict: Some(VerdictStatus {
            valid_until: valid_until(keeper, &verdict, &before, now.at),
            ..verdict.status()
        }),
    };
    let known = !keeper.stands_in(now);
    let changed =
        differs(&before, &status, keeper.wavers()) && (known || !is_as_good(&before, &status));
    if !changed {
        status = before;
    }
    Report {
        status,
        changed,
        wake,
    }
}

/// Until when others may rely on the status: as long as time changes nothing, and what was read is
/// good. What the status says already stands until half of it is spent, so that reading the same
/// again is no reason to write.
fn valid_until(
    keeper: &Keeper,
    verdict: &Verdict,
    before: &GatekeeperStatus,
    now: Timestamp,
) -> Option<Time> {
    let by_time = verdict.valid_until;
    let Some(good_until) = keeper.good_after(now) else {
        return by_time.map(time);
    };
    let until = by_time.map_or(good_until, |by_time| by_time.min(good_until));
    let said = before
        .verdict
        .as_ref()
        .and_then(|verdict| verdict.valid_until.as_ref());
    match (said, &before.observed_at) {
        (Some(said), Some(observed)) if said.0 <= until => {
            let spent = now.duration_since(observed.0);
            let left = said.0.duration_since(now);
            Some(if spent <= left {
                said.clone()
            } else {
                time(until)
            })
        }
        _ => Some(time(until)),
    }
}

/// Whether a status says anything else, the instant of the look apart. What comes into view at the
/// far end of the outlook as time passes is nothing else: it is told when there is something to
/// write; and so is what is measured, as long as it comes to the same.
fn differs(before: &GatekeeperStatus, after: &GatekeeperStatus, wavers: bool) -> bool {
    let comparable = |status: &GatekeeperStatus| {
        let mut status = status.clone();
        status.observed_at = None;
        status.upcoming.truncate(1);
        without_measures(&mut status);
        if wavers {
            without_words(&mut status);
        }
        status
    };
    comparable(before) != comparable(after) || !after.upcoming.starts_with(&before.upcoming)
}

/// Whether a status that was written with evidence at hand says what one without it would.
fn is_as_good(before: &GatekeeperStatus, after: &GatekeeperStatus) -> bool {
    let state = |status: &GatekeeperStatus| Some(status.verdict.as_ref()?.state);
    state(before) == state(after)
        && before.observed_generation == after.observed_generation
        && before.last_handled_reconcile_at == after.last_handled_reconcile_at
}

/// Leaves of the words of a status only those about trouble.
fn without_words(status: &mut GatekeeperStatus) {
    if let Some(verdict) = &mut status.verdict {
        verdict.message = status::of_trouble(&verdict.reason, &verdict.message);
    }
    for condition in &mut status.conditions {
        condition.message.clear();
    }
}

/// Takes out of a status what another look changes although it comes to the same.
fn without_measures(status: &mut GatekeeperStatus) {
    let Some(evidence) = status.evidence.as_deref_mut() else {
        return;
    };
    let EvidenceStatus {
        calendars: _,
        metric,
        objects,
        http,
        votes: _,
    } = evidence;
    if let Some(metric) = metric {
        (metric.value, metric.observed_at) = (None, None);
    }
    if let Some(http) = http {
        (http.status, http.observed_at) = (None, None);
    }
    if let Some(objects) = objects {
        (objects.seen, objects.satisfied) = (0, 0);
    }
}

/// What the conditions are about: that a calendar cannot be had, even where the windows that are
/// known decide without it; else the reason of the verdict.
fn trouble(keeper: &Keeper, reason: Reason) -> Reason {
    match keeper.rule.as_ref() {
        Ok(Rule::Schedule { schedule, .. })
            if reason.is_by_window()
                && schedule.missing(keeper.evidence().calendars()).is_some() =>
        {
            Reason::EvidenceUnavailable
        }
        _ => reason,
    }
}

fn conditions(reason: Reason, verdict: &Verdict) -> Vec<Wanted> {
    let want = |type_, holds| Wanted {
        type_,
        holds,
        reason: reason.as_str().to_owned(),
        message: verdict.message.clone(),
    };
    match reason {
        Reason::InvalidSpec | Reason::EvidenceBroken => {
            vec![want(READY, false), want(STALLED, true)]
        }
        Reason::NotObserved => vec![want(READY, false), want(RECONCILING, true)],
        Reason::EvidenceUnavailable
        | Reason::Expired
        | Reason::ClockSkew
        | Reason::UnverifiedIdentity
        | Reason::Cycle => vec![want(READY, false)],
        _ => vec![want(READY, true)],
    }
}

fn evidence(keeper: &Keeper, now: Timestamp) -> Option<EvidenceStatus> {
    let evidence = keeper.evidence();
    let mut status = EvidenceStatus::default();
    match keeper.rule.as_ref() {
        Ok(Rule::Schedule { schedule, .. }) => {
            status.calendars = calendars(schedule, evidence.calendars());
        }
        Ok(Rule::Approval(rule)) => {
            status.votes = rule.latest(evidence.votes(), MOST_VOTED_ON, now);
        }
        Ok(Rule::Metric(rule)) => {
            status.metric = evidence.metric().map(|observed| observed.status(rule));
        }
        Ok(Rule::Objects(_)) => {
            status.objects = evidence.objects().and_then(objects::Observed::status);
        }
        Ok(Rule::Http(_)) => status.http = evidence.http().map(http::status),
        Ok(Rule::Manual | Rule::Revisions(_) | Rule::External | Rule::Gates) | Err(_) => {}
    }
    (status != EvidenceStatus::default()).then_some(status)
}

fn calendars(schedule: &Schedule, readings: &[Reading]) -> Vec<CalendarStatus> {
    let status = |((window, _), reading): ((&str, _), &Reading)| {
        let said = CalendarStatus {
            window: window.to_owned(),
            events: None,
            digest: None,
            error: None,
        };
        match reading {
            Reading::Read {
                calendar,
                good_until: _,
                overdue,
            } => CalendarStatus {
                events: i64::try_from(calendar.events()).ok(),
                digest: Some(calendar.digest().to_owned()),
                error: overdue.as_ref().map(ToString::to_string),
                ..said
            },
            Reading::Unavailable(why) => CalendarStatus {
                error: Some(why.clone()),
                ..said
            },
            Reading::Broken(error) => CalendarStatus {
                error: Some(error.to_string()),
                ..said
            },
        }
    };
    schedule.calendars().zip(readings).map(status).collect()
}
