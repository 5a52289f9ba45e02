//! What becomes of children whose source is not listed any more.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_tests::poll;

use super::scene::{GIT, Scene, commit};
use crate::stage::DEADLINE;

/// The sources of these names, listed, and what becomes of their children.
fn spec(names: &[&str], policy: &str) -> Value {
    let source = |name: &&str| json!({"kind": "GitRepository", "name": name});
    let sources: Vec<Value> = names.iter().map(source).collect();
    json!({"sourceRefs": sources, "deletionPolicy": policy})
}

/// Two sources whose children are out and serve, and then one of them is listed no more.
async fn one_of_two(word: &str, policy: &str) -> Result<Scene> {
    let scene = Scene::new(word).await?;
    scene.gate("open").await?;
    let revision = |digit: char| format!("main@sha1:{}", commit(digit));
    for (name, digit) in [("one", 'a'), ("two", 'b')] {
        scene.source(name, "main").await?;
        scene.fetched(name, &revision(digit)).await?;
    }
    scene.gated_with(spec(&["one", "two"], policy)).await?;
    let controller = scene.stage.start().await?;
    for (child, digit) in [("app-one", 'a'), ("app-two", 'b')] {
        poll(DEADLINE, &format!("{child} to be there"), async || {
            let child = scene.object(GIT, child).await?.context("it is not")?;
            ensure!(
                child.spec["ref"]["commit"] == commit(digit),
                "{:?}",
                child.spec
            );
            Ok(())
        })
        .await?;
        scene.fetched(child, &revision(digit)).await?;
    }
    scene.until("Ready", "True", "Serving").await?;

    scene.gated_with(spec(&["one"], policy)).await?;
    let generation = scene.get().await?.metadata.generation;
    poll(DEADLINE, "the shorter list to be looked at", async || {
        let status = scene.get().await?.status.context("no status")?;
        ensure!(status.observed_generation == generation, "{status:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    scene.until("Ready", "True", "Serving").await?;
    scene.stage.settle().await?;
    controller.stop().await;
    let stays = scene.object(GIT, "app-one").await?;
    let stays = stays.context("the other child is gone")?;
    ensure!(
        stays.spec["ref"]["commit"] == commit('a'),
        "{:?}",
        stays.spec
    );
    Ok(scene)
}

#[tokio::test]
async fn the_child_of_a_source_that_is_not_listed_any_more_goes_with_it() -> Result<()> {
    let scene = one_of_two("gated-stray", "Delete").await?;
    let left = scene.object(GIT, "app-two").await?;
    ensure!(left.is_none(), "{left:?}");
    // The sources are somebody else's.
    ensure!(scene.object(GIT, "two").await?.is_some(), "the source went");
    Ok(())
}

#[tokio::test]
async fn the_child_of_a_source_that_is_not_listed_any_more_is_left_as_it_is() -> Result<()> {
    let scene = one_of_two("gated-orphan", "Orphan").await?;
    let left = scene.object(GIT, "app-two").await?.context("it is gone")?;
    ensure!(left.spec["ref"]["commit"] == commit('b'), "{:?}", left.spec);
    Ok(())
}
