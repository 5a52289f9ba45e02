//! The artifact store, as a gated source sees it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::gated_source::{self, Holding};
use sluice_core::time::span::later;
use sluice_crds::GatedSource;
use sluice_crds::gated_source::Strategy;

use crate::act::reconcile::Context;
use crate::artifacts::{Digest, Failure, State, Store};
use crate::cluster::key::ObjectKey;

/// How soon a fetch that has failed is retried; the time doubles with each further failure.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
/// The longest of these times.
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(10);

/// How long verifying may take before the status says so.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// What is stored. None: nothing is.
pub(super) struct Stored(Option<Arc<Store>>);

impl Stored {
    pub(super) fn of(context: &Context) -> Self {
        Self(context.artifacts.clone())
    }
}

/// Whether it is known what is stored, or that nothing can be: only after this replica has led for a
/// moment.
pub(super) fn is_known(context: &Context) -> bool {
    (context.artifacts.iter()).all(|store| store.ready().is_ok() || store.unusable().is_some())
}

/// Until when nothing is reported of a gated source whose artifacts are being verified after a start.
/// Usually that takes a moment and changes nothing, and the gated source is woken as soon as it is done.
pub(super) fn verifying(
    context: &Context,
    object: &GatedSource,
    now: Timestamp,
) -> Option<Timestamp> {
    let store = context.artifacts.as_ref()?;
    if object.spec.strategy != Strategy::Artifact || object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let wanted = gated_source::wanted(object);
    let since = wanted
        .iter()
        .filter_map(|source| store.verifying(&key(namespace, &source.target)));
    let until = since.max()?.saturating_add(PATIENCE).ok()?;
    (now < until).then_some(until)
}

impl gated_source::Store for Stored {
    fn holding(&self, namespace: &str, child: &str, digest: &str) -> Holding {
        let Some(store) = &self.0 else {
            return Holding::Off;
        };
        let digest: Digest = match digest.parse() {
            Ok(digest) => digest,
            Err(why) => return Holding::Failed(format!("{why}")),
        };
        match store.state(&key(namespace, child), &digest) {
            State::NotReady => match store.unusable() {
                Some(why) => Holding::Failed(why),
                // It has just stopped leading.
                None => Holding::Fetching,
            },
            State::Verifying => Holding::Verifying,
            State::Fetching(None) => Holding::Fetching,
            State::Absent => Holding::Absent,
            // A fetch that is being retried counts as failed until it succeeds.
            State::Failed(failure) | State::Fetching(Some(failure)) => Holding::Failed(failure.why),
            State::Stored(stored) => Holding::Stored(gated_source::Stored {
                url: store.url_of(&stored),
                path: stored.path,
                size: stored.size,
            }),
        }
    }
}

/// Begins to fetch an artifact of a child, unless that has failed a moment ago.
pub(super) fn fetch(context: &Context, namespace: &str, child: &str, digest: &str, url: &str) {
    let (Some(store), Ok(digest)) = (&context.artifacts, digest.parse::<Digest>()) else {
        return;
    };
    let key = key(namespace, child);
    if let State::Failed(failure) = store.state(&key, &digest)
        && context.clock.now() < again(&failure)
    {
        return;
    }
    store.fetch(&key, &digest, url);
}

fn again(failure: &Failure) -> Timestamp {
    let doublings = failure.failures.saturating_sub(1).min(10);
    let after = FIRST_RETRY
        .saturating_mul(1 << doublings)
        .min(LONGEST_RETRY);
    later(failure.at, after)
}

/// Keeps only these artifacts of a child.
pub(super) fn retain(context: &Context, namespace: &str, child: &str, digests: &[String]) {
    if let Some(store) = &context.artifacts {
        let digests: Vec<Digest> = digests.iter().filter_map(|it| it.parse().ok()).collect();
        store.retain(&key(namespace, child), &digests);
    }
}

fn key(namespace: &str, child: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.into(),
        name: child.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_that_fails_is_tried_ever_more_rarely() {
        let at = Timestamp::UNIX_EPOCH;
        let after = |failures| {
            let why = String::new();
            again(&Failure { why, at, failures }).as_second()
        };
        assert_eq!([1, 2, 3, 7, 100].map(after), [10, 20, 40, 600, 600]);
    }
}
