//! Watches of pipelines, and of the apps that they promote.

use std::collections::BTreeSet;

use kube::ResourceExt;
use sluice_crds::{
    Approval, CommitStatus, GitRepositoryAccess, Pipeline, PromotionStrategy, PullRequest,
    RevertCommit,
};

use super::{Parts, follow_kind, named};
use crate::act::reconcile::pipeline::forget;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};

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

/// Follows the apps that pipelines name, and wakes the pipelines whose apps are read.
pub(super) async fn follow_apps(parts: Parts) {
    let waker = parts.waker.clone();
    let forget = || {
        parts.at_forges.clear();
        parts.postings.clear();
        parts.readings.clear();
        parts.repositories.clear();
    };
    let begin = || {
        forget();
        waker.all::<Pipeline>();
        waker.all::<PullRequest>();
        waker.all::<GitRepositoryAccess>();
        waker.all::<PromotionStrategy>();
        waker.all::<CommitStatus>();
        waker.all::<RevertCommit>();
    };
    let end = || {
        parts.apps.clear();
        parts.errands.clear();
        forget();
    };
    let watched = &parts.apps.watched;
    let concerned = |change: &_| watched.concerned(change);
    // This replica may have led before, and a look that had begun then may have remembered something since.
    let led = (begin, end);
    let following = named::follow(&parts, watched, Kind::Pipeline, concerned, led);
    let reading = async {
        loop {
            for key in parts.apps.read_now().await {
                waker.wake(Work::own(Kind::Pipeline, key));
            }
        }
    };
    tokio::join!(following, reading);
}
