//! A look at a PromotionStrategy.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::promotion_strategy::evidence::Question;
use sluice_core::delivery::promotion_strategy::{
    Access, Evidence, branches, consider, is_requested, report,
};
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::git_repository_access::AccessReference;
use sluice_crds::promotion_strategy::{CommitStatusSelector, Environment, KustomizationReference};
use sluice_crds::{GateReference, PromotionStrategy, PromotionStrategySpec};

use super::{Context, Outcome, Reconciled, consumer, consumer_interests, git_repository_access};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

pub(crate) mod access;
mod apply;
mod gather;
mod news;
pub(crate) mod rivals;
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

    fn forget(context: &Context, key: &ObjectKey) {
        let own = Work::own(Kind::PromotionStrategy, key.clone());
        context.repositories.forget(&own);
        context.postings.forget(&own);
    }

    /// What its rules and gates let pass is merged, by the looks at its PullRequests, and everything else is
    /// told why it waits.
    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let world = &context.world;
        let now = world.now(context.clock.now());
        // What is not known yet wakes this object as soon as it is known.
        if !world.is_ready() || !gather::is_read(world, &object) {
            return Ok(Outcome::Wake(None));
        }
        let own = Work::own(Kind::PromotionStrategy, key.clone());
        let access = access_of(key, &object.spec.repo_ref).key;
        let may = access::readiness(world, key, &object);
        // Nothing is read of a repository that it may not use.
        let needed = match may {
            Access::Ready => branches(&object).collect(),
            Access::NotReady(_) => BTreeSet::new(),
        };
        context.repositories.need(&access, &own, needed);
        if may == Access::Ready && is_requested(&object) {
            context.repositories.list_now(&access);
        }
        let seen = Arc::new(context.repositories.of(&access, &own));
        let evidence: Arc<dyn Evidence + Send + Sync> = Arc::clone(&seen) as _;
        for dry in proposed(&object).filter(|_| may == Access::Ready) {
            // When it was made is counted once it is promoted. Nothing waits for that.
            seen.answer(&Question::Commit(dry.to_owned()));
        }
        let given = gather::gather(context, key, &object, (may, evidence), now);
        let considered = consider(given);
        context.repositories.ask(&access, &own, seen.asked());
        let is_decided = considered.is_decided();
        if !is_decided {
            tracing::debug!(strategy = %key, wanted = ?considered.wanted(), "its repository is being read");
        }
        let recorded = consumer::record_all(context, considered.asked()).await;
        let report = report(considered, &recorded);
        let outcome = consumer::apply(context, key, &object, report).await?;
        if is_decided {
            let kind = Kind::PromotionStrategy;
            context.at_forges.decided(context, kind, key);
        }
        Ok(outcome)
    }
}

/// The dry commits that are proposed, and that their environments do not have.
fn proposed(object: &PromotionStrategy) -> impl Iterator<Item = &str> {
    let environments = object.status.iter().flat_map(|it| &it.environments);
    environments.filter_map(|it| {
        let proposed = it.proposed.as_ref()?.dry_sha.as_deref()?;
        let active = it.active.as_ref()?.dry_sha.as_deref();
        (active != Some(proposed)).then_some(proposed)
    })
}

/// The access that an object named `key` means.
fn access_of(key: &ObjectKey, access: &AccessReference) -> Work {
    git_repository_access::named(key, access)
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
