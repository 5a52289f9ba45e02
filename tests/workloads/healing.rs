//! What heals a workload whose new pods are broken.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica, Workload};

use crate::scene::Scene;

/// One of all pods is of a new version that is not ready.
fn one_broken(size: i64) -> Counts {
    Counts {
        size,
        updated: 1,
        ready: size - 1,
    }
}

/// A workload whose first pod of version 2 is broken, and this pod.
async fn broken(scene: &Scene, kind: Kind, spec: Value, size: i64) -> Result<(Workload, Replica)> {
    let db = scene.create(kind, "db", spec).await?;
    db.has(Counts::all(size)).await?;
    let before = db.pods().await?;
    db.release("2", Readiness::Broken).await?;
    let runs = |pods: &[Replica]| {
        let new = pods.iter().filter(|pod| pod.version == "2");
        new.clone().count() == 1 && new.into_iter().all(|pod| pod.phase == "Running")
    };
    db.until_pods("one to run", runs).await?;
    db.has(one_broken(size)).await?;
    // Its controller takes no other while this one is not ready.
    assert_eq!(look_again(&db).await?, one_broken(size));
    let pods = db.pods().await?;
    let (new, old): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.version == "2");
    assert!(old.iter().all(|pod| before.contains(pod)), "{old:?}");
    let new = new.into_iter().next().context("no new pod")?;
    Ok((db, new))
}

/// Has its controller look at it once more, and returns what it counts.
async fn look_again(db: &Workload) -> Result<Counts> {
    let limit = db.api().get("db").await?.data["spec"]["revisionHistoryLimit"].as_i64();
    let limit = limit.context("no limit")? + 1;
    db.set(json!({"revisionHistoryLimit": limit})).await?;
    Ok(Counts::of(&db.looked_at().await?))
}

/// All are of version 1 and ready.
async fn heals(db: &Workload, size: usize) -> Result<()> {
    let healed = |pods: &[Replica]| {
        let old = pods.iter().filter(|pod| pod.version == "1" && pod.ready);
        pods.len() == size && old.count() == size
    };
    db.until_pods("to be healed", healed).await?;
    Ok(())
}

/// The broken pod has to be deleted by the one who reverts.
#[tokio::test]
async fn an_ordered_stateful_set_is_not_healed_by_a_revert() -> Result<()> {
    let scene = Scene::new("ordered").await?;
    let spec = json!({"replicas": 3});
    let (db, broken) = broken(&scene, Kind::StatefulSet, spec, 3).await?;
    db.release("1", Readiness::Ready).await?;
    // It takes itself for what it was, and for one pod short.
    let short = Counts {
        size: 3,
        updated: 2,
        ready: 2,
    };
    let status = db.has(short).await?;
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    let pods = db.pods().await?;
    assert!(pods.contains(&broken), "{pods:?}");
    // It does look on, and leaves it there.
    assert_eq!(look_again(&db).await?, short);
    let pods = db.pods().await?;
    assert!(pods.contains(&broken), "{pods:?}");

    scene.pods().remove(&broken.name).await?;
    heals(&db, 3).await
}

#[tokio::test]
async fn a_parallel_stateful_set_is_healed_by_a_revert() -> Result<()> {
    let scene = Scene::new("parallel").await?;
    let spec = json!({"replicas": 3, "podManagementPolicy": "Parallel"});
    let (db, _) = broken(&scene, Kind::StatefulSet, spec, 3).await?;
    db.release("1", Readiness::Ready).await?;
    heals(&db, 3).await
}

/// It stops after as many broken pods as `maxUnavailable` allows: one of four by default.
#[tokio::test]
async fn a_clone_set_stops_at_a_broken_pod_and_is_healed_by_a_revert() -> Result<()> {
    let scene = Scene::new("clones").await?;
    let spec = json!({"replicas": 4});
    let (db, _) = broken(&scene, Kind::CloneSet, spec, 4).await?;
    db.release("1", Readiness::Ready).await?;
    heals(&db, 4).await
}
