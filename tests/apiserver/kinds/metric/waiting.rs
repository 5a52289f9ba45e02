//! What waits behind a gate that is measured.

use super::*;
use crate::gated_sources::scene::{Scene, commit};

#[tokio::test]
async fn what_waits_is_not_written_anew_with_each_value() -> Result<()> {
    let prometheus = prometheus(Access::default()).await?;
    prometheus.set("errors", 0.5).await?;
    let scene = Scene::new("gated-metric").await?;
    let stage = &scene.stage;
    let errors = errors(&prometheus, json!({}));
    stage.apply(&kept("production", &errors)).await?;
    scene.upstream("main", &commit('a')).await?;
    scene.gated(json!({})).await?;
    let controller = stage.start_with_egress().await?;
    poll(DEADLINE, "to be held back by the value", async || {
        let status = scene.get().await?.status.context("no status")?;
        let decision = status.last_decision.context("nothing was decided")?;
        ensure!(decision.checked[0].reason == "OutOfRange", "{decision:?}");
        // That the value runs out is no change to foretell.
        ensure!(decision.next.is_none(), "{decision:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    stage.settle().await?;

    let before = controller.writes("GatedSource").await?;
    for value in [0.6, 0.7] {
        prometheus.set("errors", value).await?;
        stage.pass(ROUND);
        stage.knows(&controller, "production", value).await?;
        stage.settle().await?;
    }
    let after = controller.writes("GatedSource").await?;
    assert_eq!(after, before);

    prometheus.set("errors", 0.01).await?;
    stage.pass(ROUND);
    scene.pinned(&commit('a')).await?;
    Ok(())
}
