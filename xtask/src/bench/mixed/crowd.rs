//! The crowd: gates, each with a gatekeeper of its own, of every kind.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::{Gate, Gatekeeper};
use sluice_tests::Writes;

use super::NAMESPACE;
use super::endpoints::Endpoints;

/// How many requests are in flight while it is created.
const AT_ONCE: usize = 16;
/// What the names of gates begin with whose gatekeepers measure something, and those of all others.
pub(super) const MEASURED: &str = "measured";
pub(super) const OTHERS: &str = "other";

/// Creates it. A fifth of it measures something.
pub(super) async fn create(client: &Client, n: usize, endpoints: &Endpoints) -> Result<()> {
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    futures::stream::iter(0..n)
        .map(async |place| {
            let (name, spec) = member(place, endpoints);
            let object = |kind: &str, spec: Value| {
                json!({
                    "apiVersion": "sluice.dev/v1alpha1", "kind": kind,
                    "metadata": {"name": name}, "spec": spec,
                })
            };
            let keeper = serde_json::from_value(object("Gatekeeper", spec))?;
            let gate = object("Gate", json!({"gatekeepers": [{"name": name}]}));
            gatekeepers.add(&keeper).await?;
            gates.add(&serde_json::from_value(gate)?).await?;
            Ok::<_, anyhow::Error>(())
        })
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |()| Ok(()))
        .await
        .context("cannot create the crowd")
}

/// The gates that are kept by a switch: their places.
pub(super) fn switches(n: usize) -> impl Iterator<Item = String> {
    let is_switch = |place: &usize| matches!(place % 10, 5 | 6);
    (0..n).filter(is_switch).map(name)
}

fn name(place: usize) -> String {
    let what = if place % 10 < 2 { MEASURED } else { OTHERS };
    format!("{what}-{place:06}")
}

fn member(place: usize, endpoints: &Endpoints) -> (String, Value) {
    let address = endpoints.url(place / 10);
    let spec = match place % 10 {
        0 => json!({"metric": {"address": address, "query": "up", "range": {"max": 0.05}}}),
        1 => {
            json!({"http": {"url": format!("{address}/ready"), "expression": "body.status == 'success'"}})
        }
        2..=4 => json!({"schedule": {
            "timeZone": "Europe/London",
            "open": [{"cron": "0 9 * * MON-FRI", "duration": "8h"}],
        }}),
        5 | 6 => json!({"manual": {"state": "open"}}),
        7 => json!({"revisions": {"allow": ["v1.*"], "deny": ["v1.2.3"]}}),
        8 => json!({"gates": {"refs": [{"name": name(place - 2)}]}}),
        _ if place % 20 == 9 => json!({"approval": {"required": 1}}),
        _ => json!({"external": {"writers": ["nobody"]}}),
    };
    (name(place), spec)
}
