//! Strategies of the same repository: to each branch the oldest one promotes alone.
//!
//! What comes in: a strategy. What goes out: which others have branches of it. A repository is the same however
//! its address is written, and whatever the accesses are called that open it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::commit_status::is_same_name;
use sluice_core::delivery::promotion_strategy::{check, is_said_to_be_read};
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::{GitRepositoryAccess, PromotionStrategy};

use super::access::may_use;
use super::access_of;
use crate::act::reconcile::git_repository_access::is_listed;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Progress, Seen};
use crate::observe::repositories::Repositories;
use crate::observe::world::World;

/// A strategy with its name.
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
    let may_read = repositories.may_read(&access);
    may_read.unwrap_or_else(|| is_said_to_read(world, &access, object))
}

/// Whether the status of a strategy says that its access could read.
fn is_said_to_read(world: &World, access: &ObjectKey, object: &PromotionStrategy) -> bool {
    let seen = world.accesses.get(access.borrowed());
    let uid = seen.as_ref().and_then(Seen::object);
    let uid = uid.and_then(|it| it.metadata.uid.as_ref());
    uid.is_some_and(|uid| is_said_to_be_read(object, uid))
}

/// Notes that the access of a strategy has read its repository, if that is said: those of the same repository look
/// at it from now on.
pub(crate) fn note(world: &World, key: &ObjectKey, object: &PromotionStrategy) {
    let access = access_of(key, &object.spec.repo_ref).key;
    if is_said_to_read(world, &access, object) {
        world.note_read(&access);
    }
}

/// The same of an access that is new, or was changed.
pub(crate) fn note_access(world: &World, access: &ObjectKey) {
    if naming(world, access).any(|(_, it)| is_said_to_read(world, access, &it)) {
        world.note_read(access);
    }
}

/// Who depends on what has become of a strategy: those that have branches of it, and the commit statuses of its
/// repository that have its statusName. What has never been read matters to nobody else who names another access.
pub(crate) fn depending(
    world: &World,
    repositories: &Repositories,
    change: &Change<'_, PromotionStrategy>,
) -> BTreeSet<Work> {
    let key = change.key;
    let is_listed = world.promotion_strategies.progress() == Progress::Synced;
    // Whose branch or name it is may depend on whether it can read its repository.
    let is_read_otherwise = is_listed && change.differs(reading);
    let mut depending = BTreeSet::new();
    let both = [change.before, change.now].into_iter().flatten();
    for strategy in both.filter_map(Seen::object) {
        let matters = matters(world, repositories, key, strategy);
        let has_changed = change.is_respecified() || matters && is_read_otherwise;
        if !has_changed {
            continue;
        }
        if is_listed && matters {
            depending.extend(sharing(world, key, strategy));
        }
        let access = access_of(key, &strategy.spec.repo_ref).key;
        let accesses = match matters {
            true => world.same_repository(&access),
            false => Arc::new([access].into()),
        };
        let name = &strategy.spec.status_name;
        depending.extend(accesses.iter().flat_map(|it| called(world, it, name)));
    }
    depending
}

/// What a strategy says of its repository: why it is ready or not, and by which access that was read.
fn reading(strategy: &PromotionStrategy) -> Option<(String, Option<String>)> {
    let status = strategy.status.as_ref()?;
    let ready = find(&status.conditions, READY)?;
    Some((ready.reason.clone(), status.read_by.clone()))
}

/// The commit statuses with this name by this access.
fn called(world: &World, access: &ObjectKey, name: &str) -> Vec<Work> {
    let access = Work::own(Kind::GitRepositoryAccess, access.clone());
    let mut all = world.interested(&access);
    all.retain(|it| {
        let seen = world.commit_statuses.get(it.key.borrowed());
        let object = seen.as_ref().and_then(Seen::object);
        it.kind == Kind::CommitStatus && object.is_some_and(|it| is_same_name(&it.spec.name, name))
    });
    all
}

/// Whether a change of this version of a strategy may matter to those of the same repository: it has branches or
/// names there, or had them. What has never been read matters to nobody, however often it changes.
pub(crate) fn matters(
    world: &World,
    repositories: &Repositories,
    key: &ObjectKey,
    object: &PromotionStrategy,
) -> bool {
    let access = access_of(key, &object.spec.repo_ref).key;
    let has_read =
        repositories.may_read(&access) == Some(true) || is_said_to_read(world, &access, object);
    has_read && may_use(world, key, object)
}

/// The same of an access: what is decided by others depends on it if it has read the repository.
pub(crate) fn access_matters(
    world: &World,
    repositories: &Repositories,
    change: &Change<'_, GitRepositoryAccess>,
) -> bool {
    let both = [change.before, change.now].into_iter().flatten();
    let mut both = both.filter_map(Seen::object);
    repositories.may_read(change.key) == Some(true)
        || both.any(|it| is_listed(it))
        || naming(world, change.key).any(|(_, it)| is_said_to_read(world, change.key, &it))
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
fn sharing(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Vec<Work> {
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

/// The strategies that name this access, or any other to its repository that has read that. Others count for nothing,
/// and everybody can make any number of them.
pub(crate) fn of_repository(world: &World, access: &ObjectKey) -> Vec<Strategy> {
    let accesses = world.readers(access);
    accesses.iter().flat_map(|it| naming(world, it)).collect()
}

/// The strategies that name this access.
fn naming(world: &World, access: &ObjectKey) -> impl Iterator<Item = Strategy> {
    let access = Work::own(Kind::GitRepositoryAccess, access.clone());
    let interested = world.interested(&access).into_iter();
    let strategies = interested.filter(|it| it.kind == Kind::PromotionStrategy);
    strategies.filter_map(|it| {
        let seen = world.promotion_strategies.get(it.key.borrowed());
        Some((it.key, Arc::clone(seen.as_ref().and_then(Seen::object)?)))
    })
}

/// Those of the same repository, without itself.
fn others(world: &World, key: &ObjectKey, object: &PromotionStrategy) -> Vec<Strategy> {
    let access = access_of(key, &object.spec.repo_ref).key;
    let mut others = of_repository(world, &access);
    others.retain(|(it, _)| it != key);
    others
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
