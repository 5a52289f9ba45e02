//! Rules (CEL) about changes of a Rollout.
//!
//! A run is known by what it rolls out: with another target, source, component or revision it is another
//! run, of which everything may be different. CEL of Kubernetes 1.30 has no index in its loops: the rules
//! go through a list of numbers instead. They compare elements with one that a loop has brought, because
//! of others the API server does not know the size, and estimates that the rule costs too much.

use super::{MOST_BATCHES, MOST_SOURCES};

/// A field of the spec stays as it is, or it is another run.
pub(super) fn never_changes(field: &str) -> String {
    format!("!({}) || ({})", is_same_run(), is_unchanged(field))
}

/// The last batch that may go out only moves to later batches. Without it all may.
pub(super) fn partition_grows() -> String {
    let (new, old) = (Partition::of("self"), Partition::of("oldSelf"));
    format!(
        "!({}) || !({}) || (({}) && {} >= {})",
        is_same_run(),
        new.is_there,
        old.is_there,
        new.value,
        old.value
    )
}

/// Batches stay as they are up to the last one that might have gone out.
pub(super) fn passed_batches_stay() -> String {
    const LIST: &str = "rolloutPlan.rolloutBatches";
    let old = Partition::of("oldSelf");
    let size = |of: &str| format!("(has({of}.{LIST}) ? size({of}.{LIST}) : 0)");
    let (now, before) = (size("self"), size("oldSelf"));
    let is_same = format!("self.{LIST}.exists(b, b == self.{LIST}[i] && b == oldSelf.{LIST}[i])");
    format!(
        "!({}) || {}.all(i, (({}) && i > {}) || (i < {now} ? i < {before} && {is_same} : i >= {before}))",
        is_same_run(),
        places(MOST_BATCHES),
        old.is_there,
        old.value,
    )
}

/// Where batches were still to come after the last one that may go out, one of them stays: otherwise that batch
/// would become the rest of all pods.
pub(super) fn a_later_batch_stays() -> String {
    const LIST: &str = "rolloutPlan.rolloutBatches";
    let old = Partition::of("oldSelf");
    let is_later = |of: &str| format!("has({of}.{LIST}) && size({of}.{LIST}) - 1 > {}", old.value);
    format!(
        "!({}) || !({}) || !({}) || ({})",
        is_same_run(),
        old.is_there,
        is_later("oldSelf"),
        is_later("self"),
    )
}

/// Only the last batch goes without a size. For the plan, not the spec.
pub(super) fn sizes_but_the_last() -> String {
    format!(
        "!has(self.rolloutBatches) || {}.all(i, i >= size(self.rolloutBatches) - 1 || has(self.rolloutBatches[i].replicas))",
        places(MOST_BATCHES)
    )
}

/// Whether it is the run that it was before the change. Of target and sources kind and name count, for that is what
/// a run is known by: an `apiVersion` that is written, too, changes nothing.
fn is_same_run() -> String {
    let fields = ["component", "revision"].map(is_unchanged);
    format!(
        "self.targetRef.kind == oldSelf.targetRef.kind && self.targetRef.name == oldSelf.targetRef.name && {} && {}",
        are_sources_unchanged(),
        fields.join(" && ")
    )
}

fn are_sources_unchanged() -> String {
    let size = |of: &str| format!("(has({of}.sourceRef) ? size({of}.sourceRef) : 0)");
    let (now, before) = (size("self"), size("oldSelf"));
    let is_at =
        |of: &str| format!("s.kind == {of}.sourceRef[i].kind && s.name == {of}.sourceRef[i].name");
    format!(
        "{now} == {before} && {}.all(i, i >= {now} || self.sourceRef.exists(s, {} && {}))",
        places(MOST_SOURCES),
        is_at("self"),
        is_at("oldSelf")
    )
}

/// Whether a field that may be absent is as before.
fn is_unchanged(field: &str) -> String {
    format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
}

/// The last batch that may go out, in rules: it has two names.
struct Partition {
    is_there: String,
    value: String,
}

impl Partition {
    fn of(spec: &str) -> Self {
        let plan = format!("{spec}.rolloutPlan");
        Self {
            is_there: format!("has({plan}.lastBatchToRollout) || has({plan}.batchPartition)"),
            value: format!(
                "(has({plan}.lastBatchToRollout) ? {plan}.lastBatchToRollout : {plan}.batchPartition)"
            ),
        }
    }
}

/// Every place in a list of at most so many.
fn places(most: usize) -> String {
    let places: Vec<String> = (0..most).map(|place| place.to_string()).collect();
    format!("[{}]", places.join(", "))
}
