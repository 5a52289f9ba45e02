//! A line that is bad for a while: refusals, answers that break off, watches that end.

use anyhow::{Result, ensure};
use axum::http::{Method, StatusCode};
use kube::api::{DeleteParams, PostParams};
use rstest::rstest;
use serde_json::json;
use sluice_crds::{Gate, GateSpec, Setting, State};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;

use crate::proxy::{Fault, Proxy};
use crate::stage::{DEADLINE, Stage};

/// A gate without gatekeepers.
fn gate(name: &str, default: Setting) -> Gate {
    let spec = GateSpec {
        default,
        ..GateSpec::default()
    };
    Gate::new(name, spec)
}

/// What the API server says when it refuses.
fn status(code: StatusCode, reason: &str) -> Fault {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "ordered by a test", "reason": reason, "code": code.as_u16(),
    });
    Fault::Answer(code, body.to_string())
}

/// A controller at the end of a bad line, and a gate that it has written.
async fn scene(word: &str) -> Result<(Stage, Proxy, InProcess)> {
    let stage = Stage::new(word, "2026-11-20T12:00:00Z").await?;
    let proxy = Proxy::start(stage.client()).await?;
    let controller = stage.start_in_real_time(proxy.client()?).await?;
    let first = gate("first", Setting::Open);
    stage.gates().create(&PostParams::default(), &first).await?;
    stage.says("first", State::Open, "Default").await?;
    Ok((stage, proxy, controller))
}

#[rstest]
#[case::too_many(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", 20)]
#[case::away(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", 20)]
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
    proxy.order(
        status(code, reason),
        Method::PATCH,
        "/gates/second/status",
        times.min(8),
    );
    let second = gate("second", Setting::Open);
    stage
        .gates()
        .create(&PostParams::default(), &second)
        .await?;
    stage.says("second", State::Open, "Default").await?;
    assert_eq!(proxy.outstanding(), 0);
    Ok(())
}

/// While one gate is refused again and again, the others go on.
#[tokio::test]
async fn a_refusal_holds_up_nobody_else() -> Result<()> {
    let (stage, proxy, _controller) = scene("others").await?;
    let refused = status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    proxy.order(refused, Method::PATCH, "/gates/second/status", usize::MAX);
    for name in ["second", "third"] {
        let gate = gate(name, Setting::Open);
        stage.gates().create(&PostParams::default(), &gate).await?;
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
    stage
        .gates()
        .create(&PostParams::default(), &second)
        .await?;
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
#[case::refused(Some(status(StatusCode::GONE, "Expired")))]
#[case::expired_later(Some(Fault::Answer(StatusCode::OK, expired())))]
#[tokio::test]
async fn nothing_is_missed_while_a_watch_is_down(#[case] then: Option<Fault>) -> Result<()> {
    let (stage, proxy, controller) = scene("unwatched").await?;
    let away = status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    proxy.order(away, Method::GET, "/gates?&watch=true", usize::MAX);
    proxy.cut();
    let gates = stage.gates();
    gates.delete("first", &DeleteParams::default()).await?;
    for (name, default) in [("second", Setting::Open), ("third", Setting::Closed)] {
        let gate = gate(name, default);
        gates.create(&PostParams::default(), &gate).await?;
    }
    proxy.repair();
    if let Some(fault) = then {
        proxy.order(fault, Method::GET, "/gates?&watch=true", 1);
    }
    stage.says("second", State::Open, "Default").await?;
    stage.says("third", State::Closed, "Default").await?;
    let known = || {
        let keys = controller.world().gates.keys().into_iter();
        let mut names: Vec<String> = keys.map(|key| key.name.to_string()).collect();
        names.sort();
        names
    };
    poll(DEADLINE, "the deletion to be noticed", async || {
        let known = known();
        ensure!(known == ["second", "third"], "{known:?}");
        Ok(())
    })
    .await?;
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
    gates.create(&PostParams::default(), &first).await?;
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
