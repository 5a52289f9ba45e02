//! Who may change anything about a gate but its force: the right to force is not the right to
//! edit, although both patch.

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::scene::{CONTROLLER, GATE, Scene, annotations, force, nothing, refused};

const NO_RIGHT: &str = "which needs the verb update on gates.sluice.dev";

/// What would open a gate for ever, or keep it from being closed, with no who, no why and no end.
fn edits() -> Vec<Value> {
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0-0-0-0-0"});
    vec![
        json!({"spec": {"gatekeepers": [], "default": "open"}}),
        json!({"spec": {"gatekeepers": [{"name": "always-open"}], "default": "closed"}}),
        json!({"spec": {"maxOverride": "8784h"}}),
        json!({"spec": {"suspend": true}}),
        json!({"metadata": {"labels": {"sharding.fluxcd.io/key": "nobodys"}}}),
        json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/ssa": "Ignore"}}}),
        json!({"metadata": {"annotations": {"example.com/team": null}}}),
        json!({"metadata": {"annotations": {"example.com/team": ""}}}),
        json!({"metadata": {"finalizers": ["example.com/never"]}}),
        json!({"metadata": {"ownerReferences": [owner]}}),
    ]
}

/// A gate that has an annotation besides.
async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    let team = json!({"metadata": {"annotations": {"example.com/team": "a"}}});
    scene.patch("admin", team).await??;
    Ok(scene)
}

#[tokio::test]
async fn the_right_to_force_gates_is_not_the_right_to_edit_them() -> Result<()> {
    let scene = scene().await?;
    for edit in edits() {
        let answer = scene.patch("oncall", edit.clone()).await?;
        refused(answer, NO_RIGHT).with_context(|| edit.to_string())?;
    }
    // Nor under cover of a force.
    for edit in edits() {
        let mut forced = json!({"metadata": {"annotations": force("oncall")}});
        merge(&mut forced, &edit);
        let answer = scene.patch("oncall", forced).await?;
        refused(answer, NO_RIGHT).with_context(|| edit.to_string())?;
    }
    let gates = scene.gates("oncall").await?;
    let applied = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "spec": {"default": "open"},
    });
    let owner = PatchParams::apply("oncall").force();
    let answer = gates.patch(GATE, &owner, &Patch::Apply(applied)).await;
    refused(answer, NO_RIGHT)?;

    let gate = scene.gates("admin").await?.get(GATE).await?;
    assert_eq!(gate.spec, sluice_crds::GateSpec::default());
    assert_eq!(scene.force().await?, annotations([]));
    Ok(())
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[tokio::test]
async fn anyone_who_may_only_force_forces_and_asks_for_a_look() -> Result<()> {
    let scene = scene().await?;
    scene.annotate("oncall", &force("oncall")).await??;
    let longer = annotations([("sluice.dev/force-until", "2026-11-21T17:00:00Z")]);
    scene.annotate("oncall", &longer).await??;
    let look = annotations([("reconcile.fluxcd.io/requestedAt", "now")]);
    scene.annotate("oncall", &look).await??;
    scene.annotate("oncall", &nothing()).await??;
    assert_eq!(scene.force().await?, annotations([]));
    Ok(())
}

#[tokio::test]
async fn the_refusal_says_what_else_may_be_written() -> Result<()> {
    let scene = scene().await?;
    let expected = format!(
        "\"oncall\" does not have it in namespace \"{}\"; change nothing but the annotations \
         sluice.dev/force* and *.gate.fluxcd.io/requestedAt, or ask for the verb (the ClusterRole \
         sluice-edit grants it)",
        scene.namespace()
    );
    let open = json!({"spec": {"default": "open"}});
    refused(scene.patch("oncall", open).await?, &expected)
}

/// It has to patch gates to complete a force, and may have no more of it than that.
#[tokio::test]
async fn the_controller_cannot_edit_gates() -> Result<()> {
    let scene = scene().await?;
    for edit in edits() {
        let answer = scene.patch(CONTROLLER, edit.clone()).await?;
        refused(answer, NO_RIGHT).with_context(|| edit.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn anyone_who_may_update_gates_edits_them() -> Result<()> {
    let scene = scene().await?;
    for edit in edits() {
        // An owner that is not there takes the gate with it.
        if edit["metadata"]["ownerReferences"].is_null() {
            let answer = scene.patch("editor", edit.clone()).await?;
            answer.with_context(|| edit.to_string())?;
        }
    }
    let undone = json!({"metadata": {"finalizers": null}});
    scene.patch("editor", undone).await??;
    Ok(())
}
