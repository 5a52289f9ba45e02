//! Controllers that are killed between two requests of a promotion: whatever the killed one has done and not
//! told anybody, what is promoted is promoted once.
//!
//! A row is one request, before which or after which the process is killed. What has been done by then is
//! checked first, so that a row is about that instant and no other. Then it is started again, or another
//! replica leads.

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::{Api, Client, Config};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase, PromotionRecord};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::Inbox;
use sluice_tests::gitea::{BRANCH, gitea};
use sluice_tests::keeper::{Keeper, Next, Point, after, before};
use sluice_tests::proxy::Proxy;
use sluice_tests::{DEADLINE, poll};

use super::reports::Told;
use super::shop::{Shop, state};
use super::{PROD, admitted, put, says};
use crate::clusters::scene::Scene;

/// The steps of a promotion by a pull request that the controller merges.
const STEPS: [&str; 8] = [
    "the pipeline says that it begins",
    "there is a PullRequest",
    "there is a commit",
    "the PullRequest knows the commit",
    "there is a pull request",
    "the PullRequest says that it is open",
    "the pipeline says that it is open",
    "it is merged",
];

fn record<'s>(status: &'s PipelineStatus, revision: &str) -> Option<&'s PromotionRecord> {
    let record = status.environments.get(PROD)?.promotion.as_ref()?;
    Some(record).filter(|record| record.revision == revision)
}

/// Those that are done.
async fn done(shop: &Shop) -> Result<Vec<&'static str>> {
    let status = shop.says("a status", |_| true).await?;
    let record = record(&status, "1.1.0");
    let child = match shop.children().await?.first() {
        Some(name) => Some(shop.pull_requests().get(name).await?),
        None => None,
    };
    let said = child.as_ref().and_then(|child| child.status.as_ref());
    let pulls = shop.pulls().await?;
    let all = [
        record.is_some(),
        child.is_some(),
        shop.branches().await? != [BRANCH],
        said.is_some_and(|said| said.commit_sha.is_some()),
        !pulls.is_empty(),
        said.is_some_and(|said| said.state == Some(PullRequestState::Open)),
        record.is_some_and(|record| record.phase == Phase::Created),
        pulls.iter().any(|pull| state(pull) == "merged"),
    ];
    let done = STEPS.into_iter().zip(all).filter(|(_, is_done)| *is_done);
    Ok(done.map(|(step, _)| step).collect())
}

/// Waits until prod, which runs the revision now, has passed; and that nothing is left at the forge but one
/// merge.
async fn has_arrived(shop: &Shop, revision: &str, pulls: &[&str]) -> Result<()> {
    shop.pulls_are(pulls).await?;
    shop.prod_runs(revision).await?;
    let is_done = |prod: &EnvironmentStatus| {
        let record = prod.promotion.as_ref();
        let record = record.filter(|it| it.phase == Phase::Succeeded && it.revision == revision);
        let of = record.and_then(|it| it.pull_request.as_ref());
        prod.state == EnvironmentState::Passed && of.is_some_and(|it| it.merge_commit.is_some())
    };
    shop.prod_says("the merge to be recorded", is_done).await?;
    poll(DEADLINE, "the branches to be deleted", async || {
        let branches = shop.branches().await?;
        ensure!(branches == [BRANCH], "{branches:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    shop.pulls_are(pulls).await?;
    ensure!(shop.children().await?.len() == pulls.len());
    assert_eq!(shop.said_on(BRANCH).await?, shop.file(revision));
    // Two of the test, then the commit and its merge.
    let history = shop.history().await?;
    let parents = history.iter().filter_map(|it| it["parents"].as_array());
    let parents: Vec<_> = parents.map(Vec::len).collect();
    ensure!(parents == [2, 1, 1, 0], "{history:?}");
    let comments = shop.ask(Method::GET, "/issues/comments", &Value::Null);
    let comments = comments.await?;
    ensure!(comments == json!([]), "{comments}");
    Ok(())
}

/// A shop whose controller reaches the forge by a line.
async fn open(next: Next, merge: &str) -> Result<(Shop, Keeper, Proxy)> {
    let scene = Scene::new("kills").await?;
    let mut keeper = Keeper::new(scene.own(), scene.namespace(), next).await?;
    let forge = keeper.line().beside_over_tls(gitea().await?.nobody()?);
    let forge = forge.await?;
    let shop = Shop::open_on(scene, Some(&forge), json!({"merge": merge})).await?;
    keeper.start(None).await?;
    shop.begins().await?;
    Ok((shop, keeper, forge))
}

/// To which server a request goes.
#[derive(Clone, Copy)]
enum To {
    /// The API server of the pipeline.
    Own,
    /// The forge, or what is notified.
    Other,
}

const STATUS: &str = "/pipelines/web/status";

#[rstest]
#[case::before_the_status(To::Own, before(Method::PATCH, STATUS, r#""Attempting""#), 0)]
#[case::after_the_status(To::Own, after(Method::PATCH, STATUS, r#""Attempting""#), 1)]
#[case::after_the_child(To::Own, after(Method::POST, "/pullrequests", ""), 2)]
#[case::after_the_commit(To::Other, after(Method::POST, "/contents", ""), 3)]
#[case::before_it_is_opened(To::Other, before(Method::POST, "/pulls", r#""head":"#), 4)]
#[case::after_it_is_opened(To::Other, after(Method::POST, "/pulls", r#""head":"#), 5)]
#[case::before_the_pipeline_says_so(To::Own, before(Method::PATCH, STATUS, r#""Created""#), 6)]
#[case::after_the_merge(To::Other, after(Method::POST, "/merge", ""), 8)]
#[tokio::test]
async fn a_pull_request_is_opened_and_merged_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] steps: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let (shop, mut keeper, forge) = open(next, "auto").await?;
    match to {
        To::Own => Keeper::dies_at(keeper.line(), &point),
        To::Other => Keeper::dies_at(&forge, &point),
    }
    shop.dev_runs("1.1.0").await?;
    keeper.dead().await?;
    assert_eq!(done(&shop).await?, STEPS[..steps]);
    keeper.goes_on().await?;
    has_arrived(&shop, "1.1.0", &["merged"]).await
}

/// One that another revision takes the place of is closed, and that revision has another one.
#[rstest]
#[tokio::test]
async fn a_pull_request_is_closed_once(
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let (shop, mut keeper, forge) = open(next, "manual").await?;
    shop.dev_runs("1.1.0").await?;
    let is_open = |prod: &EnvironmentStatus| prod.state == EnvironmentState::PullRequestOpen;
    shop.prod_says("the first to be open", is_open).await?;
    Keeper::dies_at(&forge, &after(Method::PATCH, "/pulls/1", r#""closed""#));
    shop.dev_runs("1.2.0").await?;
    keeper.dead().await?;
    shop.pulls_are(&["closed"]).await?;
    let first = shop.children().await?.pop().context("no PullRequest")?;
    let first = shop.pull_requests().get(&first).await?.status;
    ensure!(first.is_some_and(|it| it.state == Some(PullRequestState::Open)));
    keeper.goes_on().await?;
    shop.pulls_are(&["closed", "open"]).await?;
    shop.merge(2).await?;
    has_arrived(&shop, "1.2.0", &["closed", "merged"]).await
}

/// Dev runs 1.1.0 and prod 1.0.0; what is to be promoted is promoted so.
async fn strategy(scene: &Scene, strategy: &Value) -> Result<()> {
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.1.0").await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    put(scene, json!({"strategy": strategy})).await
}

/// Prod runs it, and the run is completed.
async fn completes(scene: &Scene) -> Result<PipelineStatus> {
    let own = scene.own();
    scene.runs_at(&own, scene.namespace(), 2, "1.1.0").await?;
    let is_completed = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    says(scene, "the run to be completed", is_completed).await
}

/// What a notification says. The instant and the replica may be others the next time.
fn said(event: &Value) -> Value {
    let mut said = event.clone();
    for field in ["timestamp", "reportingInstance"] {
        said[field] = Value::Null;
    }
    said
}

#[rstest]
#[case::before_the_status(To::Own, before(Method::PATCH, STATUS, r#""Attempting""#), 0, 1)]
#[case::after_the_status(To::Own, after(Method::PATCH, STATUS, r#""Attempting""#), 0, 1)]
#[case::after_the_notification(To::Other, after(Method::POST, "/", r#""Promote""#), 1, 2)]
#[tokio::test]
async fn a_notification_is_sent_at_most_once_more(
    #[case] to: To,
    #[case] point: Point,
    #[case] sent: usize,
    #[case] in_all: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let scene = Scene::new("kills").await?;
    scene.define_here().await?;
    let inbox = Inbox::serve().await?;
    let mut keeper = Keeper::new(scene.own(), scene.namespace(), next).await?;
    let way = Config::new(inbox.url().parse()?);
    let line = keeper.line().beside(Client::try_from(way)?).await?;
    match to {
        To::Own => Keeper::dies_at(keeper.line(), &point),
        To::Other => Keeper::dies_at(&line, &point),
    }
    let notifications = || {
        let events = inbox.events().into_iter();
        let ours = events.filter(|event| event["reason"] == "Promote");
        ours.map(|event| said(&event)).collect::<Vec<_>>()
    };
    let events = format!("--events-addr={}/", line.url());
    keeper.start(Some(events)).await?;
    let notification = json!({"notification": {"involvedObject": "Application"}});
    strategy(&scene, &notification).await?;
    keeper.dead().await?;
    assert_eq!(notifications().len(), sent);
    keeper.goes_on().await?;
    let is_sent = |status: &PipelineStatus| {
        let reason = record(status, "1.1.0").and_then(|record| record.reason.as_deref());
        reason == Some("Sent")
    };
    says(&scene, "it to be sent", is_sent).await?;
    completes(&scene).await?;
    let all = notifications();
    assert_eq!(all.len(), in_all, "{all:?}");
    // So notification-controller drops the second.
    ensure!(all.iter().all(|event| *event == all[0]), "{all:?}");
    Ok(())
}

#[rstest]
#[case::before_the_status(before(Method::PATCH, STATUS, r#""admitted""#), 0)]
#[case::after_the_status(after(Method::PATCH, STATUS, r#""admitted""#), 1)]
#[tokio::test]
async fn a_revision_is_admitted_once(
    #[case] point: Point,
    #[case] admissions: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let scene = Scene::new("kills").await?;
    scene.define_here().await?;
    let mut keeper = Keeper::new(scene.own(), scene.namespace(), next).await?;
    Keeper::dies_at(keeper.line(), &point);
    keeper.start(None).await?;
    strategy(&scene, &json!({"admission": {}})).await?;
    keeper.dead().await?;
    let api: Api<Pipeline> = Api::namespaced(scene.own(), scene.namespace());
    let before = api.get("web").await?.status.unwrap_or_default();
    assert_eq!(admitted(&before), vec!["1.1.0"; admissions]);
    keeper.goes_on().await?;
    let is_admitted = |status: &PipelineStatus| !admitted(status).is_empty();
    says(&scene, "it to be admitted", is_admitted).await?;
    let status = completes(&scene).await?;
    assert_eq!(admitted(&status), ["1.1.0"]);
    if admissions == 1 {
        let admission = |status: &PipelineStatus| status.environments[PROD].admitted.clone();
        assert_eq!(admission(&status), admission(&before));
    }
    Ok(())
}

const REPORT: &str = "/gatekeepers/promoted/status";

#[rstest]
#[case::before_the_report(before(Method::PATCH, REPORT, ""), false, 1)]
#[case::after_the_report(after(Method::PATCH, REPORT, ""), true, 0)]
#[tokio::test]
async fn an_admission_is_reported_to_another_cluster_once(
    #[case] point: Point,
    #[case] is_there: bool,
    #[case] further: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut told = Told::new("kills").await?;
    told.grant(&["get", "list", "watch"], &["patch"]).await?;
    told.gatekeeper(&[&told.user()]).await?;
    let mut keeper = Keeper::new(told.scene.own(), told.scene.namespace(), next).await?;
    let line = keeper.line().beside_over_tls(told.scene.nobody().await?);
    let line = line.await?;
    let token = told.scene.token().await?;
    told.scene.put_kubeconfig_by(&line, &token).await?;
    Keeper::dies_at(&line, &point);
    keeper.start(None).await?;
    told.dev_runs("1.0.0").await?;
    told.pipeline().await?;
    keeper.dead().await?;
    let reports = || line.count(&Method::PATCH, REPORT);
    let so_far = reports();
    let gatekeeper = told.gatekeepers().get(super::reports::NAME).await?;
    let report = gatekeeper.status.and_then(|status| status.report);
    ensure!(report.is_some() == is_there, "{report:?}");
    keeper.goes_on().await?;
    told.succeeds("1.0.0").await?;
    told.is_reported("1.0.0").await?;
    assert_eq!(reports() - so_far, further);
    Ok(())
}
