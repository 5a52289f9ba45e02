//! The deadline: what fails a run that does not go on, and where it stands still.

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Kind, Readiness, Workload};

use super::play::{Play, is, of_pair};

/// A pair of which the first batch is on its way, and does not come up.
async fn stuck(play: &Play) -> Result<(Workload, Workload)> {
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("open").await?;
    Ok((old, new))
}

async fn is_out(play: &Play, new: &Workload) -> Result<()> {
    let rolls = |status: &Value| Counts::of(status).size == 2;
    new.until("to have pods", rolls).await?;
    play.until("it to wait for them", |status| {
        status.intent.is_some() && is(RollingState::RollingInBatches)(status)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn pods_that_never_become_ready_stop_a_rollout() -> Result<()> {
    let play = Play::new("never").await?;
    let (old, new) = stuck(&play).await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    is_out(&play, &new).await?;
    play.rests(&controller).await?;
    play.pass(SignedDuration::from_mins(9));
    play.rests(&controller).await?;
    play.until("it to go on", is(RollingState::RollingInBatches))
        .await?;
    play.pass(SignedDuration::from_mins(2));
    play.fails("ProgressDeadlineExceeded").await?;
    // No pod that serves is taken away.
    old.has(Counts::all(4)).await?;
    Ok(())
}

/// More pods that are available are progress.
#[tokio::test]
async fn each_pod_that_comes_moves_the_deadline() -> Result<()> {
    let play = Play::new("slow").await?;
    let (_, new) = stuck(&play).await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    is_out(&play, &new).await?;
    play.pass(SignedDuration::from_mins(9));
    play.rests(&controller).await?;
    let pod = new.pods().await?.remove(0);
    play.workloads.turn(&pod.name, Readiness::Ready).await?;
    new.until("one to be ready", |status| Counts::of(status).ready == 1)
        .await?;
    play.until("it to be seen", |status| {
        status.upgraded_ready_replicas == Some(1)
    })
    .await?;
    play.pass(SignedDuration::from_mins(9));
    play.rests(&controller).await?;
    play.heal(&new, 4).await?;
    play.succeeds().await?;
    Ok(())
}

/// Not counted: a day in a pause, with pods on their way.
#[rstest]
#[tokio::test]
async fn a_pause_stops_the_deadline(#[values(false, true)] down: bool) -> Result<()> {
    let play = Play::new("paused").await?;
    let (old, new) = stuck(&play).await?;
    let mut controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    is_out(&play, &new).await?;
    play.rests(&controller).await?;
    play.pass(SignedDuration::from_mins(8));
    let pause = |paused| json!({"spec": {"rolloutPlan": {"paused": paused}}});
    play.change(pause(true)).await?;
    play.holds("Paused").await?;
    // Nobody need be there to see how it passes, nor how it ends.
    if down {
        controller.stop().await;
        play.pass(SignedDuration::from_hours(24));
        play.change(pause(false)).await?;
        controller = play.stage.start().await?;
    } else {
        play.pass(SignedDuration::from_hours(24));
        play.rests(&controller).await?;
        play.change(pause(false)).await?;
    }
    play.until("it to go on", |status| status.held.is_none())
        .await?;
    play.pass(SignedDuration::from_mins(1));
    play.rests(&controller).await?;
    play.until("it to go on", is(RollingState::RollingInBatches))
        .await?;
    play.pass(SignedDuration::from_mins(2));
    play.fails("ProgressDeadlineExceeded").await?;
    old.has(Counts::all(4)).await?;
    Ok(())
}

/// A controller that was away makes no new deadline.
#[tokio::test]
async fn a_restart_changes_nothing_of_the_deadline() -> Result<()> {
    let play = Play::new("restart").await?;
    let (old, new) = stuck(&play).await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    is_out(&play, &new).await?;
    play.rests(&controller).await?;
    play.pass(SignedDuration::from_mins(8));
    play.rests(&controller).await?;
    controller.stop().await;
    play.pass(SignedDuration::from_mins(3));
    let _controller = play.stage.start().await?;
    play.fails("ProgressDeadlineExceeded").await?;
    old.has(Counts::all(4)).await?;
    Ok(())
}

/// Nothing fails by a clock that is ahead. Once it is right, the run has all its time again.
#[tokio::test]
async fn a_clock_that_is_wrong_fails_nothing() -> Result<()> {
    let play = Play::new("clock").await?;
    let (old, new) = stuck(&play).await?;
    let clock = play.stage.clock();
    clock.set(SystemClock.now());
    let mut settings = play.stage.settings();
    settings.compare_clocks = true;
    let _controller = play.stage.start_with(settings).await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    is_out(&play, &new).await?;
    clock.step(SystemClock.now() + SignedDuration::from_hours(1));
    let has_deadline = |status: &RolloutStatus| status.deadline.is_some();
    let status = play
        .until("no deadline", |status| !has_deadline(status))
        .await?;
    assert_eq!(status.rolling_state, Some(RollingState::RollingInBatches));
    clock.step(SystemClock.now());
    let status = play.until("a deadline", has_deadline).await?;
    assert_eq!(status.rolling_state, Some(RollingState::RollingInBatches));
    let deadline = status.deadline.context("no deadline")?.0;
    let left = deadline.duration_since(play.stage.now());
    ensure!((9..=10).contains(&left.as_mins()), "{left}");
    play.heal(&new, 4).await?;
    play.succeeds().await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// A batch that waits for a gate a day long fails of that neither then nor afterwards.
#[tokio::test]
async fn a_closed_gate_stops_the_deadline() -> Result<()> {
    let play = Play::new("closed").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(of_pair(&plan)).await?;
    play.holds("LastBatch").await?;
    play.gate("closed").await?;
    play.raise().await?;
    play.holds("GatesClosed").await?;
    play.pass(SignedDuration::from_hours(24));
    play.rests(&controller).await?;
    play.holds("GatesClosed").await?;
    play.gate("open").await?;
    play.succeeds().await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// Nothing tells that a pod has been ready for long enough by the clock of the controller, which is behind that of
/// the cluster: when its StatefulSet counts it, that is not so yet.
#[tokio::test]
async fn pods_that_have_to_be_ready_for_a_while_are_counted_by_time_alone() -> Result<()> {
    let play = Play::new("soak").await?;
    let db = play.armed(Kind::StatefulSet).await?;
    let patch = json!({"spec": {"minReadySeconds": 1}});
    db.api().merge("db", &patch).await?;
    db.looked_at().await?;
    let clock = play.stage.clock();
    let created = db.api().get("db").await?.metadata.creation_timestamp;
    let created = created.context("it has no age")?.0;
    clock.step(created - SignedDuration::from_mins(1));
    let _controller = play.stage.start().await?;
    play.rollout(json!({
        "targetRef": {"kind": "StatefulSet", "name": "db"}, "revision": "2",
        "rolloutPlan": {"numBatches": 1},
    }))
    .await?;
    // All pods are new and available, and nothing changes any more.
    db.has(Counts::all(4)).await?;
    play.stage.settle().await?;
    play.until("it to wait for pods", is(RollingState::RollingInBatches))
        .await?;
    clock.step(created + SignedDuration::from_mins(5));
    play.succeeds().await?;
    Ok(())
}
