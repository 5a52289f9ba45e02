//! What people do on their own: to pull requests, to proposed branches, and to the repository.

use anyhow::{Context, Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use sluice_crds::PromotionStrategyStatus;
use sluice_crds::git_repository_access::GitRepositoryAccessStatus;
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_tests::gitea::BRANCH;
use sluice_tests::status;

use super::branches::{Branches, DEADLINE, NAME};
use super::{is_at, waits_for};

const DEV: &str = "env/dev";
const TEST: &str = "env/test";

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_waits_for_its_label_as_a_draft_and_when_it_is_closed() -> Result<()> {
    let scene = Branches::open("promotions-held", json!({})).await?;
    let controller = scene.start().await?;
    let first = scene.hydrate("2").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &first))
        .await?;
    let number = scene.pulls_into(TEST, &["open"]).await?[0];
    let label = scene.label(number, "sluice/hold").await?;
    // Whether or not the label was seen before.
    scene.healthy(DEV).await?;
    let waits = async |reason: &str| {
        let is = |it: &EnvironmentStatus| waits_for(it, reason);
        scene.says_soon(TEST, reason, is).await
    };
    waits("HeldByLabel").await?;
    let draft = json!({"title": "WIP: not now"});
    scene.edit(number, &draft).await?;
    scene.unlabel(number, label).await?;
    waits("Draft").await?;
    scene.edit(number, &json!({"state": "closed"})).await?;
    let closed = waits("ClosedByPerson").await?;
    let message = closed.message.unwrap_or_default();
    ensure!(
        message.contains("push something else to env/test-next"),
        "{message}"
    );

    // What is new has another pull request.
    let second = scene.hydrate("3").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.pulls_into(TEST, &["closed", "open"]).await?;
    scene.healthy(DEV).await?;
    scene
        .says_soon(TEST, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.pulls_into(TEST, &["closed", "merged"]).await?;
    scene.is_as_proposed(TEST).await?;
    scene.rests().await?;
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_pushes_to_a_proposed_branch_has_to_say_what_it_is() -> Result<()> {
    let scene = Branches::open_dev("promotions-forged", json!({})).await?;
    let controller = scene.start().await?;
    let first = scene.head(BRANCH).await?;
    let second = scene.hydrate("2").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &second))
        .await?;
    let has = scene.head(DEV).await?;
    let waits = async |reason: &str| {
        scene.pass();
        let is = |it: &EnvironmentStatus| waits_for(it, reason);
        scene.says_soon(DEV, reason, is).await
    };
    let says = async |text: &str| scene.push("env/dev-next", "hydrator.metadata", text).await;
    says("no JSON").await?;
    waits("MetadataInvalid").await?;
    // One that was never on the dry branch, and one from before.
    says(&json!({"drySha": has}).to_string()).await?;
    waits("NotOnDryBranch").await?;
    says(&json!({"drySha": first}).to_string()).await?;
    waits("MovesBackwards").await?;
    scene.remove("env/dev-next", "hydrator.metadata").await?;
    waits("NoMetadata").await?;
    assert_eq!(scene.head(DEV).await?, has);

    says("to be overwritten").await?;
    let third = scene.hydrate("3").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &third))
        .await?;
    scene.is_as_proposed(DEV).await?;
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposed_branch_that_is_deleted_proposes_nothing_until_it_is_back() -> Result<()> {
    let scene = Branches::open("promotions-deleted", json!({})).await?;
    let controller = scene.start().await?;
    let first = scene.hydrate("2").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &first))
        .await?;
    scene.pulls_into(TEST, &["open"]).await?;
    scene.delete("env/test-next").await?;
    let is_gone = |it: &EnvironmentStatus| it.proposed.is_none() && it.waits.is_empty();
    scene
        .says_soon(TEST, "to be proposed nothing", is_gone)
        .await?;
    scene.pulls_into(TEST, &["closed"]).await?;

    scene.begin_from(TEST).await?;
    let second = scene.hydrate("3").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.healthy(DEV).await?;
    scene
        .says_soon(TEST, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.pulls_into(TEST, &["closed", "merged"]).await?;
    scene.rests().await?;
    controller.stop().await;
    Ok(())
}

/// Nothing is sent to another address before somebody has written it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_with_another_name_needs_an_access_to_that() -> Result<()> {
    let mut scene = Branches::open("promotions-renamed", json!({})).await?;
    let controller = scene.start().await?;
    let first = scene.hydrate("2").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &first))
        .await?;
    let name = format!("{}-renamed", scene.namespace());
    let url = scene.rename(&name).await?;
    scene.pass();
    let is_moved = |status: &GitRepositoryAccessStatus| {
        let mut all = status.conditions.iter();
        all.any(|it| it.type_ == "Ready" && it.reason == "RepositoryMoved")
    };
    let what = "the access to be told";
    let moved = status::until(&scene.accesses(), NAME, DEADLINE, what, is_moved).await?;
    let moved = json!(moved.status).to_string();
    ensure!(
        moved.contains("a GitRepositoryAccess is created again with it"),
        "{moved}"
    );
    let ready = async |expected: &str| {
        let is = |status: &PromotionStrategyStatus| {
            let mut all = status.conditions.iter().filter(|it| it.type_ == "Ready");
            all.any(|it| format!("{} {}", it.status, it.reason) == expected)
        };
        status::until(&scene.strategies(), NAME, DEADLINE, expected, is).await
    };
    let told = ready("False ForgeUnavailable").await?;
    let told = told.status.context("no status")?;
    ensure!(
        told.environments.iter().all(|it| it.order.is_none()),
        "{told:?}"
    );

    let params = DeleteParams::default();
    scene.accesses().delete(NAME, &params).await?;
    ready("False AccessNotReady").await?;
    scene.grant_access(NAME, &url).await?;
    ready("True ReconciliationSucceeded").await?;
    let second = scene.hydrate("3").await?;
    scene
        .says_soon(DEV, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.healthy(DEV).await?;
    scene
        .says_soon(TEST, "to be merged", |it| is_at(it, &second))
        .await?;
    scene.is_as_proposed(TEST).await?;
    controller.stop().await;
    Ok(())
}
