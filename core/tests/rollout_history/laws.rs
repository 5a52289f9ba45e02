//! What has to hold, whatever happens. It is said here once more, in other words than in the code that is
//! tested.
//!
//! - (a) A write that takes pods away leaves as many available as there were, but for those that have failed by
//!   themselves, what others have written, and with DecreaseFirst one batch.
//! - (b) A batch makes no more pods than there were, and with IncreaseFirst one batch more.
//! - (c) Nothing is intended while its gate is closed, or beyond the last batch that may go out.
//! - (d) What a batch writes goes one way.
//! - (e) No size is written without an accepted intent.
//! - (f) In place no more pods have the new version than batches have let out.
//!
//! In place (a) is about the pods themselves, whatever has happened: one at a time is replaced.

use std::collections::BTreeSet;
use std::ops::Add;

use serde_json::Value;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::delivery::rollout::{What, Write};
use sluice_crds::rollout::Size;
use sluice_crds::{Rollout, RolloutStatus};

use crate::cluster::{Cluster, ModelPod};
use crate::setup::{IN_PLACE, LARGEST, NEWEST, PODS, Setup, source, target};

/// What the laws are held against.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// Sizes that were intended: the name of the workload, and the size.
    intended: BTreeSet<(String, Option<i32>, Option<i32>)>,
    /// Whether the last accepted intent is that of a batch.
    of_batch: bool,
    /// How many pods of the new version batches have let out in place.
    out: u64,
    /// How many pods have failed by themselves.
    pub(crate) failed: u64,
    /// By how much others have changed sizes.
    pub(crate) foreign: u64,
    pub(crate) reached: Reached,
}

/// What has come about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    pub(crate) batches: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) gone: usize,
    pub(crate) held: usize,
}

impl Add for Reached {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            batches: self.batches + more.batches,
            succeeded: self.succeeded + more.succeeded,
            failed: self.failed + more.failed,
            gone: self.gone + more.gone,
            held: self.held + more.held,
        }
    }
}

impl crate::world::World {
    pub(crate) fn reached(&self) -> Reached {
        self.ledger.reached
    }
}

impl Ledger {
    /// The API server accepts a status that was decided while the gate was open or not.
    pub(crate) fn accepts(
        &mut self,
        seen: &Rollout,
        status: &RolloutStatus,
        open: bool,
    ) -> Result<(), String> {
        let before = seen.status.clone().unwrap_or_default();
        let key = |status: &RolloutStatus| {
            let intent = status.intent.as_ref()?;
            Some((intent.batch, intent.sizes.clone()))
        };
        let is_new =
            status.intent.is_some() && (key(status) != key(&before) || status.run != before.run);
        let Some(intent) = status.intent.as_ref().filter(|_| is_new) else {
            return Ok(());
        };
        self.of_batch = intent.batch.is_some();
        let workloads = status.run.iter().flat_map(|run| &run.workloads);
        for (
            record,
            Size {
                replicas,
                partition,
            },
        ) in workloads.zip(&intent.sizes)
        {
            let name = record.r#ref.name.clone();
            self.intended.insert((name, *replicas, *partition));
        }
        let Some(batch) = intent.batch else {
            return Ok(());
        };
        self.reached.batches += 1;
        let partition = intent.sizes.first().and_then(|size| size.partition);
        if let Some(partition) = partition {
            let held = u64::try_from(partition).unwrap();
            self.out = self.out.max(IN_PLACE.saturating_sub(held));
        }
        let last = seen.spec.rollout_plan.last_batch_to_rollout;
        match (open, last.is_none_or(|last| batch <= last)) {
            (true, true) => Ok(()),
            (false, _) => Err(format!("batch {batch} is intended, and the gate is closed")),
            (_, false) => Err(format!("batch {batch} is intended beyond {last:?}")),
        }
    }

    /// The API server accepts a write to a workload.
    pub(crate) fn writes(
        &self,
        setup: Setup,
        before: &Cluster,
        after: &Cluster,
        write: &Write,
    ) -> Result<(), String> {
        let spec = &write.patch["spec"];
        let number = |pointer: &str| {
            let number = spec.pointer(pointer).and_then(Value::as_i64);
            number.map(|it| i32::try_from(it).unwrap())
        };
        let replicas = number("/replicas");
        let partition = partition(write.name.kind, spec);
        let is_size = match write.what {
            What::Scale | What::Partition | What::Restore => true,
            What::Claim | What::Release => false,
        };
        let name = write.name.name.clone();
        if is_size && !self.intended.contains(&(name, replicas, partition)) {
            return Err(format!("(e) {write:?} without an accepted intent"));
        }
        if is_size && self.of_batch {
            self.one_way(setup, before, after, write, partition)?;
        }
        match setup.is_in_place() {
            true if replicas.is_some() => Err(format!("{write:?} scales what is updated in place")),
            true => Ok(()),
            false => self.enough(setup, before, after, write),
        }
    }

    /// The pods of the target, at any instant.
    pub(crate) fn in_place(&self, pods: &[ModelPod]) -> Result<(), String> {
        let count = |counts: &dyn Fn(&ModelPod) -> bool| {
            pods.iter().filter(|pod| counts(pod)).count() as u64
        };
        let available = count(&|pod| pod.available);
        let least = IN_PLACE.saturating_sub(1 + self.failed + self.foreign);
        if available < least {
            return Err(format!("(a) {available} of {least} pods are available"));
        }
        let new = count(&|pod| pod.image == NEWEST);
        // Pods that somebody adds may be of either version.
        match new > self.out + self.foreign {
            true => Err(format!("(f) {new} pods are new, of {} at most", self.out)),
            false => Ok(()),
        }
    }

    fn one_way(
        &self,
        setup: Setup,
        before: &Cluster,
        after: &Cluster,
        write: &Write,
        partition: Option<i32>,
    ) -> Result<(), String> {
        let of = &write.name;
        let (was, is) = (before.replicas(of), after.replicas(of));
        let goes_back = match *of == target(setup) {
            true => is < was,
            false => is > was,
        };
        let held = crate::laws::partition(of.kind, &before.workloads[of]["spec"]);
        let rises = partition.is_some_and(|it| it > held.unwrap_or(0));
        if goes_back || rises {
            return Err(format!("(d) {write:?} goes back from {was} or {held:?}"));
        }
        let all = after.replicas(&target(setup)) + after.replicas(&source());
        let more = match setup.decreases {
            true => 0,
            // Of a greater total a batch is greater, too.
            false => LARGEST + self.foreign,
        };
        if !setup.is_in_place() && all > PODS + more + self.foreign {
            return Err(format!("(b) {write:?} makes {all} pods"));
        }
        Ok(())
    }

    fn enough(
        &self,
        setup: Setup,
        before: &Cluster,
        after: &Cluster,
        write: &Write,
    ) -> Result<(), String> {
        let of = &write.name;
        if after.replicas(of) >= before.replicas(of) {
            return Ok(());
        }
        let left = |it| (after.available(it) as u64).min(after.replicas(it));
        let available = left(&target(setup)) + left(&source());
        let spared = match setup.decreases {
            true => LARGEST + self.foreign,
            false => 0,
        };
        let least = PODS.saturating_sub(spared + self.failed + self.foreign);
        match available < least {
            true => Err(format!("(a) {write:?} leaves {available} of {least} pods")),
            false => Ok(()),
        }
    }
}

/// The partition that a spec has: the pods that stay old.
fn partition(kind: Kind, spec: &Value) -> Option<i32> {
    let written = match kind {
        Kind::Deployment => None,
        Kind::StatefulSet => spec.pointer("/updateStrategy/rollingUpdate/partition"),
        Kind::CloneSet => spec.pointer("/updateStrategy/partition"),
    };
    match written? {
        // Of all pods, however many there are.
        Value::String(_) => Some(i32::MAX),
        number => number.as_i64().map(|it| it.try_into().unwrap()),
    }
}
