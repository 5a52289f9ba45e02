//! Leadership, as the flags have it: by the Lease of this shard, without one, or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use sluice_core::operation::shard;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Parts;
use super::background::outlive;
use super::settings::Settings;
use crate::lease::{self, Held, Terms};

/// Leads by a Lease, or alone, and sends to `until` until when. Cancel the token when the last worker has
/// stopped: only then is the Lease given back.
pub(super) fn lead(
    parts: &Parts,
    until: watch::Sender<Option<Held>>,
    tasks: &TaskTracker,
    background: &mut JoinSet<()>,
    shutdown: &CancellationToken,
) -> anyhow::Result<CancellationToken> {
    let settings = &parts.settings;
    let work_ended = CancellationToken::new();
    if !settings.enable_leader_election || settings.standby {
        let shutdown = shutdown.clone();
        until.send_replace((!settings.standby).then(Held::for_ever));
        tasks.spawn(async move {
            shutdown.cancelled().await;
            drop(until);
        });
        return Ok(work_ended);
    }
    let terms = terms(settings, parts.clock.now())?;
    let (client, clock, ended) = (
        parts.client.clone(),
        Arc::clone(&parts.clock),
        work_ended.clone(),
    );
    let jumps = Arc::clone(&parts.jumps);
    let held = tasks.spawn(async move {
        lease::hold(client, terms, clock.as_ref(), &jumps, &until, &ended).await;
    });
    background.spawn(outlive(held));
    Ok(work_ended)
}

/// The terms that the flags set.
///
/// # Errors
/// Which flags have to change.
fn terms(settings: &Settings, now: Timestamp) -> anyhow::Result<Terms> {
    let terms = Terms {
        namespace: settings.runtime_namespace.clone(),
        name: shard::lease(settings.watch_label_selector.as_deref(), &settings.kinds),
        identity: format!("{}_{}", settings.pod_name, nonce(now)),
        duration: settings.leader_election_lease_duration,
        renew_deadline: settings.leader_election_renew_deadline,
        retry_period: settings.leader_election_retry_period,
    };
    terms.check().map_err(anyhow::Error::msg)?;
    Ok(terms)
}

/// Tells processes of the same name apart, and controllers of one process.
fn nonce(now: Timestamp) -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let count = STARTED.fetch_add(1, Ordering::Relaxed);
    format!(
        "{:x}-{:x}-{count:x}",
        std::process::id(),
        now.as_nanosecond()
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    /// Who looks after a shard finds its leader by the Lease that this shard takes.
    /// The chart grants rights on the Lease by this name.
    #[rstest]
    #[case(None, "", "gate-controller")]
    #[case(Some("sharding.fluxcd.io/key=shard1"), "", "gate-controller-73fdc1be")]
    #[case(None, "--kinds=PullRequest", "gate-controller-379a13be")]
    #[case(Some("a=b"), "--kinds=Pipeline,Gate", "gate-controller-fe507339")]
    fn the_lease_of_a_shard_is_the_one_that_is_looked_for(
        #[case] selector: Option<&str>,
        #[case] kinds: &str,
        #[case] expected: &str,
    ) {
        let flags = ["gate-controller", kinds];
        let flags = flags.into_iter().filter(|flag| !flag.is_empty());
        let mut settings = Settings::parse_from(flags);
        settings.watch_label_selector = selector.map(str::to_owned);
        let terms = terms(&settings, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(terms.name, expected);
    }
}
