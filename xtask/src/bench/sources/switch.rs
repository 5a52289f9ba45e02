//! A gate that is opened and closed by hand.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::{Gate, Gatekeeper};
use sluice_tests::{Writes, poll};

use super::NAMESPACE;

/// How long the controller may take to see it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gate of this name, and its switch of the same name, which is open.
pub(super) fn gate(name: &str) -> String {
    format!(
        "apiVersion: sluice.dev/v1alpha1\nkind: Gatekeeper\nmetadata: {{name: {name}}}\n\
         spec: {{manual: {{state: open}}}}\n---\n\
         apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {{name: {name}}}\n\
         spec: {{gatekeepers: [{{name: {name}}}]}}\n"
    )
}

/// Throws the switch: `open` or `closed`.
pub(super) async fn ask(client: &Client, name: &str, state: &str) -> Result<()> {
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = json!({"spec": {"manual": {"state": state}}});
    gatekeepers.merge(name, patch).await?;
    Ok(())
}

/// Throws the switch, and waits until the gate says so.
pub(super) async fn throw(client: &Client, name: &str, state: &str) -> Result<()> {
    ask(client, name, state).await?;
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    poll(
        PATIENCE,
        &format!("gate {name} to be {state}"),
        async || {
            let status = gates.get(name).await?.status.unwrap_or_default();
            let says = json!(status.state);
            let says = says.as_str().unwrap_or_default();
            ensure!(says.eq_ignore_ascii_case(state), "it says {says:?}");
            Ok(())
        },
    )
    .await
}
