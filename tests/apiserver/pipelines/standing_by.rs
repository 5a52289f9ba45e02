//! Replicas that decide nothing about a pipeline: they watch nothing on other clusters. One that takes over
//! decides after its own first lists.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::controller::Process;
use sluice_tests::line::Line;
use sluice_tests::{DEADLINE, shared, status};

use super::{admitted, put, says};
use crate::clusters::scene::Scene;

/// A leader that is not given up by itself, however slow the machine is.
const ELECTED: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=60s",
    "--leader-election-renew-deadline=50s",
    "--leader-election-retry-period=500ms",
];

/// The same as [`says`], for what takes longer.
pub async fn says_late(
    scene: &Scene,
    what: &str,
    check: impl Fn(&PipelineStatus) -> bool,
) -> Result<PipelineStatus> {
    let api: Api<Pipeline> = Api::namespaced(scene.own(), scene.namespace());
    let pipeline = status::until(&api, "web", DEADLINE, what, check).await?;
    pipeline.status.context("no status")
}

async fn replica(scene: &Scene, name: &str, flags: &[&str]) -> Result<Process> {
    let flags = [&["--egress-allow=127.0.0.0/8"], flags].concat();
    let kubeconfig = shared().await?.kubeconfig();
    let process = Process::start(kubeconfig, scene.namespace(), name, &flags).await?;
    process.has_synced().await?;
    Ok(process)
}

#[tokio::test]
async fn a_replica_that_waits_watches_no_other_cluster_until_it_takes_over() -> Result<()> {
    let scene = Scene::new("standing-by").await?;
    scene.define_here().await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.0.0").await?;
    let line = Line::open(scene.server()).await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(line.server(), &token).await?;

    let leader = replica(&scene, "one", &ELECTED).await?;
    leader.leads(true).await?;
    let standby = replica(&scene, "two", &ELECTED).await?;
    let shard = ["--watch-label-selector=sharding.fluxcd.io/key=other"];
    let _of_another_shard = replica(&scene, "three", &shard).await?;
    put(&scene, json!({"strategy": {"admission": {}}})).await?;
    let is_completed = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    says(&scene, "the first run to be completed", is_completed).await?;
    scene.has_watches(1).await?;

    // It takes over while the other cluster does not answer: nothing is known of it, and nothing is begun.
    line.hold();
    leader.terminate().await?;
    line.cut();
    standby.leads(true).await?;
    scene.has_watches(0).await?;
    scene.runs_at(&remote, scene.apps(), 2, "1.1.0").await?;
    let is_away = |status: &PipelineStatus| status.clusters.iter().any(|it| !it.reachable);
    let away = says_late(&scene, "the cluster to be away", is_away).await?;
    ensure!(away.environments["dev"].state == EnvironmentState::Unknown);
    ensure!(admitted(&away).is_empty(), "{:?}", admitted(&away));

    line.release();
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    says_late(&scene, "1.1.0 to be admitted", is_out).await?;
    Ok(())
}
