//! What the server itself can do: status patches by a bare client.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::Gate;

use super::{NAMESPACE, connections};

/// What a bare client measured.
pub(super) struct Raw {
    /// Status patches a second.
    pub(super) rate: f64,
    /// How long half of them took at most, each beside the others in flight.
    pub(super) median: Duration,
}

/// Patches the status of `n` gates, with as many requests in flight as the controller has.
///
/// The status is as long as a real one, and by the same field manager.
pub(super) async fn patch(client: &Client, n: usize) -> Result<Raw> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    let mut took: Vec<Duration> = futures::stream::iter(0..n)
        .map(async |place| {
            let name = format!("gate-{place:06}");
            let message = "outside every open window until Sat 2026-11-21 12:00 UTC";
            let condition = |of: &str, status: &str| {
                json!({
                    "type": of, "status": status, "reason": "OutsideWindow", "message": message,
                    "observedGeneration": 1, "lastTransitionTime": "2026-11-21T00:00:00Z",
                })
            };
            let status = json!({
                "observedGeneration": 1, "state": "Closed", "reason": "OutsideWindow",
                "message": message, "since": "2026-11-21T00:00:00Z",
                "verdicts": [{
                    "gatekeeper": format!("keeper-{place:06}"), "state": "Closed",
                    "reason": "OutsideWindow", "message": message,
                    "validUntil": "2026-11-21T12:00:00Z",
                }],
                "upcoming": [{ "at": "2026-11-21T12:00:00Z", "state": "Open" }],
                "conditions": [condition("Ready", "True"), condition("Opened", "False")],
            });
            let patch = json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
                "metadata": { "name": name }, "status": status,
            });
            let params = PatchParams::apply("gate-controller-gates").force();
            let sent = Instant::now();
            let patched = gates
                .patch_status(&name, &params, &Patch::Apply(&patch))
                .await;
            patched.map(|_| sent.elapsed())
        })
        .buffer_unordered(connections()?)
        .try_collect()
        .await?;
    let all = began.elapsed().as_secs_f64();
    took.sort_unstable();
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    let rate = n as f64 / all;
    let median = took.get(n / 2).copied().unwrap_or_default();
    Ok(Raw { rate, median })
}
