//! A look at a gated source.

use std::sync::Arc;

use kube::ResourceExt;
use sluice_core::delivery::gated_source;

use super::{Context, Outcome};
use crate::cluster::key::{ObjectKey, Work};

mod apply;
mod flux;
mod gather;
mod news;
mod stored;
#[cfg(test)]
pub(super) mod tests;

/// Looks at a gated source: what its gates admit goes out, and what is out is kept as it is.
///
/// What was decided is recorded first, then written into the status, and then done. If that is stopped in
/// between, it is done later, by the status alone.
pub(super) async fn look(context: &Context, key: &ObjectKey) -> Result<Outcome, kube::Error> {
    let Some(object) = gather::object(context, key) else {
        context.written.forget(&Work::GatedSource(key.clone()));
        return Ok(Outcome::Gone);
    };
    if !context.shard.holds(object.labels()) {
        return Ok(Outcome::NotOurs);
    }
    if let Some(waits) = context.waits(context.clock.now()) {
        return Ok(waits);
    }
    // Whatever is not known yet wakes it as soon as it is.
    if !context.world.is_ready() || !gather::is_known(context, &object) {
        return Ok(Outcome::Wake(None));
    }
    let now = context.world.now(context.clock.now());
    if let Some(until) = stored::verifying(context, &object, context.clock.now()) {
        return Ok(Outcome::Wake(Some(until)));
    }
    let given = gather::gather(context, key, Arc::clone(&object), now);
    let considered = gated_source::consider(given);
    let recorded = match considered.decision().cloned() {
        Some(decision) if considered.takes_effect() => {
            Some(context.decisions.act(decision).await.decision)
        }
        Some(decision) => {
            context.decisions.look(&decision);
            Some(decision)
        }
        None => None,
    };
    let report = gated_source::report(considered, recorded.as_ref());
    apply::apply(context, key, &object, report).await
}
