//! Watches of pipelines, and of the apps that they promote.

use std::collections::BTreeSet;

use kube::ResourceExt;
use sluice_crds::{
    Approval, CommitStatus, GitRepositoryAccess, Pipeline, PromotionStrategy, PullRequest,
    RevertCommit,
};
use tokio::sync::broadcast::error::RecvError;

use super::{Parts, follow_kind};
use crate::act::reconcile::pipeline::forget;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};
use crate::observe::clock::reach;

/// Follows pipelines.
pub(super) async fn follow(parts: Parts) {
    let told = |change: &Change<'_, Pipeline>| {
        let object = change.now.and_then(Seen::object);
        if !object.is_some_and(|it| parts.shard.holds(Kind::Pipeline, it.labels())) {
            forget(&parts.apps, &parts.errands, change.key);
            parts.at_forges.forget_owner(Kind::Pipeline, change.key);
        }
    };
    follow_kind(&parts, parts.api(), told).await;
}

/// The pipelines whose promotions an approval was and is for. Of one that cannot be read it is not known.
pub(super) fn approved(parts: &Parts, change: &Change<'_, Approval>) -> BTreeSet<ObjectKey> {
    let both = || [change.before, change.now].into_iter().flatten();
    if both().any(|seen| seen.object().is_none()) {
        let all = parts.world.pipelines.keys().into_iter();
        return all
            .filter(|key| key.namespace == change.key.namespace)
            .collect();
    }
    let named = both().filter_map(|seen| seen.object()?.spec.pipeline_ref.as_ref());
    named.map(|it| change.key.naming(None, &it.name)).collect()
}

/// Follows the apps that pipelines name, for as long as this replica leads: a replica that waits holds no
/// watch on other clusters.
pub(super) async fn follow_apps(parts: Parts) {
    let mut leadership = parts.leadership.clone();
    let waker = parts.waker.clone();
    loop {
        tokio::select! {
            () = leadership.led() => {}
            () = end_watches(&parts) => {}
        }
        // This replica may have led before: what it knew of the apps is gone. A look that had begun then
        // may have remembered something since.
        parts.at_forges.clear();
        parts.postings.clear();
        parts.readings.clear();
        parts.repositories.clear();
        waker.all::<Pipeline>();
        waker.all::<PullRequest>();
        waker.all::<GitRepositoryAccess>();
        waker.all::<PromotionStrategy>();
        waker.all::<CommitStatus>();
        waker.all::<RevertCommit>();
        tokio::select! {
            () = watch_apps(&parts) => {}
            () = leadership.lost() => {}
        }
        parts.apps.clear();
        parts.errands.clear();
        parts.at_forges.clear();
        parts.postings.clear();
        parts.readings.clear();
        parts.repositories.clear();
    }
}

/// Ends the watches of what nobody names any more, each in its time. It never returns.
async fn end_watches(parts: &Parts) {
    while let Some(next) = parts.apps.watch(parts.clock.now()) {
        reach(parts.clock.as_ref(), next).await;
    }
    std::future::pending::<()>().await;
}

/// Watches what is named, and wakes the pipelines that a change concerns.
async fn watch_apps(parts: &Parts) {
    let mut changes = parts.apps.fleet().changes();
    let waker = parts.waker.clone();
    let wake = |key: ObjectKey| waker.wake(Work::own(Kind::Pipeline, key));
    loop {
        let next = parts.apps.watch(parts.clock.now());
        let ends = async {
            match next {
                Some(at) => reach(parts.clock.as_ref(), at).await,
                None => std::future::pending().await,
            }
        };
        let is_over = async {
            tokio::select! {
                () = parts.apps.renewed() => {}
                () = ends => {}
            }
        };
        let mut is_over = std::pin::pin!(is_over);
        loop {
            let change = tokio::select! {
                () = &mut is_over => break,
                read = parts.apps.read_now() => {
                    read.into_iter().for_each(wake);
                    continue;
                }
                change = changes.recv() => change,
            };
            match change {
                Ok(change) => parts.apps.concerned(&change).into_iter().for_each(wake),
                Err(RecvError::Lagged(_)) => parts.apps.all().into_iter().for_each(wake),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
