//! A force survives Flux: kustomize-controller takes over what `kubectl` set on the objects that it
//! manages, and strips what is not in Git.
//!
//! Emulated as fluxcd/pkg/ssa does it before each apply: the entries of managers that begin with
//! `kubectl` become kustomize-controller's own, so that applying the manifest from Git removes
//! what it does not have.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_tests::Applier;

use super::forces::force;
use super::stage::{OFFICE_HOURS, Stage};

const FLUX: &str = "kustomize-controller";

#[tokio::test]
async fn a_force_survives_kustomize_controller() -> Result<()> {
    let stage = Stage::installed("strip", "2026-11-20T12:00:00Z").await?;
    reconcile(&stage).await?;
    // Before the controller has seen it a force is stripped like anything else.
    stage
        .annotate("production", force("closed", "admin"))
        .await?;
    reconcile(&stage).await?;
    let stripped = stage.gates().get("production").await?;
    ensure!(
        stripped.annotations().is_empty(),
        "{:?}",
        stripped.annotations()
    );

    let _controller = stage.start().await?;
    stage
        .says("production", State::Open, "InsideWindow")
        .await?;
    let mut annotations = force("closed", "admin");
    annotations["example.com/note"] = json!("not ours");
    stage.annotate("production", annotations).await?;
    stage.says("production", State::Closed, "Forced").await?;
    stage.settle().await?;
    let before = stage.gates().get("production").await?;
    for _ in 0..2 {
        reconcile(&stage).await?;
        let mut expected = before.annotations().clone();
        expected
            .remove("example.com/note")
            .context("it was not there")?;
        let gate = stage.gates().get("production").await?;
        assert_eq!(gate.annotations(), &expected);
    }
    stage.settle().await?;
    stage.says("production", State::Closed, "Forced").await?;

    stage.set("2026-11-20T13:00:00Z");
    stage
        .says("production", State::Open, "InsideWindow")
        .await?;
    reconcile(&stage).await?;
    stage.settle().await?;
    stage
        .says("production", State::Open, "InsideWindow")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_request_of_the_rfc_survives_too() -> Result<()> {
    let stage = Stage::installed("strip-rfc", "2026-11-20T19:00:00Z").await?;
    reconcile(&stage).await?;
    let _controller = stage.start().await?;
    stage
        .says("production", State::Closed, "OutsideWindow")
        .await?;
    let request = json!({
        "open.gate.fluxcd.io/requestedAt": "2026-11-20T19:00:00Z",
        "sluice.dev/force-by": "admin",
    });
    stage.annotate("production", request).await?;
    stage.says("production", State::Open, "Forced").await?;
    stage.settle().await?;
    reconcile(&stage).await?;
    stage.settle().await?;
    stage.says("production", State::Open, "Forced").await?;
    stage.set("2026-11-20T20:00:00Z");
    stage
        .says("production", State::Closed, "OutsideWindow")
        .await?;
    Ok(())
}

/// What kustomize-controller does with a manifest from Git.
async fn reconcile(stage: &Stage) -> Result<()> {
    take_over(stage).await?;
    let applier = Applier::new(stage.client()).as_manager(FLUX);
    applier
        .in_namespace(stage.namespace())
        .text(OFFICE_HOURS)
        .await?;
    Ok(())
}

/// Makes what `kubectl` owns kustomize-controller's own.
async fn take_over(stage: &Stage) -> Result<()> {
    let Some(gate) = stage.gates().get_opt("production").await? else {
        return Ok(());
    };
    let entries = json!(gate.managed_fields());
    let entries = entries.as_array().context("nobody owns anything")?;
    let is_taken = |entry: &&Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        manager.starts_with("kubectl") || manager == FLUX
    };
    let (taken, mut left): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(is_taken);
    let mut fields = json!({});
    for entry in &taken {
        merge(&mut fields, &entry["fieldsV1"]);
    }
    let mut own = (*taken.first().context("kustomize-controller owns nothing")?).clone();
    own["manager"] = json!(FLUX);
    own["operation"] = json!("Apply");
    own["fieldsV1"] = fields;
    left.push(&own);
    let patch = Patch::Merge(json!({"metadata": {
        "managedFields": left,
        "resourceVersion": gate.resource_version(),
    }}));
    let gates = stage.gates();
    gates
        .patch("production", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

fn merge(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (name, value) in from {
            merge(into.entry(name.clone()).or_insert(json!({})), value);
        }
    }
}
