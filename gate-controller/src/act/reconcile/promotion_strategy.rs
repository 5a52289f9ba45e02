//! A look at a PromotionStrategy.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::promotion_strategy::{CommitStatusSelector, Environment, KustomizationReference};
use sluice_crds::{GateReference, PromotionStrategy, PromotionStrategySpec};

use super::{Context, Outcome, Reconciled, consumer_interests, git_repository_access};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

#[cfg(test)]
mod tests;

impl Reconciled for PromotionStrategy {
    const KIND: Kind = Kind::PromotionStrategy;
    const MANAGER: &'static str = "gate-controller-promotionstrategies";

    fn cache(world: &World) -> &Cache<Self> {
        &world.promotion_strategies
    }

    /// Of CommitStatuses and RevertCommits all that are in a namespace: which of them count depends on their
    /// labels, commits and branches.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let mut all = consumer_interests(key, &gates(&self.spec));
        all.push(git_repository_access::named(key, &self.spec.repo_ref));
        all.extend(kustomizations(&self.spec).map(|it| {
            let kind = FluxKind::Consumer(ConsumerKind::Kustomization);
            Work::own(kind.into(), key.naming(it.namespace.as_deref(), &it.name))
        }));
        let namespaces = self.spec.commit_status_namespaces.iter();
        let namespaces = namespaces.map(String::as_str).chain([&*key.namespace]);
        all.extend(namespaces.map(|it| Work::all(Kind::CommitStatus, it)));
        all.push(Work::all(Kind::RevertCommit, &key.namespace));
        all
    }

    /// Its PullRequests depend on what it says of them.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified()
            || change.differs(|it| {
                let status = it.status.as_ref()?;
                Some(status.environments.clone())
            })
    }

    async fn look(
        _: &Context,
        _: &ObjectKey,
        _: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        Ok(Outcome::Wake(None))
    }
}

/// The gates of all its environments.
fn gates(spec: &PromotionStrategySpec) -> Vec<GateReference> {
    let sets = spec.environments.iter().flat_map(|environment| {
        let Environment {
            gates,
            active_gates,
            revert_gates,
            ..
        } = environment;
        [gates, active_gates, revert_gates]
    });
    let refs = sets.flatten().flat_map(|set| &set.refs);
    refs.cloned().collect()
}

/// The Kustomizations of its checks, and those of its environments.
fn kustomizations(spec: &PromotionStrategySpec) -> impl Iterator<Item = &KustomizationReference> {
    let own = spec.environments.iter();
    let own = own.flat_map(|environment| &environment.active_commit_statuses);
    let checks = spec.active_commit_statuses.iter().chain(own);
    let checks = checks.filter_map(|check: &CommitStatusSelector| check.flux.as_ref());
    checks.flat_map(|check| &check.kustomizations)
}
