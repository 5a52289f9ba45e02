//! What somebody asks of a gated source: a look now, as `flux reconcile` does.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::GatedSource;
use sluice_tests::{Writes, poll};

use super::scene::{Scene, commit};
use crate::stage::DEADLINE;

const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";

/// The request reaches the child as it was written, so that Flux fetches it now; it is answered; and each
/// costs one write.
#[tokio::test]
async fn a_request_is_answered_and_handed_on_to_the_child() -> Result<()> {
    let scene = Scene::open("gated-asked").await?;
    scene.gated(json!({})).await?;
    let controller = scene.stage.start().await?;
    scene.serves(&commit('a')).await?;
    // A closed gate is no reason not to look.
    scene.gate("closed").await?;
    scene.stage.settle().await?;
    let writes = async || -> Result<(u64, u64)> {
        Ok((
            controller.writes("GatedSource").await?,
            controller.writes("GitRepository").await?,
        ))
    };
    let (own, children) = writes().await?;
    let sources: Api<GatedSource> = Api::namespaced(scene.stage.client(), scene.stage.namespace());
    for (token, n) in [("2026-11-20T12:00:00Z", 1), ("again", 2)] {
        let request = json!({"metadata": {"annotations": {REQUESTED_AT: token}}});
        sources.merge("app", request).await?;
        poll(DEADLINE, "the request to be answered", async || {
            let status = scene.get().await?.status.context("no status")?;
            ensure!(
                status.last_handled_reconcile_at.as_deref() == Some(token),
                "{status:?}"
            );
            let child = scene.child().await?.context("no child")?;
            let asked = child.metadata.annotations.context("no annotations")?;
            // The child is asked a moment after the answer.
            let asked = asked.get(REQUESTED_AT).map(String::as_str);
            ensure!(asked == Some(token), "{asked:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        scene.stage.settle().await?;
        ensure!(
            writes().await? == (own + n, children + n),
            "{:?}",
            writes().await?
        );
    }
    Ok(())
}
