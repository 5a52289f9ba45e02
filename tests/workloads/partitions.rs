//! Partitions: how many pods of a StatefulSet or CloneSet keep their version.

use anyhow::{Result, ensure};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica, Workload};

use crate::scene::Scene;

/// How many pods each workload here has.
const SIZE: i64 = 3;

/// More than any workload has pods: this is what armed means.
fn armed(kind: Kind) -> Value {
    match kind {
        Kind::CloneSet => "100%".into(),
        Kind::StatefulSet | Kind::Deployment => i32::MAX.into(),
    }
}

/// A workload of version 1 whose template says version 2, armed before that.
async fn changed(scene: &Scene, kind: Kind) -> Result<Workload> {
    let db = scene.create(kind, "db", json!({"replicas": SIZE})).await?;
    db.has(Counts::all(SIZE)).await?;
    db.partition(armed(kind)).await?;
    db.release("2", Readiness::Ready).await?;
    Ok(db)
}

/// The same, with one pod of version 2, which is returned beside it.
async fn begun(scene: &Scene, kind: Kind) -> Result<(Workload, Replica)> {
    let db = changed(scene, kind).await?;
    db.partition(SIZE - 1).await?;
    db.has(Counts {
        updated: 1,
        ..Counts::all(SIZE)
    })
    .await?;
    let pods = db.pods().await?;
    let new: Vec<_> = pods.iter().filter(|pod| pod.version == "2").collect();
    ensure!(new.len() == 1, "{pods:?}");
    let new = new[0].clone();
    Ok((db, new))
}

/// The same, armed again.
async fn stopped(scene: &Scene, kind: Kind) -> Result<(Workload, Replica)> {
    let (db, new) = begun(scene, kind).await?;
    db.partition(armed(kind)).await?;
    db.looked_at().await?;
    Ok((db, new))
}

#[rstest]
#[tokio::test]
async fn an_armed_workload_replaces_nobody(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("armed").await?;
    let db = scene.create(kind, "db", json!({"replicas": SIZE})).await?;
    db.has(Counts::all(SIZE)).await?;
    let before = db.pods().await?;
    db.partition(armed(kind)).await?;
    db.release("2", Readiness::Ready).await?;
    let status = db.looked_at().await?;
    assert_eq!(db.pods().await?, before);
    assert_eq!(Counts::of(&status).updated, 0, "{status}");
    assert_eq!(status["currentRevision"], *before[0].revision, "{status}");
    assert_ne!(status["updateRevision"], *before[0].revision, "{status}");
    Ok(())
}

#[rstest]
#[case::stateful_set(Kind::StatefulSet, &["updatedReplicas"])]
#[case::clone_set(Kind::CloneSet, &["expectedUpdatedReplicas", "updatedAvailableReplicas"])]
#[tokio::test]
async fn a_count_of_nobody_is_absent(#[case] kind: Kind, #[case] absent: &[&str]) -> Result<()> {
    let scene = Scene::new("nobody").await?;
    let status = changed(&scene, kind).await?.looked_at().await?;
    for count in absent {
        assert_eq!(status[count], Value::Null, "{status}");
    }
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_lower_partition_lets_so_many_be_replaced(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("lower").await?;
    let (db, new) = begun(&scene, kind).await?;
    let status = db.looked_at().await?;
    assert_eq!(status["updateRevision"], *new.revision, "{status}");
    assert_ne!(status["currentRevision"], *new.revision, "{status}");
    if kind == Kind::StatefulSet {
        assert_eq!(new.name, "db-2");
    }
    db.partition(0).await?;
    let status = db.has(Counts::all(SIZE)).await?;
    let pods = db.pods().await?;
    assert!(pods.iter().all(|pod| pod.version == "2"), "{pods:?}");
    assert!(pods.contains(&new), "{pods:?}");
    assert_eq!(status["updateRevision"], *new.revision, "{status}");
    // Only now.
    let moved = |status: &Value| status["currentRevision"] == *new.revision;
    db.until("its revision to move", moved).await?;
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_raised_partition_downgrades_nobody(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("raised").await?;
    let (db, _) = begun(&scene, kind).await?;
    let before = db.pods().await?;
    db.partition(armed(kind)).await?;
    let status = db.looked_at().await?;
    assert_eq!(db.pods().await?, before);
    assert_eq!(Counts::of(&status).updated, 1, "{status}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_new_pod_that_is_deleted_comes_back_old(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("back").await?;
    let (db, new) = stopped(&scene, kind).await?;
    scene.pods().remove(&new.name).await?;
    let old = |pods: &[Replica]| {
        let old = pods.iter().filter(|pod| pod.ready && pod.version == "1");
        old.count() == 3
    };
    db.until_pods("to be old again", old).await?;
    db.has(Counts {
        updated: 0,
        ..Counts::all(SIZE)
    })
    .await?;
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_pod_that_an_armed_workload_adds_is_old(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("grown").await?;
    let db = changed(&scene, kind).await?;
    db.scale(4).await?;
    db.has(Counts {
        updated: 0,
        ..Counts::all(4)
    })
    .await?;
    let pods = db.pods().await?;
    assert!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_template_that_is_reverted_moves_nobody_until_the_partition_is_lowered(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let scene = Scene::new("reverted").await?;
    let (db, new) = stopped(&scene, kind).await?;
    let before = db.pods().await?;
    db.release("1", Readiness::Ready).await?;
    let status = db
        .has(Counts {
            updated: 2,
            ..Counts::all(SIZE)
        })
        .await?;
    assert_eq!(db.pods().await?, before);
    assert_eq!(status["updateRevision"], status["currentRevision"]);
    db.partition(0).await?;
    db.has(Counts::all(SIZE)).await?;
    let pods = db.pods().await?;
    assert!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    let kept = before.iter().filter(|pod| **pod != new);
    assert!(kept.into_iter().all(|pod| pods.contains(pod)), "{pods:?}");
    Ok(())
}
