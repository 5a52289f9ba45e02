//! A look at a gatekeeper.

use kube::ResourceExt;
use sluice_core::gatekeeper;

use super::{Context, Outcome};
use crate::cluster::key::{ObjectKey, Work};

mod apply;
mod gather;

/// Looks at a gatekeeper: judges it, and writes what has changed.
pub(super) async fn look(context: &Context, key: &ObjectKey) -> Result<Outcome, kube::Error> {
    let at = context.clock.now();
    let Some(keeper) = gather::gather(context, key, at) else {
        context.written.forget(&Work::Gatekeeper(key.clone()));
        return Ok(Outcome::Gone);
    };
    if !context.shard.holds(keeper.object().labels()) {
        return Ok(Outcome::NotOurs);
    }
    if let Some(waits) = context.waits(at) {
        return Ok(waits);
    }
    let report = gatekeeper::report(&keeper, context.world.now(at));
    let wake = report.wake;
    apply::apply(context, key, &keeper, report).await?;
    Ok(Outcome::Wake(wake))
}
