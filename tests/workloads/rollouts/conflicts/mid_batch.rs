//! What others do while the pods of a batch are on their way.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::json;
use sluice_crds::rollout::BatchRollingState;
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Readiness, Workload};

use super::super::play::{Play, of_pair, says};
use super::{autoscalers, scaled};

/// What somebody else does.
#[derive(Clone, Copy, Debug)]
enum Meddling {
    WithTheTarget,
    WithTheSource,
    ByAnAutoscaler,
}

impl Meddling {
    async fn begin(self, play: &Play, (old, new): (&Workload, &Workload)) -> Result<()> {
        match self {
            Self::WithTheTarget => new.scale(3).await,
            Self::WithTheSource => old.scale(3).await,
            Self::ByAnAutoscaler => scaled(play, "web-v1").await,
        }
    }

    async fn end(self, play: &Play, (old, new): (&Workload, &Workload)) -> Result<()> {
        match self {
            Self::WithTheTarget => new.scale(2).await,
            Self::WithTheSource => old.scale(4).await,
            Self::ByAnAutoscaler => Ok(autoscalers(play).remove("scaler").await?),
        }
    }
}

/// What was let out is not carried to its end: the other half of the batch would take pods away of which nobody knows
/// any more whether they are too many. It goes on by itself when they are as they were; the deadline stands still.
#[rstest]
#[case::the_target(
    Meddling::WithTheTarget,
    "FieldOverwritten",
    "the replicas of Deployment web-v2 to 3, and the rollout has written 2",
    [4, 3]
)]
#[case::the_source(
    Meddling::WithTheSource,
    "FieldOverwritten",
    "the replicas of Deployment web-v1 to 3, and the rollout has written 4",
    [3, 2]
)]
#[case::an_autoscaler(
    Meddling::ByAnAutoscaler,
    "Autoscaler",
    "the HorizontalPodAutoscaler scaler scales Deployment web-v1; delete it",
    [4, 2]
)]
#[tokio::test]
async fn what_others_do_in_the_middle_of_a_batch_stops_it(
    #[case] meddling: Meddling,
    #[case] reason: &str,
    #[case] words: &str,
    #[case] sizes: [i64; 2],
    #[values(false, true)] asks_again: bool,
) -> Result<()> {
    let play = Play::new("mid-batch").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    new.until("to have pods", |status| Counts::of(status).size == 2)
        .await?;
    meddling.begin(&play, (&old, &new)).await?;
    let status = play.holds(reason).await?;
    let told = status.held.clone().context("not held")?.message;
    ensure!(told.contains(words), "{told}");
    assert_eq!(says(&status, "Stalled"), Some(("True", reason)));
    assert_eq!(
        status.batch_rolling_state,
        Some(BatchRollingState::BatchInRolling)
    );
    // Its pods are ready now, and the old ones stay.
    let [was, is] = sizes;
    play.heal(&new, is).await?;
    play.pass(SignedDuration::from_mins(11));
    play.rests(&controller).await?;
    play.holds(reason).await?;
    old.has(Counts::all(was)).await?;
    new.has(Counts::all(is)).await?;
    if asks_again {
        play.retry("1").await?;
        play.rests(&controller).await?;
    }
    // Another run takes sizes as they are, and waits for an autoscaler as well.
    if !asks_again || reason == "Autoscaler" {
        play.holds(reason).await?;
        meddling.end(&play, (&old, &new)).await?;
    }
    play.heal(&new, 4).await?;
    play.succeeds().await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}
