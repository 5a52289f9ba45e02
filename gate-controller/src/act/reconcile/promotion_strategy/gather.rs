//! Everything that the decision about a strategy needs, from memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_core::delivery::promotion_strategy::{
    self, Access, Evidence, Given, Surroundings, What, check,
};
use sluice_core::flux::observed::Found;
use sluice_core::gate::{self, Identity};
use sluice_core::time::clock::Now;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::git_repository_access::AccessReference;
use sluice_crds::promotion_strategy::Environment;
use sluice_crds::pull_request::Repository;
use sluice_crds::{CommitStatus, PromotionStrategy, RevertCommit};

use super::kustomizations;
use crate::act::forges::Located;
use crate::act::reconcile::{Context, owned};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Progress, Seen};
use crate::observe::world::World;

/// The kind of Flux that checks name.
const KUSTOMIZATION: FluxKind = FluxKind::Consumer(ConsumerKind::Kustomization);

/// Whether everything that is not asked of a forge was read.
pub(super) fn is_read(world: &World, object: &PromotionStrategy) -> bool {
    let ours = [
        world.accesses.progress(),
        world.pull_requests.progress(),
        world.promotion_strategies.progress(),
        world.commit_statuses.progress(),
        world.revert_commits.progress(),
    ];
    let mut named = kustomizations(&object.spec);
    let needs_flux = named.next().is_some();
    ours.iter().all(|it| *it != Progress::Unanswered)
        && (!needs_flux || world.flux.has_answered(KUSTOMIZATION))
}

/// Whether the strategy may use its access: to merge into each of its branches.
pub(super) fn access(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Access {
    let repository = Repository::of(object.spec.repo_ref.clone());
    let environments = object.spec.environments.iter();
    let found = environments
        .map(|environment| Located::find(world, &key.namespace, &repository, &environment.branch));
    match found.filter_map(Result::err).next() {
        Some(failure) => Access::NotReady(failure.why),
        None => Access::Ready,
    }
}

/// All of it, as it is at `now`.
pub(super) fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<PromotionStrategy>,
    (access, evidence): (Access, Arc<dyn Evidence + Send + Sync>),
    now: Now,
) -> Given {
    let world = context.world.as_ref();
    let own = Work::own(Kind::PromotionStrategy, key.clone());
    let environments = object.spec.environments.iter();
    Given {
        surroundings: environments
            .map(|environment| surroundings(world, key, object, environment, now))
            .collect(),
        checked: check(object),
        access,
        evidence,
        pull_requests: owned::of(world, &own),
        commit_statuses: commit_statuses(world, key, object),
        reverts: reverts(world, key, object),
        reverts_verified: world.standing().identity != Identity::Unverified,
        kustomizations: seen_kustomizations(world, key, object),
        dry_errand: context.postings.errand(&own),
        object: Arc::clone(object),
        now,
    }
}

fn surroundings(
    world: &World,
    key: &ObjectKey,
    object: &PromotionStrategy,
    environment: &Environment,
    now: Now,
) -> Surroundings {
    let gathered = |own, what| {
        let subject = promotion_strategy::subject(object, &environment.branch, what, None);
        gate::set::gather(world, own, &subject, now.at)
    };
    let active = environment.active_gates.as_ref();
    Surroundings {
        gates: gathered(environment.gates.as_ref(), What::Promote),
        revert_gates: gathered(environment.revert_gates.as_ref(), What::Revert),
        active_gates: active.map(|own| gathered(Some(own), What::Pass)),
        owned_by: owner_of(world, key, object, &environment.branch),
    }
}

/// An older strategy that promotes to the same branch of the same repository.
fn owner_of(
    world: &World,
    key: &ObjectKey,
    object: &PromotionStrategy,
    branch: &str,
) -> Option<String> {
    let access = super::access_of(key, &object.spec.repo_ref);
    let age = |object: &PromotionStrategy, key: &ObjectKey| {
        let created = object.metadata.creation_timestamp.as_ref().map(|it| it.0);
        (created, key.clone())
    };
    let own = age(object, key);
    let others = world.interested(&access).into_iter();
    let others = others.filter(|it| it.kind == Kind::PromotionStrategy && it.key != *key);
    let older = others.filter(|it| {
        let other = world.promotion_strategies.get(it.key.borrowed());
        other.as_ref().and_then(Seen::object).is_some_and(|other| {
            let mut branches = other.spec.environments.iter();
            other.metadata.deletion_timestamp.is_none()
                && super::access_of(&it.key, &other.spec.repo_ref) == access
                && branches.any(|it| it.branch == branch)
                && age(other, &it.key) < own
        })
    });
    older.map(|it| it.key).min().map(|key| key.to_string())
}

/// Whether an object of that name names the same access as the strategy.
fn is_of(
    key: &ObjectKey,
    object: &PromotionStrategy,
    it: &ObjectKey,
    named: &AccessReference,
) -> bool {
    super::access_of(it, named) == super::access_of(key, &object.spec.repo_ref)
}

fn commit_statuses(
    world: &World,
    key: &ObjectKey,
    object: &PromotionStrategy,
) -> Vec<Arc<CommitStatus>> {
    let more = &object.spec.commit_status_namespaces;
    let counts = |namespace: &str| {
        let is_named = || more.iter().any(|it| it == namespace);
        namespace == &*key.namespace || (world.crosses_namespaces() && is_named())
    };
    let all = world.commit_statuses.select(|it, status| {
        counts(&it.namespace) && is_of(key, object, it, &status.spec.repo_ref)
    });
    all.into_iter().map(|(_, status)| status).collect()
}

fn reverts(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Vec<Arc<RevertCommit>> {
    let all = world.revert_commits.select(|it, revert| {
        it.namespace == key.namespace && is_of(key, object, it, &revert.spec.repo_ref)
    });
    all.into_iter().map(|(_, revert)| revert).collect()
}

fn seen_kustomizations(
    world: &World,
    key: &ObjectKey,
    object: &PromotionStrategy,
) -> BTreeMap<(String, String), Found> {
    let named = kustomizations(&object.spec).map(|it| {
        let place = key.naming(it.namespace.as_deref(), &it.name);
        let is_near = place.namespace == key.namespace || world.crosses_namespaces();
        let found = match is_near {
            true => world.flux.see(KUSTOMIZATION, place.borrowed()),
            false => Found::Unreadable(
                "it is in another namespace, which this controller does not read".into(),
            ),
        };
        ((place.namespace.to_string(), place.name.to_string()), found)
    });
    named.collect()
}
