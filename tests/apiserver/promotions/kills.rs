//! Controllers that are killed between two requests of a promotion by branches: whatever the killed one has
//! done and not told anybody, each commit is merged once.
//!
//! A row is one request, before which or after which the process is killed, and how much was merged by then.
//! Then it is started again, or another replica leads.

use anyhow::Result;
use http::Method;
use rstest::rstest;
use serde_json::json;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};
use sluice_tests::gitea::gitea;
use sluice_tests::keeper::{Keeper, Next, Point, after, before};
use sluice_tests::proxy::Proxy;

use super::branches::{Branches, Spoilt};
use super::{is_at, waits_for};

const DEV: &str = "env/dev";
/// The statuses of the strategy and of its PullRequests.
const STATUS: &str = "/promotionstrategies/shop/status";
const CHILD: &str = "/pullrequests/shop-";
/// A push to what is proposed.
const PUSH: &str = "/git-receive-pack";
const NEXT: &str = "refs/heads/env/dev-next";

/// A repository with one environment, whose controller reaches the forge by a line.
async fn open(next: Next) -> Result<(Branches, Keeper, Proxy)> {
    let stage = Branches::stage("promotions-kills").await?;
    let mut keeper = Keeper::new(stage.client(), stage.namespace(), next).await?;
    let forge = keeper.line().beside_over_tls(gitea().await?.nobody()?);
    let forge = forge.await?;
    let one = json!({"environments": [{"branch": DEV}]});
    let scene = Branches::open_on(stage, Some(&forge), one).await?;
    // The admission policies are not installed here.
    let flag = "--trust-unverified-identity".to_owned();
    keeper.start(Some(flag)).await?;
    scene
        .says(DEV, "to be read", |it| it.active.is_some())
        .await?;
    Ok((scene, keeper, forge))
}

/// To which server a request goes.
#[derive(Clone, Copy)]
enum To {
    Own,
    Forge,
}

impl To {
    fn kills(self, keeper: &Keeper, forge: &Proxy, point: &Point) {
        match self {
            To::Own => Keeper::dies_at(keeper.line(), point),
            To::Forge => Keeper::dies_at(forge, point),
        }
    }
}

#[rstest]
#[case::before_the_order(To::Own, before(Method::PATCH, STATUS, r#""notAfter""#), 0)]
#[case::after_the_order(To::Own, after(Method::PATCH, STATUS, r#""notAfter""#), 0)]
#[case::after_it_is_opened(To::Forge, after(Method::POST, "/pulls", r#""head":"#), 0)]
#[case::after_the_commit_status(To::Forge, after(Method::POST, "/statuses/", ""), 0)]
#[case::before_the_merge(To::Forge, before(Method::POST, "/merge", ""), 0)]
#[case::after_the_merge(To::Forge, after(Method::POST, "/merge", ""), 1)]
#[case::before_the_child_says_so(To::Own, before(Method::PATCH, CHILD, r#""Merged""#), 1)]
#[case::before_the_strategy_says_so(To::Own, before(Method::PATCH, STATUS, r#""Promotion""#), 1)]
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_merged_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] merges: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let (scene, mut keeper, forge) = open(next).await?;
    to.kills(&keeper, &forge, &point);
    let dry = scene.hydrate("2").await?;
    scene.request().await?;
    keeper.dead().await?;
    assert_eq!(scene.merges(DEV).await?, merges);
    keeper.goes_on().await?;
    let dev = scene
        .says(DEV, "to be merged", |it| is_at(it, &dry))
        .await?;
    let arrived = dev.active.and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Promotion));
    scene.pulls_are(&["merged"]).await?;
    scene.rests().await?;
    assert_eq!(scene.merges(DEV).await?, 1);
    Ok(())
}

/// What is proposed is joined to its environment once, and merged once, whichever controller goes on.
async fn arrives_joined(
    scene: &Branches,
    keeper: &mut Keeper,
    dry: &str,
    pulls: &[&str],
) -> Result<()> {
    keeper.goes_on().await?;
    let dev = scene.says(DEV, "to be merged", |it| is_at(it, dry)).await?;
    let arrived = dev.active.and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Promotion));
    scene.is_as_proposed(DEV).await?;
    scene.pulls_are(pulls).await?;
    scene.rests().await?;
    assert_eq!(scene.joins(DEV).await?, 1);
    assert_eq!(scene.merges(DEV).await?, pulls.len());
    Ok(())
}

/// Somebody has pushed to the environment, and that is accepted.
#[rstest]
#[case::before_the_order(To::Own, before(Method::PATCH, STATUS, r#""join""#), 0)]
#[case::after_the_order(To::Own, after(Method::PATCH, STATUS, r#""join""#), 0)]
#[case::before_the_push(To::Forge, before(Method::POST, PUSH, NEXT), 0)]
#[case::after_the_push(To::Forge, after(Method::POST, PUSH, NEXT), 1)]
#[case::before_its_merge_is_ordered(To::Own, before(Method::PATCH, STATUS, r#""notAfter""#), 1)]
#[tokio::test(flavor = "multi_thread")]
async fn histories_are_joined_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] joins: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let (scene, mut keeper, forge) = open(next).await?;
    let pushed = scene.push(DEV, "hotfix.yaml", "a: 1\n").await?;
    let dry = scene.hydrate("2").await?;
    scene.request().await?;
    let is_foreign = |it: &EnvironmentStatus| {
        let pull = it.pull_request.as_ref();
        waits_for(it, "ForeignCommit") && pull.is_some_and(|it| it.number.is_some())
    };
    scene.says(DEV, "to be held", is_foreign).await?;

    to.kills(&keeper, &forge, &point);
    scene.accept(DEV, &pushed).await?;
    keeper.dead().await?;
    assert_eq!(scene.joins(DEV).await?, joins);
    arrives_joined(&scene, &mut keeper, &dry, &["merged"]).await
}

/// What was taken back may come again: the environment has all commits of it, and other files.
#[rstest]
#[case::after_it_is_opened(
    To::Forge,
    after(Method::POST, "/pulls", r#""head":"env/dev-next""#),
    0
)]
#[case::after_the_order(To::Own, after(Method::PATCH, STATUS, r#""join""#), 0)]
#[case::after_the_push(To::Forge, after(Method::POST, PUSH, NEXT), 1)]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_back_is_joined_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] joins: usize,
) -> Result<()> {
    let (scene, mut keeper, forge) = open(Next::Restart).await?;
    let Spoilt { good, bad, from } = scene.spoil(DEV).await?;
    scene.revert("back", DEV, &from, &good).await?;
    scene.says(DEV, "to be back", |it| is_at(it, &good)).await?;

    to.kills(&keeper, &forge, &point);
    scene.forget("back").await?;
    keeper.dead().await?;
    assert_eq!(scene.joins(DEV).await?, joins);
    arrives_joined(&scene, &mut keeper, &bad, &["merged"; 3]).await
}

#[rstest]
#[case::before_it_is_held(To::Own, before(Method::PATCH, STATUS, r#""held""#), 1)]
#[case::after_it_is_held(To::Own, after(Method::PATCH, STATUS, r#""held""#), 1)]
#[case::after_the_push(
    To::Forge,
    after(Method::POST, "/git-receive-pack", "sluice/revert-"),
    1
)]
#[case::after_it_is_opened(To::Forge, after(Method::POST, "/pulls", "sluice/revert-"), 1)]
#[case::after_the_merge(To::Forge, after(Method::POST, "/merge", ""), 2)]
#[case::before_the_strategy_says_so(To::Own, before(Method::PATCH, STATUS, r#""Revert""#), 2)]
#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_brought_back_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] merges: usize,
) -> Result<()> {
    let (scene, mut keeper, forge) = open(Next::Restart).await?;
    let before = scene.file(DEV).await?;
    let Spoilt { good, bad, from } = scene.spoil(DEV).await?;

    to.kills(&keeper, &forge, &point);
    scene.revert("back", DEV, &from, &good).await?;
    keeper.dead().await?;
    assert_eq!(scene.merges(DEV).await?, merges);
    keeper.goes_on().await?;
    let dev = scene
        .says(DEV, "to be back", |it| {
            is_at(it, &good) && it.state == EnvironmentState::Held
        })
        .await?;
    let arrived = dev.active.and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Revert));
    assert_eq!(dev.held[0].dry_sha, bad);
    assert_eq!(scene.file(DEV).await?, before);
    scene.pulls_are(&["merged", "merged"]).await?;
    scene.rests().await?;
    assert_eq!(scene.merges(DEV).await?, 2);
    Ok(())
}
