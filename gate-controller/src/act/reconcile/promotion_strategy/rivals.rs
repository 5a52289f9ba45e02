//! Strategies of the same repository: to each branch the oldest one promotes alone.
//!
//! What comes in: a strategy. What goes out: which others have branches of it. A repository is the same however
//! its address is written, and whatever the accesses are called that open it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::git_repository_access;
use sluice_core::delivery::promotion_strategy::{Access, check, is_said_to_be_read};
use sluice_core::gate::Named;
use sluice_crds::{GitRepositoryAccess, PromotionStrategy};

use super::{access_of, gather};
use crate::act::forges::Located;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen;
use crate::observe::repositories::Repositories;
use crate::observe::world::World;

type Strategy = (ObjectKey, Arc<PromotionStrategy>);

/// The older strategies of its repository that may promote there, and do. An access with anybody's address and
/// no Secret takes nothing away from others: it has to have read the repository.
pub(super) fn older(
    world: &World,
    repositories: &Repositories,
    key: &ObjectKey,
    object: &PromotionStrategy,
) -> Vec<Strategy> {
    let own = age(key, object);
    let mut others = others(world, key, object);
    others.retain(|(it, other)| {
        other.metadata.deletion_timestamp.is_none()
            && !other.spec.suspend
            && age(it, other) < own
            && check(other).is_ok()
            && may_use(world, it, other)
            && has_read(world, repositories, it, other)
    });
    others
}

/// Whether a strategy may promote to its branches by its access. By one whose spec is refused nobody does: its
/// repository is not read any more.
pub(crate) fn may_use(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> bool {
    let access = world.access(&key.namespace, &object.spec.repo_ref);
    let is_right = |it: &GitRepositoryAccess| git_repository_access::check(it).is_ok();
    matches!(access, Named::Here(it) if is_right(&it))
        && gather::access(world, key, object) == Access::Ready
}

/// Whether a strategy has shown that its access may read the repository. Where this process has not listed that,
/// because it has just begun to lead, or because another one decides about the strategy, its status says so: an
/// owner that is not listed yet stays the owner.
pub(crate) fn has_read(
    world: &World,
    repositories: &Repositories,
    key: &ObjectKey,
    object: &PromotionStrategy,
) -> bool {
    let access = access_of(key, &object.spec.repo_ref).key;
    repositories.may_read(&access).unwrap_or_else(|| {
        let seen = world.accesses.get(access.borrowed());
        let access = seen.as_ref().and_then(Seen::object);
        let made = access.and_then(|it| it.metadata.creation_timestamp.as_ref());
        made.is_some_and(|made| is_said_to_be_read(object, made.0))
    })
}

/// Which of these has a branch. Of one in another namespace no name is told.
pub(super) fn owner(older: &[Strategy], key: &ObjectKey, branch: &str) -> Option<String> {
    let owners = older.iter().filter(|(_, it)| has(it, branch));
    let owners = owners.map(|(it, _)| (it.namespace != key.namespace, it));
    let (is_elsewhere, oldest) = owners.min()?;
    Some(match is_elsewhere {
        true => "of another namespace".to_owned(),
        false => oldest.to_string(),
    })
}

/// The strategies that have a branch of this one: who owns that changes with it.
pub(crate) fn sharing(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Vec<Work> {
    let shares = |other: &PromotionStrategy| {
        let mut own = object.spec.environments.iter();
        own.any(|it| has(other, &it.branch))
    };
    let others = others(world, key, object).into_iter();
    let sharing = others.filter(|(_, other)| shares(other));
    sharing
        .map(|(it, _)| Work::own(Kind::PromotionStrategy, it))
        .collect()
}

/// The accesses to the same repository, but not this one.
pub(crate) fn same_repository(
    world: &World,
    key: &ObjectKey,
    access: &GitRepositoryAccess,
) -> Vec<Work> {
    let Some(repository) = Located::by(access).repository() else {
        return Vec::new();
    };
    let is_same = |it: &ObjectKey, other: &GitRepositoryAccess| {
        it != key && Located::by(other).repository().as_ref() == Some(&repository)
    };
    let same = world.accesses.select(is_same).into_iter();
    same.map(|(it, _)| Work::own(Kind::GitRepositoryAccess, it))
        .collect()
}

/// This access, and those to the same repository.
pub(crate) fn accesses(world: &World, access: Work) -> Vec<Work> {
    let opened = world.accesses.get(access.key.borrowed());
    let opened = opened.as_ref().and_then(Seen::object);
    let mut all = opened.map_or_else(Vec::new, |it| same_repository(world, &access.key, it));
    all.push(access);
    all
}

/// Those of the same repository, without itself.
fn others(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Vec<Strategy> {
    let accesses = accesses(world, access_of(key, &object.spec.repo_ref));
    let interested = accesses.iter().flat_map(|it| world.interested(it));
    let strategies = interested.filter(|it| it.kind == Kind::PromotionStrategy && it.key != *key);
    let seen = strategies.filter_map(|it| {
        let seen = world.promotion_strategies.get(it.key.borrowed());
        Some((it.key, Arc::clone(seen.as_ref().and_then(Seen::object)?)))
    });
    seen.collect()
}

fn has(object: &PromotionStrategy, branch: &str) -> bool {
    let mut environments = object.spec.environments.iter();
    environments.any(|it| it.branch == branch)
}

fn age(key: &ObjectKey, object: &PromotionStrategy) -> (Option<Timestamp>, ObjectKey) {
    let created = object.metadata.creation_timestamp.as_ref().map(|it| it.0);
    (created, key.clone())
}

#[cfg(test)]
mod tests;
