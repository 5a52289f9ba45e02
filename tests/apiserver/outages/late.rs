//! A server that gets ready around a controller that is there already: definitions that come late,
//! objects of another version, policies that come last.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt, discovery};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_tests::controller::Process;
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Binaries, ControlPlane, Options, Writes, apply};

use crate::forces::force;
use crate::stage::{Stage, message};
use crate::told;

#[tokio::test]
async fn the_controller_waits_for_what_is_not_there_yet() -> Result<()> {
    let plane = ControlPlane::start(&Binaries::ensure(&Stderr::new())?, Options::default()).await?;
    let stage = Stage::on(plane.cluster(), "late", "2026-11-20T12:00:00Z").await?;
    let process = Process::start(plane.kubeconfig(), stage.namespace(), "c-0", &[]).await?;
    let missing = |plural: &str| {
        format!(
            "the CustomResourceDefinition {plural}.sluice.dev is not installed; install the \
             chart's CRDs. Waiting for it"
        )
    };
    for plural in ["gates", "gatekeepers"] {
        let words = missing(plural);
        process
            .logged(&words, |line| line["message"] == words.as_str())
            .await?;
    }
    let health = process.address("health").await?;
    assert_eq!(told::get(health, "/readyz").await?.0, 503);
    assert_eq!(told::get(health, "/healthz").await?.0, 200);

    install_loosely(&stage).await?;
    objects_of_another_version_stop_nobody_else(&stage, &process).await?;
    assert_eq!(told::get(health, "/readyz").await?.0, 200);
    policies_make_forces_count(&stage).await
}

/// Installs the definitions without what they ask of specs, as another version might have them.
async fn install_loosely(stage: &Stage) -> Result<()> {
    let mut documents = apply::read(&root("crds/yaml"))?;
    for document in &mut documents {
        let schema = &mut document.object.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        schema
            .as_object_mut()
            .context("no schema")?
            .remove("x-kubernetes-validations");
    }
    Applier::new(stage.client()).documents(documents).await?;
    Ok(())
}

async fn objects_of_another_version_stop_nobody_else(
    stage: &Stage,
    process: &Process,
) -> Result<()> {
    create(
        stage,
        "Gatekeeper",
        "odd",
        json!({"manual": {"state": "ajar"}}),
    )
    .await?;
    create(stage, "Gate", "odd", json!({"gatekeepers": "all of them"})).await?;
    let keepers = json!([{"name": "odd"}, {"name": "even"}]);
    create(stage, "Gate", "kept", json!({"gatekeepers": keepers})).await?;
    create(stage, "Gate", "even", json!({"default": "open"})).await?;
    create(
        stage,
        "Gatekeeper",
        "even",
        json!({"manual": {"state": "open"}}),
    )
    .await?;
    stage.says("even", State::Open, "Default").await?;
    let closed = stage.says("kept", State::Closed, "InvalidSpec").await?;
    let words = "odd: it cannot be read: ";
    ensure!(message(&closed).starts_with(words), "{}", message(&closed));
    for kind in ["Gate", "Gatekeeper"] {
        let names = |line: &Value| {
            let message = line["message"].as_str().unwrap_or_default();
            line["kind"] == kind && line["name"] == "odd" && message.contains("cannot read")
        };
        process.logged("the odd object to be named", names).await?;
    }
    Ok(())
}

async fn create(stage: &Stage, kind: &str, name: &str, spec: Value) -> Result<()> {
    let version = "v1alpha1";
    let gvk = GroupVersionKind::gvk(sluice_crds::GROUP, version, kind);
    let (resource, _) = discovery::pinned_kind(&stage.client(), &gvk).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(stage.client(), stage.namespace(), &resource);
    let mut object = DynamicObject::new(name, &resource);
    object.data = json!({"spec": spec});
    api.add(&object).await?;
    Ok(())
}

/// Once the policies are there, the controller believes what it did not believe before.
async fn policies_make_forces_count(stage: &Stage) -> Result<()> {
    stage.annotate("even", force("closed", "admin")).await?;
    let wary = "identity nobody verified";
    stage
        .until("even", wary, |status| message(status).contains(wary))
        .await?;
    // Those of the chart, for a controller that runs as the administrator.
    for policy in gate_controller::observe::identity::POLICIES {
        let file = root(&format!("charts/gate-controller/policies/{policy}.yaml"));
        let text = std::fs::read_to_string(file)?;
        let text = text.replace(
            "system:serviceaccount:sluice-system:gate-controller",
            "admin",
        );
        Applier::new(stage.client()).text(&text).await?;
    }
    stage.says("even", State::Closed, "Forced").await?;

    // One that checks nothing any more makes sure of nothing.
    let policies: Api<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy> =
        Api::all(stage.client());
    let rules = policies.get("sluice-approvals").await?.spec;
    let lax = json!({"spec": {"validations": [{"expression": "true"}]}});
    let patch = async |patch: Value| policies.merge("sluice-approvals", patch).await;
    patch(lax).await?;
    let open = stage.says("even", State::Open, "Default").await?;
    ensure!(message(&open).contains(wary), "{}", message(&open));
    patch(json!({"spec": rules})).await?;
    stage.says("even", State::Closed, "Forced").await?;

    let bindings: Api<
        k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    > = Api::all(stage.client());
    bindings.remove("sluice-gate-overrides").await?;
    let open = stage.says("even", State::Open, "Default").await?;
    ensure!(message(&open).contains(wary), "{}", message(&open));
    let gate = stage.gates().get("even").await?;
    ensure!(gate.annotations().contains_key("sluice.dev/force-seen"));
    Ok(())
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
