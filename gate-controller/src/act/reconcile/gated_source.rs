//! A look at a gated source.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::gated_source;
use sluice_crds::GatedSource;

use super::{Context, Outcome, Reconciled, consumer};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

mod apply;
mod flux;
mod gather;
mod interests;
mod news;
mod stored;
#[cfg(test)]
pub(super) mod tests;

impl Reconciled for GatedSource {
    const KIND: Kind = Kind::GatedSource;
    const MANAGER: &'static str = "gate-controller-gatedsources";

    fn cache(world: &World) -> &Cache<Self> {
        &world.gated_sources
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        interests::of(self, key)
    }

    /// No decision depends on a gated source.
    fn may_matter(_: &Change<'_, Self>) -> bool {
        false
    }

    /// What its gates admit goes out, and what is out is kept as it is.
    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        // Everything that is not known yet wakes this object as soon as it is known.
        if !context.world.is_ready() || !gather::is_known(context, &object) {
            return Ok(Outcome::Wake(None));
        }
        let now = context.world.now(context.clock.now());
        if let Some(until) = stored::verifying(context, &object, context.clock.now()) {
            return Ok(Outcome::Wake(Some(until)));
        }
        let given = gather::gather(context, key, Arc::clone(&object), now);
        let considered = gated_source::consider(given);
        let recorded = match considered.decision() {
            Some(decision) => {
                let takes_effect = considered.takes_effect();
                Some(consumer::record(context, decision, takes_effect).await)
            }
            None => None,
        };
        let report = gated_source::report(considered, recorded.as_ref());
        consumer::apply(context, key, &object, report).await
    }
}
