//! What interrupts no pipeline: a look for drift, and an app that fails for a reason of its surroundings.

use anyhow::{Context, Result, ensure};
use kube::{Api, ResourceExt};
use serde_json::json;
use sluice_crds::pipeline::{EnvironmentState, PromotionRecord};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::Git;
use sluice_tests::{Writes, poll, status};

use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
/// What the app of prod depends on.
const BASE: &str = "base";
const NAME: &str = "steady";
const PROD: &str = "prod";
/// How often drift is looked for: when the last look ends, the controller has long seen the first.
const LOOKS: u32 = 3;

/// A Kustomization of one folder of the repository.
async fn kustomization(stage: &Stage<'_>, folder: &str, depends_on: &[&str]) -> Result<()> {
    let depends_on: Vec<_> = depends_on
        .iter()
        .map(|name| json!({"name": name}))
        .collect();
    let spec = json!({
        "sourceRef": {"kind": "GitRepository", "name": APP}, "path": format!("./{folder}"),
        "interval": "1h", "retryInterval": "2s", "timeout": "30s", "prune": true,
        "targetNamespace": stage.namespace(), "dependsOn": depends_on,
    });
    stage.put("Kustomization", folder, spec).await
}

fn pipeline(dev: &str, prod: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {{name: {NAME}}}
spec:
  appRef: {{kind: Kustomization, name: {APP}}}
  promotion: {{strategy: {{admission: {{}}}}}}
  environments:
    - {{name: dev, targets: [{{namespace: {dev}}}]}}
    - {{name: {PROD}, targets: [{{namespace: {prod}}}]}}
"
    )
}

fn record(status: &PipelineStatus) -> Option<&PromotionRecord> {
    status.environments.get(PROD)?.promotion.as_ref()
}

fn is_completed(status: &PipelineStatus) -> bool {
    let run = status.run.as_ref();
    run.is_some_and(|run| run.completed_at.is_some())
}

/// `keeper` is in the world of `controller`, which sees all namespaces.
pub async fn story(keeper: &Stage<'_>, controller: &InProcess) -> Result<()> {
    let dev = Stage::within(keeper.world(), "steady-dev", NOW).await?;
    let prod = Stage::within(keeper.world(), "steady-prod", NOW).await?;
    let git = Git::serve().await?;
    let files = [
        ("app/app.yaml", app(APP, "one")),
        ("base/base.yaml", app(BASE, "one")),
    ];
    let one = Git::revision(&git.commit(&files)?);
    for stage in [&dev, &prod] {
        stage.git_repository(APP, &git).await?;
    }
    kustomization(&prod, BASE, &[]).await?;
    kustomization(&prod, APP, &[BASE]).await?;
    kustomization(&dev, APP, &[]).await?;
    for stage in [&dev, &prod] {
        stage.applied(APP, &one).await?;
    }
    let api: Api<Pipeline> = Api::namespaced(dev.client(), dev.namespace());
    dev.apply(&pipeline(dev.namespace(), prod.namespace()))
        .await?;
    let what = "the first run to be completed";
    status::until(&api, NAME, DEADLINE, what, is_completed).await?;

    // What the app of prod depends on is lost.
    prod.api("Kustomization")?.remove(BASE).await?;
    poll(DEADLINE, "it to be gone", async || {
        let base = prod.api("Kustomization")?.get_opt(BASE).await?;
        ensure!(base.is_none(), "it is there");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let two = Git::revision(&git.commit(&[("app/app.yaml", app(APP, "two"))])?);
    prod.reconcile("GitRepository", APP).await?;
    prod.fails("Kustomization", APP, "DependencyNotReady")
        .await?;
    dev.reconcile("GitRepository", APP).await?;
    dev.applied(APP, &two).await?;
    let is_promoted = |status: &PipelineStatus| {
        let prod = status.environments.get(PROD);
        record(status).is_some_and(|it| it.revision == two)
            && prod.is_some_and(|prod| prod.state == EnvironmentState::Promoted)
    };
    let held = status::until(&api, NAME, DEADLINE, "prod to be promoted to", is_promoted).await?;
    let held = held.status.context("no status")?;
    ensure!(!is_completed(&held), "{held:?}");
    let before = record(&held).context("no record")?.key.clone();

    kustomization(&prod, BASE, &[]).await?;
    prod.applied(APP, &two).await?;
    let done = status::until(&api, NAME, DEADLINE, "the run to go on", is_completed).await?;
    let done = done.status.context("no status")?;
    ensure!(done.environments[PROD].state == EnvironmentState::Passed);
    ensure!(record(&done).is_some_and(|it| it.key == before), "{done:?}");

    looks_for_drift(&dev, &api, controller).await
}

/// Ready is unknown meanwhile, and nothing is written.
async fn looks_for_drift(
    dev: &Stage<'_>,
    api: &Api<Pipeline>,
    controller: &InProcess,
) -> Result<()> {
    controller.rests().await?;
    let before = api.get(NAME).await?;
    dev.lose(APP).await?;
    for _ in 0..LOOKS {
        dev.reconcile("Kustomization", APP).await?;
        dev.deployed(APP, "two").await?;
    }
    controller.rests().await?;
    let after = api.get(NAME).await?;
    ensure!(
        after.resource_version() == before.resource_version(),
        "before: {before:?}, after: {after:?}"
    );
    Ok(())
}
