//! Watches of Rollouts, and of the workloads that they name.

use kube::ResourceExt;
use sluice_core::delivery::rollout::given::Appliers;
use sluice_core::delivery::rollout::wanted;
use sluice_crds::Rollout;

use super::{Parts, follow_kind, named};
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};

/// Follows Rollouts.
pub(super) async fn follow(parts: Parts) {
    let told = |change: &Change<'_, Rollout>| {
        let object = change.now.and_then(Seen::object);
        if !object.is_some_and(|it| parts.shard.holds(Kind::Rollout, it.labels())) {
            parts.forget_rollout(change.key);
        }
        // A claim of one that is gone counts no longer.
        let gone = change.before.filter(|_| change.now.is_none());
        if let Some(gone) = gone.and_then(Seen::object) {
            // Those of its run have a claim.
            let workloads = wanted(gone, &Appliers::default());
            let others = parts.workloads.of(&change.key.namespace, &workloads);
            let others = others.into_iter().map(|it| Work::own(Kind::Rollout, it));
            others.for_each(|it| parts.waker.wake(it));
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    // Whose claims count is not known before all are listed.
    let listed = async {
        parts.world.rollouts.synced().await;
        parts.waker.all::<Rollout>();
    };
    tokio::join!(following, listed);
}

/// Follows the workloads that Rollouts name.
pub(super) async fn follow_workloads(parts: Parts) {
    // This replica may have led before: what it knew is gone since then. Calls that a look has begun meanwhile go
    // on: they would go out twice.
    let begin = || parts.waker.all::<Rollout>();
    let end = || {
        parts.workloads.clear();
        parts.calls.clear();
    };
    let concerned = |change: &_| parts.workloads.concerned(change);
    let led = (begin, end);
    named::follow(
        &parts,
        &parts.workloads.watched,
        Kind::Rollout,
        concerned,
        led,
    )
    .await;
}
