//! What a GatedSource warns of.

use anyhow::{Result, ensure};
use serde_json::json;
use sluice_crds::GatedSourceStatus;
use sluice_tests::flux::Git;

use crate::delivery::{APP, Delivery, GATE, OPEN, says};
use crate::stage::app;

const NOW: &str = "2026-11-19T12:00:00Z";

/// A gate lies in the repository that it holds back: a change that opens it could never arrive.
#[tokio::test]
async fn a_gate_in_the_repository_that_it_gates_is_warned_of() -> Result<()> {
    let delivery = Delivery::begin("self", NOW, OPEN).await?;
    let stage = &delivery.stage;
    stage.keep("own", OPEN).await?;
    let gates = json!({"refs": [{"name": GATE}, {"name": "own"}]});
    stage.gate_source(APP, json!({"gates": gates})).await?;
    let one = delivery.push("one").await?;
    delivery.deployed(&one, "one").await?;
    let is_warned = |status: &GatedSourceStatus| says(status, "SelfGated").is_some();
    let status = stage.source(APP, "a status", |_| true).await?;
    ensure!(!is_warned(&status), "{:?}", status.conditions);

    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "own"},
        "spec": {"gatekeepers": [{"name": "own"}]},
    });
    let files = [
        ("app.yaml", app(APP, "two")),
        ("gate.yaml", gate.to_string()),
    ];
    let two = delivery.git.commit(&files)?;
    stage
        .reconcile("GitRepository", crate::delivery::UPSTREAM)
        .await?;
    delivery.deployed(&two, "two").await?;
    let message = stage
        .holds(APP, "SelfGated", "True", "DeliveredThroughItself")
        .await?;
    let own = format!("Gate {}/own ", stage.namespace());
    ensure!(message.starts_with(&own), "{message}");

    // Delivered by somebody else from now on, it is nothing to warn of.
    let platform = Git::serve().await?;
    let moved = platform.commit(&[("gate.yaml", &gate.to_string())])?;
    stage.git_repository("platform", &platform).await?;
    stage
        .kustomization("platform", "GitRepository", "platform")
        .await?;
    stage.applied("platform", &Git::revision(&moved)).await?;
    stage
        .source(APP, "no warning", |status| !is_warned(status))
        .await?;
    Ok(())
}
