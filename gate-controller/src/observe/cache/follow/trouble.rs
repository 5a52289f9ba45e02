//! How a watch fails, and what is logged of it.

use std::time::Duration;

use kube::Resource;
use kube::runtime::watcher;
use tokio::time::Instant;

use super::{Following, Presence};
use crate::cluster::failure;

/// How often a problem that lasts is logged.
const TELL_AGAIN: Duration = Duration::from_secs(300);

/// How a watch has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe::cache) enum Failed {
    /// There is no such kind.
    NotInstalled,
    /// The API server has refused it.
    Refused,
    /// It starts again with a list.
    Expired,
    /// The API server asks to try again later.
    Busy,
    /// In any other way.
    Otherwise,
}

impl Failed {
    pub(in crate::observe::cache) fn of(error: &watcher::Error) -> Self {
        if failure::is_not_installed(error) {
            Self::NotInstalled
        } else if failure::is_refused(error) {
            Self::Refused
        } else if failure::is_expired(error) {
            Self::Expired
        } else if failure::is_busy(error) {
            Self::Busy
        } else {
            Self::Otherwise
        }
    }
}

/// What was logged of the problem of a watch.
#[derive(Default)]
pub(super) struct Telling {
    trouble: Option<(Failed, Instant)>,
}

impl Telling {
    /// Logs that a watch has failed: at once if that is new, and, if the kind has to be there, again now
    /// and then while it lasts.
    pub(super) fn fails<K: Resource>(
        &mut self,
        following: &Following<K>,
        failed: Failed,
        error: &watcher::Error,
    ) {
        let now = Instant::now();
        // That it is busy again is not logged if it did not answer at all before.
        let is_same =
            |before| before == failed || (before, failed) == (Failed::Otherwise, Failed::Busy);
        let same = self.trouble.filter(|(before, _)| is_same(*before));
        let is_due = |at| now.saturating_duration_since(at) >= TELL_AGAIN;
        let is_told_again = following.presence == Presence::Required || failed == Failed::Busy;
        let is_told = same.is_some_and(|(_, at)| !(is_due(at) && is_told_again));
        if !is_told {
            self.trouble = Some((failed, now));
            tell(following, failed, same.is_some(), error);
        }
    }

    /// Logs that the watch works again, if it had failed.
    pub(super) fn goes_on<K: Resource>(&mut self, following: &Following<K>) {
        if self.trouble.take().is_some() {
            tracing::info!(kind = %K::kind(&following.kind), "watching again");
        }
    }
}

/// Why a watch fails, in words that say what to do.
pub(super) fn why<K: Resource>(following: &Following<K>, error: &watcher::Error) -> String {
    let kind = &following.kind;
    failure::of_watch(error, &K::plural(kind), &K::group(kind))
}

/// Logs that a watch has failed, or that it has been failing for long.
fn tell<K: Resource>(
    following: &Following<K>,
    failed: Failed,
    lasts: bool,
    error: &watcher::Error,
) {
    let Following { kind, presence, .. } = following;
    let (name, plural, group) = (K::kind(kind), K::plural(kind), K::group(kind));
    let why = why(following, error);
    match (failed, presence) {
        (Failed::NotInstalled, Presence::Optional) => tracing::info!(
            kind = %name,
            "this API server has no {plural}.{group}; they are looked for again now and then"
        ),
        (Failed::Expired, _) => tracing::info!(kind = %name, "{why}; listing everything again"),
        (Failed::Busy, _) if !lasts => tracing::info!(kind = %name, "{why}; trying again soon"),
        (Failed::NotInstalled | Failed::Refused | Failed::Busy | Failed::Otherwise, _) => {
            tracing::error!(kind = %name, "{why}");
        }
    }
}
