//! Everything that a gatekeeper's verdict needs, from the caches.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::gatekeeper::Keeper;
use sluice_crds::Gatekeeper;

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::Seen;

/// The gatekeeper, ready to be asked, with the status that was last written onto it. None: it is
/// gone, or this version cannot read it; then it admits nothing, and there is nothing to write.
pub(super) fn gather(context: &Context, key: &ObjectKey, at: Timestamp) -> Option<Arc<Keeper>> {
    let Seen::Object(cached) = context.world.gatekeepers.get(key.borrowed())? else {
        return None;
    };
    let keeper = context.world.keeper(&cached, at);
    let version = cached.metadata.resource_version.as_deref();
    let ahead = context
        .written
        .beyond(&Work::Gatekeeper(key.clone()), version);
    let Some(ahead) = ahead else {
        return Some(keeper);
    };
    let mut object = Gatekeeper::clone(&cached);
    object.status = ahead.status().or(object.status);
    object.metadata.resource_version = Some(ahead.version.to_string());
    Some(Arc::new(keeper.with_object(Arc::new(object))))
}
