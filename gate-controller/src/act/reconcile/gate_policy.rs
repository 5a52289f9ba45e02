//! A look at a gate policy: whether the gates that it names are there, and writes what has changed.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::gate::policy;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::{GatePolicy, GatePolicyStatus};

use super::{Context, Outcome, Reconciled, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;
use crate::tell::events::{About, Told};

impl Reconciled for GatePolicy {
    const KIND: Kind = Kind::GatePolicy;
    const MANAGER: &'static str = "gate-controller-gatepolicies";

    fn cache(world: &World) -> &Cache<Self> {
        &world.policies
    }

    fn is_reported(world: &World) -> bool {
        world.sees_all_namespaces()
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let named = self.spec.gates.refs.iter();
        let named = named.map(|it| key.naming(it.namespace.as_deref(), &it.name));
        named.map(|key| Work::own(Kind::Gate, key)).collect()
    }

    /// A change matters if the policy may hold back others than before, or ask for other gates.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified()
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let gate = |reference: &_| context.world.gate_of_policy(reference).map(drop);
        let policy::Report { status, changed } = policy::report(&object, gate, at);
        if changed {
            status::write(context, object.as_ref(), status.clone()).await?;
            tell(context, key, &object, &status);
        }
        Ok(Outcome::Wake(None))
    }
}

/// It is reported when a policy names gates that are not there, and when it no longer does.
fn tell(context: &Context, key: &ObjectKey, policy: &GatePolicy, status: &GatePolicyStatus) {
    let before = policy.status.as_ref();
    let before = before.and_then(|before| find(&before.conditions, READY));
    let Some(now) = find(&status.conditions, READY) else {
        return;
    };
    let said = |ready: &Condition| (ready.status.clone(), ready.reason.clone());
    if before.map(said) == Some(said(now)) {
        return;
    }
    let is_ready = now.status == "True";
    tracing::info!(
        target: "decision",
        kind = "GatePolicy",
        name = %key.name,
        ready = is_ready,
        reason = now.reason,
        "{}",
        now.message
    );
    // A new policy whose gates are there is what everybody expects: nothing to report.
    if is_ready && before.is_none() {
        return;
    }
    context.events.tell(Told {
        about: About::new(Work::own(Kind::GatePolicy, key.clone()), policy),
        warning: !is_ready,
        reason: now.reason.clone().into(),
        action: "Report",
        note: now.message.as_str().into(),
        more: None,
    });
}
