//! What the API server refuses, in whose words; and that `kubectl gate lint` and the controller
//! refuse the same, at the same field.

mod accepted;
mod columns;
mod refused;

use anyhow::{Context, Result};
use kube::api::{DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use kube::{Api, Client, discovery};
use serde_json::{Value, json};

/// Asks the API server whether it would take an object, and changes nothing.
async fn ask(client: &Client, namespace: &str, object: &Value) -> Result<kube::Result<()>> {
    let kind = object["kind"].as_str().context("no kind")?;
    let version = object["apiVersion"].as_str().context("no apiVersion")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &gvk).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    Ok(api.create(&parameters, &object).await.map(|_| ()))
}

/// An object of ours with this spec, in YAML.
fn object(kind: &str, spec: &str) -> Result<Value> {
    let spec: Value = serde_saphyr::from_str(spec).with_context(|| spec.to_owned())?;
    Ok(json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "example"},
        "spec": spec,
    }))
}
