//! Step 6: the status, what has to be done, and when to look again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::gated_source::{Candidate, Pending};
use sluice_crds::{Decision, GatedSource, GatedSourceStatus};

use super::admission::Admission;
use super::candidates::asked;
use super::children::Objects;
use super::conditions::{self, Findings};
use super::considered::{Considered, Outcome, Step};
use super::deletion::{self, Former};
use super::demand::is_out_as_asked;
use super::sources::Seen;
use super::{Act, Report};
use crate::delivery::act::{self, Act as _, still_refused, with_ready};
use crate::delivery::choice::Gates;
use crate::delivery::current;
use crate::revision::short;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, READY, Wanted};
use crate::verdict::question::Question;
use crate::verdict::status::requested_at;

/// How soon at the latest to look again at something that waits, so that it is reported that it waits.
const AGAIN: SignedDuration = SignedDuration::from_mins(30);
/// How soon a fetch that failed is retried.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// What the status has to be, and what has to be done. `recorded` is the decision of
/// [`Considered::decision`] as it was recorded: a yes that could not be recorded has become a no.
pub fn report(considered: Considered, recorded: Option<&Decision>) -> Report {
    let Considered {
        seen,
        gates,
        users,
        mut former,
        candidates,
        step,
    } = considered;
    let object = seen.object.as_ref();
    let before = object.status.clone().unwrap_or_default();
    if let Step::Deleting = step {
        return deleting(&seen, former, before);
    }
    let request = requested_at(&object.metadata);
    let kept = last_decision(&before, &gates, &candidates.all, recorded, request.as_ref());
    let admission = Admission::new(&seen, candidates, step.outcome(recorded), step.may_act());
    let (objects, acts) = Objects::look(&seen, &mut former, &step, &admission, recorded);
    let lost = objects.unfetched().filter(|_| {
        let asked_for = object.spec.revision.as_deref();
        asked_for.is_some_and(|it| is_out_as_asked(&seen, admission.admitted.as_ref(), it))
    });
    let pending = pending(object, &step, &admission, lost.is_some(), seen.now.at);
    let is_left = acts.iter().any(|act| act.writes().is_some());
    let findings = Findings {
        object,
        users: &users,
        former: &former,
        step: &step,
        admission: &admission,
        objects: &objects,
        pending: pending.as_ref(),
        refusal: recorded.filter(|it| !it.allowed).and(kept),
        lost,
        write_refused: still_refused(&before.conditions, is_left),
    };
    let wanted = conditions::all(&findings);
    let wake = wake(&findings, recorded, seen.now.at);
    let (generation, now) = (object.metadata.generation, whole_second(seen.now.at));
    let status = GatedSourceStatus {
        observed_generation: generation,
        conditions: condition::settle(wanted, &before.conditions, generation, now),
        last_handled_reconcile_at: request.or_else(|| before.last_handled_reconcile_at.clone()),
        last_decision: kept.cloned(),
        candidates: admission.candidates,
        admitted: admission.admitted,
        pending,
    };
    Report {
        changed: status != before,
        status,
        acts,
        wake,
    }
}

/// While the GatedSource is being deleted, its status says only what blocks the deletion.
fn deleting(seen: &Seen, former: Former, before: GatedSourceStatus) -> Report {
    let status = deletion::obstacle(seen).and_then(|(reason, message)| {
        let ready = Wanted::new(READY, false, reason, message);
        with_ready(seen.object.as_ref(), vec![ready], seen.now.at)
    });
    Report {
        changed: status.is_some(),
        status: status.unwrap_or(before),
        acts: deletion::acts(seen, former),
        wake: None,
    }
}

/// The decision that the status keeps.
fn last_decision<'d>(
    before: &'d GatedSourceStatus,
    gates: &Gates,
    candidates: &[Candidate],
    recorded: Option<&'d Decision>,
    request: Option<&String>,
) -> Option<&'d Decision> {
    let revision = recorded.and_then(|recorded| recorded.subject.revision.as_deref());
    let revision = revision.and_then(|text| asked(text, candidates));
    let question = Question::new(gates.now, revision.as_ref());
    let is_requested = request.is_some() && request != before.last_handled_reconcile_at.as_ref();
    let last = before.last_decision.as_ref();
    current::kept(&gates.gathered, question, last, recorded, is_requested)
}

/// What waits, as the status shows it: what is asked for, or the newest. `lost`: what is asked for is
/// out, and cannot be fetched.
fn pending(
    object: &GatedSource,
    step: &Step,
    admission: &Admission<'_>,
    lost: bool,
    now: Timestamp,
) -> Option<Pending> {
    let before = object.status.as_ref();
    let before = before.and_then(|status| status.pending.as_ref());
    let asked_for = object.spec.revision.as_deref();
    let admitted = admission.admitted.as_ref();
    let lost = admitted.filter(|_| lost).map(|it| it.revision.as_str());
    let (candidate, turn) = match admission.outcome {
        Outcome::Turn(candidate, at) => (Some(candidate), Some(at)),
        Outcome::HeldBack(candidate) => (Some(candidate), None),
        _ => (None, None),
    };
    let candidate = candidate.filter(|_| asked_for.is_some());
    let candidate = candidate.or(admission.candidates.last());
    // For a revision that is no candidate, it is not known since when it waits.
    let named = |revision| {
        let known = before.filter(|it| it.revision == revision);
        let since = known.map_or_else(|| time(now), |it| it.since.clone());
        (revision, since, None)
    };
    let (revision, since, admit_at) = match (step, admission.outcome) {
        (Step::Refused(_), _) => return before.cloned(),
        // What was asked for still waits, although the gates are not asked about it.
        (Step::Paused, _) if asked_for.is_some() && before.is_some() => return before.cloned(),
        (_, Outcome::Unobtainable(_)) if asked_for.is_some() => asked_for.map(named),
        (_, Outcome::BaselineHeldBack(runs)) => Some(named(&runs.revision)),
        _ if lost.is_some() => lost.map(named),
        _ => candidate.map(|it| (it.revision.as_str(), it.since.clone(), turn)),
    }?;
    Some(Pending {
        revision: revision.to_owned(),
        short: Some(short(revision)),
        since,
        admit_at: admit_at.map(time),
    })
}

/// When to look again.
fn wake(findings: &Findings<'_>, recorded: Option<&Decision>, now: Timestamp) -> Option<Timestamp> {
    let waits = match findings.objects {
        Objects::Untouched => false,
        Objects::Children(_) => findings.pending.is_some(),
        Objects::Sources(_) => recorded.is_none_or(|recorded| !recorded.allowed),
    };
    let turn = match findings.admission.outcome {
        // What is newer than what has just gone out has not been asked for yet.
        Outcome::Out(_) if waits => return Some(now),
        Outcome::Turn(_, at) => Some(at),
        _ => None,
    };
    let later = |after: SignedDuration| now.saturating_add(after).ok();
    let instants = [
        findings.step.next(),
        findings.former.until(),
        recorded.and_then(|recorded| Some(recorded.next.as_ref()?.0)),
        turn,
        waits.then(|| later(AGAIN)).flatten(),
        findings.objects.retries().then(|| later(RETRY)).flatten(),
    ];
    let instants = instants.into_iter().flatten();
    instants.filter(|at| *at > now).min()
}

impl act::Status for GatedSourceStatus {
    fn head(&mut self) -> (&mut Option<i64>, &mut Vec<Condition>) {
        (&mut self.observed_generation, &mut self.conditions)
    }
}

impl act::Act for Act {
    /// What is about the store writes nothing there.
    fn writes(&self) -> Option<String> {
        let (kind, object) = match self {
            Self::Write(child) => {
                return Some(format!("the {} {}", child.kind.as_str(), child.name));
            }
            Self::Serve { before, .. } => ("status of the ExternalArtifact", before),
            Self::Suspend { kind, before, .. } => (kind.as_str(), before),
            Self::Delete { kind, before } => (kind.as_str(), before),
            Self::Finalize(_) => return Some("the finalizer of this GatedSource".to_owned()),
            Self::Fetch { .. } | Self::Retain { .. } => return None,
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        Some(format!("the {kind} {name}"))
    }
}
