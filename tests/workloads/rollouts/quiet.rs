//! What is not written: nothing, while nothing happens.

use anyhow::{Result, ensure};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_tests::controller::InProcess;
use sluice_tests::workloads::{Counts, Kind, Readiness};

use super::play::{Play, in_place, of_pair, updated};

/// Half an hour, in steps after each of which everything that is due was looked at.
async fn an_idle_time(play: &Play, controller: &InProcess) -> Result<()> {
    for _ in 0..30 {
        play.pass(SignedDuration::from_mins(1));
        play.rests(controller).await?;
    }
    Ok(())
}

/// What a run waits for.
#[derive(Clone, Copy, Debug)]
enum Waits {
    ForAGate,
    ForAPerson,
    WhilePaused,
    ForAnother,
    Armed,
}

impl Waits {
    fn plan(self) -> Value {
        match self {
            Self::ForAGate | Self::ForAnother | Self::Armed => json!({"numBatches": 2}),
            Self::ForAPerson => json!({"numBatches": 2, "lastBatchToRollout": 0}),
            Self::WhilePaused => json!({"numBatches": 2, "paused": true}),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::ForAGate => "GatesClosed",
            Self::ForAPerson => "LastBatch",
            Self::WhilePaused => "Paused",
            Self::ForAnother => "ClaimedBy",
            Self::Armed => "NotArmed",
        }
    }
}

#[rstest]
#[tokio::test]
async fn nothing_is_written_while_a_rollout_is_held(
    #[values(
        Waits::ForAGate,
        Waits::ForAPerson,
        Waits::WhilePaused,
        Waits::ForAnother,
        Waits::Armed
    )]
    waits: Waits,
) -> Result<()> {
    let play = Play::new("held").await?;
    let (old, new) = play.pair(4).await?;
    play.gate(if matches!(waits, Waits::ForAGate) {
        "closed"
    } else {
        "open"
    })
    .await?;
    let controller = play.stage.start().await?;
    let spec = match waits {
        Waits::Armed => {
            let half = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
            let spec = json!({"replicas": 4, "updateStrategy": half});
            let db = play.workloads.create(Kind::StatefulSet, "db", spec).await?;
            db.has(Counts::all(4)).await?;
            db.release("2", Readiness::Ready).await?;
            db.has(updated(2)).await?;
            in_place(Kind::StatefulSet, &waits.plan())
        }
        Waits::ForAnother => {
            let mut first = of_pair(&Waits::ForAPerson.plan());
            first["revision"] = json!("1.9.0");
            play.named("first", first).await?;
            new.has(Counts::all(2)).await?;
            old.has(Counts::all(2)).await?;
            of_pair(&waits.plan())
        }
        Waits::ForAGate | Waits::ForAPerson | Waits::WhilePaused => of_pair(&waits.plan()),
    };
    play.rollout(spec).await?;
    play.holds(waits.reason()).await?;
    play.rests(&controller).await?;
    let before = play.writes(&controller).await?;
    an_idle_time(&play, &controller).await?;
    assert_eq!(play.writes(&controller).await?, before);
    Ok(())
}

/// Of one that is over, neither.
#[tokio::test]
async fn nothing_is_written_after_the_end() -> Result<()> {
    let play = Play::new("over").await?;
    let (_, new) = play.pair(4).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    play.rests(&controller).await?;
    let before = play.writes(&controller).await?;
    an_idle_time(&play, &controller).await?;
    // Not even when somebody takes a pod, or scales what was rolled out.
    new.scale(5).await?;
    new.has(Counts::all(5)).await?;
    an_idle_time(&play, &controller).await?;
    assert_eq!(play.writes(&controller).await?, before);
    Ok(())
}

/// A batch costs what it has to: the statuses of its states, a patch for each half, and no more.
#[tokio::test]
async fn a_batch_costs_no_more_than_it_has_to() -> Result<()> {
    let play = Play::new("cost").await?;
    play.pair(4).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2, "lastBatchToRollout": 0})))
        .await?;
    play.holds("LastBatch").await?;
    play.rests(&controller).await?;
    let patches = controller.writes("Deployment").await?;
    let statuses = controller.writes("Rollout").await?;
    play.raise().await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    play.rests(&controller).await?;
    // Two halves, and the release of both.
    assert_eq!(controller.writes("Deployment").await? - patches, 4);
    let statuses = controller.writes("Rollout").await? - statuses;
    ensure!(statuses <= 8, "{statuses} writes of the Rollout");
    Ok(())
}
