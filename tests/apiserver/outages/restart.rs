//! The API server goes away and comes back.

use anyhow::{Result, ensure};
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::{Timestamp, ToSpan};
use sluice_crds::{Gate, GateSpec, State};
use sluice_tests::{Options, Writes, alone, poll};

use crate::stage::{DEADLINE, Stage};

#[tokio::test]
async fn what_fell_due_while_the_api_server_was_away_is_written_when_it_is_back() -> Result<()> {
    let mut plane = alone(Options::default()).await?;
    let stage = Stage::on(plane.cluster(), "restart", "2026-11-20T12:00:00Z").await?;
    let controller = stage.start_in_real_time(stage.client()).await?;
    let start = stage.due_soon("due").await?;
    plane.stop_api_server();
    clock_shows(start + 500.milliseconds()).await?;
    // The decision is right all the same: it takes no request.
    let gate = controller.world().gates.objects().remove(0);
    assert_eq!(controller.world().answer(&gate, start).state, State::Open);

    plane.start_api_server().await?;
    let open = stage.says("due", State::Open, "InsideWindow").await?;
    assert_eq!(open.since.unwrap().0, start);
    // The server has forgotten all changes before its start, and the watches go on.
    let fresh = Gate::new("fresh", GateSpec::default());
    stage.gates().add(&fresh).await?;
    poll(DEADLINE, "the watches to go on", async || {
        let status = stage.gates().get("fresh").await?.status;
        ensure!(status.is_some(), "no status");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    stage.says("fresh", State::Closed, "Default").await?;
    Ok(())
}

/// Waits until the clock of the machine shows `instant`.
async fn clock_shows(instant: Timestamp) -> Result<()> {
    poll(DEADLINE, "an instant", async || {
        let now = SystemClock.now();
        ensure!(now >= instant, "{now}");
        Ok(())
    })
    .await
}
