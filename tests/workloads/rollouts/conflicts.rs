//! Others who write to the workloads of a run, or have them.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind};

use super::play::{Play, in_place, is, of_pair, partition, updated};

mod mid_batch;

fn half() -> Value {
    of_pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}))
}

fn autoscalers(play: &Play) -> Api<HorizontalPodAutoscaler> {
    Api::namespaced(play.stage.client(), play.stage.namespace())
}

/// One that scales a Deployment. No controller of it runs here.
async fn scaled(play: &Play, name: &str) -> Result<()> {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 9},
    });
    autoscalers(play)
        .add(&serde_json::from_value(autoscaler)?)
        .await?;
    Ok(())
}

#[tokio::test]
async fn an_autoscaler_holds_the_start() -> Result<()> {
    let play = Play::new("scaled").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    scaled(&play, "web-v1").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    let held = play.holds("Autoscaler").await?.held.context("not held")?;
    let by = held.by.as_deref();
    assert_eq!(by, Some("HorizontalPodAutoscaler scaler"));
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    autoscalers(&play).remove("scaler").await?;
    play.succeeds().await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// An autoscaler that is given something else to scale is out of the way.
#[tokio::test]
async fn an_autoscaler_that_scales_something_else_holds_nothing() -> Result<()> {
    let play = Play::new("scales-else").await?;
    let (_, new) = play.pair(2).await?;
    play.gate("open").await?;
    scaled(&play, "web-v1").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.holds("Autoscaler").await?;
    let other = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    autoscalers(&play).merge("scaler", other).await?;
    play.succeeds().await?;
    new.has(Counts::all(2)).await?;
    Ok(())
}

#[tokio::test]
async fn an_autoscaler_that_appears_midway_holds_what_follows() -> Result<()> {
    let play = Play::new("scaled-midway").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(half()).await?;
    play.holds("LastBatch").await?;
    scaled(&play, "web-v2").await?;
    play.holds("Autoscaler").await?;
    play.raise().await?;
    play.stage.settle().await?;
    play.holds("Autoscaler").await?;
    new.has(Counts::all(2)).await?;
    old.has(Counts::all(2)).await?;
    autoscalers(&play).remove("scaler").await?;
    play.succeeds().await?;
    new.has(Counts::all(4)).await?;
    Ok(())
}

#[tokio::test]
async fn a_workload_belongs_to_one_rollout_at_a_time() -> Result<()> {
    let play = Play::new("claimed").await?;
    let (_, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(half()).await?;
    play.holds("LastBatch").await?;
    let mut other = of_pair(&json!({"numBatches": 1}));
    other["revision"] = json!("3.0.0");
    play.named("second", other).await?;
    let is_held = |status: &RolloutStatus| {
        let held = status.held.as_ref();
        held.is_some_and(|it| it.reason == "ClaimedBy" && it.by.as_deref() == Some("Rollout web"))
    };
    play.until_of("second", "the second one to be held", is_held)
        .await?;
    new.has(Counts::all(2)).await?;
    // Its turn comes when the first one is gone, which leaves half of it done.
    play.delete().await?;
    play.gone().await?;
    let is_done = is(RollingState::RolloutSucceed);
    play.until_of("second", "the second one to be done", is_done)
        .await?;
    new.has(Counts::all(4)).await?;
    Ok(())
}

/// Each would count the pods of the other as its own.
#[tokio::test]
async fn selectors_that_overlap_hold_the_start() -> Result<()> {
    let play = Play::new("overlap").await?;
    let old = play.deployment("web-v1", 2).await?;
    let mut template = old.api().get("web-v1").await?.data["spec"]["template"].take();
    template["metadata"]["labels"]["part"] = json!("shop");
    let selector = json!({"matchLabels": {"part": "shop"}});
    let spec = json!({"replicas": 0, "template": template, "selector": selector});
    let new = play.workloads.create(Kind::Deployment, "web-v2", spec);
    let new = new.await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.holds("SelectorsOverlap").await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    Ok(())
}

/// Nobody fights: what somebody else has written stays, until they take it back or somebody asks for another run.
#[tokio::test]
async fn a_size_that_somebody_else_writes_holds_what_follows() -> Result<()> {
    let play = Play::new("foreign").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(half()).await?;
    play.holds("LastBatch").await?;
    new.scale(3).await?;
    let held = play.holds("FieldOverwritten").await?.held;
    let told = held.context("not held")?.message;
    ensure!(
        told.contains("the replicas of Deployment web-v2 to 3"),
        "{told}"
    );
    play.raise().await?;
    play.stage.settle().await?;
    new.has(Counts::all(3)).await?;
    old.has(Counts::all(2)).await?;
    new.scale(2).await?;
    play.succeeds().await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// The total stays, unless there are more old pods by now.
#[rstest]
#[case::of_the_target("web-v2", 3, 4)]
#[case::of_the_source("web-v1", 3, 4)]
#[case::beyond_the_total("web-v1", 5, 5)]
#[tokio::test]
async fn another_run_takes_a_foreign_size_as_it_is(
    #[case] of: &str,
    #[case] size: u32,
    #[case] total: i64,
) -> Result<()> {
    let play = Play::new("foreign-retry").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(half()).await?;
    play.holds("LastBatch").await?;
    let scaled = play.workloads.workload(Kind::Deployment, of);
    scaled.scale(size).await?;
    play.holds("FieldOverwritten").await?;
    play.raise().await?;
    play.retry("1").await?;
    play.succeeds().await?;
    new.has(Counts::all(total)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// A StatefulSet that somebody scales while it is updated.
#[tokio::test]
async fn replicas_that_change_under_an_update_hold_it() -> Result<()> {
    let play = Play::new("foreign-db").await?;
    let db = play.armed(Kind::StatefulSet).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(in_place(Kind::StatefulSet, &plan)).await?;
    play.holds("LastBatch").await?;
    db.scale(5).await?;
    play.holds("FieldOverwritten").await?;
    play.raise().await?;
    play.stage.settle().await?;
    db.scale(4).await?;
    play.succeeds().await?;
    db.has(Counts::all(4)).await?;
    Ok(())
}

/// A partition that somebody has written stays as well. Lowered, more pods are out than the batch has let out: another
/// run goes on from there.
#[rstest]
#[case::raised(3, 2, false)]
#[case::lowered(1, 3, true)]
#[tokio::test]
async fn a_partition_that_somebody_else_writes_holds_what_follows(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
    #[case] written: i64,
    #[case] out: i64,
    #[case] another_run: bool,
) -> Result<()> {
    let play = Play::new("foreign-part").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("LastBatch").await?;
    db.partition(written).await?;
    let held = play.holds("FieldOverwritten").await?.held;
    let told = held.context("not held")?.message;
    let words = format!(
        "the partition of {} db to {written}, and the rollout has written 2",
        kind.resource().kind
    );
    ensure!(told.contains(&words), "{told}");
    play.raise().await?;
    play.rests(&controller).await?;
    play.holds("FieldOverwritten").await?;
    db.has(updated(out)).await?;
    assert_eq!(partition(&db, kind).await?, written);
    match another_run {
        true => play.retry("1").await?,
        false => db.partition(2).await?,
    }
    play.succeeds().await?;
    db.has(Counts::all(4)).await?;
    Ok(())
}
