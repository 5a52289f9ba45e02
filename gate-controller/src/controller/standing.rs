//! How far the clock and the authors of annotations can be relied on, found out in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_core::gate::Identity;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Parts;
use crate::identity::{self, CHILDREN, InForce};
use crate::skew;

/// For how long decisions wait for lists in ConfigMaps: those that have not come by then count as
/// not read, and let nothing pass.
const FIRST_LOOKS: Duration = Duration::from_secs(10);

/// Finds out and goes on to. What it returns completes once decisions can be made: everything is
/// listed, the lists of revisions and of their authors are read, the policies have been looked for,
/// the clocks compared.
pub(super) fn follow(
    parts: &Parts,
    background: &mut JoinSet<()>,
) -> impl Future<Output = ()> + Send + 'static {
    let (policies, policies_known) = watch::channel(false);
    background.spawn(follow_policies(parts.clone(), policies));
    let (clocks, clocks_known) = watch::channel(!parts.settings.compare_clocks);
    if parts.settings.compare_clocks {
        background.spawn(compare_clocks(parts.clone(), clocks));
    }
    let world = Arc::clone(&parts.world);
    async move {
        world.synced().await;
        let looks = tokio::time::timeout(FIRST_LOOKS, world.evidence.first_looks());
        if looks.await.is_err() {
            tracing::info!("some lists in ConfigMaps have not been read yet");
        }
        for mut known in [policies_known, clocks_known] {
            // Where its sender is gone, it was known.
            let _ = known.wait_for(|known| *known).await;
        }
        world.ready();
        tracing::info!("every cache has synced");
    }
}

/// Watches who verifies annotations.
async fn follow_policies(parts: Parts, known: watch::Sender<bool>) {
    let (world, waker) = (&parts.world, parts.waker());
    let policies = identity::Policies::default();
    let kept = AtomicBool::new(false);
    let tell = |InForce { identity, children }| {
        if kept.swap(children, Ordering::Relaxed) != children {
            tell_of_children(children);
        }
        if world.stand(|standing| standing.identity = identity) {
            tracing::info!(?identity, "{}", in_words(identity));
            waker.everything();
        }
    };
    let first = async {
        // An API server that says nothing is waited for: a force that closes a gate must not be
        // overlooked because it was asked at a bad time.
        policies.answered().await;
        let identity = world.standing().identity;
        if identity != Identity::Verified {
            tracing::info!(?identity, "{}", in_words(identity));
        }
        if !kept.load(Ordering::Relaxed) {
            tell_of_children(false);
        }
        known.send_replace(true);
        std::future::pending::<()>().await;
    };
    let trusted = parts.settings.trust_unverified_identity;
    tokio::select! {
        () = policies.follow(parts.client.clone(), trusted, tell) => {}
        () = first => {}
    }
}

fn in_words(identity: Identity) -> &'static str {
    match identity {
        Identity::Verified => "admission policies verify who forces gates",
        Identity::Trusted => {
            "no admission policy verifies who forces gates; forces count all the same, as \
             --trust-unverified-identity says"
        }
        Identity::Unverified => {
            "no admission policy verifies who forces gates, so forces do not count; install the \
             policies of the chart, or run with --trust-unverified-identity"
        }
    }
}

/// Says whether children of GatedSources are kept from everybody else.
fn tell_of_children(kept: bool) {
    if kept {
        tracing::info!(
            "the admission policy {CHILDREN} keeps others from children of GatedSources"
        );
    } else {
        tracing::warn!(
            "the admission policy {CHILDREN} is not in force: whoever may update sources can move \
             the pins of GatedSources, and what they do is undone only afterwards; install the \
             policies of the chart"
        );
    }
}

/// Compares the clocks now and then.
async fn compare_clocks(parts: Parts, known: watch::Sender<bool>) {
    let (world, waker) = (&parts.world, parts.waker());
    loop {
        let compared = skew::compare(&parts.client, parts.clock.as_ref()).await;
        if let Some(trust) = compared
            && !skew::is_as_good(world.standing().trust, trust)
        {
            world.stand(|standing| standing.trust = trust);
            tracing::info!(?trust, "the clock was compared with the API server's");
            waker.everything();
        }
        // Before that nobody can say how far it is off.
        known.send_if_modified(|known| !std::mem::replace(known, *known || compared.is_some()));
        let is_known = *known.borrow();
        skew::pause(is_known).await;
    }
}
