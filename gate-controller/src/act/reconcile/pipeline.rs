//! A look at a pipeline.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::pipeline;
use sluice_core::delivery::pull_request::owner;
use sluice_crds::Pipeline;

use super::{Context, Ended, Errand, Errands, Outcome, Reconciled, consumer, consumer_interests};
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

    fn forget(context: &Context, key: &ObjectKey) {
        forget(&context.apps, &context.errands, key);
    }

    /// What its gates admit is promoted, and what was promoted is followed until the environment runs it.
    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let now = context.world.now(context.clock.now());
        // What is not known yet wakes this object as soon as it is known.
        let ready = context.world.is_ready();
        let given = ready.then(|| gather::gather(context, key, &object, now));
        let Some(given) = given.flatten() else {
            return Ok(Outcome::Wake(None));
        };
        let considered = pipeline::consider(given);
        let recorded = consumer::record_all(context, considered.asked()).await;
        let report = pipeline::report(considered, &recorded);
        let outcome = consumer::apply(context, key, &object, report).await?;
        context.at_forges.decided(context, Kind::Pipeline, key);
        Ok(outcome)
    }
}

/// Gives up what a pipeline has named and begun: it is gone, or another shard looks at it.
pub(crate) fn forget(apps: &Apps, errands: &Errands<Errand, Ended>, key: &ObjectKey) {
    apps.forget(key);
    errands.keep(&Work::own(Kind::Pipeline, key.clone()), |_| false);
}
