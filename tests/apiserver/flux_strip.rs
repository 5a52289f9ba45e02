//! A force survives Flux: kustomize-controller takes over what `kubectl` set on the objects that it
//! manages, and strips what is not in Git.
//!
//! Emulated as fluxcd/pkg/ssa does it before each apply: the entries of managers that begin with
//! `kubectl` become kustomize-controller's own, so that applying the manifest from Git removes
//! what it does not have.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::{Value, json};
use sluice_crds::{Gate, State};
use sluice_tests::{Applier, Writes, poll};

use super::forces::force;
use super::stage::{DEADLINE, OFFICE_HOURS, Stage};

const FLUX: &str = "kustomize-controller";
/// The field manager of our controller for forces.
const OWNER: &str = "gate-controller-force";

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
    stage.in_hours().await?;
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
    stage.in_hours().await?;
    reconcile(&stage).await?;
    stage.settle().await?;
    stage.in_hours().await?;
    Ok(())
}

/// Somebody has written kustomize-controller into the managed fields, in place of the controller.
#[tokio::test]
async fn what_was_taken_from_its_field_manager_is_owned_again() -> Result<()> {
    let stage = Stage::installed("strip-taken", "2026-11-20T12:00:00Z").await?;
    reconcile(&stage).await?;
    let _controller = stage.start().await?;
    stage.in_hours().await?;
    stage
        .annotate("production", force("closed", "admin"))
        .await?;
    stage
        .until("production", "the force", |status| {
            status.r#override.is_some()
        })
        .await?;
    for taken in [true, false] {
        let gate = stage.gates().get("production").await?;
        let mut entries = json!(gate.managed_fields());
        if taken {
            for entry in entries.as_array_mut().context("nobody owns anything")? {
                if entry["manager"] == OWNER {
                    entry["manager"] = json!(FLUX);
                }
            }
        } else {
            entries = json!([{}]);
        }
        let patch = json!({"metadata": {"managedFields": entries}});
        let gates = stage.gates();
        gates.merge("production", &patch).await?;
        poll(DEADLINE, "the controller to own the force", async || {
            let gate = stage.gates().get("production").await?;
            ensure!(owns(&gate), "{:?}", gate.managed_fields());
            Ok(())
        })
        .await?;
        reconcile(&stage).await?;
        stage.settle().await?;
        stage.says("production", State::Closed, "Forced").await?;
    }
    Ok(())
}

/// Whether the controller owns the state that is forced.
fn owns(gate: &Gate) -> bool {
    let entries = json!(gate.managed_fields());
    let owns = |entry: &Value| {
        entry["manager"] == OWNER
            && entry["fieldsV1"]["f:metadata"]["f:annotations"]["f:sluice.dev/force"].is_object()
    };
    entries.as_array().is_some_and(|all| all.iter().any(owns))
}

#[tokio::test]
async fn a_request_of_the_rfc_survives_too() -> Result<()> {
    let stage = Stage::installed("strip-rfc", "2026-11-20T19:00:00Z").await?;
    reconcile(&stage).await?;
    let _controller = stage.start().await?;
    stage.out_of_hours().await?;
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
    stage.out_of_hours().await?;
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
    let Some(own) = taken.first() else {
        return Ok(());
    };
    let mut own = (*own).clone();
    own["manager"] = json!(FLUX);
    own["operation"] = json!("Apply");
    own["fieldsV1"] = fields;
    left.push(&own);
    let patch = json!({"metadata": {
        "managedFields": left,
        "resourceVersion": gate.resource_version(),
    }});
    let gates = stage.gates();
    gates.merge("production", &patch).await?;
    Ok(())
}

fn merge(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (name, value) in from {
            merge(into.entry(name.clone()).or_insert(json!({})), value);
        }
    }
}
