//! A Rollout as it is shown: how far it is, its batches, and what it waits for.
//!
//! What comes in: a Rollout, with the status that a controller has written, and its workloads as far as they may
//! be seen. What goes out: a [`View`]. Nothing is decided here.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde_json::Value;
use sluice_crds::rollout::{
    BatchDecision, BatchRollingState, BatchStatus, Held, HookRecord, MetricRecord, Mode, Outcome,
    PastRun, RollingState, WorkloadReference,
};
use sluice_crds::{Rollout, RolloutStatus};

use super::course::{Course, called};
use super::given::Name;
use super::plan::{Plan, check};
use super::why::INVALID_SPEC;
use super::workload::Workload;
use super::{KIND, identity};
use crate::verdict::condition::{READY, STALLED, find, find_true};

/// A Rollout, as its status has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What gates are asked about. None: it is not known before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How far it is. None: no controller has looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RollingState>,
    /// How far the present batch is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_state: Option<BatchRollingState>,
    /// How the new version is brought out. None: there is no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How many batches are done, of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// How many pods there are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i32>,
    /// How many pods there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<i32>,
    /// Pods of the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<i32>,
    /// Those of them that are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// What has the new version.
    pub target: Member,
    /// What has the old one.
    pub sources: Vec<Member>,
    /// The batches, those that have not begun, too.
    pub batches: Vec<Batch>,
    /// What holds the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// When the gates that hold it may answer otherwise, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// When it fails, unless there is progress before. It stands still while the run is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// How the run ends, if there is more to say than its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Whether the old version is brought back.
    pub reverted: bool,
    /// What it does now, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What a person has to fix, where nothing else says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Whether the Rollout is being deleted.
    pub deleted: bool,
    /// Whether the status does not speak of this spec yet, or another run was asked for.
    pub outdated: bool,
    /// The runs that are over, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastRun>,
}

/// A workload of a Rollout.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many pods it had before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<i32>,
    /// How many it has. None: it may not be seen, or is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It has not begun.
    Waiting,
    /// It may not begin, or not go on.
    Held,
    /// Its gates and the hooks before it are asked.
    Initializing,
    /// Its pods are made and taken away.
    Rolling,
    /// Its pods become available, and metrics are looked at.
    Verifying,
    /// The hooks after it are called.
    Finalizing,
    /// It is done.
    Done,
    /// It was passed: its pods were there already.
    Passed,
    /// It was stopped on its way.
    Stopped,
    /// A hook, its pods or a metric said no.
    Failed,
}

impl Phase {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Waiting => "waiting",
            Phase::Held => "held",
            Phase::Initializing => "initializing",
            Phase::Rolling => "rolling",
            Phase::Verifying => "verifying",
            Phase::Finalizing => "finalizing",
            Phase::Done => "done",
            Phase::Passed => "passed",
            Phase::Stopped => "stopped",
            Phase::Failed => "failed",
        }
    }
}

/// A batch, with what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Its place: the first is 0.
    pub batch: usize,
    /// Its size, as the plan writes it. None: the rest, or as many as the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<String>,
    /// How many pods it moves. None: that is not known before the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// How many pods of the new version there are once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<u32>,
    /// How far it is.
    pub phase: Phase,
    /// What lets it out, when and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<BatchDecision>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<Time>,
    /// When it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Time>,
    /// How long it was held, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited: Option<i64>,
    /// How long it took without that, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worked: Option<i64>,
    /// What hooks have answered, of the present batch alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRecord>,
    /// What metrics say, of the present batch alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricRecord>,
    /// What the plan itself lets wait: the batch is behind the last one that may go out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<usize>,
}

impl View {
    /// How the run has ended: whether it has succeeded. None: it goes on, or another one is to begin.
    pub fn ended(&self) -> Option<bool> {
        let is_over = !self.outdated && !self.deleted;
        match self.state.filter(|_| is_over)? {
            RollingState::RolloutSucceed => Some(true),
            RollingState::RolloutFailed => Some(false),
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches
            | RollingState::Finalising
            | RollingState::RolloutFailing
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting => None,
        }
    }

    /// Whether only another spec begins another run.
    pub fn is_refused(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|it| it.reason == INVALID_SPEC)
    }

    /// What people are told of a batch.
    pub fn called(&self, index: usize) -> String {
        called(index, self.batches.len())
    }

    /// The first batch that is not out.
    pub fn next(&self) -> Option<&Batch> {
        let is_out = |batch: &&Batch| matches!(batch.phase, Phase::Done | Phase::Passed);
        self.batches.iter().find(|batch| !is_out(batch))
    }
}

/// Whether somebody has asked for another run, and no controller has begun it.
pub fn is_retry_due(object: &Rollout) -> bool {
    let handled = object.status.as_ref();
    let handled = handled.and_then(|it| it.last_handled_retry_at.clone());
    let retry = identity::retry(object);
    retry.is_some() && retry != handled
}

/// A Rollout as it is shown. `seen`: its workloads, as far as they may be seen.
pub fn view(object: &Rollout, seen: &BTreeMap<Name, Value>) -> View {
    let status = object.status.clone().unwrap_or_default();
    let run = status.run.as_ref();
    let conditions = &status.conditions;
    let is_told = status.held.is_some() || status.outcome.is_some();
    let trouble = find_true(conditions, STALLED).filter(|_| !is_told);
    let decision = status.last_decision.as_ref().filter(|it| !it.allowed);
    let is_held = status.held.is_some();
    let (target, sources) = members(object, &status, seen);
    let plan = check(object);
    View {
        kind: KIND,
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        revision: run
            .map(|run| run.revision.clone())
            .or_else(|| object.spec.revision.clone()),
        state: status.rolling_state,
        batch_state: status.batch_rolling_state,
        mode: run.map(|run| run.mode),
        progress: status.progress.clone(),
        size: status.rollout_target_size,
        original: status.rollout_original_size,
        updated: status.upgraded_replicas,
        ready: status.upgraded_ready_replicas,
        target,
        sources,
        batches: plan.map_or_else(|_| Vec::new(), |plan| batches(object, &plan, &status)),
        until: decision.filter(|_| is_held).and_then(|it| it.next.clone()),
        deadline: status.deadline.clone(),
        outcome: status.outcome.clone(),
        reverted: status.reverted,
        message: find(conditions, READY).map(|it| it.message.clone()),
        trouble: trouble.map(|it| it.message.clone()),
        deleted: object.metadata.deletion_timestamp.is_some(),
        outdated: is_retry_due(object) || status.observed_generation != object.metadata.generation,
        held: status.held,
        history: status.history,
    }
}

/// The workloads of the run; without one, those that the spec names.
fn members(
    object: &Rollout,
    status: &RolloutStatus,
    seen: &BTreeMap<Name, Value>,
) -> (Member, Vec<Member>) {
    let of = |reference: &WorkloadReference, was: Option<i32>| {
        let found = Name::of(reference).and_then(|name| Some((name.kind, seen.get(&name)?)));
        Member {
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            was,
            pods: found.map(|(kind, object)| Workload { kind, object }.seen().replicas),
        }
    };
    let run = status.run.as_ref().map(|run| run.workloads.as_slice());
    match run.and_then(<[_]>::split_first) {
        Some((target, sources)) => (
            of(&target.r#ref, Some(target.was)),
            sources
                .iter()
                .map(|it| of(&it.r#ref, Some(it.was)))
                .collect(),
        ),
        None => (
            of(&object.spec.target_ref, None),
            object
                .spec
                .source_ref
                .iter()
                .map(|it| of(it, None))
                .collect(),
        ),
    }
}

/// All batches of the plan.
fn batches(object: &Rollout, plan: &Plan, status: &RolloutStatus) -> Vec<Batch> {
    let run = status.run.as_ref();
    let course = run.and_then(|run| Course::of(plan, run, status).ok());
    let span = course.and_then(|course| course.span());
    let moves = span.map(|span| plan.sizes.moves(span));
    let written = &object.spec.rollout_plan.rollout_batches;
    let present = status.current_batch.and_then(|it| usize::try_from(it).ok());
    let open = status
        .batches
        .iter()
        .take_while(|it| it.done.is_some())
        .count();
    let batch = |index: usize| {
        let record = status.batches.get(index);
        let replicas = written.get(index).and_then(|it| it.replicas.as_ref());
        let is_present = present == Some(index);
        let held_back = index >= open && !plan.lets_out(index);
        Batch {
            batch: index,
            replicas: replicas.map(ToString::to_string),
            pods: moves.as_ref().and_then(|moves| moves.get(index).copied()),
            goal: span.map(|span| plan.sizes.goal(span, index)),
            phase: match (record, index == open) {
                (Some(record), _) if record.done.is_some() => done(record),
                (_, true) => under_way(status, is_present),
                (_, false) => Phase::Waiting,
            },
            decision: record.and_then(|it| it.decision.clone()),
            began: record.and_then(|it| it.began.clone()),
            done: record.and_then(|it| it.done.clone()),
            waited: record.and_then(|it| it.waited),
            worked: record.and_then(|it| it.worked),
            hooks: status
                .hooks
                .iter()
                .filter(|it| is_present && it.batch == status.current_batch)
                .cloned()
                .collect(),
            metrics: status
                .metrics
                .iter()
                .filter(|_| is_present)
                .cloned()
                .collect(),
            last: plan.partition.filter(|_| held_back),
        }
    };
    (0..plan.sizes.count()).map(batch).collect()
}

/// A batch that nobody has let out was there already.
fn done(record: &BatchStatus) -> Phase {
    match record.decision {
        Some(_) => Phase::Done,
        None => Phase::Passed,
    }
}

/// The first batch that is not done. Where the one before it is still the present one, it waits for its turn.
fn under_way(status: &RolloutStatus, is_present: bool) -> Phase {
    match status.rolling_state {
        None
        | Some(
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches,
        ) if status.held.is_some() => Phase::Held,
        Some(RollingState::RollingInBatches) if is_present => match status.batch_rolling_state {
            Some(BatchRollingState::BatchInitializing) => Phase::Initializing,
            Some(BatchRollingState::BatchInRolling) => Phase::Rolling,
            Some(BatchRollingState::BatchVerifying) => Phase::Verifying,
            Some(BatchRollingState::BatchFinalizing) => Phase::Finalizing,
            Some(BatchRollingState::BatchVerifyFailed) => Phase::Failed,
            Some(BatchRollingState::BatchReady) | None => Phase::Waiting,
        },
        Some(
            RollingState::RolloutFailing
            | RollingState::RolloutFailed
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting,
        ) if is_present => match status.batch_rolling_state {
            Some(BatchRollingState::BatchVerifyFailed) => Phase::Failed,
            Some(
                BatchRollingState::BatchInitializing
                | BatchRollingState::BatchInRolling
                | BatchRollingState::BatchVerifying
                | BatchRollingState::BatchFinalizing
                | BatchRollingState::BatchReady,
            )
            | None => Phase::Stopped,
        },
        None
        | Some(
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches
            | RollingState::Finalising
            | RollingState::RolloutFailing
            | RollingState::RolloutSucceed
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting
            | RollingState::RolloutFailed,
        ) => Phase::Waiting,
    }
}
