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
use sluice_crds::{CommitStatus, PromotionStrategy, RevertCommit};

use super::{kustomizations, rivals};
use crate::act::reconcile::{Context, owned};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Progress;
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
    let older = rivals::older(world, &context.repositories, key, object);
    Given {
        surroundings: environments
            .map(|environment| Surroundings {
                owned_by: rivals::owner(&older, key, &environment.branch),
                ..surroundings(world, object, environment, now)
            })
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
        owned_by: None,
    }
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

pub(super) fn commit_statuses(
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_core::time::clock::Trust;

    use sluice_crds::flux::FluxObject;

    use super::*;
    use crate::observe::cache::Seen;
    use crate::observe::world::Standing;

    /// What a check says of a Kustomization has its revision in it.
    #[test]
    fn kustomizations_of_other_namespaces_are_not_told_where_that_is_switched_off() {
        let object: PromotionStrategy = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"namespace": "apps", "name": "shop"},
            "spec": {
                "repoRef": {"name": "shop"}, "environments": [{"branch": "env/prod"}],
                "activeCommitStatuses": [{"key": "flux", "flux": {"kustomizations": [
                    {"name": "own"}, {"name": "other", "namespace": "flux-system"},
                ]}}],
            },
        }))
        .unwrap();
        let other: FluxObject = serde_json::from_value(json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": "other"},
            "status": {"lastAppliedRevision": "main@sha1:1"},
        }))
        .unwrap();
        for crosses in [false, true] {
            let standing = Standing {
                trust: Trust::Good,
                identity: Identity::Verified,
            };
            let world = World::new(standing, crosses);
            let at = ObjectKey::of(&other);
            let seen = Some(Seen::Object(Arc::new(other.clone())));
            world.flux.of(KUSTOMIZATION).hold(&at, seen);
            let seen = seen_kustomizations(&world, &ObjectKey::of(&object), &object);
            let of = |namespace: &str, name: &str| &seen[&(namespace.into(), name.into())];
            assert!(matches!(of("apps", "own"), Found::Missing));
            let other = of("flux-system", "other");
            assert_eq!(other.object().is_some(), crosses);
            assert_eq!(matches!(other, Found::Unreadable(_)), !crosses);
        }
    }
}
