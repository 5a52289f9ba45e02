//! A look at a gate policy.

use kube::ResourceExt;
use sluice_core::gate;

use super::{Context, Outcome};
use crate::cluster::key::{ObjectKey, Work};

mod apply;
mod gather;

/// Looks at a policy: whether the gates that it names are there, and writes what has changed.
pub(super) async fn look(context: &Context, key: &ObjectKey) -> Result<Outcome, kube::Error> {
    let Some(policy) = gather::gather(context, key) else {
        context.written.forget(&Work::GatePolicy(key.clone()));
        return Ok(Outcome::Gone);
    };
    if !context.shard.holds(policy.labels()) {
        return Ok(Outcome::NotOurs);
    }
    let gate = |reference: &_| context.world.gate_of_policy(reference).map(drop);
    let report = gate::policy::report(&policy, gate, context.clock.now());
    apply::apply(context, key, &policy, report).await?;
    Ok(Outcome::Wake(None))
}
