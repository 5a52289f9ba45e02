//! What a Rollout rolls out, and what a batch is, as hashes.
//!
//! Another identity is another run. Another batch than the one that was decided is found out.

use serde_json::{Value, json};
use sluice_crds::Rollout;
use sluice_crds::rollout::marks;

use super::hook::hash;

/// Where the hash of a pod template is, in what is kept of a workload in place of it.
pub(super) const HASH: &str = "sluice.dev/hash";

/// The pod template of a workload, as a hash.
pub(super) fn template(workload: &Value) -> Option<String> {
    let template = workload.pointer("/spec/template")?;
    let kept = template.get(HASH).and_then(Value::as_str);
    Some(kept.map_or_else(|| hash(template), str::to_owned))
}

/// What a Rollout rolls out, as a hash: target, sources, component, and the revision, or without one the pod
/// template of the target. None: there is no revision, and the template is not known.
pub(super) fn identity(object: &Rollout, target: Option<&Value>) -> Option<String> {
    let spec = &object.spec;
    let name = |reference: &sluice_crds::rollout::WorkloadReference| {
        json!([reference.kind, reference.name])
    };
    let sources: Vec<Value> = spec.source_ref.iter().map(name).collect();
    let version = spec.revision.clone().or_else(|| template(target?))?;
    Some(hash(&json!([
        name(&spec.target_ref),
        sources,
        spec.component,
        spec.revision.is_some(),
        version,
    ])))
}

/// What the spec says of a batch, as a hash. That the plan ends with it belongs to it: the last batch takes the
/// rest, and after it a run is done.
pub(super) fn batch(object: &Rollout, index: usize) -> String {
    let plan = &object.spec.rollout_plan;
    let batches = &plan.rollout_batches;
    let is_last = index + 1 == batches.len();
    let own = batches.get(index);
    hash(&json!([
        index,
        plan.num_batches,
        plan.target_size,
        own,
        is_last
    ]))
}

/// The longest text that is kept of what a person has written to try again, in bytes.
const LONGEST: usize = 128;

/// What a person has written to try again. It goes into the status and into claims: of a long text that is its hash.
pub(super) fn retry(object: &Rollout) -> Option<String> {
    let text = object.metadata.annotations.as_ref()?.get(marks::RETRY)?;
    Some(match text.len() {
        ..=LONGEST => text.clone(),
        _ => hash(&json!(text)),
    })
}
