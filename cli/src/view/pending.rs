//! What waits: which change, at which gate, since when and for what.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use sluice_core::Now;
use sluice_core::delivery::gated_source::KIND;
use sluice_core::delivery::pipeline::{self, View};
use sluice_core::delivery::promotion_strategy::{KIND as STRATEGY, REVERT};
use sluice_core::delivery::rollout;
use sluice_core::gatekeeper::approval::Approvals;
use sluice_core::offline::simulate::Key;
use sluice_core::revision::Revision;
use sluice_core::verdict::Reason;
use sluice_core::verdict::condition::find_true;
use sluice_core::verdict::question::Question;
use sluice_crds::approval::Vote;
use sluice_crds::gatekeeper::Kind;
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::promotion_strategy::{EnvironmentState as BranchState, EnvironmentStatus, Wait};
use sluice_crds::revert_commit::RevertPhase;
use sluice_crds::{Approval, Gate, GatedSource, PromotionStrategy, RevertCommit, Rollout};

use super::source::{blocked, held_back, turn, warnings};
use crate::cluster::{Seen, Waiting};

/// Something that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) namespace: String,
    /// What waits: `Kind/name`, or a vote.
    pub(crate) what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    pub(crate) gates: Vec<String>,
    pub(crate) since: Timestamp,
    /// When the answer may be another one by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    pub(crate) message: String,
    /// What else is wrong with what waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

impl From<Waiting> for Row {
    fn from(waiting: Waiting) -> Self {
        let Waiting {
            namespace,
            kind,
            name,
            environment,
            revision,
            gates,
            since,
            next,
            message,
        } = waiting;
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        let environment = environment.map(|it| format!(" ({it})"));
        Self {
            namespace,
            what: format!("{kind}{name}{}", environment.unwrap_or_default()),
            revision,
            gates,
            since,
            until: next,
            message,
            warnings: Vec::new(),
        }
    }
}

/// What a gated source waits with, as its status has it. None: it waits with nothing.
pub(crate) fn held(source: &GatedSource) -> Option<Row> {
    let status = source.status.as_ref()?;
    let (pending, blocked) = (status.pending.as_ref(), blocked(status));
    let since = match (pending, blocked) {
        (Some(pending), _) => pending.since.0,
        // It suspends its sources, and nobody knows what they would bring.
        (None, Some(blocked)) => blocked.last_transition_time.0,
        (None, None) => return None,
    };
    let turn = turn(status);
    let decided = held_back(status).filter(|_| turn.is_none());
    let next = decided.and_then(|decision| decision.next.as_ref());
    let message = match (turn, decided, blocked) {
        _ if source.spec.suspend => "the gated source is suspended".to_owned(),
        (Some(_), ..) => "its gates admit it, and spread has it wait for its turn".to_owned(),
        (None, Some(decision), _) => decision.message.clone(),
        (None, None, Some(blocked)) => blocked.message.clone(),
        (None, None, None) => "no controller has said why".to_owned(),
    };
    let key = Key::of(&source.metadata);
    Some(Row {
        namespace: key.namespace,
        what: format!("{KIND}/{}", key.name),
        revision: pending.map(|pending| pending.revision.clone()),
        gates: decided.map(|it| it.decided_by.clone()).unwrap_or_default(),
        since,
        until: turn.or(next).map(|at| at.0),
        message,
        warnings: warnings(source),
    })
}

/// The promotions with which a pipeline waits for gates, people or a merge, as its status has them.
pub(crate) fn promotions(view: &View) -> Vec<Row> {
    let waiting = view.environments.iter().filter_map(|environment| {
        let state = environment.state?;
        let waits = environment.waiting_approval.as_ref();
        let promotion = environment.promotion.as_ref();
        let is_waiting = matches!(
            state,
            EnvironmentState::GatesClosed
                | EnvironmentState::Unapproved
                | EnvironmentState::Rejected
                | EnvironmentState::PullRequestOpen
                | EnvironmentState::CyclicGates
        );
        let about = waits.map(|it| (&it.revision, it.since.0));
        let about = about.or(promotion.map(|it| (&it.revision, it.at.0)));
        let (revision, since) = about.filter(|_| is_waiting)?;
        Some(Row {
            namespace: view.namespace.clone(),
            what: format!("{}/{} ({})", pipeline::KIND, view.name, environment.name),
            revision: Some(revision.clone()),
            gates: environment.decided_by.clone(),
            since,
            until: environment.until.as_ref().map(|at| at.0),
            message: environment.message.clone(),
            warnings: Vec::new(),
        })
    });
    waiting.collect()
}

/// The environments in which what is proposed waits, as the status of a strategy has them. One that waits
/// for another environment is left out: that one is listed, or is still looked at.
pub(crate) fn environments(strategy: &PromotionStrategy) -> Vec<Row> {
    const OTHERS: &str = "WaitsForEnvironment";
    let Key { namespace, name } = Key::of(&strategy.metadata);
    let status = strategy.status.as_ref();
    let seen = status.map_or(&[][..], |it| &it.environments);
    let waiting = seen.iter().filter_map(|environment| {
        let is_waiting = matches!(environment.state, BranchState::Waiting | BranchState::Held);
        let first = environment.waits.first()?;
        let proposed = environment.proposed.as_ref()?;
        (is_waiting && first.reason != OTHERS).then(|| Row {
            namespace: namespace.clone(),
            what: format!("{STRATEGY}/{name} ({})", environment.branch),
            revision: Some(format!(
                "{}@sha1:{}",
                environment.branch, proposed.hydrated_sha
            )),
            gates: closed(environment, first),
            since: proposed.since.0,
            until: first.next.as_ref().map(|at| at.0),
            message: first.message.clone(),
            warnings: Vec::new(),
        })
    });
    waiting.collect()
}

/// The gates that hold an environment back. None: it waits for something else.
fn closed(environment: &EnvironmentStatus, first: &Wait) -> Vec<String> {
    const GATES: &str = "GateClosed";
    let decision = environment.last_decision.as_ref();
    let decision = decision.filter(|it| first.reason == GATES && !it.allowed);
    decision.map(|it| it.decided_by.clone()).unwrap_or_default()
}

/// A revert that is being carried out and waits, as the status of a strategy has it.
pub(crate) fn reverting(revert: &RevertCommit, strategies: &[PromotionStrategy]) -> Option<Row> {
    let Key { namespace, name } = Key::of(&revert.metadata);
    let is_under_way = |environment: &&EnvironmentStatus| {
        let mut due = environment.reverts.iter();
        let due = due.find(|it| matches!(it.phase, RevertPhase::Pending | RevertPhase::Open));
        environment.state == BranchState::Reverting && due.is_some_and(|it| it.name == name)
    };
    let own = strategies.iter();
    let own = own.filter(|it| it.metadata.namespace == revert.metadata.namespace);
    let seen = own.filter_map(|it| it.status.as_ref());
    let mut environments = seen.flat_map(|it| &it.environments);
    let environment = environments.find(is_under_way)?;
    let first = environment.waits.first()?;
    let decision = environment.last_decision.as_ref();
    let asked = decision.filter(|it| it.subject.kind == REVERT);
    let created = revert.metadata.creation_timestamp.as_ref()?;
    Some(Row {
        namespace,
        what: format!("{REVERT}/{name} ({})", environment.branch),
        revision: asked.and_then(|it| it.subject.revision.clone()),
        gates: closed(environment, first),
        since: created.0,
        until: first.next.as_ref().map(|at| at.0),
        message: first.message.clone(),
        warnings: Vec::new(),
    })
}

/// The batch with which a rollout waits for gates or people, as its status has it. None: it waits for neither.
pub(crate) fn batch(object: &Rollout) -> Option<Row> {
    let view = rollout::view(object, &BTreeMap::new());
    let status = object.status.as_ref()?;
    find_true(&status.conditions, rollout::BLOCKED)?;
    let held = view.held.as_ref()?;
    let next = view.next()?;
    let decision = status.last_decision.as_ref();
    let closed = decision.filter(|it| held.reason == rollout::CLOSED && !it.allowed);
    Some(Row {
        what: format!(
            "{}/{} ({}/{})",
            rollout::KIND,
            view.name,
            next.batch + 1,
            view.batches.len()
        ),
        namespace: view.namespace.clone(),
        revision: view.revision.clone(),
        gates: closed.map(|it| it.decided_by.clone()).unwrap_or_default(),
        since: held.since.0,
        until: closed.and_then(|it| it.next.as_ref()).map(|at| at.0),
        message: closed.map_or(&held.message, |it| &it.message).clone(),
        warnings: Vec::new(),
    })
}

/// The revisions that somebody has approved of, and that gates hold back all the same until more
/// people do.
pub(crate) fn voted_on(seen: &Seen, now: Now) -> Vec<Row> {
    let mut rows = Vec::new();
    for (keeper, votes) in votes(seen, now.at) {
        for (revision, since) in votes {
            let question = Question::new(now, Some(&revision));
            let awaited = |gate| awaited(seen, gate, &keeper, question);
            let gates = seen.world.gates.iter();
            let held = gates.filter_map(|(key, gate)| Some((key.to_string(), awaited(gate)?)));
            let (gates, mut messages): (Vec<_>, Vec<_>) = held.unzip();
            rows.extend(messages.pop().map(|message| Row {
                namespace: keeper.namespace.clone(),
                what: format!("gatekeeper/{}", keeper.name),
                revision: Some(revision.to_string()),
                gates,
                since,
                until: None,
                message,
                warnings: Vec::new(),
            }));
        }
    }
    rows
}

/// What `keeper` says to a gate that it holds back until more people approve. None: it does not.
fn awaited(seen: &Seen, gate: &Gate, keeper: &Key, question: Question<'_>) -> Option<String> {
    let mut named = gate.spec.gatekeepers.iter();
    let place = named.position(|reference| Key::named_by(gate, reference) == *keeper)?;
    let mut scene = seen.scene(&Key::of(&gate.metadata), question.now.at)?;
    let decision = seen.decide(&mut scene, question);
    let told = decision.verdicts.into_iter().nth(place)?;
    let waits = told.verdict.reason == Reason::AwaitingApproval.as_str();
    waits.then_some(told.verdict.message)
}

/// For each gatekeeper the revisions that somebody approves of, and since when. Of approvals that have
/// run out nothing waits.
fn votes(seen: &Seen, now: Timestamp) -> BTreeMap<Key, Vec<(Revision, Timestamp)>> {
    let mut all: BTreeMap<Key, Vec<(Revision, Timestamp)>> = BTreeMap::new();
    let approves = |approval: &&Arc<Approval>| {
        approval.spec.decision == Vote::Approve && approval.metadata.deletion_timestamp.is_none()
    };
    for approval in seen.world.approvals.values().filter(approves) {
        let created = approval.metadata.creation_timestamp.as_ref();
        // A vote on a promotion is shown with its Pipeline.
        let gatekeeper = approval.spec.gatekeeper_ref.as_ref();
        let revision = Revision::parse(&approval.spec.revision);
        let (Ok(revision), Some(created), Some(gatekeeper)) = (revision, created, gatekeeper)
        else {
            continue;
        };
        let key = Key {
            namespace: Key::of(&approval.metadata).namespace,
            name: gatekeeper.name.clone(),
        };
        if rule(seen, &key).is_some_and(|rule| !rule.is_in_force(approval, now)) {
            continue;
        }
        let known = all.entry(key).or_default();
        match known.iter_mut().find(|(other, _)| other.is(&revision)) {
            Some((_, since)) => *since = created.0.min(*since),
            None => known.push((revision, created.0)),
        }
    }
    all
}

/// How a gatekeeper counts approvals. None: it is no such gatekeeper, or its spec is refused.
fn rule(seen: &Seen, keeper: &Key) -> Option<Approvals> {
    match seen.world.gatekeepers.get(keeper)?.spec.kind() {
        Ok(Kind::Approval(spec)) => Approvals::read(spec, "spec.approval").ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
