//! What the server itself can do: status patches by a bare client.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_crds::{Gate, Gatekeeper};

use super::{NAMESPACE, connections};

/// How many objects of a kind are patched: enough for a rate.
const ENOUGH: u32 = 2_000;

/// What a bare client measured.
pub(super) struct Raw {
    /// Status patches a second.
    pub(super) rate: f64,
    /// How long half of them took at most, each beside the others in flight.
    pub(super) median: Duration,
}

/// Patches the statuses that the controller wrote, gates first, with as many requests in flight as
/// it has and by its field managers: each says what it said, but of another state and instant.
pub(super) async fn patch(client: &Client) -> Result<Raw> {
    let mut patches = changed::<Gate>(client, "gate-controller-gates").await?;
    patches.extend(changed::<Gatekeeper>(client, "gate-controller-gatekeepers").await?);
    let n = patches.len();
    let began = Instant::now();
    let mut took: Vec<Duration> = futures::stream::iter(patches)
        .map(async |patch| {
            let sent = Instant::now();
            patch.send(client).await.map(|()| sent.elapsed())
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

/// A status to be written.
struct StatusPatch {
    manager: &'static str,
    name: String,
    is_gate: bool,
    body: Value,
}

impl StatusPatch {
    async fn send(&self, client: &Client) -> kube::Result<()> {
        if self.is_gate {
            self.send_as::<Gate>(client).await
        } else {
            self.send_as::<Gatekeeper>(client).await
        }
    }

    async fn send_as<K>(&self, client: &Client) -> kube::Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
        let params = PatchParams::apply(self.manager).force();
        let patch = Patch::Apply(&self.body);
        api.patch_status(&self.name, &params, &patch)
            .await
            .map(drop)
    }
}

async fn changed<K>(client: &Client, manager: &'static str) -> Result<Vec<StatusPatch>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let list = api.list(&ListParams::default().limit(ENOUGH)).await?;
    list.into_iter()
        .map(|object| {
            let status = serde_json::to_value(&object)?["status"].take();
            let body = json!({
                "apiVersion": K::api_version(&()), "kind": K::kind(&()),
                "metadata": { "name": object.name_any() }, "status": other(status),
            });
            Ok(StatusPatch {
                manager,
                name: object.name_any(),
                is_gate: K::kind(&()) == Gate::kind(&()),
                body,
            })
        })
        .collect()
}

/// The same with every state the other one, and every transition at another instant.
fn other(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = match (name.as_str(), value.as_str()) {
                    ("since" | "lastTransitionTime", Some(_)) => json!("2026-11-21T00:00:00Z"),
                    _ => other(value),
                };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(other).collect(),
        Value::String(text) => json!(match text.as_str() {
            "Open" => "Closed",
            "Closed" => "Open",
            "True" => "False",
            "False" => "True",
            _ => return Value::String(text),
        }),
        value => value,
    }
}
