//! `wait`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluice_tests::Writes;

use super::{GATES, Going, says};
use crate::stage::Stage;

#[tokio::test]
async fn anyone_who_waits_is_told_why_and_when_it_is_over() -> Result<()> {
    let stage = Stage::new("cli-wait", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let turn = async |spec: Value| {
        let patch = json!({ "spec": { "manual": spec } });
        stage.gatekeepers().merge("off", &patch).await
    };
    let arguments = ["wait", "closed", "--for", "open"];
    let mut waiting = Going::start(&stage, "admin", &arguments)?;

    let first = waiting.line().await?;
    ensure!(
        first.starts_with("waiting: closed is Closed (Manual): off: switched closed"),
        "{first}"
    );
    ensure!(first.contains("(database restore)"), "{first}");
    turn(json!({"state": "closed", "reason": "almost done"})).await?;
    let second = waiting.line().await?;
    ensure!(second.contains("(almost done)"), "{second}");
    turn(json!({"state": "open", "reason": "done"})).await?;
    let last = waiting.line().await?;
    ensure!(last.starts_with("closed is Open (AllAdmit): "), "{last}");
    waiting.ends_well().await
}

#[tokio::test]
async fn waiting_ends_at_once_or_in_time() -> Result<()> {
    let stage = Stage::new("cli-wait", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    says(
        &stage,
        "admin",
        &["wait", "open", "--for", "open"],
        0,
        "open is Open",
    )
    .await?;
    let up = ["wait", "closed", "--timeout", "300ms"];
    says(
        &stage,
        "admin",
        &up,
        1,
        "closed has not become Open within 300ms",
    )
    .await?;
    let gone = ["wait", "gone"];
    says(&stage, "admin", &gone, 2, "there is no gate `gone`").await?;
    Ok(())
}

/// A window that opens in a moment: nothing changes on the server, only the time.
#[tokio::test]
async fn anyone_who_waits_is_woken_by_the_clock() -> Result<()> {
    let stage = Stage::new("cli-clock", "2026-11-20T12:00:00Z").await?;
    let until = jiff::Timestamp::from_second(stage_now().as_second() + 3)?;
    stage
        .apply(&format!(
            "{{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, metadata: {{name: soon}}, spec: {{manual: {{state: closed, until: '{until}'}}}}}}\n---\n\
             {{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {{name: soon}}, spec: {{gatekeepers: [{{name: soon}}]}}}}\n"
        ))
        .await?;
    says(
        &stage,
        "admin",
        &["wait", "soon", "--timeout", "60s"],
        0,
        "soon is Open",
    )
    .await?;
    let late = stage_now().duration_since(until);
    ensure!(
        !late.is_negative() && late < jiff::SignedDuration::from_secs(30),
        "{late}"
    );
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "the program under test goes by the clock of this machine"
)]
fn stage_now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
