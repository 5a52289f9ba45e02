//! A look at a pipeline.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::pipeline;
use sluice_core::delivery::pull_request::owner;
use sluice_crds::Pipeline;

use super::{Context, Ended, Errand, Errands, Outcome, Reconciled, consumer_interests};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::apps::Apps;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

mod admit;
mod apply;
mod available;
mod cluster;
mod gather;
mod news;
mod notify;
mod recall;
mod record;
#[cfg(test)]
mod tests;

impl Reconciled for Pipeline {
    const KIND: Kind = Kind::Pipeline;
    const MANAGER: &'static str = "gate-controller-pipelines";

    fn cache(world: &World) -> &Cache<Self> {
        &world.pipelines
    }

    /// Its apps are not among them: they are found by other names, which may change without it.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let gates = self.spec.environments.iter();
        let gates = gates.filter_map(|environment| environment.gates.as_ref());
        let gates: Vec<_> = gates.flat_map(|set| set.refs.clone()).collect();
        let targets = self.spec.environments.iter().flat_map(|it| &it.targets);
        let namespaces = targets.filter(|it| it.cluster_ref.is_none()).map(|it| {
            let (namespace, name) = ("".into(), it.namespace.as_str().into());
            Work::own(Kind::Namespace, ObjectKey { namespace, name })
        });
        let mut all = consumer_interests(key, &gates);
        all.extend(namespaces);
        all
    }

    /// Gatekeepers of the kind `pipeline` depend on what its environments were admitted, and PullRequests
    /// on what it says of them.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.differs(pipeline::admissions) || change.differs(|it| owner::words(it))
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let outcome = look(context, key, object).await;
        if context.world.pipelines.get(key.borrowed()).is_none() {
            // It was deleted meanwhile.
            forget(&context.apps, &context.errands, key);
        }
        outcome
    }
}

/// Gives up what a pipeline has named and begun: it is gone, or another shard looks at it.
pub(crate) fn forget(apps: &Apps, errands: &Errands<Errand, Ended>, key: &ObjectKey) {
    apps.forget(key);
    errands.keep(&Work::own(Kind::Pipeline, key.clone()), |_| false);
}

/// Looks at a pipeline: what its gates admit is promoted, and what was promoted is followed until the
/// environment runs it.
///
/// What was decided is recorded first, then written into the status, and then done. If it is stopped in
/// between, the rest is done later, from the status alone.
async fn look(
    context: &Context,
    key: &ObjectKey,
    object: Arc<Pipeline>,
) -> Result<Outcome, kube::Error> {
    let now = context.world.now(context.clock.now());
    // What is not known yet wakes this object as soon as it is known.
    let ready = context.world.is_ready();
    let given = ready.then(|| gather::gather(context, key, &object, now));
    let Some(given) = given.flatten() else {
        return Ok(Outcome::Wake(None));
    };
    let considered = pipeline::consider(given);
    let mut recorded = Vec::new();
    for asked in considered.asked() {
        let decision = asked.decision.clone();
        recorded.push(match asked.takes_effect {
            true => context.decisions.act(decision).await.decision,
            false => {
                context.decisions.look(&decision);
                decision
            }
        });
    }
    let report = pipeline::report(considered, &recorded);
    let outcome = apply::apply(context, key, &object, report).await?;
    context.at_forges.decided(context, Kind::Pipeline, key);
    Ok(outcome)
}
