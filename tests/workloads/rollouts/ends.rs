//! How a run ends: deleted, failed, brought back, lost, given up.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use kube::ResourceExt;
use kube::api::ListParams;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{BatchRollingState, RollingState, marks};
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica};

use super::play::{Play, in_place, in_three, is, is_blocked, of_pair, updated};

#[tokio::test]
async fn a_rollout_that_is_deleted_brings_the_old_version_back() -> Result<()> {
    let play = Play::new("back").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut plan = in_three();
    (plan["lastBatchToRollout"], plan["revertOnDelete"]) = (json!(1), json!(true));
    play.rollout(of_pair(&plan)).await?;
    play.until("it to wait for a person", is_blocked).await?;
    new.has(Counts::all(4)).await?;
    play.delete().await?;
    play.gone().await?;
    old.has(Counts::all(6)).await?;
    new.has(Counts::all(0)).await?;
    Ok(())
}

/// What is out stays out: the claims on the workloads say what the status has said.
#[tokio::test]
async fn another_controller_goes_on_also_where_the_status_is_lost() -> Result<()> {
    let play = Play::new("lost").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let first = play.stage.start().await?;
    let mut plan = in_three();
    plan["lastBatchToRollout"] = json!(0);
    play.rollout(of_pair(&plan)).await?;
    let held = play.until("it to wait for a person", is_blocked).await?;
    let run = held.run.context("no run")?;
    first.stop().await;
    let lost = json!({"status": null});
    play.rollouts().merge_status("web", lost).await?;
    let before = new.pods().await?;
    let _second = play.stage.start().await?;
    play.until("it to wait again", is_blocked).await?;
    assert_eq!(new.pods().await?, before);
    old.has(Counts::all(5)).await?;
    play.raise().await?;
    let done = play.succeeds().await?;
    assert_eq!(done.run.context("no run")?.id, run.id);
    new.has(Counts::all(6)).await?;
    Ok(())
}

/// Where a run stands when its Rollout is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Its first batch waits for a gate.
    Held,
    /// Pods of its first batch do not become ready.
    Rolling,
    /// A batch is out, and the next one waits for a person.
    Half,
    /// It has succeeded.
    Done,
    /// It has failed, halfway.
    Failed,
}

impl Stand {
    /// Brings a run there, of four pods in two batches.
    async fn reach(self, play: &Play, plan: &Value) -> Result<()> {
        let mut plan = plan.clone();
        plan["numBatches"] = json!(2);
        let new = play.workloads.workload(Kind::Deployment, "web-v2");
        if matches!(self, Self::Rolling | Self::Failed) {
            new.release("2", Readiness::Never).await?;
        }
        play.gate(if self == Self::Held { "closed" } else { "open" })
            .await?;
        if self == Self::Half {
            plan["lastBatchToRollout"] = json!(0);
        }
        play.rollout(of_pair(&plan)).await?;
        match self {
            Self::Held => play.holds("GatesClosed").await.map(drop),
            Self::Half => play.holds("LastBatch").await.map(drop),
            Self::Done => play.succeeds().await.map(drop),
            Self::Rolling | Self::Failed => {
                let rolls = |status: &Value| Counts::of(status).size == 2;
                new.until("to have pods", rolls).await?;
                if self == Self::Rolling {
                    return Ok(());
                }
                play.pass(SignedDuration::from_mins(11));
                play.fails("ProgressDeadlineExceeded").await.map(drop)
            }
        }
    }
}

/// The pods of both versions when the Rollout is gone. One that has succeeded is left as it is.
#[rstest]
#[case::held(Stand::Held, [4, 0], [4, 0])]
#[case::rolling(Stand::Rolling, [4, 2], [4, 0])]
#[case::half(Stand::Half, [2, 2], [4, 0])]
#[case::done(Stand::Done, [0, 4], [0, 4])]
#[case::failed(Stand::Failed, [4, 2], [4, 0])]
#[tokio::test]
async fn a_rollout_is_deleted(
    #[case] stand: Stand,
    #[case] left: [i64; 2],
    #[case] back: [i64; 2],
    #[values(false, true)] reverts: bool,
) -> Result<()> {
    let play = Play::new("deleted").await?;
    let (old, new) = play.pair(4).await?;
    let _controller = play.stage.start().await?;
    stand
        .reach(&play, &json!({"revertOnDelete": reverts}))
        .await?;
    play.delete().await?;
    play.gone().await?;
    let [was, is] = if reverts { back } else { left };
    old.has(Counts::all(was)).await?;
    let size = |status: &Value| Counts::of(status).size == is;
    new.until("to have its size", size).await?;
    // Nobody has them any more.
    for object in new.api().list(&ListParams::default()).await?.items {
        let claim = object.annotations().get(marks::CLAIM);
        ensure!(claim.is_none_or(|it| it.contains("ended")), "{claim:?}");
    }
    Ok(())
}

/// Old pods come back before new ones go: where they do not come up, the new ones stay.
#[tokio::test]
async fn new_pods_stay_where_old_ones_do_not_come_up() -> Result<()> {
    let play = Play::new("stay").await?;
    let (old, new) = play.pair(4).await?;
    old.release("1", Readiness::Broken).await?;
    play.heal(&old, 4).await?;
    let _controller = play.stage.start().await?;
    Stand::Half
        .reach(&play, &json!({"revertOnDelete": true}))
        .await?;
    play.delete().await?;
    let half = Counts {
        ready: 2,
        ..Counts::all(4)
    };
    old.has(half).await?;
    play.stage.settle().await?;
    new.has(Counts::all(2)).await?;
    // In the end it is let go, with all pods that there are.
    play.gone_in_time().await?;
    old.has(half).await?;
    new.has(Counts::all(2)).await?;
    Ok(())
}

/// Its first batch is out, and the pods of the second one do not come up.
#[rstest]
#[case::stops("Stop", [2, 4])]
#[case::reverts("Revert", [4, 0])]
#[tokio::test]
async fn a_run_that_fails_may_bring_the_old_version_back(
    #[case] on_failure: &str,
    #[case] left: [i64; 2],
) -> Result<()> {
    let play = Play::new("fails").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut spec = of_pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    spec["onFailure"] = json!(on_failure);
    play.rollout(spec).await?;
    play.heal(&new, 2).await?;
    play.holds("LastBatch").await?;
    play.raise().await?;
    let rolls = |status: &Value| Counts::of(status).size == 4;
    new.until("to have all pods", rolls).await?;
    play.pass(SignedDuration::from_mins(11));
    play.fails("ProgressDeadlineExceeded").await?;
    let [was, is] = left;
    old.has(Counts::all(was)).await?;
    let size = |status: &Value| Counts::of(status).size == is;
    new.until("to have its size", size).await?;
    Ok(())
}

/// A StatefulSet does not heal by itself when a broken template is taken back: its broken pod is deleted.
#[rstest]
#[tokio::test]
async fn a_template_that_breaks_is_taken_back(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("broken").await?;
    let db = play.armed(kind).await?;
    db.release("2", Readiness::Broken).await?;
    db.has(updated(0)).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut spec = in_place(kind, &json!({"numBatches": 2}));
    spec["onFailure"] = json!("Revert");
    play.rollout(spec).await?;
    let breaks = |pods: &[Replica]| pods.iter().any(|pod| pod.version == "2" && !pod.ready);
    db.until_pods("one to be broken", breaks).await?;
    let waits = |status: &RolloutStatus| {
        status.batch_rolling_state == Some(BatchRollingState::BatchVerifying)
    };
    play.until("it to wait for its pods", waits).await?;
    play.pass(SignedDuration::from_mins(11));
    play.fails("ProgressDeadlineExceeded").await?;
    db.has(Counts::all(4)).await?;
    let pods = db.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    // It is armed as before.
    db.release("3", Readiness::Ready).await?;
    db.has(updated(0)).await?;
    Ok(())
}

/// Another run of the same pair: it keeps the total, and goes on from where the first one was given up; or back.
#[tokio::test]
async fn a_run_gives_way_to_another_one() -> Result<()> {
    let play = Play::new("way").await?;
    let (old, new) = play.pair(4).await?;
    let controller = play.stage.start().await?;
    Stand::Half.reach(&play, &json!({})).await?;
    // Back to the old version: the two change places.
    let mut back = of_pair(&json!({"numBatches": 2}));
    let (target, source) = (back["sourceRef"][0].take(), back["targetRef"].take());
    (back["targetRef"], back["sourceRef"][0]) = (target, source);
    back["revision"] = json!("1.0.0");
    play.rollout(back).await?;
    let is_back = |status: &RolloutStatus| {
        let run = status.run.as_ref().filter(|run| run.revision == "1.0.0");
        run.is_some() && is(RollingState::RolloutSucceed)(status)
    };
    let status = play.until("the old version to be back", is_back).await?;
    old.has(Counts::all(4)).await?;
    new.has(Counts::all(0)).await?;
    let states: Vec<_> = status.history.iter().map(|run| run.state).collect();
    let expected = [RollingState::RolloutSucceed, RollingState::RolloutAbandoned];
    assert_eq!(states, expected);
    play.rests(&controller).await
}

#[tokio::test]
async fn a_run_that_has_failed_is_tried_again_when_somebody_asks() -> Result<()> {
    let play = Play::new("again").await?;
    let (old, new) = play.pair(4).await?;
    let _controller = play.stage.start().await?;
    Stand::Failed.reach(&play, &json!({})).await?;
    new.release("2", Readiness::Ready).await?;
    new.has(Counts::all(2)).await?;
    play.stage.settle().await?;
    old.has(Counts::all(4)).await?;
    play.retry("1").await?;
    let status = play.succeeds().await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    let ids: BTreeSet<_> = status.history.iter().map(|run| run.id).collect();
    assert_eq!((ids.len(), status.history.len()), (2, 2));
    Ok(())
}

/// What is deleted in the cluster and is still in Git comes back, and begins nothing by itself.
#[tokio::test]
async fn a_rollout_that_comes_back_does_not_begin_by_itself() -> Result<()> {
    let play = Play::new("comes-back").await?;
    let (old, new) = play.pair(4).await?;
    let _controller = play.stage.start().await?;
    Stand::Half
        .reach(&play, &json!({"revertOnDelete": true}))
        .await?;
    play.delete().await?;
    play.gone().await?;
    old.has(Counts::all(4)).await?;
    let plan = json!({"numBatches": 2});
    play.rollout(of_pair(&plan)).await?;
    play.holds("RunEnded").await?;
    new.has(Counts::all(0)).await?;
    play.retry("1").await?;
    play.succeeds().await?;
    new.has(Counts::all(4)).await?;
    Ok(())
}

/// Flux may prune the target together with the Rollout: the sources get all their pods back.
#[tokio::test]
async fn a_target_that_is_gone_leaves_no_gap() -> Result<()> {
    let play = Play::new("pruned").await?;
    let (old, new) = play.pair(4).await?;
    let _controller = play.stage.start().await?;
    Stand::Half.reach(&play, &json!({})).await?;
    new.delete().await?;
    play.delete().await?;
    play.gone().await?;
    old.has(Counts::all(4)).await?;
    Ok(())
}

/// Nothing of a workload that is gone is brought back, or waited for.
#[rstest]
#[tokio::test]
async fn a_rollout_goes_whose_workload_has_gone_before(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("gone-before").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true});
    play.rollout(in_place(kind, &plan)).await?;
    play.holds("LastBatch").await?;
    db.api().remove("db").await?;
    play.rests(&controller).await?;
    play.delete().await?;
    play.gone().await
}
