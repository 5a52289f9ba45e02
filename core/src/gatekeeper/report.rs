//! What to write into a gatekeeper's status, and when to look again.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::GatekeeperStatus;
use sluice_crds::gatekeeper::{EvidenceStatus, VerdictStatus};

use super::Keeper;
use super::kind::Judge;
use crate::time::clock::Now;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted};
use crate::verdict::{Health, Reason, Verdict, status, transition};

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

/// What the status of `keeper` should say at `now`.
pub fn report(keeper: &Keeper, now: Now) -> Report {
    let object = keeper.object();
    let before = object.status.clone().unwrap_or_default();
    let opinion = keeper.opinion(now);
    let wake = status::wake(opinion.until, opinion.next, now.at);
    if keeper.status_fallback(&opinion, now.into()).is_some() {
        // Nothing was observed yet: only what the status says is known.
        return Report {
            status: before,
            changed: false,
            wake,
        };
    }
    let judge = keeper.judge();
    let verdict = keeper.verdict(now);
    let upcoming: Vec<_> = keeper.upcoming(now).into_iter().map(transition).collect();
    let generation = object.metadata.generation;
    let mut status = GatekeeperStatus {
        observed_generation: generation,
        upcoming,
        observed_at: Some(time(now.at)),
        evidence: judge.and_then(|judge| evidence(judge, now.at)),
        report: before.report.clone(),
        last_handled_reconcile_at: status::requested_at(&object.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        conditions: condition::settle(
            conditions(
                judge.map_or(opinion.reason, |it| it.trouble(opinion.reason)),
                &verdict,
            ),
            &before.conditions,
            generation,
            whole_second(now.at),
        ),
        verdict: Some(VerdictStatus {
            valid_until: valid_until(keeper, &verdict, &before, now.at),
            ..verdict.status()
        }),
    };
    let known = !keeper.uses_status_fallback(now);
    let changed = differs(keeper, &before, &status) && (known || !is_as_good(&before, &status));
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
/// far end of the outlook as time passes is nothing else: it is reported when there is something to
/// write; and so is what is measured, as long as it means the same.
fn differs(keeper: &Keeper, before: &GatekeeperStatus, after: &GatekeeperStatus) -> bool {
    let comparable = |status: &GatekeeperStatus| {
        let mut status = status.clone();
        status.observed_at = None;
        status.upcoming.truncate(1);
        if let (Some(judge), Some(evidence)) = (keeper.judge(), &mut status.evidence) {
            judge.remove_measurements(evidence);
        }
        if keeper.has_volatile_message() {
            without_words(&mut status);
        }
        status
    };
    comparable(before) != comparable(after) || !after.upcoming.starts_with(&before.upcoming)
}

/// Whether a status that was written with evidence says the same as one without evidence would.
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

fn conditions(reason: Reason, verdict: &Verdict) -> Vec<Wanted> {
    let want = |type_, holds| Wanted {
        type_,
        holds,
        reason: reason.as_str().to_owned(),
        message: verdict.message.clone(),
    };
    match reason.health() {
        Health::Stalled => vec![want(READY, false), want(STALLED, true)],
        Health::Reconciling => vec![want(READY, false), want(RECONCILING, true)],
        Health::NotReady => vec![want(READY, false)],
        Health::Ready => vec![want(READY, true)],
    }
}

fn evidence(judge: &dyn Judge, now: Timestamp) -> Option<Box<EvidenceStatus>> {
    let shown = judge.status(now);
    (shown != EvidenceStatus::default()).then(|| Box::new(shown))
}
