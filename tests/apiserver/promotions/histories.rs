//! Environments whose history does not meet that of what is proposed: merges that make other commits, and what
//! somebody has pushed in between.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sluice_crds::promotion_strategy::EnvironmentStatus;

use super::branches::{Branches, NAME};
use super::{is_at, waits_for};

const DEV: &str = "env/dev";

/// So many promotions follow each other.
const MANY: usize = 10;

/// The n-th commit of somebody goes into dev.
async fn promote(scene: &Branches, n: usize) -> Result<()> {
    let dry = scene.hydrate(&n.to_string()).await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &dry))
        .await?;
    scene.is_as_proposed(DEV).await
}

/// How many commits the last of [`MANY`] pull requests lists, and which files it changes.
async fn last(scene: &Branches) -> Result<(usize, Vec<String>)> {
    let numbers = scene.pulls_into(DEV, &["merged"; MANY]).await?;
    scene.shows(numbers[MANY - 1]).await
}

/// Each promotion is exactly what was hydrated, although no commit of it is in the environment. The pull request
/// shows what changes, and nothing of the promotions before; it lists their commits, which are in no history of
/// the environment.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_squashes_gets_one_promotion_after_another() -> Result<()> {
    let scene = Branches::open_dev("promotions-squash", json!({})).await?;
    scene.only("squash").await?;
    let controller = scene.start().await?;
    for n in 0..MANY {
        promote(&scene, n + 2).await?;
    }
    let (_, files) = last(&scene).await?;
    ensure!(
        files == ["hydrator.metadata", "manifests.yaml"],
        "{files:?}"
    );
    controller.stop().await;
    Ok(())
}

/// By a rebase nothing is merged unasked. Where it is asked for, it goes on as long as what is proposed goes on
/// from what the environment has, and says what to do where it does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_rebases_says_what_to_do() -> Result<()> {
    let scene = Branches::open_dev("promotions-rebase", json!({})).await?;
    scene.only("rebase").await?;
    let controller = scene.start().await?;
    let dry = scene.hydrate("2").await?;
    let dev = scene
        .says_soon(DEV, "to be refused", |it| waits_for(it, "ForgeRefuses"))
        .await?;
    let message = dev.message.unwrap_or_default();
    ensure!(message.contains("write mergeMethod: rebase"), "{message}");
    let environments = json!([{"branch": DEV, "mergeMethod": "rebase"}]);
    let patch = Patch::Merge(json!({"spec": {"environments": environments}}));
    let params = PatchParams::default();
    scene.strategies().patch(NAME, &params, &patch).await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &dry))
        .await?;
    for n in 1..MANY {
        promote(&scene, n + 2).await?;
    }
    let (commits, _) = last(&scene).await?;
    ensure!(commits == 1, "it lists {commits} commits");

    // Somebody pushes to the environment, and that is accepted.
    let sha = scene.push(DEV, "hotfix.yaml", "a: 1\n").await?;
    scene.accept(DEV, &sha).await?;
    let dry = scene.hydrate("12").await?;
    let cannot = |it: &EnvironmentStatus| waits_for(it, "CannotJoin");
    let dev = scene.says_soon(DEV, "to wait", cannot).await?;
    let message = dev.message.unwrap_or_default();
    ensure!(
        message.contains("begin env/dev-next again from env/dev"),
        "{message}"
    );
    scene.delete("env/dev-next").await?;
    scene.begin_from(DEV).await?;
    let again = scene.hydrate("13").await?;
    ensure!(again != dry);
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &again))
        .await?;
    scene.is_as_proposed(DEV).await?;
    controller.stop().await;
    Ok(())
}

/// What somebody has pushed to an environment and what is proposed change the same lines. Once it is accepted,
/// the histories are joined, and the environment has what was proposed.
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_told_and_ends_when_the_histories_are_joined() -> Result<()> {
    let scene = Branches::open_dev("promotions-conflict", json!({})).await?;
    let controller = scene.start().await?;
    scene
        .says(DEV, "to be read", |it| it.active.is_some())
        .await?;
    let sha = scene.push(DEV, "manifests.yaml", "version: mine\n").await?;
    let dry = scene.hydrate("2").await?;
    let both = |it: &EnvironmentStatus| {
        let mut waits = it.waits.iter().map(|it| it.reason.as_str());
        waits_for(it, "ForeignCommit") && waits.any(|it| it == "Conflict")
    };
    let dev = scene.says_soon(DEV, "to have a conflict", both).await?;
    let told = dev.waits.iter().find(|it| it.reason == "Conflict");
    let told = told.map(|it| it.message.as_str()).unwrap_or_default();
    ensure!(told.contains("has conflicts with env/dev"), "{told}");

    scene.accept(DEV, &sha).await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &dry))
        .await?;
    scene.is_as_proposed(DEV).await?;
    controller.stop().await;
    Ok(())
}
