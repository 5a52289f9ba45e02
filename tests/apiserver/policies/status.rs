//! Who writes status.

use anyhow::{Context, Result, ensure};
use kube::{Api, CustomResourceExt};
use serde_json::json;
use sluice_crds::{Gate, GatePolicy, Gatekeeper, Rollout};
use sluice_tests::helm::chart;
use sluice_tests::{Writes, apply};

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

/// Somebody who could write it could let a rollout with old pods look finished, or begin it again.
#[tokio::test]
async fn the_status_of_a_rollout_is_the_controllers() -> Result<()> {
    let scene = Scene::new().await?;
    scene.grant(&["editor"], "cluster-admin").await?;
    scene.wait_until_may("editor", "override").await?;
    let rollouts = async |user: &str| -> Result<Api<Rollout>> {
        let client = scene.cluster().client_for(user).await?;
        Ok(Api::namespaced(client, scene.namespace()))
    };
    let rollout = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "rolloutPlan": {"targetSize": 2}},
    });
    let rollout: Rollout = serde_json::from_value(rollout)?;
    let editor = rollouts("editor").await?;
    editor.add(&rollout).await?;
    let lie = json!({"status": {"rollingState": "rolloutSucceed", "progress": "1/1"}});
    for user in ["editor", "admin"] {
        let answer = rollouts(user).await?.merge_status("web", &lie).await;
        let expected = format!("is written by the controller alone, and \"{user}\" is not it");
        refused_by("sluice-status-writers", answer, &expected)?;
    }
    // What is not let in by this door comes in by no other.
    let written = editor.merge("web", &lie).await?;
    assert_eq!(written.status, None);
    let told = rollouts(CONTROLLER)
        .await?
        .merge_status("web", &lie)
        .await?;
    assert_eq!(
        told.status.and_then(|it| it.progress).as_deref(),
        Some("1/1")
    );
    Ok(())
}

/// A kind that the policy did not name could be reported as anything.
#[test]
fn the_policy_names_every_status() -> Result<()> {
    let policy = apply::read(&chart().join("policies/sluice-status-writers.yaml"))?;
    let rules = &policy.first().context("no policy")?.object.data["spec"]["matchConstraints"];
    let with_status = sluice_crds::all().into_iter().filter(|crd| {
        let subresources = crd.spec.versions[0].subresources.as_ref();
        subresources.is_some_and(|it| it.status.is_some())
    });
    let mut expected: Vec<_> = with_status
        .map(|crd| format!("{}/status", crd.spec.names.plural))
        .collect();
    expected.sort_unstable();
    assert_eq!(rules["resourceRules"][0]["resources"], json!(expected));
    Ok(())
}

/// What the policy did not compare could be written by the one who may write a report.
#[test]
fn the_writers_of_reports_change_no_other_field_of_a_status() -> Result<()> {
    let policy = std::fs::read_to_string(chart().join("policies/sluice-status-writers.yaml"))?;
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
