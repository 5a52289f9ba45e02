//! What to write into a gate's status, and when to look again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::gate::{GatekeeperVerdict, Override};
use sluice_crds::{GateStatus, State, Transition};

use super::{Answer, Force, Forces, Named, View, answer_with, force, outlook, until, words};
use crate::text::refusal::Refusal;
use crate::time::clock::Now;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, OPENED, READY, STALLED, Wanted};
use crate::verdict::question::Question;
use crate::verdict::{Reason, Verdict, status, transition};

/// What a gate's status should say, and what follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The answer that it reports.
    pub answer: Answer,
    /// The status.
    pub status: GateStatus,
    /// Whether it differs from the status of the object in anything that is worth a write.
    pub changed: bool,
    /// Force annotations to complete and co-own: the status describes the gate that has them. None: there
    /// is nothing to complete.
    pub completion: Option<BTreeMap<String, String>>,
    /// What is wrong with the annotations that force the gate: those forces do not count.
    pub complaints: Vec<Refusal>,
    /// When to look again, if nothing happens before. None: when something changes.
    pub wake: Option<Timestamp>,
}

/// What the status of a gate should say at `now`, once its annotations are completed.
pub fn report(view: &View<'_>, now: Now) -> Report {
    let mut forces = view.forces(now);
    let Some(completion) = forces.completion.take() else {
        return compose(view, &forces, words::of_clock(now.trust).as_deref(), now);
    };
    let gate = force::completed(view.gate, &completion);
    let completed = View {
        gate: &gate,
        ..view.clone()
    };
    let forces = completed.forces(now);
    Report {
        completion: Some(completion),
        ..compose(&completed, &forces, None, now)
    }
}

/// The same, where the API server does not let us complete the annotations: `obstacle` says what
/// it refused, and why.
pub fn report_uncompleted(view: &View<'_>, now: Now, obstacle: &str) -> Report {
    let forces = view.forces(now);
    compose(view, &forces, Some(obstacle), now)
}

/// What can be said of a gate: for its status about any revision, or for a person who asks about one.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The answer.
    pub answer: Answer,
    /// Why, in a sentence.
    pub message: String,
    /// What each gatekeeper says, in the order of the spec.
    pub verdicts: Vec<GatekeeperVerdict>,
    /// The force in effect, if any.
    pub r#override: Option<Override>,
    /// The next real changes that are known ahead: at most 8, within 90 days.
    pub upcoming: Vec<Transition>,
    /// When time may change anything of this. None: time changes nothing.
    pub wake: Option<Timestamp>,
}

/// What can be said of a gate in answer to `question`.
pub fn told<'q>(view: &View<'_>, question: impl Into<Question<'q>>) -> Told {
    let question = question.into();
    let forces = view.forces(question.now);
    tell(view, &forces, None, question).0
}

/// The same of a gate with these forces and with the verdicts as they were made. Forces that wait to be
/// accepted do so because of `obstacle`.
fn tell(
    view: &View<'_>,
    forces: &Forces,
    obstacle: Option<&str>,
    question: Question<'_>,
) -> (Told, Vec<Verdict>) {
    let at = question.now.at;
    let answer = answer_with(view, forces, question);
    let verdicts = words::verdicts(view, question);
    let message = words::explain(view, forces, &answer, &verdicts, obstacle, question);
    let outlook = outlook::look_ahead(view, forces, question);
    let first = outlook.changes.first().map(|change| change.0);
    let next = first.or(outlook.behind);
    let told = Told {
        answer,
        message,
        verdicts: named(view, &verdicts),
        r#override: forces.in_effect(at).and_then(effective),
        upcoming: outlook.changes.into_iter().map(transition).collect(),
        wake: status::wake(until(view, forces, question), next, at),
    };
    (told, verdicts)
}

/// The report of a gate with these forces. Those that wait to be accepted do so because of
/// `obstacle`.
fn compose(view: &View<'_>, forces: &Forces, obstacle: Option<&str>, now: Now) -> Report {
    let gate = view.gate;
    let before = gate.status.clone().unwrap_or_default();
    // A status speaks of no revision in particular.
    let (told, verdicts) = tell(view, forces, obstacle, Question::from(now));
    let Told { answer, wake, .. } = told;
    let conditions = conditions(&answer, &told.message, &verdicts);
    let generation = gate.metadata.generation;
    let mut status = GateStatus {
        observed_generation: generation,
        state: Some(answer.state),
        reason: Some(answer.reason.as_str().to_owned()),
        verdicts: told.verdicts,
        r#override: told.r#override,
        upcoming: told.upcoming,
        since: Some(time(since(&before, answer.state, now))),
        last_handled_reconcile_at: status::requested_at(&gate.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        conditions: settle(conditions, &before.conditions, generation, now),
        message: Some(told.message),
    };
    let known = !uses_status_fallback(view, now);
    let changed = differs(&before, &status, has_volatile_message(view))
        && (known || !is_as_good(&before, &status));
    if !changed {
        status = before;
    }
    Report {
        answer,
        status,
        changed,
        completion: None,
        complaints: forces.complaints.clone(),
        wake,
    }
}

fn settle(
    wanted: Vec<Wanted>,
    before: &[Condition],
    generation: Option<i64>,
    now: Now,
) -> Vec<Condition> {
    condition::settle(wanted, before, generation, whole_second(now.at))
}

/// Whether a status says anything else. That changes farther ahead come into view as time passes does not
/// count: they are written with the next write.
///
/// Where gatekeepers are judged from measurements, a change of their words does not count either, unless
/// the words say what is in the way.
fn differs(before: &GateStatus, after: &GateStatus, is_volatile: bool) -> bool {
    let comparable = |status: &GateStatus| {
        let mut status = status.clone();
        status.upcoming.truncate(1);
        if is_volatile {
            without_words(&mut status);
        }
        status
    };
    comparable(before) != comparable(after) || !after.upcoming.starts_with(&before.upcoming)
}

/// Keeps only the words about forces and about trouble, which do not change with each look.
fn without_words(status: &mut GateStatus) {
    let message = status.message.take();
    let about_forces = message.as_deref().and_then(words::about_forces);
    status.message = about_forces.map(str::to_owned);
    for told in &mut status.verdicts {
        let verdict = &mut told.verdict;
        verdict.message = status::of_trouble(&verdict.reason, &verdict.message);
    }
    for condition in &mut status.conditions {
        condition.message.clear();
    }
}

/// Whether the words of any of the gatekeepers, or of the gates behind it, may change with each look.
fn has_volatile_message(view: &View<'_>) -> bool {
    let mut keepers = view.keepers.iter().filter_map(Named::here);
    keepers.any(|keeper| keeper.has_volatile_message())
}

/// Whether any of the gatekeepers only repeats what its status reports.
fn uses_status_fallback(view: &View<'_>, now: Now) -> bool {
    let mut keepers = view.keepers.iter().filter_map(Named::here);
    keepers.any(|keeper| keeper.uses_status_fallback(now))
}

/// Whether a status that was written with evidence says the same as one without evidence would.
fn is_as_good(before: &GateStatus, after: &GateStatus) -> bool {
    before.state == after.state
        && before.observed_generation == after.observed_generation
        && before.r#override == after.r#override
        && before.last_handled_reconcile_at == after.last_handled_reconcile_at
}

/// Since when the gate has been in `state`. Where the status announced the change ahead, that instant,
/// because the controller may have been down then.
fn since(before: &GateStatus, state: State, now: Now) -> Timestamp {
    match (&before.since, before.state) {
        (Some(since), Some(same)) if same == state => since.0,
        _ => {
            let mut told = before
                .upcoming
                .iter()
                .filter(|change| change.at.0 <= now.at);
            let last = told.next_back().filter(|change| change.state == state);
            last.map_or_else(|| now.at, |change| change.at.0)
        }
    }
}

fn named(view: &View<'_>, verdicts: &[Verdict]) -> Vec<GatekeeperVerdict> {
    let named = |(place, verdict): (usize, &Verdict)| GatekeeperVerdict {
        gatekeeper: words::name(view, place),
        verdict: verdict.status(),
    };
    verdicts.iter().enumerate().map(named).collect()
}

/// A force as the status has it, once it is accepted: before that it has no beginning, and perhaps no
/// end.
fn effective(force: &Force) -> Option<Override> {
    force.accepted.then(|| Override {
        state: force.state,
        by: force.by.clone(),
        reason: force.reason.clone(),
        since: time(force.since),
        until: time(force.until),
    })
}

fn conditions(answer: &Answer, message: &str, verdicts: &[Verdict]) -> Vec<Wanted> {
    let want = |type_, holds, reason: &str| Wanted::new(type_, holds, reason, message);
    let opened = want(OPENED, answer.state == State::Open, answer.reason.as_str());
    let own_spec = answer.decided_by.is_none();
    match (answer.reason, trouble(verdicts)) {
        (Reason::InvalidSpec, _) if own_spec => vec![
            want(READY, false, answer.reason.as_str()),
            opened,
            want(STALLED, true, answer.reason.as_str()),
        ],
        (Reason::NotWatched, _) => vec![want(READY, false, answer.reason.as_str()), opened],
        (Reason::Forced, _) | (_, None) => vec![want(READY, true, answer.reason.as_str()), opened],
        (_, Some(trouble)) => vec![want(READY, false, trouble), opened],
    }
}

/// The reason of the first gatekeeper that could not be judged as it should be.
fn trouble(verdicts: &[Verdict]) -> Option<&str> {
    const TROUBLES: [Reason; 11] = [
        Reason::Missing,
        Reason::CrossNamespaceRef,
        Reason::Suspended,
        Reason::InvalidSpec,
        Reason::NotObserved,
        Reason::EvidenceUnavailable,
        Reason::EvidenceBroken,
        Reason::Expired,
        Reason::ClockSkew,
        Reason::UnverifiedIdentity,
        Reason::Cycle,
    ];
    let in_trouble = |verdict: &&Verdict| {
        TROUBLES
            .iter()
            .any(|trouble| trouble.as_str() == verdict.reason)
    };
    verdicts
        .iter()
        .find(in_trouble)
        .map(|verdict| verdict.reason.as_str())
}
