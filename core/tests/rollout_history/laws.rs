//! What has to hold, whatever happens. It is said here once more, in other words than in the code that is
//! tested.
//!
//! - (a) A write that takes pods away leaves as many available as there were, or as many as there are to be if these
//!   are fewer, but for those that have failed by themselves, what others have written, those that were missing once
//!   others had deleted a workload, and with DecreaseFirst one batch. In the end nobody is short of pods.
//! - (b) There are never more pods than there were or are to be, and with IncreaseFirst one batch more.
//! - (c) Nothing begins, goes out or makes pods while its gate is closed, or beyond the last batch that may go out,
//!   and no workload is claimed by a run that has not begun.
//! - (d) Goals go one way, and so does what is intended and written for them, from the start on. Only where a run
//!   ends they go back.
//! - (e) Nothing is done without an accepted intent.
//! - (f) Once everything is well, a rollout has succeeded and the new version is out, or it has failed or is held, and
//!   says why: of the reasons there are only some, and each has a cause that everybody can see.
//! - (g) Then nothing is written any more.
//! - (h) In place no more pods have the new version than batches have let out.
//! - (i) By a clock that cannot be relied on nothing fails.
//! - (j) A source without pods gets none, also where a run ends.
//!
//! In place (a) is about the pods themselves, whatever has happened: one at a time is replaced.

use std::collections::{BTreeMap, BTreeSet};

use sluice_crds::rollout::{Intent, Mode, RollingState, Run, Size};
use sluice_crds::{Rollout, RolloutStatus};

use crate::cluster::{Cluster, ModelPod};
use crate::setup::{IN_PLACE, NEWEST, Setup};

mod ends;
mod gates;
mod writes;

use gates::{is_let_out, may_go_out};
pub(crate) use writes::{Written, uid};
use writes::{size, stays};

/// What the laws are held against.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// The runs that have begun, by their numbers.
    begun: BTreeSet<i64>,
    /// What was intended: the run, the name of the workload, its replicas and its partition.
    intended: BTreeSet<(i64, String, Option<i32>, Option<i32>)>,
    /// How many pods each batch of a run moves, together with those before it.
    goals: BTreeMap<(i64, usize), u32>,
    /// What was intended last for a run that goes on.
    last: Option<(i64, Vec<Size>)>,
    /// How many pods of the new version batches have let out in place.
    out: u64,
    /// The pods that have failed by themselves.
    pub(crate) failed: BTreeSet<String>,
    /// By how much others have changed sizes.
    foreign: u64,
    /// How many pods were missing once somebody had deleted a workload. None: nobody has.
    removed: Option<u64>,
    /// Whether the status was lost, and no run has begun since.
    pub(crate) is_lost: bool,
    /// Whether pods are missing for which no run could make up.
    pub(crate) is_left_short: bool,
    /// Whether a hook has said no.
    pub(crate) is_vetoed: bool,
    pub(crate) reached: BTreeSet<Reached>,
}

/// What has come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    Batch,
    /// A run goes on whose status was lost.
    Resumed,
    Settled,
    Reverted,
    Succeeded,
    Failed,
    Gone,
    /// Somebody has written a size, and it stays.
    HeldByOthers,
    /// The same has failed before, or its Rollout was deleted.
    HeldByAnEnd,
}

impl Reached {
    pub(crate) const ALL: [Reached; 9] = [
        Reached::Batch,
        Reached::Resumed,
        Reached::Settled,
        Reached::Reverted,
        Reached::Succeeded,
        Reached::Failed,
        Reached::Gone,
        Reached::HeldByOthers,
        Reached::HeldByAnEnd,
    ];
}

/// A status that the API server accepts.
pub(crate) struct Accepted<'a> {
    pub(crate) setup: Setup,
    /// What its leader knew.
    pub(crate) cache: &'a Cluster,
    pub(crate) status: &'a RolloutStatus,
    /// Whether the gate was open then, as far as the leader knew.
    pub(crate) is_open: bool,
    /// Whether the clock of the leader could not be relied on.
    pub(crate) is_doubted: bool,
}

impl Accepted<'_> {
    fn seen(&self) -> &Rollout {
        self.cache.rollout.as_ref().unwrap()
    }
}

impl Ledger {
    /// Somebody else has changed a size by so much.
    pub(crate) fn meddled(&mut self, by: u64) {
        self.foreign += by;
        self.goals.clear();
        self.last = None;
    }

    /// Somebody has deleted a workload: this is what is left.
    pub(crate) fn removed(&mut self, setup: Setup, api: &Cluster) {
        let all = setup.workloads();
        let available: u64 = all.iter().map(|of| stays(api, of)).sum();
        let missing = setup.least().saturating_sub(available);
        self.removed = self.removed.max(Some(missing));
    }

    /// Whether somebody has deleted a workload.
    pub(crate) fn has_removed(&self) -> bool {
        self.removed.is_some()
    }

    /// Another object has its name, with whatever version.
    pub(crate) fn replaced(&mut self) {
        self.out = IN_PLACE;
    }

    /// The API server accepts a status.
    pub(crate) fn accepts(&mut self, accepted: &Accepted<'_>) -> Result<(), String> {
        let status = accepted.status;
        let before = accepted.seen().status.clone().unwrap_or_default();
        let is_late = |status: &RolloutStatus| {
            let outcome = status.outcome.as_ref();
            outcome.is_some_and(|it| it.reason == "ProgressDeadlineExceeded")
        };
        if accepted.is_doubted && is_late(status) && !is_late(&before) {
            return Err(format!("(i) {:?} by a doubted clock", status.outcome));
        }
        let Some(run) = &status.run else {
            return Ok(());
        };
        self.goals(run, status)?;
        if starts(status) && before.run.as_ref() != Some(run) {
            may_go_out(accepted, run)?;
            // A run that goes on goes on from what there is.
            let all = accepted.setup.workloads().into_iter();
            let present = all.map(|of| size(accepted.cache, &of));
            self.last = Some((run.id, present.collect()));
            self.is_lost = false;
            if !self.begun.insert(run.id) {
                self.reached.insert(Reached::Resumed);
            }
        }
        let of = |status: &RolloutStatus| {
            let intent = status.intent.clone();
            intent.map(|it| (it.batch, it.sizes))
        };
        let is_new = of(status) != of(&before) || before.run.as_ref() != Some(run);
        match status.intent.as_ref().filter(|_| is_new) {
            Some(intent) => self.intends(accepted, run, intent),
            None => Ok(()),
        }
    }

    fn intends(
        &mut self,
        accepted: &Accepted<'_>,
        run: &Run,
        intent: &Intent,
    ) -> Result<(), String> {
        let status = accepted.status;
        for (record, size) in run.workloads.iter().zip(&intent.sizes) {
            let name = record.r#ref.name.clone();
            self.intended
                .insert((run.id, name, size.replicas, size.partition));
        }
        if !goes_on(status) {
            self.last = None;
            let how = match status.reverted {
                true => Reached::Reverted,
                false => Reached::Settled,
            };
            let ends_well = status.rolling_state == Some(RollingState::Finalising);
            self.reached.extend((!ends_well).then_some(how));
            return Ok(());
        }
        self.one_way(status, run, &intent.sizes)?;
        let Some(batch) = intent.batch else {
            return Ok(());
        };
        self.reached.insert(Reached::Batch);
        let partition = intent.sizes.first().and_then(|size| size.partition);
        if let Some(partition) = partition {
            let held = u64::try_from(partition).unwrap();
            self.out = self.out.max(IN_PLACE.saturating_sub(held));
        }
        is_let_out(accepted, batch.try_into().unwrap())
    }

    /// The goals of a run go one way, and never back.
    fn goals(&mut self, run: &Run, status: &RolloutStatus) -> Result<(), String> {
        let from = match run.mode {
            Mode::Scale => status.rollout_original_size.unwrap_or(0),
            Mode::Pair | Mode::Update => 0,
        };
        let mut least = 0;
        for (index, batch) in status.batches.iter().enumerate() {
            let moved = batch.goal.abs_diff(from);
            let known = self.goals.entry((run.id, index)).or_insert(moved);
            least = least.max(*known);
            if moved < least {
                let goal = batch.goal;
                return Err(format!("(d) the goal of batch {index} falls to {goal}"));
            }
            least = moved;
        }
        Ok(())
    }

    /// What is intended for a run goes one way, from its start on.
    fn one_way(&mut self, status: &RolloutStatus, run: &Run, sizes: &[Size]) -> Result<(), String> {
        let last = self.last.replace((run.id, sizes.to_vec()));
        let Some((_, last)) = last.filter(|(of, _)| *of == run.id) else {
            return Ok(());
        };
        let back = last.iter().zip(sizes).enumerate();
        let mut back = back.filter(|(place, (from, to))| goes_back(status, *place, **from, **to));
        match back.next() {
            Some((_, (from, to))) => Err(format!("(d) after {from:?}, {to:?} is intended")),
            None => Ok(()),
        }
    }

    /// The pods of the target, at any instant.
    pub(crate) fn in_place(&self, pods: &[ModelPod]) -> Result<(), String> {
        let count = |counts: &dyn Fn(&ModelPod) -> bool| {
            pods.iter().filter(|pod| counts(pod)).count() as u64
        };
        let available = count(&|pod| pod.available);
        let least = IN_PLACE.saturating_sub(1 + self.failed.len() as u64 + self.foreign);
        if available < least {
            return Err(format!("(a) {available} of {least} pods are available"));
        }
        let new = count(&|pod| pod.image == NEWEST);
        // Pods that somebody adds may be of either version.
        match new > self.out + self.foreign {
            true => Err(format!("(h) {new} pods are new, of {} at most", self.out)),
            false => Ok(()),
        }
    }
}

/// Whether the workloads of a run get their starting sizes.
fn starts(status: &RolloutStatus) -> bool {
    status.rolling_state == Some(RollingState::Initializing)
}

/// Whether a run goes on: sizes only go towards its target.
fn goes_on(status: &RolloutStatus) -> bool {
    starts(status) || status.rolling_state == Some(RollingState::RollingInBatches)
}

/// Whether the size of the workload in this place of a run goes away from its end.
fn goes_back(status: &RolloutStatus, place: usize, from: Size, to: Size) -> bool {
    let scales = status.run.as_ref().map(|run| run.mode) == Some(Mode::Scale);
    let shrinks =
        place > 0 || (scales && status.rollout_original_size > status.rollout_target_size);
    let replicas = from.replicas.zip(to.replicas);
    let partition = from.partition.zip(to.partition);
    partition.is_some_and(|(from, to)| to > from)
        || replicas.is_some_and(|(from, to)| if shrinks { to > from } else { to < from })
}
