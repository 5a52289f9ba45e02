//! Watches of promotion strategies, and of what else they are decided from: accesses to repositories, commit
//! statuses and reverts.
//!
//! Nothing else waits for these kinds: an API server may have none of them.

use kube::ResourceExt;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::{
    CommitStatus, GitRepositoryAccess, PromotionStrategy, PullRequest, RevertCommit,
};

use super::{Parts, follow_kind};
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::promotion_strategy::rivals;
use crate::cluster::key::Work;
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
        let is_listed = parts.world.promotion_strategies.progress() == Progress::Synced;
        let both = [change.before, change.now].into_iter().flatten();
        for strategy in both.filter_map(Seen::object) {
            // Whose branch it is may depend on whether it can read its repository.
            if is_listed && (change.is_respecified() || change.differs(readiness)) {
                let sharing = rivals::sharing(&parts.world, change.key, strategy);
                sharing.into_iter().for_each(|it| waker.wake(it));
            }
            if !change.is_respecified() {
                continue;
            }
            let access = &strategy.spec.repo_ref;
            let access = change.key.naming(access.namespace.as_deref(), &access.name);
            let access = Work::own(Kind::GitRepositoryAccess, access);
            // Its statusName is reserved.
            for access in rivals::accesses(&parts.world, access.clone()) {
                let mut told = parts.world.interested(&access);
                told.retain(|it| it.kind == Kind::CommitStatus);
                told.into_iter().for_each(|it| waker.wake(it));
            }
            waker.wake(access);
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

/// Why it is ready, or not.
fn readiness(strategy: &PromotionStrategy) -> Option<String> {
    let ready = find(&strategy.status.as_ref()?.conditions, READY)?;
    Some(ready.reason.clone())
}

/// Follows accesses to repositories.
pub(super) async fn follow_accesses(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: &Change<'_, GitRepositoryAccess>| {
        if change.now.and_then(Seen::object).is_none() {
            parts.readings.forget(change.key);
            parts.repositories.gone(change.key);
        }
        let is_listed = parts.world.accesses.progress() == Progress::Synced;
        let both = [change.before, change.now].into_iter().flatten();
        let one = both.filter_map(Seen::object).next();
        // Whose branch it is may depend on whether it can be read.
        let matters = GitRepositoryAccess::may_matter(change);
        if let Some(access) = one.filter(|_| is_listed && matters) {
            let same = rivals::same_repository(&parts.world, change.key, access);
            same.iter().for_each(|it| waker.concerned(it));
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
