//! Watches of promotion strategies, and of what else they are decided from: accesses to repositories, commit
//! statuses and reverts.
//!
//! Nothing else waits for these kinds: an API server may have none of them.

use kube::ResourceExt;
use sluice_crds::{
    CommitStatus, GitRepositoryAccess, PromotionStrategy, PullRequest, RevertCommit,
};

use super::{Parts, follow_kind};
use crate::act::forges::Located;
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::promotion_strategy::rivals;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Progress, Seen};

/// Follows promotion strategies. The access that one begins or ceases to name learns of that, and the commit
/// statuses of its repository.
pub(super) async fn follow(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: &Change<'_, PromotionStrategy>| {
        let object = change.now.and_then(Seen::object);
        let kind = Kind::PromotionStrategy;
        if !object.is_some_and(|it| parts.shard.holds(kind, it.labels())) {
            parts.at_forges.forget_owner(kind, change.key);
            let own = Work::own(kind, change.key.clone());
            parts.repositories.forget(&own);
            parts.postings.forget(&own);
        }
        let (world, repositories) = (&parts.world, &parts.repositories);
        if let Some(object) = object {
            rivals::note(world, change.key, object);
        }
        let depending = rivals::depending(world, repositories, change);
        depending.into_iter().for_each(|it| waker.wake(it));
        let both = [change.before, change.now].into_iter().flatten();
        let both = both.filter_map(Seen::object);
        for strategy in both.filter(|_| change.is_respecified()) {
            let access = &strategy.spec.repo_ref;
            let access = change.key.naming(access.namespace.as_deref(), &access.name);
            waker.wake(work_of(&access));
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    // PullRequests and RevertCommits wait until it is known what strategies say of them, and CommitStatuses
    // until it is known which names are reserved.
    tokio::join!(
        following,
        at_each_step::<PromotionStrategy, PullRequest>(&parts),
        at_each_step::<PromotionStrategy, CommitStatus>(&parts),
        at_each_step::<PromotionStrategy, RevertCommit>(&parts)
    );
}

fn work_of(access: &ObjectKey) -> Work {
    Work::own(Kind::GitRepositoryAccess, access.clone())
}

/// Follows accesses to repositories.
pub(super) async fn follow_accesses(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: &Change<'_, GitRepositoryAccess>| {
        let (world, repositories) = (&parts.world, &parts.repositories);
        // Whose branch it is may depend on whether it can be read. That is asked before anything is forgotten.
        let matters = world.accesses.progress() == Progress::Synced
            && GitRepositoryAccess::may_matter(change)
            && rivals::access_matters(world, repositories, change);
        let before = matters.then(|| world.same_repository(change.key));
        let object = change.now.and_then(Seen::object);
        if change.is_respecified() {
            let repository = object.and_then(|it| Located::by(it).repository());
            world.note_access(change.key, repository.as_deref());
            rivals::note_access(world, change.key);
        }
        if object.is_none() {
            parts.readings.forget(change.key);
            repositories.gone(change.key);
        }
        for same in before.iter().flat_map(|same| same.iter()) {
            if same != change.key {
                waker.concerned(&work_of(same));
            }
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    tokio::join!(
        following,
        wake_strategies::<GitRepositoryAccess>(&parts),
        at_each_step::<GitRepositoryAccess, PullRequest>(&parts),
        at_each_step::<GitRepositoryAccess, CommitStatus>(&parts)
    );
}

/// Follows commit statuses.
pub(super) async fn follow_commit_statuses(parts: Parts) {
    let told = |change: &Change<'_, CommitStatus>| {
        let object = change.now.and_then(Seen::object);
        if !object.is_some_and(|it| parts.shard.holds(Kind::CommitStatus, it.labels())) {
            let own = Work::own(Kind::CommitStatus, change.key.clone());
            parts.postings.forget(&own);
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    tokio::join!(following, wake_strategies::<CommitStatus>(&parts));
}

/// Follows reverts.
pub(super) async fn follow_revert_commits(parts: Parts) {
    let following = follow_kind::<RevertCommit>(&parts, parts.api(), |_| {});
    tokio::join!(following, wake_strategies::<RevertCommit>(&parts));
}

/// Strategies wait until it is known what there is of each kind, or that there can be none.
async fn wake_strategies<K: Reconciled>(parts: &Parts) {
    at_each_step::<K, PromotionStrategy>(parts).await;
}

/// Wakes all objects of a kind whenever more is known of how far another one is listed.
pub(super) async fn at_each_step<K: Reconciled, Woken: Reconciled>(parts: &Parts) {
    let mut steps = K::cache(&parts.world).progressing();
    while steps.changed().await.is_ok() {
        parts.waker.all::<Woken>();
    }
}
