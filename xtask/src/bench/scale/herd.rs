//! The gates and gatekeepers of the herd, and the people in the midst of it.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::gatekeeper::{Schedule, Window};
use sluice_crds::{Gate, GateSpec, Gatekeeper, GatekeeperSpec};
use sluice_tests::{Writes, poll};

use super::{FORCED, NAMESPACE, connections};
use crate::bench::ordered::Ordered;

/// How long the people who force them pause.
const BREATH: Duration = Duration::from_millis(50);

/// By which a look is asked for, and what is written there.
const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
const ASKED: &str = "while nobody was there";
/// About how many gates, and as many gatekeepers, it is asked: the last ones among them.
pub(super) const LOOKS: usize = 8;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gates `gate-000000` and on, each kept by a gatekeeper of its own that opens at `instant`.
pub(super) async fn create(client: &Client, n: usize, instant: Timestamp) -> Result<()> {
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let local = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let window = Window {
        name: Some("herd".to_owned()),
        from: Some(local(instant)),
        until: Some(local(instant.checked_add(SignedDuration::from_hours(24))?)),
        ..Window::default()
    };
    futures::stream::iter(0..n)
        .map(async |place| {
            let schedule = Schedule {
                time_zone: "UTC".to_owned(),
                open: vec![window.clone()],
                closed: Vec::new(),
            };
            let spec = GatekeeperSpec {
                schedule: Some(schedule),
                ..GatekeeperSpec::default()
            };
            let keeper = Gatekeeper::new(&format!("keeper-{place:06}"), spec);
            let reference = GatekeeperReference {
                name: format!("keeper-{place:06}"),
                namespace: None,
            };
            let spec = GateSpec {
                gatekeepers: vec![reference],
                ..GateSpec::default()
            };
            let gate = Gate::new(&format!("gate-{place:06}"), spec);
            gatekeepers.add(&keeper).await?;
            gates.add(&gate).await
        })
        .buffer_unordered(connections()?)
        .try_for_each(async |_| Ok(()))
        .await
        .context("cannot create the herd")
}

/// Forces gates while the herd is being written, from all over the queue. How long it took until
/// the status of each said so.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
pub(super) async fn force_in_the_midst(
    client: &Client,
    n: usize,
    instant: Timestamp,
    user: &str,
) -> Result<Ordered> {
    let midst = instant.checked_add(SignedDuration::from_millis(300))?;
    let left = midst.duration_since(Timestamp::now());
    tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
    let mut took = Vec::with_capacity(FORCED);
    for place in 0..FORCED {
        let name = format!("gate-{:06}", place * n / FORCED);
        took.push(force(client, &name, user).await?.as_secs_f64());
        tokio::time::sleep(BREATH).await;
    }
    Ok(Ordered::new(took))
}

/// Forces a gate in the name of `user`, and watches it until its status says so.
async fn force(client: &Client, name: &str, user: &str) -> Result<Duration> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let mut seen = pin!(watch_object(gates.clone(), name));
    seen.try_next().await?;
    let annotations = json!({
        "sluice.dev/force": "closed",
        "sluice.dev/force-by": user,
        "sluice.dev/force-reason": "in the midst of the herd",
    });
    let patch = json!({ "metadata": { "annotations": annotations } });
    let began = Instant::now();
    gates.merge(name, &patch).await?;
    while let Some(gate) = seen.try_next().await? {
        let status = gate.and_then(|gate| gate.status);
        if status.is_some_and(|status| status.r#override.is_some()) {
            return Ok(began.elapsed());
        }
    }
    anyhow::bail!("nobody watches {name} any more")
}

/// Asks for a look at some gates and gatekeepers, from all over the queue.
pub(super) async fn ask_for_looks(client: &Client, n: usize) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { REQUESTED_AT: ASKED } } });
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    for place in asked_about(n) {
        gates.merge(&format!("gate-{place:06}"), &patch).await?;
        gatekeepers
            .merge(&format!("keeper-{place:06}"), &patch)
            .await?;
    }
    Ok(())
}

/// Waits until these looks have been taken.
pub(super) async fn looked_at(client: &Client, n: usize) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    for place in asked_about(n) {
        poll(PATIENCE, "the looks that were asked for", async || {
            let gate = gates.get(&format!("gate-{place:06}")).await?;
            let keeper = gatekeepers.get(&format!("keeper-{place:06}")).await?;
            let looked = [
                gate.status.and_then(|it| it.last_handled_reconcile_at),
                keeper.status.and_then(|it| it.last_handled_reconcile_at),
            ];
            let all = looked.iter().all(|at| at.as_deref() == Some(ASKED));
            ensure!(all, "{looked:?} for {place}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
    Ok(())
}

fn asked_about(n: usize) -> impl Iterator<Item = usize> {
    (1..=LOOKS).map(move |part| part * n / LOOKS - 1)
}
