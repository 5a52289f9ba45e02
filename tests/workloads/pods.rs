//! That pods start, break and end here as a test wants them to: what all other tests here stand on.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind, NODE, Readiness, Replica, Workload};

use crate::scene::Scene;

/// A Deployment of two pods that start like this.
async fn start(scene: &Scene, readiness: Readiness) -> Result<Workload> {
    let web = scene.create(Kind::Deployment, "web", json!({"replicas": 0}));
    let web = web.await?;
    web.release("1", readiness).await?;
    web.scale(2).await?;
    Ok(web)
}

/// Two pods that nobody is content with.
fn not_ready(size: i64) -> Counts {
    Counts {
        ready: 0,
        ..Counts::all(size)
    }
}

/// Two pods, all of them in this phase.
fn two(phase: &str) -> impl Fn(&[Replica]) -> bool {
    move |pods| pods.len() == 2 && pods.iter().all(|pod| pod.phase == phase)
}

#[tokio::test]
async fn a_pod_becomes_ready_on_the_node() -> Result<()> {
    let scene = Scene::new("ready").await?;
    let web = start(&scene, Readiness::Ready).await?;
    web.has(Counts::all(2)).await?;
    for replica in web.pods().await? {
        assert!(replica.ready && replica.phase == "Running", "{replica:?}");
        let pod = scene.pods().get(&replica.name).await?;
        let spec = pod.spec.context("no spec")?;
        assert_eq!(spec.node_name.as_deref(), Some(NODE));
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_pod_is_ready_after_its_time() -> Result<()> {
    let scene = Scene::new("slow").await?;
    let web = start(&scene, Readiness::After("2s")).await?;
    web.has(Counts::all(2)).await?;
    for replica in web.pods().await? {
        let (started, ready) = instants(&scene.pods().get(&replica.name).await?)?;
        // Both are written as full seconds.
        ensure!(ready > started, "{replica:?}: {started}, {ready}");
    }
    Ok(())
}

/// When a pod has started, and when it became ready, in seconds.
fn instants(pod: &Pod) -> Result<(i64, i64)> {
    let status = pod.status.as_ref().context("no status")?;
    let started = status.start_time.as_ref().context("not started")?;
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    let ready = ready.and_then(|ready| ready.last_transition_time.as_ref());
    let ready = ready.context("never ready")?;
    Ok((started.0.as_second(), ready.0.as_second()))
}

#[tokio::test]
async fn a_pod_that_never_starts_waits_until_it_may() -> Result<()> {
    let scene = Scene::new("never").await?;
    let web = start(&scene, Readiness::Never).await?;
    web.has(not_ready(2)).await?;
    let pods = web.until_pods("to wait", two("Pending")).await?;
    // What came later has been played meanwhile.
    let other = scene.create(Kind::Deployment, "other", json!({"replicas": 1}));
    other.await?.has(Counts::all(1)).await?;
    assert_eq!(web.pods().await?, pods);
    scene.turn(&pods[0].name, Readiness::Ready).await?;
    web.has(Counts {
        ready: 1,
        ..Counts::all(2)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_broken_pod_runs_and_is_not_ready() -> Result<()> {
    let scene = Scene::new("broken").await?;
    let web = start(&scene, Readiness::Broken).await?;
    web.has(not_ready(2)).await?;
    let pods = web.until_pods("to run", two("Running")).await?;
    let other = scene.create(Kind::Deployment, "other", json!({"replicas": 1}));
    other.await?.has(Counts::all(1)).await?;
    assert_eq!(web.pods().await?, pods);
    Ok(())
}

#[tokio::test]
async fn a_pod_that_was_ready_breaks_and_is_mended() -> Result<()> {
    let scene = Scene::new("breaks").await?;
    let web = start(&scene, Readiness::Ready).await?;
    web.has(Counts::all(2)).await?;
    let pods = web.pods().await?;
    scene.turn(&pods[0].name, Readiness::Broken).await?;
    web.has(Counts {
        ready: 1,
        ..Counts::all(2)
    })
    .await?;
    scene.turn(&pods[0].name, Readiness::Ready).await?;
    web.has(Counts::all(2)).await?;
    assert_eq!(web.pods().await?, pods);
    Ok(())
}

#[tokio::test]
async fn a_deleted_pod_is_gone_and_another_one_comes() -> Result<()> {
    let scene = Scene::new("deleted").await?;
    let web = start(&scene, Readiness::Ready).await?;
    web.has(Counts::all(2)).await?;
    let gone = &web.pods().await?[0];
    scene.pods().remove(&gone.name).await?;
    let others = |pods: &[Replica]| {
        let ready = pods.iter().filter(|pod| pod.ready).count();
        ready == 2 && pods.iter().all(|pod| pod.uid != gone.uid)
    };
    web.until_pods("to be two again", others).await?;
    web.delete().await?;
    web.until_pods("to be gone with it", <[Replica]>::is_empty)
        .await?;
    Ok(())
}
