//! Gates open and close: at the instant, by one write, and told to whoever reads events.

use anyhow::Result;
use sluice_crds::State;

use super::stage::{OFFICE_HOURS, Stage, at};

#[tokio::test]
async fn a_gate_opens_and_closes_to_the_millisecond() -> Result<()> {
    let stage = Stage::new("transitions", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let controller = stage.start().await?;
    let closed = stage
        .says("production", State::Closed, "OutsideWindow")
        .await?;
    assert_eq!(closed.upcoming[0].at.0, at("2026-11-20T09:00:00Z"));
    assert_eq!(closed.upcoming[0].state, State::Open);
    assert_eq!(closed.since.unwrap().0, at("2026-11-20T08:00:00Z"));
    assert_eq!(closed.observed_generation, Some(1));
    stage.settle().await?;
    let (version, writes) = (
        stage.version("production").await?,
        controller.writes("Gate"),
    );

    stage.set("2026-11-20T08:59:59.999Z");
    stage.settle().await?;
    assert_eq!(stage.version("production").await?, version);
    assert_eq!(controller.writes("Gate"), writes);

    stage.set("2026-11-20T09:00:00Z");
    let open = stage
        .says("production", State::Open, "InsideWindow")
        .await?;
    assert_eq!(open.since.unwrap().0, at("2026-11-20T09:00:00Z"));
    assert_eq!(open.upcoming[0].at.0, at("2026-11-20T17:00:00Z"));
    stage.settle().await?;
    assert_eq!(controller.writes("Gate"), writes + 1);
    controller.stop().await;
    Ok(())
}
