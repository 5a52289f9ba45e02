//! Watches of what our objects name, on our own cluster and on others.

use std::collections::BTreeSet;

use sluice_clusters::Change;
use tokio::sync::broadcast::error::RecvError;

use super::Parts;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::clock::{Clock, reach};
use crate::observe::named::Watched;

/// Follows what objects of a kind name, for as long as this replica leads: a replica that waits holds no watch
/// of it. `begin` is called each time that it leads, and `end` when it does not lead any more. `concerned`: those
/// who have to look after a change.
pub(super) async fn follow(
    parts: &Parts,
    watched: &Watched,
    kind: Kind,
    concerned: impl Fn(&Change) -> BTreeSet<ObjectKey>,
    (begin, end): (impl Fn(), impl Fn()),
) {
    let mut leadership = parts.leadership.clone();
    let clock = parts.clock.as_ref();
    let wake = |key: ObjectKey| parts.waker.wake(Work::own(kind, key));
    loop {
        tokio::select! {
            () = leadership.led() => {}
            () = end_watches(watched, clock) => {}
        }
        begin();
        tokio::select! {
            () = watch(watched, clock, &concerned, wake) => {}
            () = leadership.lost() => {}
        }
        end();
    }
}

/// Ends the watches of what nobody names any more, each in its time. It never returns.
async fn end_watches(watched: &Watched, clock: &dyn Clock) {
    while let Some(next) = watched.watch(clock.now()) {
        reach(clock, next).await;
    }
    std::future::pending::<()>().await;
}

/// Watches what is named, and wakes those whom a change concerns.
async fn watch(
    watched: &Watched,
    clock: &dyn Clock,
    concerned: impl Fn(&Change) -> BTreeSet<ObjectKey>,
    wake: impl Fn(ObjectKey),
) {
    let mut changes = watched.fleet().changes();
    loop {
        let next = watched.watch(clock.now());
        let ends = async {
            match next {
                Some(at) => reach(clock, at).await,
                None => std::future::pending().await,
            }
        };
        let is_over = async {
            tokio::select! {
                () = watched.renewed() => {}
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
                Ok(change) => concerned(&change).into_iter().for_each(&wake),
                Err(RecvError::Lagged(_)) => watched.all().into_iter().for_each(&wake),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
