//! Who writes status.

use anyhow::{Context, Result, ensure};
use kube::{Api, CustomResourceExt};
use serde_json::json;
use sluice_crds::{Gate, GatePolicy, Gatekeeper};
use sluice_tests::Writes;

use super::scene::{CONTROLLER, GATE, Scene, annotations, refused_by};

/// Everybody else is refused, whatever their rights: these users may do everything.
#[tokio::test]
async fn the_controller_alone_writes_status() -> Result<()> {
    let scene = Scene::new().await?;
    scene.grant(&["editor"], "cluster-admin").await?;
    scene.wait_until_may("editor", "override").await?;
    let switch = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": {"name": "switch"}, "spec": {"manual": {"state": "closed"}},
    });
    let admin = scene.cluster().client().await?;
    let policies: Api<GatePolicy> = Api::all(admin.clone());
    let name = scene.namespace();
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "gates": {"refs": [{"name": GATE, "namespace": name}]},
        },
    });
    let policy: GatePolicy = serde_json::from_value(policy)?;
    policies.add(&policy).await?;
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(admin, scene.namespace());
    let switch: Gatekeeper = serde_json::from_value(switch)?;
    gatekeepers.add(&switch).await?;

    let lie = json!({"status": {"state": "Open", "reason": "Me", "message": "go"}});
    for user in ["editor", "admin"] {
        let expected = format!(
            "status: is written by the controller alone, and \"{user}\" is not it; change spec, \
             or force the gate by its annotations"
        );
        let gates = scene.gates(user).await?;
        let answer = gates.merge_status(GATE, &lie).await;
        refused_by("sluice-status-writers", answer, &expected)?;
        let client = scene.cluster().client_for(user).await?;
        let gatekeepers: Api<Gatekeeper> = Api::namespaced(client, scene.namespace());
        let answer = gatekeepers.merge_status("switch", &lie).await;
        refused_by("sluice-status-writers", answer, &expected)?;
    }
    let ready = json!({"status": {"observedGeneration": 1}});
    let answer = policies.merge_status(name, &ready).await;
    let expected = "status: is written by the controller alone, and \"admin\" is not it";
    refused_by("sluice-status-writers", answer, expected)?;
    policies.remove(name).await?;
    let gates = scene.gates(CONTROLLER).await?;
    gates.merge_status(GATE, &lie).await?;
    Ok(())
}

/// What the policy did not compare could be written by the one who may write a report.
#[test]
fn the_writers_of_reports_change_no_other_field_of_a_status() -> Result<()> {
    let policy = std::fs::read_to_string(
        sluice_tests::helm::chart().join("policies/sluice-status-writers.yaml"),
    )?;
    let version = Gatekeeper::crd().spec.versions.remove(0);
    let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
    let mut fields = schema
        .and_then(|schema| schema.properties)
        .context("no schema")?;
    let status = fields.remove("status").and_then(|status| status.properties);
    for field in status
        .context("no status")?
        .into_keys()
        .filter(|field| field != "report")
    {
        for object in [" object", " oldObject"] {
            let named = format!("{object}.?status.?{field}");
            ensure!(policy.contains(&named), "{named} is not compared");
        }
    }
    Ok(())
}

/// The API server takes nothing but status from a write to status, and no status from any other:
/// the policies rest on it.
#[tokio::test]
async fn nothing_comes_in_by_the_wrong_door() -> Result<()> {
    let scene = Scene::new().await?;
    let both = json!({
        "metadata": {"annotations": {"sluice.dev/force": "open"}},
        "status": {"state": "Open"},
    });
    scene
        .gates(CONTROLLER)
        .await?
        .merge_status(GATE, &both)
        .await?;
    assert_eq!(scene.force().await?, annotations([]));

    let more = json!({"spec": {"window": "2h"}, "status": {"state": "Closed"}});
    let gate: Gate = scene.gates("editor").await?.merge(GATE, &more).await?;
    assert_eq!(
        gate.status.and_then(|status| status.state),
        Some(sluice_crds::State::Open)
    );
    Ok(())
}
