//! What the account of a Rollout may do, and what it may not.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_tests::workloads::Kind;

use super::play::{Play, in_place, is_blocked, of_pair, says, updated};

#[tokio::test]
async fn what_the_account_may_not_do_is_told_with_the_remedy() -> Result<()> {
    let play = Play::without_rights("rights").await?;
    let (_old, new) = play.pair(2).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    let stalled = |status: &RolloutStatus| {
        says(status, "Stalled").is_some_and(|(status, _)| status == "True")
    };
    let status = play.until("it to say so", stalled).await?;
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let told = &ready.context("no Ready")?.message;
    let remedy = "kubectl create rolebinding sluice-rollout";
    ensure!(told.contains(remedy), "{told}");
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    Ok(())
}

/// In a namespace that is deleted, the rights may go before the Rollout.
#[tokio::test]
async fn a_rollout_that_is_deleted_goes_also_where_its_account_may_nothing() -> Result<()> {
    let play = Play::new("going").await?;
    let db = play.armed(Kind::StatefulSet).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true});
    play.rollout(in_place(Kind::StatefulSet, &plan)).await?;
    play.until("it to wait for a person", is_blocked).await?;
    db.has(updated(2)).await?;
    play.grant(&[]).await?;
    play.delete().await?;
    play.gone_in_time().await
}
