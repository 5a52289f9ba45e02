//! Pipelines whose environments are on two real API servers, and some that promote by a real Gitea.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::SystemClock;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::{Applier, status};

use crate::clusters::scene::Scene;
use crate::stage::DEADLINE;

mod dead_forge;
mod kills;
pub mod published;
mod pull_requests;
mod refused_writes;
mod reports;
mod requested;
mod rules;
pub mod shop;
mod silence;
mod standing_by;
mod told;

/// What is promoted to.
pub const PROD: &str = "prod";

/// Dev is on the second server, prod on the first, and this is how it is promoted there.
pub async fn put(scene: &Scene, promotion: Value) -> Result<()> {
    let dev = json!({
        "namespace": scene.apps(), "clusterRef": {"kind": "Secret", "name": "prod-kubeconfig"},
    });
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "web"},
        "spec": {
            "appRef": {"apiVersion": scene.api_version(), "kind": "Widget", "name": "web"},
            "environments": [
                {"name": "dev", "targets": [dev]},
                {"name": PROD, "targets": [{"namespace": scene.namespace()}],
                 "promotion": promotion},
            ],
        },
    });
    let applier = Applier::new(scene.own()).in_namespace(scene.namespace());
    applier.text(&pipeline.to_string()).await?;
    Ok(())
}

/// Waits until `check` is content with the status of the pipeline.
pub async fn says(
    scene: &Scene,
    what: &str,
    check: impl Fn(&PipelineStatus) -> bool,
) -> Result<PipelineStatus> {
    let api: Api<Pipeline> = Api::namespaced(scene.own(), scene.namespace());
    let pipeline = status::until(&api, "web", DEADLINE, what, check).await?;
    pipeline.status.context("no status")
}

/// The revisions that are admitted to prod.
pub fn admitted(status: &PipelineStatus) -> Vec<&str> {
    let prod = status.environments.get(PROD).into_iter();
    let admitted = prod.flat_map(|prod| &prod.admitted);
    admitted.map(|it| it.revision.as_str()).collect()
}

#[tokio::test]
async fn what_another_cluster_runs_is_admitted_here_and_nothing_while_it_is_unknown() -> Result<()>
{
    let scene = Scene::new("pipeline").await?;
    scene.define_here().await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "0.9.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.0.0").await?;
    let promotion = json!({"strategy": {"admission": {}}});
    put(&scene, promotion).await?;
    let mut settings = controller::settings(scene.namespace());
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let _controller = InProcess::start(settings, own.clone(), Arc::new(SystemClock)).await?;

    // Nobody has said how the cluster is reached.
    let not_found = |status: &PipelineStatus| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == "Ready" && it.reason == "TargetClusterNotFound")
    };
    let status = says(&scene, "the cluster to be missed", not_found).await?;
    ensure!(admitted(&status).is_empty() && !status.clusters[0].reachable);

    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let first = |status: &PipelineStatus| admitted(status) == ["1.0.0"];
    let status = says(&scene, "1.0.0 to be admitted", first).await?;
    ensure!(status.clusters[0].reachable, "{:?}", status.clusters);
    ensure!(status.environments["dev"].state == EnvironmentState::Passed);
    scene.runs_at(&own, scene.namespace(), 2, "1.0.0").await?;
    let is_completed = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    says(&scene, "the run to be completed", is_completed).await?;

    // What was seen of a cluster that is gone is no reason to promote anything.
    scene.delete_kubeconfig().await?;
    let status = says(&scene, "the cluster to be missed again", not_found).await?;
    ensure!(status.environments["dev"].state == EnvironmentState::Unknown);
    scene.runs_at(&remote, scene.apps(), 2, "1.1.0").await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let second = |status: &PipelineStatus| admitted(status) == ["1.1.0", "1.0.0"];
    let status = says(&scene, "1.1.0 to be admitted", second);
    let status = status.await?;
    ensure!(status.run.is_some_and(|run| run.revision == "1.1.0"));
    Ok(())
}
