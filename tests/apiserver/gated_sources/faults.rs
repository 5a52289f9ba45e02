//! Gated sources at the end of a bad line to the API server.

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use rstest::rstest;
use serde_json::json;
use sluice_crds::State;
use sluice_tests::controller::InProcess;
use sluice_tests::poll;
use sluice_tests::proxy::{Fault, Proxy, refusal};

use super::scene::{Scene, commit};
use crate::stage::DEADLINE;

/// Where children are made, and where the status is written.
const CHILDREN: &str = "/gitrepositories?";
const STATUS: &str = "/gatedsources/app/status";

/// A gate is open, a revision is there, and a controller is at the end of a line that `order` makes bad.
async fn scene(word: &str, order: impl Fn(&Proxy)) -> Result<(Scene, Proxy, InProcess)> {
    let scene = Scene::new(word).await?;
    scene.gate("open").await?;
    scene.upstream("main", &commit('a')).await?;
    scene.gated(json!({})).await?;
    let proxy = Proxy::start(scene.stage.client()).await?;
    order(&proxy);
    let controller = scene.stage.start_in_real_time(proxy.client()?).await?;
    Ok((scene, proxy, controller))
}

/// What cannot be written into the status is not done: the next replica could not know of it.
#[tokio::test]
async fn nothing_goes_out_before_it_is_written_down() -> Result<()> {
    let refused = || refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    let order = |proxy: &Proxy| proxy.order(refused(), Method::PATCH, STATUS, usize::MAX);
    let (scene, proxy, _controller) = scene("gated-unwritten", order).await?;
    poll(DEADLINE, "the status to be tried again", async || {
        let tries = proxy.count(&Method::PATCH, STATUS);
        ensure!(tries >= 2, "{tries} tries");
        Ok(())
    })
    .await?;
    ensure!(proxy.count(&Method::POST, CHILDREN) == 0, "it went out");
    ensure!(scene.child().await?.is_none(), "it went out");
    proxy.repair();
    scene.pinned(&commit('a')).await?;
    Ok(())
}

/// Once it is written down it is done, however often the API server refuses that, and the gate may close
/// meanwhile.
#[rstest]
#[case::too_many(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")]
#[case::broken(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")]
#[case::conflict(StatusCode::CONFLICT, "Conflict")]
#[case::kind_unknown_to_this_server(StatusCode::NOT_FOUND, "NotFound")]
#[tokio::test]
async fn what_is_written_down_is_done_in_the_end(
    #[case] code: StatusCode,
    #[case] reason: &str,
) -> Result<()> {
    let order = |proxy: &Proxy| proxy.order(refusal(code, reason), Method::POST, CHILDREN, 2);
    let (scene, proxy, _controller) = scene("gated-refused", order).await?;
    poll(DEADLINE, "the admission", async || {
        let status = scene.get().await?.status.context("no status")?;
        status.admitted.context("nothing is admitted")
    })
    .await?;
    scene.gate("closed").await?;
    scene.pinned(&commit('a')).await?;
    ensure!(proxy.outstanding() == 0);
    Ok(())
}

/// A write was taken, but nobody said so: it is not done a second time.
#[rstest]
#[case::of_the_status(Method::PATCH, STATUS)]
#[case::of_the_child(Method::POST, CHILDREN)]
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_done_twice(
    #[case] method: Method,
    #[case] part: &str,
) -> Result<()> {
    let order = |proxy: &Proxy| proxy.order(Fault::BreakOff, method.clone(), part, 1);
    let (scene, proxy, _controller) = scene("gated-lost", order).await?;
    let child = scene.pinned(&commit('a')).await?;
    ensure!(proxy.outstanding() == 0);
    scene
        .fetched("app", &format!("main@sha1:{}", commit('a')))
        .await?;
    let first = scene.until("Ready", "True", "Serving").await?;
    let admitted = |status: Option<sluice_crds::GatedSourceStatus>| status?.admitted;
    let first = admitted(first.status).context("nothing is out")?;
    scene.upstream("main", &commit('b')).await?;
    let after = scene.pinned(&commit('b')).await?;
    // The same child, written twice: as it was made, and for the second revision.
    ensure!(after.metadata.uid == child.metadata.uid);
    ensure!(after.metadata.generation == Some(2), "{after:?}");
    let second = admitted(scene.get().await?.status).context("nothing is out")?;
    ensure!(second.at >= first.at && second.revision != first.revision);
    Ok(())
}

/// The line is down while a source moves on and the gate opens: what is out is left alone, and what has
/// happened is seen as soon as the line is good again.
#[tokio::test]
async fn what_happens_while_the_line_is_down_is_seen_afterwards() -> Result<()> {
    let (scene, proxy, _controller) = scene("gated-unwatched", |_| {}).await?;
    let before = scene.pinned(&commit('a')).await?;
    scene
        .fetched("app", &format!("main@sha1:{}", commit('a')))
        .await?;
    scene.until("Ready", "True", "Serving").await?;
    scene.gate("closed").await?;
    scene
        .stage
        .says("production", State::Closed, "Default")
        .await?;
    let away = refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
    proxy.order(away, Method::GET, "watch=true", usize::MAX);
    proxy.cut();
    scene.upstream("main", &commit('b')).await?;
    scene.gate("open").await?;
    let child = scene.child().await?.context("no child")?;
    ensure!(child.spec == before.spec, "{:?}", child.spec);
    proxy.repair();
    scene.pinned(&commit('b')).await?;
    Ok(())
}
