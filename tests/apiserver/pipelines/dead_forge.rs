//! A forge that accepts connections and never answers, beside one that lives: the real controller keeps
//! everybody else going. Nothing here measures a time: what is shown has to come while the requests to the
//! dead forge have no end.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, State};
use sluice_tests::line::Line;
use sluice_tests::{Writes, poll};

use super::shop::{NAME, Shop};
use crate::stage::DEADLINE;

/// More than there are workers, and places for errands.
const DEAD: usize = 20;
/// How many errands ask one host at the same time.
const AT_A_HOST: usize = 4;

/// Pipelines of the same app whose forge is at the end of a line, and have completed their first run.
async fn at_the_end_of(line: &Line, shop: &Shop) -> Result<()> {
    for number in 0..DEAD {
        let name = format!("dead-{number}");
        shop.create_at(&name, line.server()).await?;
    }
    poll(DEADLINE, "the first runs to be completed", async || {
        let all = shop.pipelines().list(&ListParams::default()).await?;
        let is_completed = |run: &sluice_crds::pipeline::Run| run.completed_at.is_some();
        let runs = all.iter().filter_map(|it| it.status.as_ref()?.run.as_ref());
        let completed = runs.filter(|run| is_completed(run)).count();
        ensure!(completed == DEAD + 1, "{completed} are");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// The PullRequests at the dead forge.
async fn waiting(shop: &Shop) -> Result<Vec<PullRequest>> {
    let all = shop.pull_requests().list(&ListParams::default()).await?;
    let of_the_dead = all
        .into_iter()
        .filter(|it| it.name_any().starts_with("dead-"));
    Ok(of_the_dead.collect())
}

async fn gate_is(shop: &Shop, state: State) -> Result<()> {
    poll(DEADLINE, "the gate to be switched", async || {
        let gate = shop.gates().get("production").await?;
        let now = gate.status.context("no status")?.state;
        ensure!(now == Some(state), "{now:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[tokio::test]
async fn a_forge_that_never_answers_delays_neither_gates_nor_another_forge() -> Result<()> {
    let shop = Shop::open("dead-forge", json!({})).await?;
    let line = Line::open(&shop.forge()).await?;
    let _controller = shop.start_process().await?;
    shop.begins().await?;
    at_the_end_of(&line, &shop).await?;

    // The forge dies. All but the live pipeline have something to promote there.
    let suspend = |is: bool| json!({"spec": {"suspend": is}});
    shop.pipelines().merge(NAME, suspend(true)).await?;
    line.hold();
    line.cut();
    let before = line.connections();
    shop.dev_runs("1.1.0").await?;
    poll(DEADLINE, "all to wait for the dead forge", async || {
        let (waiting, asked) = (waiting(&shop).await?.len(), line.connections() - before);
        ensure!(waiting == DEAD, "{waiting} wait");
        ensure!(asked >= AT_A_HOST, "{asked} have asked");
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    // Somebody switches the gate, and the live pipeline goes on.
    shop.turn("closed").await?;
    gate_is(&shop, State::Closed).await?;
    shop.turn("open").await?;
    gate_is(&shop, State::Open).await?;
    shop.pipelines().merge(NAME, suspend(false)).await?;
    let is_open = |prod: &EnvironmentStatus| prod.state == EnvironmentState::PullRequestOpen;
    shop.prod_says("its pull request to be open", is_open)
        .await?;
    let pulls = shop.pulls_are(&["open"]).await?;
    let head = pulls[0]["head"]["ref"].as_str().unwrap_or_default();
    ensure!(shop.said_on(head).await? == shop.file("1.1.0"));

    // Nothing has come back to any of the others.
    for object in waiting(&shop).await? {
        let name = object.name_any();
        let status = object.status.context(name.clone())?;
        ensure!(
            status.state == Some(PullRequestState::Pending) && status.commit_sha.is_none(),
            "{name}: {}",
            json!(status)
        );
    }
    Ok(())
}
