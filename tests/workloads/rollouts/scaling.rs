//! One workload alone: its first pods, more of them, and fewer.

use anyhow::Result;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::workloads::{Counts, Kind, Readiness};

use super::play::{Play, is, updated};

fn alone(kind: Kind, revision: &str, plan: &Value) -> Value {
    json!({
        "targetRef": {"kind": kind.resource().kind, "name": "db"}, "revision": revision,
        "gates": {"refs": [{"name": "office"}]}, "rolloutPlan": plan,
    })
}

fn goals(status: &RolloutStatus) -> Vec<i32> {
    status.batches.iter().map(|batch| batch.goal).collect()
}

/// First from nothing, then more, then fewer: three runs of one Rollout, one after another.
async fn is_scaled(kind: Kind) -> Result<()> {
    let play = Play::new("scale").await?;
    let db = play.workloads.create(kind, "db", json!({"replicas": 0}));
    let db = db.await?;
    db.has(Counts::all(0)).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    let batches = json!([{"replicas": 1}, {"replicas": "50%"}, {}]);
    let sizes = |size| json!({"targetSize": size, "rolloutBatches": batches});
    play.rollout(alone(kind, "1", &sizes(4))).await?;
    play.holds("GatesClosed").await?;
    db.has(Counts::all(0)).await?;
    play.gate("open").await?;
    assert_eq!(goals(&play.succeeds().await?), [1, 3, 4]);
    db.has(Counts::all(4)).await?;
    for (revision, size, expected) in [("2", 12, [5, 9, 12]), ("3", 4, [11, 7, 4])] {
        let spec = json!({"revision": revision, "rolloutPlan": {"targetSize": size}});
        play.change(json!({ "spec": spec })).await?;
        let is_done = |status: &RolloutStatus| {
            let run = status.run.as_ref().filter(|run| run.revision == revision);
            run.is_some() && is(RollingState::RolloutSucceed)(status)
        };
        let status = play.until("it to be scaled", is_done).await?;
        assert_eq!(goals(&status), expected);
        db.has(Counts::all(size)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_deployment_is_scaled_batch_by_batch() -> Result<()> {
    is_scaled(Kind::Deployment).await
}

#[tokio::test]
async fn a_stateful_set_is_scaled_batch_by_batch() -> Result<()> {
    is_scaled(Kind::StatefulSet).await
}

#[tokio::test]
async fn a_clone_set_is_scaled_batch_by_batch() -> Result<()> {
    is_scaled(Kind::CloneSet).await
}

/// The same plan is rolled out twice in a row: the second time from where the first one has left it.
#[tokio::test]
async fn two_versions_go_out_one_after_the_other() -> Result<()> {
    let play = Play::new("twice").await?;
    let kind = Kind::StatefulSet;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2});
    play.rollout(alone(kind, "2", &plan)).await?;
    play.succeeds().await?;
    for version in ["3", "4"] {
        db.release(version, Readiness::Ready).await?;
        db.has(updated(0)).await?;
        play.change(json!({"spec": {"revision": version}})).await?;
        db.has(Counts::all(4)).await?;
        let status = play.succeeds().await?;
        assert_eq!(goals(&status), [2, 4]);
    }
    let status = play.succeeds().await?;
    let revisions: Vec<_> = status.history.iter().map(|run| &*run.revision).collect();
    assert_eq!(revisions, ["4", "3", "2"]);
    Ok(())
}
