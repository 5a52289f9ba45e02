//! Watches of Rollouts, and of the workloads that they name.

use kube::ResourceExt;
use sluice_core::delivery::rollout::wanted;
use sluice_crds::Rollout;
use tokio::sync::broadcast::error::RecvError;

use super::{Parts, follow_kind};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};
use crate::observe::clock::reach;

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
            let others = parts.workloads.of(&change.key.namespace, &wanted(gone));
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

/// Follows the workloads that Rollouts name, for as long as this replica leads.
pub(super) async fn follow_workloads(parts: Parts) {
    let mut leadership = parts.leadership.clone();
    loop {
        tokio::select! {
            () = leadership.led() => {}
            () = end_watches(&parts) => {}
        }
        // This replica may have led before: what it knew is gone since then. Calls that a look has begun meanwhile
        // go on: they would go out twice.
        parts.waker.all::<Rollout>();
        tokio::select! {
            () = watch(&parts) => {}
            () = leadership.lost() => {}
        }
        parts.workloads.clear();
        parts.calls.clear();
    }
}

/// Ends the watches of what nobody names any more, each in its time. It never returns.
async fn end_watches(parts: &Parts) {
    while let Some(next) = parts.workloads.watch(parts.clock.now()) {
        reach(parts.clock.as_ref(), next).await;
    }
    std::future::pending::<()>().await;
}

/// Watches what is named, and wakes the Rollouts that a change concerns.
async fn watch(parts: &Parts) {
    let mut changes = parts.workloads.fleet().changes();
    let wake = |key: ObjectKey| parts.waker.wake(Work::own(Kind::Rollout, key));
    loop {
        let next = parts.workloads.watch(parts.clock.now());
        let ends = async {
            match next {
                Some(at) => reach(parts.clock.as_ref(), at).await,
                None => std::future::pending().await,
            }
        };
        let is_over = async {
            tokio::select! {
                () = parts.workloads.renewed() => {}
                () = ends => {}
            }
        };
        let mut is_over = std::pin::pin!(is_over);
        loop {
            let change = tokio::select! {
                () = &mut is_over => break,
                change = changes.recv() => change,
            };
            match change {
                Ok(change) => parts
                    .workloads
                    .concerned(&change)
                    .into_iter()
                    .for_each(wake),
                Err(RecvError::Lagged(_)) => parts.workloads.of_all().into_iter().for_each(wake),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
