//! A line that is bad for a while: refusals, answers that break off, watches that end, silence.

use std::time::Duration;

use anyhow::{Result, ensure};
use axum::http::{Method, StatusCode};
use kube::Client;
use rstest::rstest;
use serde_json::json;
use sluice_crds::{Setting, State};
use sluice_tests::controller::InProcess;
use sluice_tests::proxy::{Fault, Proxy, refusal};
use sluice_tests::{Writes, poll};

use super::knows;
use crate::stage::{DEADLINE, OFFICE_HOURS, Stage, gate};

/// A controller at the end of a bad line, and a gate that it has written.
async fn scene(word: &str) -> Result<(Stage, Proxy, InProcess)> {
    let stage = Stage::new(word, "2026-11-20T12:00:00Z").await?;
    let proxy = Proxy::start(stage.client()).await?;
    let controller = stage.start_in_real_time(proxy.client()?).await?;
    let first = gate("first", Setting::Open);
    stage.gates().add(&first).await?;
    stage.says("first", State::Open, "Default").await?;
    Ok((stage, proxy, controller))
}

#[rstest]
#[case::too_many(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", 3)]
#[case::away(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", 3)]
#[case::slow(StatusCode::GATEWAY_TIMEOUT, "Timeout", 3)]
#[case::broken(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", 2)]
#[case::conflict(StatusCode::CONFLICT, "Conflict", 2)]
#[tokio::test]
async fn what_is_refused_is_tried_again(
    #[case] code: StatusCode,
    #[case] reason: &str,
    #[case] times: usize,
) -> Result<()> {
    let (stage, proxy, _controller) = scene("refused").await?;
    let refused = refusal(code, reason);
    proxy.order(refused, Method::PATCH, "/gates/second/status", times);
    let second = gate("second", Setting::Open);
    stage.gates().add(&second).await?;
    stage.says("second", State::Open, "Default").await?;
    assert_eq!(proxy.outstanding(), 0);
    Ok(())
}

/// Where writes to one kind hang, as they do behind an admission webhook that does not answer, other
/// kinds are written as before: sooner than the worker gives one such write up.
#[tokio::test]
async fn a_kind_whose_writes_hang_holds_up_no_other() -> Result<()> {
    let (stage, proxy, _controller) = scene("hanging").await?;
    proxy.order(Fault::Hold, Method::PATCH, "/gatekeepers/", usize::MAX);
    let before = proxy.outstanding();
    stage
        .apply(OFFICE_HOURS.split_once("---").unwrap().0)
        .await?;
    let hang = async || {
        ensure!(proxy.outstanding() < before, "nothing hangs");
        Ok(())
    };
    poll(DEADLINE, "a write to hang", hang).await?;
    let second = gate("second", Setting::Open);
    let gates = stage.gates();
    gates.add(&second).await?;
    poll(DEADLINE / 2, "the gate to be written", async || {
        let status = gates.get("second").await?.status;
        ensure!(status.is_some_and(|it| it.state == Some(State::Open)));
        Ok(())
    })
    .await
}

/// While one gate is refused again and again, the others go on.
#[tokio::test]
async fn a_refusal_holds_up_nobody_else() -> Result<()> {
    let (stage, proxy, _controller) = scene("others").await?;
    let refused = refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    proxy.order(refused, Method::PATCH, "/gates/second/status", usize::MAX);
    for name in ["second", "third"] {
        let gate = gate(name, Setting::Open);
        stage.gates().add(&gate).await?;
    }
    stage.says("third", State::Open, "Default").await?;
    ensure!(stage.gates().get("second").await?.status.is_none());
    proxy.repair();
    stage.says("second", State::Open, "Default").await?;
    Ok(())
}

/// The write was taken, but nobody said so: it is not made again, or it changes nothing.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_made_twice() -> Result<()> {
    let (stage, proxy, _controller) = scene("lost").await?;
    proxy.order(Fault::BreakOff, Method::PATCH, "/gates/second/status", 1);
    let second = gate("second", Setting::Open);
    stage.gates().add(&second).await?;
    let written = stage.until("second", "a status", |_| true).await?;
    assert_eq!(proxy.outstanding(), 0);

    // An answer to this comes after every other try.
    let request = json!({"reconcile.fluxcd.io/requestedAt": "now"});
    let asked = stage.annotate("second", request).await?;
    assert_eq!(asked.status, written.status);
    stage
        .until("second", "to answer", |status| {
            status.last_handled_reconcile_at.as_deref() == Some("now")
        })
        .await?;
    let patches = proxy.count(&Method::PATCH, "/gates/second/status");
    assert_eq!(patches, 2);
    Ok(())
}

/// What happened while nobody watched is noticed: from where the watch broke off, or from a new
/// list where the API server has forgotten that far back.
#[rstest]
#[case::broken_off(None)]
#[case::refused(Some(refusal(StatusCode::GONE, "Expired")))]
#[case::expired_later(Some(Fault::Answer(StatusCode::OK, expired())))]
#[tokio::test]
async fn nothing_is_missed_while_a_watch_is_down(#[case] then: Option<Fault>) -> Result<()> {
    let (stage, proxy, controller) = scene("unwatched").await?;
    let away = refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    proxy.order(away, Method::GET, "/gates?&watch=true", usize::MAX);
    proxy.cut();
    let gates = stage.gates();
    gates.remove("first").await?;
    for (name, default) in [("second", Setting::Open), ("third", Setting::Closed)] {
        let gate = gate(name, default);
        gates.add(&gate).await?;
    }
    proxy.repair();
    if let Some(fault) = then {
        proxy.order(fault, Method::GET, "/gates?&watch=true", 1);
    }
    stage.says("second", State::Open, "Default").await?;
    stage.says("third", State::Closed, "Default").await?;
    knows(&controller, &["second", "third"]).await?;
    assert_eq!(proxy.outstanding(), 0);
    Ok(())
}

/// How a watch ends that was accepted, and whose past is gone.
fn expired() -> String {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    format!("{}\n", json!({"type": "ERROR", "object": status}))
}

/// Nothing is decided before everything has been listed.
#[tokio::test]
async fn nothing_is_written_before_everything_is_known() -> Result<()> {
    let stage = Stage::new("unsynced", "2026-11-20T12:00:00Z").await?;
    let gates = stage.gates();
    let first = gate("first", Setting::Open);
    gates.add(&first).await?;
    let proxy = Proxy::start(stage.client()).await?;
    proxy.order(Fault::Hold, Method::GET, "/gatekeepers?", 1);
    let controller = stage.start_in_real_time(proxy.client()?).await?;
    poll(DEADLINE, "the gates to be listed", async || {
        ensure!(controller.world().gates.is_synced(), "not yet");
        Ok(())
    })
    .await?;
    let ready = async || crate::told::get(controller.health()?, "/readyz").await;
    assert_eq!(
        ready().await?,
        (503, "the caches have not synced yet\n".to_owned())
    );
    let alive = crate::told::get(controller.health()?, "/healthz").await?;
    assert_eq!(alive, (200, "ok\n".to_owned()));
    assert_eq!(gates.get("first").await?.status, None);

    proxy.let_go();
    stage.says("first", State::Open, "Default").await?;
    assert_eq!(ready().await?, (200, "ok\n".to_owned()));
    Ok(())
}

/// The API server may take a request and say nothing, ever. A controller whose client waits for ever
/// too would never decide anything; the program's gives a silent server up, later than this.
#[tokio::test]
async fn a_list_that_is_never_answered_is_asked_for_again() -> Result<()> {
    let stage = Stage::new("silent", "2026-11-20T12:00:00Z").await?;
    let first = gate("first", Setting::Open);
    stage.gates().add(&first).await?;
    let proxy = Proxy::start(stage.client()).await?;
    proxy.order(Fault::Hold, Method::GET, "/gatekeepers?", 1);
    let mut config = proxy.config()?;
    config.read_timeout = Some(Duration::from_secs(5));
    config.reset_reader_on_write = true;
    let client = Client::try_from(config)?;
    let _controller = stage.start_in_real_time(client).await?;
    stage.says("first", State::Open, "Default").await?;
    assert_eq!(proxy.outstanding(), 0);
    Ok(())
}
