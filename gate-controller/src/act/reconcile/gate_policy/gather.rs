//! Everything that a policy's report needs, from the caches.

use sluice_crds::GatePolicy;

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::Seen;

/// The policy, with the status that was last written onto it. None: it is gone, or this version
/// cannot read it; then it holds everything back, and there is nothing to write.
pub(super) fn gather(context: &Context, key: &ObjectKey) -> Option<GatePolicy> {
    let Seen::Object(cached) = context.world.policies.get(key.borrowed())? else {
        return None;
    };
    let mut policy = GatePolicy::clone(&cached);
    let version = cached.metadata.resource_version.as_deref();
    let work = Work::GatePolicy(key.clone());
    if let Some(ahead) = context.written.beyond(&work, version) {
        policy.status = ahead.status().or(policy.status);
        policy.metadata.resource_version = Some(ahead.version.to_string());
    }
    Some(policy)
}
