//! A look at a gatekeeper: judges it, and writes what has changed.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::gatekeeper;
use sluice_core::verdict::condition::{STALLED, find};
use sluice_crds::{Gatekeeper, GatekeeperStatus};

use super::{Context, Outcome, Reconciled, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;
use crate::tell::events::{About, Told};

impl Reconciled for Gatekeeper {
    const KIND: Kind = Kind::Gatekeeper;
    const MANAGER: &'static str = "gate-controller-gatekeepers";

    fn cache(world: &World) -> &Cache<Self> {
        &world.gatekeepers
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let named = self.spec.gates.iter().flat_map(|gates| &gates.refs);
        let named = named.map(|it| key.naming(it.namespace.as_deref(), &it.name));
        let gates = named.map(|key| Work::own(Kind::Gate, key));
        let pipeline = self.spec.pipeline.iter().map(|it| {
            let named = key.naming(it.namespace.as_deref(), &it.name);
            Work::own(Kind::Pipeline, named)
        });
        gates.chain(pipeline).collect()
    }

    /// A change matters if the gatekeeper may answer differently, or if somebody else applies it, as its
    /// labels say: another spec, another object of the same name, or another report of a third party.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        let asks = |it: &Gatekeeper| {
            let report = it.status.as_ref().and_then(|it| it.report.clone());
            (it.metadata.labels.clone(), report)
        };
        change.is_respecified() || change.differs(asks)
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let keeper = context.world.keeper(&object, at);
        let report = gatekeeper::report(&keeper, context.world.now(at));
        let gatekeeper::Report {
            status,
            changed,
            wake,
        } = report;
        if changed {
            status::write(context, object.as_ref(), status.clone()).await?;
            tell(context, key, &object, &status);
        }
        Ok(Outcome::Wake(wake))
    }
}

/// Changes of a gatekeeper are reported on its gates; only that it stalls is reported on itself.
fn tell(context: &Context, key: &ObjectKey, object: &Gatekeeper, status: &GatekeeperStatus) {
    let Some(verdict) = &status.verdict else {
        return;
    };
    tracing::debug!(
        target: "decision",
        kind = "Gatekeeper",
        namespace = %key.namespace,
        name = %key.name,
        state = %verdict.state,
        reason = %verdict.reason,
        "{}",
        verdict.message
    );
    let stalled = |status: &GatekeeperStatus| find(&status.conditions, STALLED).is_some();
    if stalled(status) && !object.status.as_ref().is_some_and(stalled) {
        context.events.tell(Told {
            about: About::new(Work::own(Kind::Gatekeeper, key.clone()), object),
            warning: true,
            reason: verdict.reason.clone().into(),
            action: "Judge",
            note: verdict.message.as_str().into(),
            more: None,
        });
    }
}
