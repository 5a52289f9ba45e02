//! Everything that a gate's decision needs, from the caches.

use kube::ResourceExt;
use sluice_core::gate::force::owner;
use sluice_crds::Gate;

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::Seen;

/// The gate as it is, with what was last written onto it. None: it is gone, or this
/// version cannot read it; then it counts as closed, and there is nothing to write about it.
pub(super) fn gather(context: &Context, key: &ObjectKey) -> Option<Gate> {
    let Seen::Object(cached) = context.world.gates.get(key.borrowed())? else {
        return None;
    };
    let mut gate = Gate::clone(&cached);
    let version = cached.metadata.resource_version.as_deref();
    if let Some(ahead) = context.written.beyond(&Work::Gate(key.clone()), version) {
        gate.status = ahead.status().or(gate.status);
        gate.metadata.resource_version = Some(ahead.version.to_string());
        if !ahead.annotations.is_empty() {
            // We own what we have written.
            let own = owner::entry(&ahead.annotations);
            gate.managed_fields_mut().push(own);
        }
        gate.annotations_mut().extend(ahead.annotations);
    }
    Some(gate)
}
