//! The batches of a plan: their sizes, and which of them may go out.

use std::num::NonZeroU32;

use sluice_crds::IntOrPercent;
use sluice_crds::rollout::{MOST_BATCHES, RolloutBatch, RolloutPlan};

use super::{Batch, hooks, set};
use crate::delivery::rollout::size::{Amount, Last, Percent, Sizes};
use crate::text::refusal::Refusal;

const FIELD: &str = "spec.rolloutPlan.rolloutBatches";

/// The batches as they were read.
pub(super) struct Read {
    pub(super) sizes: Sizes,
    pub(super) partition: Option<usize>,
    pub(super) batches: Vec<Batch>,
}

/// Reads them. None: one of them cannot be read. Whatever is wrong is added to `mistakes`.
pub(super) fn read(plan: &RolloutPlan, mistakes: &mut Vec<Refusal>) -> Option<Read> {
    let partition = partition(plan, mistakes);
    if plan.num_batches.is_some() && !plan.rollout_batches.is_empty() {
        mistakes.push(Refusal::new(
            "spec.rolloutPlan.numBatches",
            "the batches are given in two ways",
            "write one of numBatches and rolloutBatches",
        ));
        return None;
    }
    let Some((last, before)) = plan.rollout_batches.split_last() else {
        return Some(Read {
            sizes: Sizes::Equal(count(plan.num_batches, mistakes)?),
            partition,
            batches: Vec::new(),
        });
    };
    if before.len() >= MOST_BATCHES {
        let problem = format!("there are more than {MOST_BATCHES}");
        mistakes.push(Refusal::new(FIELD, problem, "write fewer"));
    }
    let each = plan.rollout_batches.iter().enumerate();
    let batches: Vec<_> = each
        .map(|(place, batch)| self::batch(place, batch, mistakes))
        .collect();
    let before: Vec<_> = before
        .iter()
        .enumerate()
        .map(|(place, batch)| size_before_last(place, batch, mistakes))
        .collect();
    let last = self::last(before.len(), last, mistakes);
    let before = before.into_iter().collect::<Option<_>>();
    Some(Read {
        sizes: Sizes::Each {
            before: before?,
            last: last?,
        },
        partition,
        batches: batches.into_iter().collect::<Option<_>>()?,
    })
}

/// How many batches of equal size.
fn count(count: Option<i32>, mistakes: &mut Vec<Refusal>) -> Option<NonZeroU32> {
    let Some(count) = count else {
        return Some(NonZeroU32::MIN);
    };
    let read = u32::try_from(count).ok().and_then(NonZeroU32::new);
    let most = u32::try_from(MOST_BATCHES).unwrap_or(u32::MAX);
    let read = read.filter(|count| count.get() <= most);
    if read.is_none() {
        mistakes.push(Refusal::new(
            "spec.rolloutPlan.numBatches",
            format!("there cannot be {count} batches"),
            format!("write a number from 1 to {MOST_BATCHES}"),
        ));
    }
    read
}

/// The last batch that may go out. It has two names, of which one may be written.
fn partition(plan: &RolloutPlan, mistakes: &mut Vec<Refusal>) -> Option<usize> {
    let (field, last) = match (plan.last_batch_to_rollout, plan.batch_partition) {
        (Some(_), Some(_)) => {
            mistakes.push(Refusal::new(
                "spec.rolloutPlan.batchPartition",
                "it is another name of lastBatchToRollout, which is also written",
                "write one of them",
            ));
            return None;
        }
        (Some(last), None) => ("spec.rolloutPlan.lastBatchToRollout", last),
        (None, Some(last)) => ("spec.rolloutPlan.batchPartition", last),
        (None, None) => return None,
    };
    let read = usize::try_from(last).ok();
    if read.is_none() {
        let problem = "no batch is before the first one, which is 0";
        let remedy = "write 0 or more; to hold every batch, write paused: true";
        mistakes.push(Refusal::new(field, problem, remedy));
    }
    read
}

/// What a batch has of its own in addition to its size.
fn batch(place: usize, batch: &RolloutBatch, mistakes: &mut Vec<Refusal>) -> Option<Batch> {
    let RolloutBatch {
        replicas: _,
        max_unavailable,
        pod_list,
        instance_interval,
        batch_rollout_webhooks: _,
        canary_metric,
        gates,
    } = batch;
    let field = format!("{FIELD}[{place}]");
    if pod_list.as_ref().is_some_and(|list| !list.is_empty()) {
        mistakes.push(Refusal::new(
            format!("{field}.podList"),
            "pods cannot be picked yet",
            "write replicas instead",
        ));
    }
    if instance_interval.is_some_and(|interval| interval != 0) {
        mistakes.push(Refusal::new(
            format!("{field}.instanceInterval"),
            "the pods of a batch cannot go one after another yet",
            "write smaller batches instead",
        ));
    }
    set(&format!("{field}.gates"), gates.as_ref(), mistakes);
    let max_unavailable = match max_unavailable {
        None => Some(Amount::Pods(0)),
        Some(written) => amount(&format!("{field}.maxUnavailable"), written, mistakes),
    };
    let hooks = hooks::of_batch(&field, batch, mistakes);
    let metrics = hooks::metrics(&field, canary_metric, mistakes);
    Some(Batch {
        max_unavailable: max_unavailable?,
        hooks: hooks?,
        metrics: metrics?,
        gates: gates.clone(),
    })
}

/// The size of a batch before the last one, which needs one.
fn size_before_last(
    place: usize,
    batch: &RolloutBatch,
    mistakes: &mut Vec<Refusal>,
) -> Option<Amount> {
    let field = format!("{FIELD}[{place}].replicas");
    if batch.replicas.is_none() {
        let problem = "it is missing, and only the last batch takes the rest";
        let remedy = "write a number of pods, or a percentage such as 25%";
        mistakes.push(Refusal::new(&field, problem, remedy));
    }
    amount(&field, batch.replicas.as_ref()?, mistakes)
}

/// The size of the last batch.
fn last(place: usize, batch: &RolloutBatch, mistakes: &mut Vec<Refusal>) -> Option<Last> {
    let Some(replicas) = &batch.replicas else {
        return Some(Last::Rest);
    };
    let read = amount(&format!("{FIELD}[{place}].replicas"), replicas, mistakes)?;
    Some(match read {
        Amount::Pods(pods) => Last::Pods(pods),
        Amount::Percent(_) => Last::Rest,
    })
}

/// A number of pods, or a percentage.
fn amount(field: &str, written: &IntOrPercent, mistakes: &mut Vec<Refusal>) -> Option<Amount> {
    let read = match written {
        // As many as a workload can have.
        IntOrPercent::Int(pods) => i32::try_from(*pods)
            .ok()
            .and_then(|pods| u32::try_from(pods).ok())
            .map(Amount::Pods),
        IntOrPercent::Percent(text) => percent(text).map(Amount::Percent),
    };
    if read.is_none() {
        let problem = format!("`{written}` is neither a number of pods nor a percentage");
        let remedy = "write a whole number that is not below zero, or a percentage from 0% to 100%";
        mistakes.push(Refusal::new(field, problem, remedy));
    }
    read
}

/// A percentage: a whole number without zeros before it, as admission has it.
fn percent(text: &str) -> Option<Percent> {
    let number = text.strip_suffix('%')?;
    let is_plain =
        number.chars().all(|c| c.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
    Percent::new(number.parse().ok().filter(|_| is_plain)?)
}
