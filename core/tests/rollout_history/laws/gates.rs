//! The law about gates: whether a run may begin, and a batch go out.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Mode, Run};

use super::Accepted;
use super::writes::partition;
use crate::cluster::Cluster;
use crate::setup::{Setup, moves, target};

/// A run begins, or its start makes pods: its first batch that has anything to do may go out.
pub(super) fn may_go_out(accepted: &Accepted<'_>, run: &Run) -> Result<(), String> {
    let Accepted {
        setup,
        cache,
        status,
        ..
    } = accepted;
    let first = first(*setup, cache, status, run.mode);
    first.map_or(Ok(()), |batch| is_let_out(accepted, batch))
}

/// Whether the gate lets a batch out, and the plan.
pub(super) fn is_let_out(accepted: &Accepted<'_>, batch: usize) -> Result<(), String> {
    let last = accepted.seen().spec.rollout_plan.last_batch_to_rollout;
    let may = |last: i32| usize::try_from(last).is_ok_and(|last| batch <= last);
    match (accepted.is_open, last.is_none_or(may)) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("(c) batch {batch}, and the gate is closed")),
        (_, false) => Err(format!("(c) batch {batch} is beyond {last:?}")),
    }
}

/// The first batch of a run that has anything to do, by what the workloads have.
fn first(setup: Setup, cache: &Cluster, status: &RolloutStatus, mode: Mode) -> Option<usize> {
    let of = |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap();
    let (from, to) = (
        of(status.rollout_original_size),
        of(status.rollout_target_size),
    );
    let target = target(setup);
    let there = cache.replicas(&target);
    let moved = match mode {
        Mode::Pair => {
            let sources = setup.sources().into_iter();
            let old: u64 = sources.map(|(of, _)| cache.replicas(&of)).sum();
            there.min(to.saturating_sub(old))
        }
        Mode::Update => {
            let spec = &cache.workloads[&target]["spec"];
            let held = partition(target.kind, spec).unwrap_or(0);
            to.saturating_sub(held.try_into().unwrap())
        }
        Mode::Scale if from <= to => there.saturating_sub(from),
        Mode::Scale => from.saturating_sub(there),
    };
    let all = if mode == Mode::Scale {
        from.abs_diff(to)
    } else {
        to
    };
    moves(all).into_iter().position(|goal| moved < goal)
}
