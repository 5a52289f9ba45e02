//! Whether a strategy may promote to its branches by the access that it names.

use sluice_core::delivery::git_repository_access;
use sluice_core::delivery::promotion_strategy::Access;
use sluice_core::gate::Named;
use sluice_crds::pull_request::Repository;
use sluice_crds::{GitRepositoryAccess, PromotionStrategy};

use crate::act::forges::Located;
use crate::cluster::key::ObjectKey;
use crate::observe::world::World;

/// Whether the strategy may use its access: to merge into each of its branches.
pub(super) fn readiness(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Access {
    let repository = Repository::of(object.spec.repo_ref.clone());
    let environments = object.spec.environments.iter();
    let found = environments
        .map(|environment| Located::find(world, &key.namespace, &repository, &environment.branch));
    match found.filter_map(Result::err).next() {
        Some(failure) => Access::NotReady(failure.why),
        None => Access::Ready,
    }
}

/// Whether a strategy may promote to its branches by its access. By one whose spec is refused nobody does: its
/// repository is not read any more.
pub(crate) fn may_use(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> bool {
    let named = world.access(&key.namespace, &object.spec.repo_ref);
    let is_right = |it: &GitRepositoryAccess| git_repository_access::check(it).is_ok();
    matches!(named, Named::Here(it) if is_right(&it))
        && readiness(world, key, object) == Access::Ready
}
