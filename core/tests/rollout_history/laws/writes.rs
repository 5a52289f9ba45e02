//! The laws about what is written to workloads.

use serde_json::Value;
use sluice_core::delivery::rollout::claim::Claim;
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::delivery::rollout::{Act, What, Write};
use sluice_crds::rollout::{Mode, RollingState, Size};
use sluice_crds::{Rollout, RolloutStatus};

use super::gates::may_go_out;
use super::{Accepted, Ledger, goes_back, goes_on, starts};
use crate::cluster::Cluster;
use crate::setup::{Setup, target};

/// What the API server carries out.
pub(crate) struct Written<'a> {
    pub(crate) setup: Setup,
    /// By which status.
    pub(crate) seen: &'a Rollout,
    /// What its leader knew.
    pub(crate) cache: &'a Cluster,
    pub(crate) before: &'a Cluster,
    pub(crate) after: &'a Cluster,
    pub(crate) act: &'a Act,
    /// Whether the gate was open then, as far as the leader knew.
    pub(crate) is_open: bool,
}

impl Written<'_> {
    fn status(&self) -> RolloutStatus {
        self.seen.status.clone().unwrap_or_default()
    }

    /// How many pods there are to be of all workloads.
    fn all(&self) -> u64 {
        let all = self.setup.workloads().into_iter();
        all.map(|of| self.after.replicas(&of)).sum()
    }

    /// Where a workload is as it counts: one that somebody has deleted meanwhile, as its leader knew it.
    fn sees(&self, of: &Name) -> &Cluster {
        match uid(self.cache, of) == uid(self.after, of) {
            true => self.after,
            false => self.cache,
        }
    }

    /// From which size to which.
    fn sizes(&self, of: &Name) -> (u64, u64) {
        (self.before.replicas(of), self.after.replicas(of))
    }
}

impl Ledger {
    /// The API server carries out an act.
    pub(crate) fn acts(&self, written: &Written<'_>) -> Result<(), String> {
        let write = match written.act {
            Act::Write(write) => write,
            Act::DeletePod(_) if written.status().reverted => return Ok(()),
            Act::DeletePod(pod) => {
                return Err(format!("(e) {pod:?} is deleted, and not for a revert"));
            }
            Act::Finalize(_) | Act::Call(_) => return Ok(()),
        };
        match write.what {
            What::Claim => self.claims(write),
            What::Release => releases(written, write),
            What::Scale | What::Partition | What::Restore => self.sizes(written, write),
        }
    }

    /// A workload is claimed only for a run that was let begin.
    fn claims(&self, write: &Write) -> Result<(), String> {
        let run = run_of(write);
        match run.is_some_and(|run| self.begun.contains(&run)) && write.patch["spec"].is_null() {
            true => Ok(()),
            false => Err(format!("(c) {write:?} is for a run that has not begun")),
        }
    }

    fn sizes(&self, written: &Written<'_>, write: &Write) -> Result<(), String> {
        let status = written.status();
        let (name, size) = (write.name.name.clone(), size_of(write));
        let run = run_of(write).unwrap_or(0);
        let wrote = (run, name, size.replicas, size.partition);
        if !self.intended.contains(&wrote) {
            return Err(format!("(e) {write:?} without an accepted intent"));
        }
        if written.setup.is_empty(&write.name) && size.replicas != Some(0) {
            return Err(format!("(j) {write:?} is for a source without pods"));
        }
        let scales = status.run.as_ref().map(|run| run.mode) == Some(Mode::Scale);
        if written.setup.is_in_place() && size.replicas.is_some() && !scales {
            return Err(format!("(e) {write:?} scales what is updated in place"));
        }
        if starts(&status) {
            makes_no_pods(written, write)?;
        }
        if goes_on(&status) {
            one_way(written, write)?;
        }
        if !status.reverted {
            self.bounded(written, write)?;
        }
        self.enough(written, write)
    }

    /// (b)
    fn bounded(&self, written: &Written<'_>, write: &Write) -> Result<(), String> {
        let setup = written.setup;
        let more = match setup.sources > 0 && !setup.decreases {
            // Of a greater total a batch is greater, too.
            true => setup.largest() + self.foreign,
            false => 0,
        };
        let most = setup.was().max(setup.total()) + more + self.foreign;
        let all = written.all();
        if all > most {
            return Err(format!("(b) {write:?} makes {all} of {most} pods"));
        }
        let (from, to) = written.sizes(&write.name);
        match setup.is_alone() && from.abs_diff(to) > setup.largest() + self.foreign {
            true => Err(format!(
                "(b) {write:?} moves more than a batch, from {from}"
            )),
            false => Ok(()),
        }
    }

    /// (a)
    fn enough(&self, written: &Written<'_>, write: &Write) -> Result<(), String> {
        let (setup, after) = (written.setup, written.after);
        let (from, to) = written.sizes(&write.name);
        if to >= from || setup.is_in_place() {
            return Ok(());
        }
        let left = |of: &Name| stays(written.sees(of), of);
        let available: u64 = setup.workloads().iter().map(left).sum();
        let spared = match setup.decreases && setup.sources > 0 {
            true => setup.largest() + self.foreign,
            false => 0,
        };
        let lost = self.failing(after) + self.foreign + self.removed.unwrap_or(0);
        let least = setup.least().saturating_sub(spared + lost);
        match available < least {
            true => Err(format!("(a) {write:?} leaves {available} of {least} pods")),
            false => Ok(()),
        }
    }

    /// How many pods have failed by themselves, and have not come up again.
    fn failing(&self, api: &Cluster) -> u64 {
        let pods = api.pods.values().flatten();
        let failing = pods.filter(|pod| !pod.available && self.failed.contains(&pod.uid));
        failing.count() as u64
    }
}

/// Which object a workload is.
pub(crate) fn uid<'a>(cluster: &'a Cluster, of: &Name) -> Option<&'a Value> {
    let object = cluster.workloads.get(of)?;
    Some(&object["metadata"]["uid"])
}

/// How many pods of a workload are available, and are not about to go.
pub(super) fn stays(cluster: &Cluster, of: &Name) -> u64 {
    (cluster.available(of) as u64).min(cluster.replicas(of))
}

/// A workload is released where a run ends, and nowhere else.
fn releases(written: &Written<'_>, write: &Write) -> Result<(), String> {
    match written.status().rolling_state {
        Some(
            RollingState::RolloutSucceed
            | RollingState::RolloutFailed
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting,
        ) => Ok(()),
        state => Err(format!("(e) {write:?} in {state:?}")),
    }
}

/// The start makes no pods of the new version, unless the gate lets the first batch out at this instant.
fn makes_no_pods(written: &Written<'_>, write: &Write) -> Result<(), String> {
    let (from, to) = written.sizes(&write.name);
    if write.name != target(written.setup) || to <= from {
        return Ok(());
    }
    let mut cache = written.before.clone();
    cache.rollout = Some(written.seen.clone());
    let status = written.status();
    let accepted = Accepted {
        setup: written.setup,
        cache: &cache,
        status: &status,
        is_open: written.is_open,
        is_doubted: false,
    };
    status
        .run
        .as_ref()
        .map_or(Ok(()), |run| may_go_out(&accepted, run))
}

/// What is written goes one way.
fn one_way(written: &Written<'_>, write: &Write) -> Result<(), String> {
    let place = written
        .setup
        .workloads()
        .iter()
        .position(|it| *it == write.name);
    let (from, to) = (
        size(written.before, &write.name),
        size(written.after, &write.name),
    );
    match goes_back(&written.status(), place.unwrap(), from, to) {
        true => Err(format!("(d) {write:?} goes back from {from:?}")),
        false => Ok(()),
    }
}

/// The run of a claim that is written.
fn run_of(write: &Write) -> Option<i64> {
    Claim::within(&write.patch).map(|claim| claim.run)
}

/// What is written.
fn size_of(write: &Write) -> Size {
    let spec = &write.patch["spec"];
    let replicas = spec["replicas"].as_i64();
    Size {
        replicas: replicas.map(|it| it.try_into().unwrap()),
        partition: partition(write.name.kind, spec),
    }
}

/// What a workload has.
pub(super) fn size(cluster: &Cluster, of: &Name) -> Size {
    let partition = |spec| partition(of.kind, spec).unwrap_or(0);
    let in_place = of.kind != Kind::Deployment;
    let spec = cluster.workloads.get(of).map(|it| &it["spec"]);
    Size {
        replicas: i32::try_from(cluster.replicas(of)).ok(),
        partition: spec.filter(|_| in_place).map(partition),
    }
}

/// The partition that a spec has: the pods that stay old.
pub(super) fn partition(kind: Kind, spec: &Value) -> Option<i32> {
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
