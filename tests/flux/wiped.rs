//! What Flux makes of an artifact store that was lost, and of sources that are suspended: the facts
//! that gated sources stand on.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_tests::flux::{Git, World};
use sluice_tests::{Writes, poll};

use crate::stage::{DEADLINE, NOW, Stage, app, condition};

#[tokio::test]
async fn a_wiped_store_is_noticed_by_those_who_look_and_never_by_a_suspended_source() -> Result<()>
{
    let world = World::start().await?;
    let stage = Stage::within(&world, "wiped", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    let revision = Git::revision(&one);
    for name in ["pinned", "suspended"] {
        let reference = json!({"branch": "main", "commit": one});
        let spec = json!({"url": git.url(), "ref": reference, "interval": "1h"});
        stage.put("GitRepository", name, spec).await?;
        stage.kustomization(name, "GitRepository", name).await?;
        stage.applied(name, &revision).await?;
    }
    git.commit(&[("app.yaml", &app("app", "two"))])?;
    let suspend = json!({"spec": {"suspend": true}});
    let sources = stage.api("GitRepository")?;
    sources.merge("suspended", &suspend).await?;

    // A controller that runs on does not notice, and its consumers do.
    world.flux.wipe()?;
    stage.reconcile("Kustomization", "pinned").await?;
    stage
        .fails("Kustomization", "pinned", "ArtifactFailed")
        .await?;
    ensure!(!is_stored(&stage, "pinned").await?, "it came back unasked");
    // Asked, it fetches the commit again, though the branch has moved on.
    stage.reconcile("GitRepository", "pinned").await?;
    ensure!(is_stored(&stage, "pinned").await?, "it did not come back");
    stage.applied("pinned", &revision).await?;

    // One that starts looks at everything that is not suspended.
    world.flux.replace_source().await?;
    poll(DEADLINE, "the artifact to come back", async || {
        ensure!(is_stored(&stage, "pinned").await?, "it is not there");
        Ok(())
    })
    .await?;
    stage.reconcile("Kustomization", "pinned").await?;
    stage.applied("pinned", &revision).await?;
    // The other one still claims to be ready, no matter who asks, and what is deployed is not healed.
    stage.reconcile("GitRepository", "suspended").await?;
    ensure!(!is_stored(&stage, "suspended").await?, "it came back");
    stage.reconcile("Kustomization", "suspended").await?;
    stage
        .fails("Kustomization", "suspended", "ArtifactFailed")
        .await?;

    // Without a loss a restart is nothing.
    world.flux.source.restart().await?;
    ensure!(is_stored(&stage, "pinned").await?, "it is gone");
    Ok(())
}

/// Whether a GitRepository, which claims to be ready, has the file of its artifact in the store.
async fn is_stored(stage: &Stage<'_>, name: &str) -> Result<bool> {
    let source = stage.api("GitRepository")?.get(name).await?.data;
    let ready = condition(&source, "Ready").context("no condition")?;
    ensure!(ready["status"] == "True", "{ready}");
    let path = source["status"]["artifact"]["path"].as_str();
    let store = stage.world().flux.store();
    Ok(store.join(path.context("no path")?).exists())
}

/// Why nothing of ours is ever created suspended.
#[tokio::test]
async fn a_source_that_is_created_suspended_holds_up_those_who_wait_for_it() -> Result<()> {
    let stage = Stage::new("waits", NOW).await?;
    let git = Git::serve().await?;
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "suspended"},
        "spec": {"url": git.url(), "interval": "1h", "suspend": true},
    });
    git.commit(&[("source.yaml", &source.to_string())])?;
    stage.git_repository("parent", &git).await?;
    let spec = json!({
        "sourceRef": {"kind": "GitRepository", "name": "parent"}, "interval": "1h",
        "prune": true, "targetNamespace": stage.namespace(), "wait": true, "timeout": "3s",
    });
    stage.put("Kustomization", "parent", spec).await?;
    stage
        .fails("Kustomization", "parent", "HealthCheckFailed")
        .await?;
    let suspended = stage.api("GitRepository")?.get("suspended").await?;
    assert_eq!(suspended.data["status"]["observedGeneration"], -1);
    Ok(())
}
