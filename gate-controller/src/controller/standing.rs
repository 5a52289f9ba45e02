//! How far the clock and the authors of annotations can be relied on, found out in the background.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_core::gate::Identity;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Parts;
use crate::observe::clock::skew;
use crate::observe::identity::InForce;

/// For how long decisions wait until everything has been read and asked once: a little longer than one
/// request may take, so that what does not answer by then is known not to answer. Where a list has not
/// arrived by then, nothing passes; for the rest, what was reported before counts for as long as it is
/// valid.
const FIRST_LOOKS: Duration = Duration::from_secs(15);

/// Finds this out, and keeps it up to date. What it returns completes once decisions can be made:
/// everything is listed, everything that gatekeepers are judged from has been looked at once, the
/// policies have been looked for, the clocks compared.
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
    background.spawn(follow_silence(parts.clone()));
    let world = Arc::clone(&parts.world);
    async move {
        world.synced().await;
        let looks = tokio::time::timeout(FIRST_LOOKS, world.evidence.first_looks());
        if looks.await.is_err() {
            tracing::info!(
                "some gatekeepers are judged by their status: what they look at has not answered yet"
            );
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
    let (world, waker) = (&parts.world, parts.waker.clone());
    let policies = &world.verifiers;
    // As it was last reported. None: it is not known yet.
    let told: Mutex<Option<InForce>> = Mutex::new(None);
    let tell = |in_force: InForce| {
        let identity = in_force.identity;
        let mut told = told.lock();
        if told.as_ref().is_some_and(|told| *told != in_force) {
            tell_of_policies(told.as_ref(), &in_force);
            *told = Some(in_force);
        }
        drop(told);
        if world.stand(|standing| standing.identity = identity) {
            tracing::info!(?identity, "{}", in_words(identity));
            waker.everything();
        }
    };
    let trusted = parts.settings.trust_unverified_identity;
    let first = async {
        // An API server that says nothing is waited for: a force that closes a gate must not be
        // overlooked because it was asked at a bad time.
        policies.answered().await;
        let identity = world.standing().identity;
        if identity != Identity::Verified {
            tracing::info!(?identity, "{}", in_words(identity));
        }
        let in_force = policies.in_force(trusted);
        tell_of_policies(None, &in_force);
        *told.lock() = Some(in_force);
        known.send_replace(true);
        std::future::pending::<()>().await;
    };
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

/// Reports which policies check something different from what they should, and whether children of
/// GatedSources are protected from other writers, if that is new.
fn tell_of_policies(before: Option<&InForce>, now: &InForce) {
    if before.map_or(&[][..], |before| &before.drifted) != now.drifted && !now.drifted.is_empty() {
        tracing::warn!(
            "these admission policies check something else than this version ships, and count as \
             missing: {}; install the policies of the chart of this version",
            now.drifted.join(", ")
        );
    }
    if before.is_some_and(|before| before.without == now.without) {
        return;
    }
    if now.without.is_empty() {
        tracing::info!("admission policies keep others from children of GatedSources");
    } else {
        tracing::warn!(
            "these admission policies are not in force: {}; users who may update sources, \
             GatedSources or Pipelines can do more than they should, such as let go out what no gate \
             has admitted, and that is undone only afterwards; install the policies of the chart",
            now.without.join(", ")
        );
    }
}

/// Compares the clocks now and then, and at once when ours has jumped.
async fn compare_clocks(parts: Parts, known: watch::Sender<bool>) {
    let (world, waker, jumps) = (&parts.world, parts.waker.clone(), &parts.jumps);
    loop {
        let before = jumps.count();
        let compared = skew::compare(&parts.client, parts.clock.as_ref()).await;
        // What was measured while it jumped says nothing.
        let compared = compared.filter(|_| jumps.count() == before);
        if let Some(trust) = compared
            && world.compared(trust, before)
        {
            tracing::info!(?trust, "the clock was compared with the API server's");
            waker.everything();
        }
        // Before that it is not known how far it is off.
        known.send_if_modified(|known| !std::mem::replace(known, *known || compared.is_some()));
        let is_known = *known.borrow() && world.is_compared();
        tokio::select! {
            () = skew::pause(is_known) => {}
            () = jumps.beyond(before) => {}
        }
    }
}

/// How often to check whether the watches are alive.
const LOOK: Duration = Duration::from_secs(1);
/// For how long this replica has to lead, and so hear from the API server, before statuses report that a
/// watch is not alive. Otherwise all of them would be written twice after an outage.
const SETTLE: u32 = 15;

/// Checks whether the watches are alive, and has everything decided again when that changes.
async fn follow_silence(parts: Parts) {
    let (world, waker, load) = (&parts.world, parts.waker.clone(), parts.load());
    let mut telling = Telling::default();
    loop {
        let jumps = parts.jumps.count();
        let silence = world.silence();
        let news = telling.hear(silence.is_some(), load.leads(), jumps);
        world.tell_silence(telling.is_told());
        if silence.is_some() {
            parts.clients.away();
            parts.apps.watched.fleet().away();
            parts.workloads.watched.fleet().away();
        }
        match (news, silence) {
            (News::Silent, Some(why)) => {
                tracing::error!("{why}; every gate is closed until everything is listed again");
            }
            (News::Heard, _) => tracing::info!("changes are seen again"),
            _ => {}
        }
        if news != News::None {
            waker.everything();
        }
        pause().await;
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two looks, not a wait for an instant"
)]
async fn pause() {
    tokio::time::sleep(LOOK).await;
}

/// What is known of a silence.
#[derive(Default)]
struct Telling {
    is_silent: bool,
    /// How many looks in a row it has lasted while this replica led.
    looks: u32,
    /// How often the clock had jumped at the last look.
    jumps: u64,
}

/// What a look brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    /// Changes are not seen any more.
    Silent,
    /// That has lasted, and statuses report it.
    Lasting,
    /// They are seen again.
    Heard,
}

impl Telling {
    fn hear(&mut self, is_silent: bool, leads: bool, jumps: u64) -> News {
        // A jump silences everything until it is listed again, perhaps between two looks.
        let jumped = std::mem::replace(&mut self.jumps, jumps) != jumps;
        let was_silent = std::mem::replace(&mut self.is_silent, is_silent);
        let before = self.is_told();
        self.looks = match is_silent && leads {
            true => self.looks.saturating_add(1),
            false => 0,
        };
        match (was_silent, is_silent) {
            (false, true) => News::Silent,
            (true, false) => News::Heard,
            (false, false) if jumped => News::Heard,
            _ if self.is_told() && !before => News::Lasting,
            _ => News::None,
        }
    }

    fn is_told(&self) -> bool {
        self.looks >= SETTLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_tell_of_a_silence_that_lasts_while_the_api_server_answers() {
        let mut telling = Telling::default();
        assert_eq!(telling.hear(false, true, 0), News::None);
        assert_eq!(telling.hear(true, true, 0), News::Silent);
        // The API server is away, and with it the lead.
        for _ in 0..100 {
            assert_eq!(telling.hear(true, false, 0), News::None);
        }
        for _ in 1..SETTLE {
            assert_eq!(telling.hear(true, true, 0), News::None);
            assert!(!telling.is_told());
        }
        assert_eq!(telling.hear(true, true, 0), News::Lasting);
        assert_eq!(telling.hear(true, true, 0), News::None);
        assert!(telling.is_told());
        assert_eq!(telling.hear(false, true, 0), News::Heard);
        // It came and went between two looks.
        assert_eq!(telling.hear(false, true, 1), News::Heard);
        assert_eq!(telling.hear(false, true, 1), News::None);
        assert!(!telling.is_told());
    }
}
