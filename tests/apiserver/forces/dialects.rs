//! The requests of the gating RFC, beside our own annotations.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluice_crds::State;

use crate::stage::{OFFICE_HOURS, Stage, at, message};

const OPEN: &str = "open.gate.fluxcd.io/requestedAt";
const CLOSE: &str = "close.gate.fluxcd.io/requestedAt";

#[tokio::test]
async fn the_requests_of_the_rfc_last_for_the_window_of_the_gate() -> Result<()> {
    let stage = Stage::installed("dialects", "2026-11-20T19:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let _controller = stage.start().await?;
    stage.out_of_hours().await?;

    // From an instant a little ago.
    let open = json!({OPEN: "2026-11-20T18:59:30Z", "sluice.dev/force-by": "admin"});
    stage.annotate("production", open).await?;
    let forced = stage.says("production", State::Open, "Forced").await?;
    let effective = forced.r#override.unwrap();
    assert_eq!(effective.since.0, at("2026-11-20T18:59:30Z"));
    assert_eq!(effective.until.0, at("2026-11-20T19:59:30Z"));
    assert_eq!(effective.by, "admin");

    // Closed beats open, whichever came later.
    stage
        .annotate("production", json!({CLOSE: "2026-11-20T18:30:00Z"}))
        .await?;
    stage.says("production", State::Closed, "Forced").await?;
    stage.set("2026-11-20T19:30:00Z");
    stage.says("production", State::Open, "Forced").await?;
    stage.set("2026-11-20T19:59:29.999Z");
    stage.settle().await?;
    stage.says("production", State::Open, "Forced").await?;
    stage.set("2026-11-20T19:59:30Z");
    stage.out_of_hours().await?;
    Ok(())
}

#[tokio::test]
async fn a_request_may_be_a_minute_ahead_and_no_more() -> Result<()> {
    let stage = Stage::installed("ahead", "2026-11-20T19:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let _controller = stage.start().await?;
    let request = |at: &str| -> Value { json!({OPEN: at, "sluice.dev/force-by": "admin"}) };
    stage
        .annotate("production", request("2026-11-20T19:01:01Z"))
        .await?;
    let told = |words: &'static str| {
        stage.until("production", words, move |status| {
            message(status).contains(words)
        })
    };
    let gate = told("metadata.annotations[open.gate.fluxcd.io/requestedAt]: Fri 2026-11-20 19:01:01 UTC is in the future; write the current time").await?;
    ensure!(gate.status.unwrap().state == Some(State::Closed));

    // Within what clocks may be apart it is in force from its instant on.
    stage
        .annotate("production", request("2026-11-20T19:00:45Z"))
        .await?;
    stage.settle().await?;
    stage.out_of_hours().await?;
    stage.set("2026-11-20T19:00:45Z");
    stage.says("production", State::Open, "Forced").await?;
    Ok(())
}
