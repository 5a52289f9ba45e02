//! What was admitted comes back, whatever is lost.

use anyhow::{Result, ensure};
use sluice_tests::flux::{Git, World};

use crate::delivery::{APP, Delivery, OPEN, UPSTREAM};

const NOW: &str = "2026-11-19T12:00:00Z";

/// One is out, the gate is closed, two waits.
async fn frozen<'w>(world: &'w World, word: &str) -> Result<(Delivery<'w>, [String; 2])> {
    let app = Delivery::within(world, word, NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.close().await?;
    let two = app.push_behind_the_gate("two").await?;
    Ok((app, [one, two]))
}

/// Still the same is out, and the same waits.
async fn stays(app: &Delivery<'_>, [one, two]: &[String; 2]) -> Result<()> {
    let status = app.stage.pends(APP, &Git::revision(two)).await?;
    let admitted = status.admitted.map(|admitted| admitted.revision);
    ensure!(admitted == Some(Git::revision(one)), "{admitted:?} is out");
    Ok(())
}

/// source-controller has lost its files and does not know it: anyone who misses them has the child fetched
/// once more, at what was admitted.
#[tokio::test]
async fn a_wiped_store_is_filled_with_what_was_admitted() -> Result<()> {
    let world = World::start().await?;
    let (app, commits) = frozen(&world, "wiped").await?;
    world.flux.wipe()?;
    app.stage.lose(APP).await?;
    app.stage.reconcile("Kustomization", APP).await?;
    app.stage.deployed(APP, "one").await?;
    stays(&app, &commits).await?;
    app.open().await?;
    app.deployed(&commits[1], "two").await
}

/// Its pod is replaced, and with it the store.
#[tokio::test]
async fn source_controller_may_be_replaced_while_the_gate_is_closed() -> Result<()> {
    let world = World::start().await?;
    let (app, commits) = frozen(&world, "replaced").await?;
    world.flux.replace_source().await?;
    app.stage
        .fetched("GitRepository", APP, &Git::revision(&commits[0]))
        .await?;
    app.heals("one").await?;
    stays(&app, &commits).await?;
    world.flux.source.restart().await?;
    app.stage.reconcile("GitRepository", UPSTREAM).await?;
    app.heals("one").await?;
    stays(&app, &commits).await
}
