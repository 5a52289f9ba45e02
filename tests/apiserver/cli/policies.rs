//! Gate policies, as those meet them who ask: `check`, `why` and `wait`.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sluice_crds::GatePolicy;
use sluice_tests::{Writes, poll};

use super::{Going, run, says};
use crate::stage::{DEADLINE, Stage};

/// An open gate, and a freeze.
const GATES: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {default: open}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: freeze}
spec: {default: closed}
";

/// A policy of this namespace alone, for these kinds, under its name.
async fn policy(stage: &Stage, kinds: &[&str]) -> Result<Api<GatePolicy>> {
    let policies: Api<GatePolicy> = Api::all(stage.client());
    let name = stage.namespace();
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "GatePolicy",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "kinds": kinds,
            "gates": {"refs": [{"name": "freeze", "namespace": name}]},
        },
    });
    let own = PatchParams::apply("test").force();
    policies.patch(name, &own, &Patch::Apply(object)).await?;
    Ok(policies)
}

#[tokio::test]
async fn a_policy_holds_back_those_who_ask() -> Result<()> {
    let stage = Stage::new("cli-policies", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    says(
        &stage,
        "admin",
        &["check", "production"],
        0,
        "production is Open",
    )
    .await?;
    let policies = policy(&stage, &[]).await?;
    let freeze = format!("{}/freeze (GatePolicy {0})", stage.namespace());
    let held = says(&stage, "admin", &["check", "production"], 1, &freeze).await?;
    ensure!(held.out.contains("production is Open"), "{held:?}");
    let alone = ["check", "production", "--without-policies"];
    says(&stage, "admin", &alone, 0, "production is Open").await?;
    let json = run(&stage, "admin", &["check", "production", "-o", "json"]).await?;
    let json: serde_json::Value = serde_json::from_str(&json.out)?;
    ensure!(json["checked"][1]["policy"] == stage.namespace(), "{json}");

    // For one kind only.
    policy(&stage, &["Deployment"]).await?;
    says(
        &stage,
        "admin",
        &["check", "production"],
        0,
        "production is Open",
    )
    .await?;
    let deployment = ["check", "production", "--consumer", "Deployment/api"];
    says(&stage, "admin", &deployment, 1, &freeze).await?;
    let why = says(
        &stage,
        "admin",
        &["why", "Deployment/api"],
        0,
        "not allowed",
    )
    .await?;
    ensure!(why.out.contains("/freeze is Closed (Default)"), "{why:?}");
    let nobody = ["check", "--consumer", "CronJob/nightly"];
    says(&stage, "admin", &nobody, 1, "no gate is named").await?;
    says(
        &stage,
        "admin",
        &["check", "a", "--consumer", "api"],
        2,
        "such as Deployment/api",
    )
    .await?;
    policies.remove(stage.namespace()).await?;
    says(&stage, "admin", &deployment, 0, "production is Open").await?;
    Ok(())
}

#[tokio::test]
async fn anyone_who_waits_waits_for_policies() -> Result<()> {
    let stage = Stage::new("cli-policies", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let policies = policy(&stage, &[]).await?;
    let arguments = ["wait", "production"];
    let mut waiting = Going::start(&stage, "admin", &arguments)?;
    let first = waiting.line().await?;
    ensure!(
        first.contains("production is open, but held back by") && first.contains("GatePolicy"),
        "{first}"
    );
    policies.remove(stage.namespace()).await?;
    waiting.ends_well().await
}

/// Where a policy applies, what one may not see of it counts as closed.
#[tokio::test]
async fn what_one_may_not_see_of_a_policy_holds_back() -> Result<()> {
    let stage = Stage::installed("cli-policies", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let elsewhere = Stage::installed("cli-freeze", "2026-11-20T12:00:00Z").await?;
    elsewhere.apply("{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: freeze}, spec: {default: open}}").await?;
    let policies = policy(&stage, &[]).await?;
    let gates = json!({"spec": {"gates": {"refs": [{"name": "freeze", "namespace": elsewhere.namespace()}]}}});
    let patch = gates;
    policies.merge(stage.namespace(), &patch).await?;
    stage.grant("sluice-view", &["victor"]).await?;
    let check = ["check", "production"];
    poll(DEADLINE, "victor to see gates", async || {
        says(&stage, "victor", &check, 1, "it counts as closed").await
    })
    .await?;
    elsewhere.grant("sluice-view", &["victor"]).await?;
    poll(DEADLINE, "victor to see the freeze", async || {
        says(&stage, "victor", &check, 0, "allowed: let pass by").await
    })
    .await?;
    policies.remove(stage.namespace()).await?;
    Ok(())
}
