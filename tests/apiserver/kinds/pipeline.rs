//! Gates kept by what a Pipeline has admitted to an environment.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use sluice_crds::{Pipeline, State};
use sluice_tests::{Writes, poll};

use super::{asked, still_passes};
use crate::chart::CONTROLLER;
use crate::stage::{DEADLINE, Stage};

const NOON: &str = "2026-11-20T12:00:00Z";

/// A gatekeeper that is open where evidence cannot be had: a Pipeline is no such evidence.
const PROMOTED: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: promoted}
spec: {onError: open, pipeline: {name: shop, environment: prod}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: promoted}]}
";

const SHOP: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {kind: HelmRelease, name: shop}
  promotion: {strategy: {admission: {}}}
  environments:
    - {name: dev, targets: [{namespace: shop-dev}]}
    - {name: prod, targets: [{namespace: shop}]}
";

/// Admits revisions, the newest first, as the controller says it in the status of a Pipeline.
async fn admit(stage: &Stage, revisions: &[&str]) -> Result<()> {
    let client = stage.cluster().client_for(CONTROLLER).await?;
    let pipelines: Api<Pipeline> = Api::namespaced(client, stage.namespace());
    let entry = |revision: &&str| json!({"revision": revision, "run": 7, "at": NOON});
    let admitted: Vec<Value> = revisions.iter().map(entry).collect();
    let prod = json!({"state": "Promoted", "admitted": admitted});
    let status = json!({"status": {"environments": {"prod": prod}}});
    pipelines.merge_status("shop", &status).await?;
    Ok(())
}

#[tokio::test]
async fn a_gate_lets_pass_what_a_pipeline_has_admitted() -> Result<()> {
    let stage = Stage::installed("promoted", NOON).await?;
    stage.apply(PROMOTED).await?;
    let controller = stage.start().await?;
    let missing = "PipelineMissing";
    stage.says("production", State::Closed, missing).await?;

    stage.apply(SHOP).await?;
    let nothing = "NothingAdmitted";
    stage.says("production", State::Closed, nothing).await?;

    admit(&stage, &["6.1.6"]).await?;
    let depends = "DependsOnRevision";
    stage
        .says("production", State::Conditional, depends)
        .await?;
    let state = async |revision: &str| asked(&stage, &controller, "production", revision).await;
    assert_eq!(state("6.1.6").await?.0, State::Open);
    let (newer, why) = state("6.1.7").await?;
    assert_eq!(newer, State::Closed);
    assert!(why.contains("has not admitted 6.1.7 to prod"), "{why}");

    // What was admitted before may go back.
    admit(&stage, &["6.1.7", "6.1.6"]).await?;
    poll(DEADLINE, "the other revision to be admitted", async || {
        let (newer, why) = state("6.1.7").await?;
        ensure!(newer == State::Open, "{why}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    assert_eq!(state("6.1.6").await?.0, State::Open);

    stage
        .apply(&SHOP.replace("{name: prod,", "{name: production,"))
        .await?;
    let unknown = "EnvironmentMissing";
    stage.says("production", State::Closed, unknown).await?;
    let pipelines: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    pipelines.delete("shop", &DeleteParams::default()).await?;
    stage.says("production", State::Closed, missing).await?;
    Ok(())
}

/// A controller that starts again decides at once, and writes nothing.
#[tokio::test]
async fn pipelines_are_listed_before_anything_is_decided() -> Result<()> {
    let stage = Stage::installed("promoted-restart", NOON).await?;
    stage.apply(PROMOTED).await?;
    stage.apply(SHOP).await?;
    admit(&stage, &["6.1.6"]).await?;
    still_passes(&stage, "promoted", "6.1.6").await
}
