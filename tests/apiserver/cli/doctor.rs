//! `doctor`, and the versions: what is said of an installation, part by part.

use anyhow::{Result, ensure};
use jiff::ToSpan;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_tests::helm::Release;
use sluice_tests::{Writes, installation, poll};

use super::{run, says};
use crate::stage::{DEADLINE, Stage, soon};

/// Where the chart puts the controller.
const HOME: &str = "sluice-system";
const NAME: &str = "gate-controller";

/// Says that a pod is ready, and that it leads since then: nobody runs pods here.
async fn pretend(stage: &Stage, renewed: jiff::Timestamp) -> Result<()> {
    let own = PatchParams::apply("test").force();
    let deployments: Api<Deployment> = Api::namespaced(stage.client(), HOME);
    let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    let merge = status;
    deployments.merge_status(NAME, &merge).await?;
    let leases: Api<Lease> = Api::namespaced(stage.client(), HOME);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME},
        "spec": {
            "holderIdentity": "pod-1",
            "leaseDurationSeconds": 3600,
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string(),
        },
    });
    leases.patch(NAME, &own, &Patch::Apply(lease)).await?;
    Ok(())
}

/// The parts that are not well, with what is said of them and what to do.
async fn not_well(
    stage: &Stage,
    user: &str,
) -> Result<(Option<i32>, Vec<(String, String, String)>)> {
    let ran = run(stage, user, &["doctor", "-o", "json"]).await?;
    let all: Vec<Value> = serde_json::from_str(&ran.out)?;
    let text =
        |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let bad = all.iter().filter(|finding| finding["health"] != "ok");
    let told = bad.map(|it| (text(it, "part"), text(it, "found"), text(it, "remedy")));
    Ok((ran.code, told.collect()))
}

/// Waits until just one part is not well, and that is said of it.
async fn ails(stage: &Stage, part: &str, found: &str, remedy: &str) -> Result<()> {
    poll(DEADLINE, part, async || {
        let (code, bad) = not_well(stage, "admin").await?;
        let is_it = |it: &(String, String, String)| {
            it.0 == part && it.1.contains(found) && it.2.contains(remedy)
        };
        ensure!(
            code == Some(1) && bad.iter().any(is_it),
            "{code:?} {bad:#?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn each_part_that_is_missing_is_told_with_its_remedy() -> Result<()> {
    let (plane, _) = installation::start(&Release::default(), "").await?;
    let stage = Stage::on(plane.cluster(), "cli-doctor", &soon(0)?.to_string()).await?;
    // The kinds themselves go away, and no controller writes any status.
    stage.judge_no_statuses();
    let client = stage.client();
    ails(
        &stage,
        "controller",
        "no pod of it is ready",
        "kubectl describe deployment",
    )
    .await?;
    ails(&stage, "leader", "nobody has ever led", "kubectl logs").await?;

    pretend(&stage, soon(0)?).await?;
    let well = says(&stage, "admin", &["doctor"], 0, "ok").await?;
    for part in [
        "kinds",
        "policies",
        "your rights",
        "its rights",
        "leader",
        "clock",
        "Flux",
    ] {
        ensure!(well.out.contains(part), "{part}: {}", well.out);
    }
    ensure!(
        well.out.contains("as this version has them"),
        "{}",
        well.out
    );
    let version = ["version"];
    says(
        &stage,
        "admin",
        &version,
        0,
        "gate-controller 0.1.0 is installed as",
    )
    .await?;

    // Somebody without rights is told so, and what else they cannot see is unknown.
    let (code, bad) = not_well(&stage, "alice").await?;
    let parts: Vec<&str> = bad.iter().map(|(part, ..)| part.as_str()).collect();
    ensure!(
        code == Some(1) && parts.contains(&"policies"),
        "{code:?} {bad:#?}"
    );
    let own = bad.iter().find(|(part, ..)| part == "your rights");
    ensure!(
        own.is_some_and(|(_, _, remedy)| remedy.contains("sluice-view")),
        "{bad:#?}"
    );

    // An hour ago, by a clock that is behind.
    pretend(&stage, soon(0)? - 2.hours()).await?;
    ails(&stage, "leader", "was last heard of", "kubectl logs").await?;
    ails(&stage, "clock", "behind the API server", "NTP").await?;
    pretend(&stage, soon(0)?).await?;

    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    policies.remove("sluice-children").await?;
    ails(
        &stage,
        "policies",
        "sluice-children is not there",
        "policies.install=true",
    )
    .await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.remove(NAME).await?;
    ails(&stage, "its rights", "may not", "rbac.create=true").await?;
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    kinds.remove("gatepolicies.sluice.dev").await?;
    ails(
        &stage,
        "kinds",
        "gatepolicies of sluice.dev/v1alpha1",
        "CustomResourceDefinitions",
    )
    .await?;
    let source = "{apiVersion: sluice.dev/v1alpha1, kind: GatedSource, metadata: {name: app}, spec: {sourceRef: {kind: GitRepository, name: app}, target: {name: app-gated}, gates: {refs: [{name: production}]}}}";
    stage.apply(source).await?;
    ails(
        &stage,
        "Flux",
        "nothing goes out of 1 gated source",
        "flux install",
    )
    .await
}
