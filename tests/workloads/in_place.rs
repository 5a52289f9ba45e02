//! CloneSets that change their pods in place.

use anyhow::Result;
use rstest::rstest;
use serde_json::json;
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica};

use crate::scene::Scene;

#[rstest]
#[tokio::test]
async fn a_pod_whose_image_alone_changes_stays_the_same_pod(
    #[values("InPlaceIfPossible", "InPlaceOnly")] strategy: &str,
) -> Result<()> {
    let scene = Scene::new("place").await?;
    let strategy = json!({"type": strategy, "partition": 1});
    let spec = json!({"replicas": 3, "updateStrategy": strategy});
    let web = scene.create(Kind::CloneSet, "web", spec).await?;
    web.has(Counts::all(3)).await?;
    let before = web.pods().await?;
    web.release("2", Readiness::Ready).await?;
    let status = web
        .has(Counts {
            updated: 2,
            ..Counts::all(3)
        })
        .await?;
    let after = web.pods().await?;
    assert_eq!(ids(&after), ids(&before));
    let new = after.iter().filter(|pod| pod.version == "2");
    assert_eq!(new.clone().count(), 2, "{after:?}");
    for pod in new {
        assert_eq!(status["updateRevision"], *pod.revision, "{status}");
    }
    Ok(())
}

/// Nor does another annotation take a pod's place.
#[tokio::test]
async fn a_pod_that_breaks_in_place_stops_the_others_and_is_mended_in_place() -> Result<()> {
    let scene = Scene::new("mended").await?;
    let strategy = json!({"type": "InPlaceIfPossible", "maxUnavailable": 1});
    let spec = json!({"replicas": 3, "updateStrategy": strategy});
    let web = scene.create(Kind::CloneSet, "web", spec).await?;
    web.has(Counts::all(3)).await?;
    let before = web.pods().await?;
    web.release("2", Readiness::Broken).await?;
    let stopped = Counts {
        size: 3,
        updated: 1,
        ready: 2,
    };
    web.has(stopped).await?;
    let pods = web.pods().await?;
    assert_eq!(ids(&pods), ids(&before));
    let new = pods.iter().filter(|pod| pod.version == "2" && !pod.ready);
    assert_eq!(new.count(), 1, "{pods:?}");
    web.release("1", Readiness::Ready).await?;
    web.has(Counts::all(3)).await?;
    assert_eq!(web.pods().await?, before);
    Ok(())
}

fn ids(pods: &[Replica]) -> Vec<&str> {
    pods.iter().map(|pod| pod.uid.as_str()).collect()
}
