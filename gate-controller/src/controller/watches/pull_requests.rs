//! The watch of pull requests.

use sluice_core::delivery::pipeline;
use sluice_crds::{Pipeline, PullRequest};

use super::{Parts, follow_kind};
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};

/// Follows pull requests. The owner of each that changes records what becomes of it.
pub(super) async fn follow(parts: Parts) {
    let waker = parts.waker();
    let told = |change: &Change<'_, PullRequest>| {
        if change.now.is_none() {
            parts.at_forges.forget(change.key);
        }
        let seen = change.now.or(change.before).and_then(Seen::object);
        let about = seen.map(|object| &object.spec.about);
        if let Some(about) = about.filter(|about| about.kind == pipeline::KIND) {
            let owner = change.key.naming(None, &about.name);
            waker.wake(Work::own(Kind::Pipeline, owner));
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    let steps = async {
        let mut steps = parts.world.pull_requests.progressing();
        // Pipelines wait until it is known which there are, or that none can be.
        while steps.changed().await.is_ok() {
            waker.all::<Pipeline>();
        }
    };
    tokio::join!(following, steps);
}
