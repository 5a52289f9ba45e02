//! CloneSets: partitions in percent, and what is refused.

use anyhow::{Context, Result};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_tests::workloads::{Counts, Kind, Readiness};

use crate::scene::Scene;

/// A percentage is of the pods that keep their version, rounded up, and yet one pod is always
/// updated below `100%`.
#[rstest]
#[case::all_but_one("99%".into(), 1)]
#[case::half("50%".into(), 2)]
#[case::all("100%".into(), 0)]
#[case::more_than_all("120%".into(), 0)]
#[case::a_count_of_more_than_all(i32::MAX.into(), 0)]
#[tokio::test]
async fn a_partition_may_be_in_percent(
    #[case] partition: Value,
    #[case] updated: i64,
) -> Result<()> {
    let scene = Scene::new("percent").await?;
    let strategy = json!({"partition": partition, "maxUnavailable": "100%"});
    let spec = json!({"replicas": 4, "updateStrategy": strategy});
    let web = scene.create(Kind::CloneSet, "web", spec).await?;
    web.has(Counts::all(4)).await?;
    web.release("2", Readiness::Ready).await?;
    web.has(Counts {
        updated,
        ..Counts::all(4)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_partition_below_zero_is_refused() -> Result<()> {
    let scene = Scene::new("negative").await?;
    let web = scene.create(Kind::CloneSet, "web", json!({"replicas": 1}));
    let refused = web.await?.partition(-1).await.err().context("accepted")?;
    let said = format!("{refused:#}");
    assert!(said.contains("spec.updateStrategy.partition"), "{said}");
    Ok(())
}

/// Anyone who reads a CloneSet finds them, whatever was written.
#[tokio::test]
async fn defaults_are_written_into_the_object() -> Result<()> {
    let scene = Scene::new("defaults").await?;
    let web = scene.create(Kind::CloneSet, "web", json!({"replicas": 1}));
    let web = web.await?.api().get("web").await?;
    let strategy = &web.data["spec"]["updateStrategy"];
    assert_eq!(strategy["type"], "ReCreate", "{strategy}");
    assert_eq!(strategy["partition"], 0, "{strategy}");
    assert_eq!(strategy["maxUnavailable"], "20%", "{strategy}");
    Ok(())
}

#[tokio::test]
async fn a_paused_one_replaces_nobody_and_is_scaled() -> Result<()> {
    let scene = Scene::new("paused").await?;
    let web = scene.create(Kind::CloneSet, "web", json!({"replicas": 2}));
    let web = web.await?;
    web.has(Counts::all(2)).await?;
    let before = web.pods().await?;
    web.set(json!({"updateStrategy": {"paused": true}})).await?;
    web.release("2", Readiness::Ready).await?;
    let status = web.looked_at().await?;
    assert_eq!(web.pods().await?, before);
    assert_eq!(Counts::of(&status).updated, 0, "{status}");
    web.scale(1).await?;
    let left = Counts {
        updated: 0,
        ..Counts::all(1)
    };
    web.has(left).await?;
    Ok(())
}
