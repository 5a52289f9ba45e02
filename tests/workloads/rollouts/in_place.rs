//! StatefulSets and CloneSets, by their partitions.

use anyhow::{Context, Result, ensure};
use rstest::rstest;
use serde_json::json;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{BatchRollingState, RollingState};
use sluice_tests::workloads::{Counts, Extremes, Kind, Readiness, Replica};
use sluice_tests::{DEADLINE, Writes, poll};

use super::play::{ARMED, Play, in_place, is, partition, updated};

#[rstest]
#[tokio::test]
async fn it_is_rolled_by_its_partition_and_armed_again(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("in-place").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let serving = play.workloads.serving().await?;
    let _controller = play.stage.start().await?;
    play.rollout(in_place(kind, &json!({"numBatches": 2})))
        .await?;
    let status = play.succeeds().await?;
    let goals: Vec<_> = status.batches.iter().map(|batch| batch.goal).collect();
    assert_eq!(goals, [2, 4]);
    db.has(Counts::all(4)).await?;
    let pods = db.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "2"), "{pods:?}");
    let Extremes { fewest_ready, most } = serving.extremes().await?;
    ensure!(fewest_ready == 3 && most <= 5, "{fewest_ready} of {most}");
    // The next template waits again, and another run lets it out.
    db.release("3", Readiness::Ready).await?;
    db.has(updated(0)).await?;
    play.change(json!({"spec": {"revision": "3"}})).await?;
    db.has(Counts::all(4)).await?;
    play.succeeds().await?;
    Ok(())
}

/// Without `rearm` the next template rolls at once.
#[rstest]
#[tokio::test]
async fn it_need_not_be_armed_again(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("unarmed").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut spec = in_place(kind, &json!({"numBatches": 2}));
    spec["rearm"] = json!(false);
    play.rollout(spec).await?;
    play.succeeds().await?;
    db.has(Counts::all(4)).await?;
    db.release("3", Readiness::Ready).await?;
    db.has(Counts::all(4)).await?;
    Ok(())
}

/// What rolls by itself is refused: all pods may be new before a gate is asked.
#[rstest]
#[tokio::test]
async fn what_is_not_armed_is_not_begun(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("not-armed").await?;
    let strategy = match kind {
        Kind::CloneSet => json!({"type": "ReCreate", "partition": 2}),
        Kind::StatefulSet | Kind::Deployment => {
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
        }
    };
    let spec = json!({"replicas": 4, "updateStrategy": strategy});
    let db = play.workloads.create(kind, "db", spec).await?;
    db.has(Counts::all(4)).await?;
    db.release("2", Readiness::Ready).await?;
    db.has(updated(2)).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(in_place(kind, &json!({"numBatches": 2})))
        .await?;
    let held = play.holds("NotArmed").await?.held;
    let told = held.map(|held| held.message).unwrap_or_default();
    ensure!(told.contains("2 of 4 pods have it already"), "{told}");
    db.has(updated(2)).await?;
    db.partition(ARMED).await?;
    play.succeeds().await?;
    db.has(Counts::all(4)).await?;
    Ok(())
}

/// Pods of the old version that are ready are not those of the batch.
#[rstest]
#[tokio::test]
async fn only_new_pods_count(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("counted").await?;
    let db = play.armed(kind).await?;
    db.release("2", Readiness::Broken).await?;
    db.has(updated(0)).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(in_place(kind, &json!({"numBatches": 4})))
        .await?;
    let is_waiting = |status: &RolloutStatus| {
        status.batch_rolling_state == Some(BatchRollingState::BatchVerifying)
    };
    let status = play.until("it to wait for its pod", is_waiting).await?;
    assert_eq!(status.current_batch, Some(0));
    let pods = db
        .until_pods("one to be new", |pods| {
            pods.iter().filter(|pod| pod.version == "2").count() == 1
        })
        .await?;
    assert_eq!(pods.iter().filter(|pod| pod.ready).count(), 3);
    play.stage.settle().await?;
    let status = play.until("it to wait still", is_waiting).await?;
    assert_eq!(status.upgraded_ready_replicas, Some(0));
    for pod in pods.iter().filter(|pod| !pod.ready) {
        play.workloads.turn(&pod.name, Readiness::Ready).await?;
    }
    play.until("the next batch", |status| status.current_batch == Some(1))
        .await?;
    Ok(())
}

/// A template that changes midway reaches only pods that are out, and is told.
#[rstest]
#[tokio::test]
async fn a_template_that_changes_midway_holds_what_follows(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("changed").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("LastBatch").await?;
    db.release("3", Readiness::Ready).await?;
    let has = |version: &str, many: usize| {
        let version = version.to_owned();
        move |pods: &[Replica]| {
            pods.iter().filter(|it| it.version == version).count() == many && pods.len() == 4
        }
    };
    db.until_pods("two to have the third", has("3", 2)).await?;
    play.holds("TargetChanged").await?;
    play.raise().await?;
    play.stage.settle().await?;
    play.holds("TargetChanged").await?;
    db.until_pods("two to be old", has("1", 2)).await?;
    // Another run brings the rest.
    play.change(json!({"spec": {"revision": "3"}})).await?;
    play.succeeds().await?;
    db.until_pods("all to have the third", has("3", 4)).await?;
    Ok(())
}

/// A batch may do without some of its pods.
#[rstest]
#[case::stateful_set(Kind::StatefulSet)]
#[case::clone_set(Kind::CloneSet)]
#[tokio::test]
async fn a_batch_may_leave_pods_unavailable(#[case] kind: Kind) -> Result<()> {
    let play = Play::new("tolerant").await?;
    let db = play.armed(kind).await?;
    db.release("2", Readiness::Broken).await?;
    db.has(updated(0)).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let batches = json!([{"replicas": 1, "maxUnavailable": 1}, {}]);
    let plan = json!({"rolloutBatches": batches, "lastBatchToRollout": 0});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("LastBatch").await?;
    let one = |pods: &[Replica]| {
        let new: Vec<_> = pods.iter().filter(|pod| pod.version == "2").collect();
        new.len() == 1 && !new[0].ready
    };
    db.until_pods("one to be new, and not ready", one).await?;
    Ok(())
}

/// Its last pod is out and not ready, which the plan lets pass. Were it armed now, that pod would come back with the old
/// version when somebody deletes it.
#[tokio::test]
async fn it_is_armed_again_only_when_its_revision_has_moved() -> Result<()> {
    let play = Play::new("rearm").await?;
    let kind = Kind::StatefulSet;
    let db = play.armed(kind).await?;
    db.release("2", Readiness::Broken).await?;
    db.has(updated(0)).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let plan = json!({"rolloutBatches": [{"maxUnavailable": 1}]});
    play.rollout(in_place(kind, &plan)).await?;
    let last = poll(DEADLINE, "the last pod to be out", async || {
        let pods = db.pods().await?;
        for pod in pods.iter().filter(|it| !it.ready && it.name != "db-0") {
            play.workloads.turn(&pod.name, Readiness::Ready).await?;
        }
        let last = pods.into_iter().find(|it| it.name == "db-0");
        last.filter(|it| it.version == "2").context("it is old")
    })
    .await?;
    play.until("its end", is(RollingState::Finalising)).await?;
    play.rests(&controller).await?;
    let status = db.looked_at().await?;
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(partition(&db, kind).await?, 0);
    play.workloads.pods().remove(&last.name).await?;
    let is_back = |pods: &[Replica]| {
        let mut pods = pods.iter().filter(|it| it.name == last.name);
        pods.any(|it| it.uid != last.uid && it.version == "2")
    };
    db.until_pods("the last one to be new again", is_back)
        .await?;
    play.heal(&db, 4).await?;
    play.succeeds().await?;
    assert_eq!(partition(&db, kind).await?, ARMED);
    let status = db.looked_at().await?;
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    Ok(())
}

/// A CloneSet that is paused is as good as armed. It goes on with a partition, and not before a gate lets it.
#[tokio::test]
async fn a_clone_set_may_be_paused_before_it_is_rolled_out() -> Result<()> {
    let play = Play::new("paused").await?;
    let kind = Kind::CloneSet;
    let paused = json!({"type": "ReCreate", "paused": true});
    let spec = json!({"replicas": 4, "updateStrategy": paused});
    let db = play.workloads.create(kind, "db", spec).await?;
    db.has(Counts::all(4)).await?;
    db.release("2", Readiness::Ready).await?;
    db.has(updated(0)).await?;
    play.gate("closed").await?;
    let controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("GatesClosed").await?;
    play.rests(&controller).await?;
    let is_paused = async || {
        let mut object = db.api().get("db").await?;
        let paused = object.data["spec"]["updateStrategy"]["paused"].take();
        Ok::<_, anyhow::Error>(paused == true)
    };
    ensure!(is_paused().await?, "it was let go");
    play.gate("open").await?;
    play.holds("LastBatch").await?;
    ensure!(!is_paused().await?, "it is still paused");
    assert_eq!(partition(&db, kind).await?, 2);
    db.has(updated(2)).await?;
    play.raise().await?;
    play.succeeds().await?;
    db.has(Counts::all(4)).await?;
    // The next template waits for the next run.
    assert_eq!(partition(&db, kind).await?, "100%");
    ensure!(!is_paused().await?, "it is paused again");
    Ok(())
}

/// The new pods stay, and so do the old ones. It is armed again, so that the next template reaches neither.
#[rstest]
#[tokio::test]
async fn what_is_out_stays_where_the_rollout_is_deleted_midway(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("left").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("LastBatch").await?;
    db.has(updated(2)).await?;
    let pods = db.pods().await?;
    play.delete().await?;
    play.gone().await?;
    db.has(updated(2)).await?;
    assert_eq!(db.pods().await?, pods);
    db.release("3", Readiness::Ready).await?;
    db.has(updated(0)).await?;
    assert_eq!(db.pods().await?, pods);
    Ok(())
}
