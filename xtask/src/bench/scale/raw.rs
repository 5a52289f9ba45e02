//! What the server itself can do: status patches by a bare client.

use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::Gate;

use super::{CONNECTIONS, NAMESPACE};

/// Status patches a second, over `n` gates, with as many in flight as the controller has.
///
/// The status is as long as a real one, and by the same field manager.
pub(super) async fn patch_rate(client: &Client, n: usize) -> Result<f64> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    futures::stream::iter(0..n)
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
            gates
                .patch_status(&name, &params, &Patch::Apply(&patch))
                .await
        })
        .buffer_unordered(CONNECTIONS)
        .try_for_each(async |_| Ok(()))
        .await?;
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    Ok(n as f64 / began.elapsed().as_secs_f64())
}
