//! Whether artifacts are served: by the leader, and by nobody else.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;
use tempfile::TempDir;

use super::stage::{DEADLINE, Stage};
use super::told::get;

async fn start(stage: &Stage, folder: &TempDir, standby: bool) -> Result<(InProcess, SocketAddr)> {
    let mut settings = stage.settings();
    settings.standby = standby;
    settings.storage_path = Some(folder.path().to_owned());
    settings.storage_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
    let controller = stage.start_with(settings).await?;
    let served = controller.artifacts().context("no artifacts are served")?;
    Ok((controller, served))
}

async fn answers(served: SocketAddr, path: &str, expected: (u16, &str)) -> Result<()> {
    poll(DEADLINE, "the answer", async || {
        let (code, text) = get(served, path).await?;
        ensure!((code, text.as_str()) == expected, "{code}: {text}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[tokio::test]
async fn artifacts_are_served_by_the_leader_alone() -> Result<()> {
    let stage = Stage::new("artifacts", "2026-11-20T08:00:00Z").await?;
    let plain = stage.start_with(stage.settings()).await?;
    assert_eq!(plain.artifacts(), None);
    plain.stop().await;

    let folder = tempfile::tempdir()?;
    let path = "/gatedsource/apps/web/latest.tar.gz";
    let (leader, served) = start(&stage, &folder, false).await?;
    answers(served, "/readyz", (200, "ok\n")).await?;
    answers(served, path, (404, "")).await?;
    leader.stop().await;
    assert!(get(served, "/readyz").await.is_err());

    let (standby, served) = start(&stage, &folder, true).await?;
    let not_leading = (503, "this replica does not lead\n");
    answers(served, "/readyz", not_leading).await?;
    answers(served, path, not_leading).await?;
    standby.stop().await;
    Ok(())
}
