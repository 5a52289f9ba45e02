//! A force that opens counts once the controller has noted it, and not before.

use anyhow::{Result, ensure};
use axum::http::{Method, StatusCode};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::json;
use sluice_crds::{GateStatus, State};
use sluice_tests::controller::InProcess;
use sluice_tests::proxy::{Fault, Proxy};
use sluice_tests::{Writes, poll};

use super::{annotation, force};
use crate::stage::{DEADLINE, OFFICE_HOURS, Stage, at};

/// The request that completes the annotations of a force.
const COMPLETION: &str = "/gates/production?";

/// A gate that is closed, and a controller that believes everybody at the end of a line.
async fn evening(word: &str) -> Result<(Stage, Proxy, InProcess)> {
    let stage = Stage::new(word, "2026-11-20T19:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let proxy = Proxy::start(stage.client()).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let controller = InProcess::start(settings, proxy.client()?, stage.clock()).await?;
    stage.out_of_hours().await?;
    Ok((stage, proxy, controller))
}

fn refused() -> Fault {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "ordered by a test", "reason": "Forbidden", "code": 403,
    });
    Fault::Answer(StatusCode::FORBIDDEN, status.to_string())
}

fn says(status: &GateStatus, words: &str) -> bool {
    let message = status.message.as_deref().unwrap_or_default();
    message.contains(words)
}

/// What the controller decides at this instant, whatever the status says.
async fn decides(stage: &Stage, controller: &InProcess, now: &str) -> Result<State> {
    let gate = stage.gates().get("production").await?;
    Ok(controller.world().answer(&gate, at(now)).state)
}

#[tokio::test]
async fn a_force_that_cannot_be_noted_does_not_open_and_says_why() -> Result<()> {
    let (stage, proxy, controller) = evening("unnoted").await?;
    proxy.order(refused(), Method::PATCH, COMPLETION, usize::MAX);
    stage.annotate("production", force("open", "admin")).await?;
    let words = "metadata.annotations[sluice.dev/force-seen]: the controller has not accepted the \
                 force open by admin, so it does not count yet: cannot patch gates: no right to; \
                 grant the verbs patch on gates in group `sluice.dev` (ordered by a test)";
    let told = |status: &GateStatus| says(status, words);
    let gate = stage.until("production", words, told).await?;
    let status = gate.status.unwrap();
    assert_eq!(
        (status.state, status.r#override),
        (Some(State::Closed), None)
    );

    // It is tried again, for days, and the status stays as it is.
    stage.settle().await?;
    let version = stage.version("production").await?;
    for now in [
        "2026-11-20T19:30:00Z",
        "2026-11-20T20:30:00Z",
        "2026-11-23T08:59:59Z",
    ] {
        let tries = proxy.count(&Method::PATCH, COMPLETION);
        stage.set(now);
        poll(DEADLINE, "another try", async || {
            ensure!(proxy.count(&Method::PATCH, COMPLETION) > tries, "{now}");
            Ok(())
        })
        .await?;
        stage.settle().await?;
        assert_eq!(decides(&stage, &controller, now).await?, State::Closed);
        assert_eq!(stage.version("production").await?, version, "{now}");
    }

    // What falls due before the next try is written at its instant.
    stage.set("2026-11-23T09:00:00Z");
    stage.in_hours().await?;
    stage.set("2026-11-23T17:00:00Z");
    stage.out_of_hours().await?;

    // The try of this instant is over: one that fails at the next is not repeated there.
    stage.settle().await?;
    proxy.repair();
    stage.set("2026-11-23T18:00:00Z");
    let forced = stage.says("production", State::Open, "Forced").await?;
    let effective = forced.r#override.clone().unwrap();
    assert_eq!(effective.since.0, at("2026-11-23T18:00:00Z"));
    assert_eq!(effective.until.0, at("2026-11-23T19:00:00Z"));
    ensure!(!says(&forced, "metadata.annotations"), "{forced:?}");
    stage.set("2026-11-23T19:00:00Z");
    stage.out_of_hours().await?;
    Ok(())
}

#[tokio::test]
async fn a_force_that_closes_counts_although_it_cannot_be_noted() -> Result<()> {
    let (stage, proxy, controller) = evening("unnoted").await?;
    stage.set("2026-11-23T09:00:00Z");
    stage.in_hours().await?;
    proxy.order(refused(), Method::PATCH, COMPLETION, usize::MAX);
    stage
        .annotate("production", force("closed", "admin"))
        .await?;
    // What closes is told at once; that it cannot be noted, after that.
    stage.says("production", State::Closed, "Forced").await?;
    let words = "forced closed by admin: incident 4711. metadata.annotations[sluice.dev/force-seen]: \
                 the controller has not accepted the force closed by admin, so it counts, \
                 but its end is not fixed yet: cannot patch gates: no right to";
    stage
        .until("production", words, |status| says(status, words))
        .await?;
    stage.settle().await?;
    let version = stage.version("production").await?;
    stage.set("2026-11-23T14:00:00Z");
    stage.settle().await?;
    assert_eq!(stage.version("production").await?, version);
    let now = "2026-11-23T14:00:00Z";
    assert_eq!(decides(&stage, &controller, now).await?, State::Closed);
    Ok(())
}

/// Nobody is told that the gate is open before that is written down with its end.
#[tokio::test]
async fn a_force_is_noted_before_the_gate_is_reported_open() -> Result<()> {
    let (stage, proxy, controller) = evening("noted-first").await?;
    proxy.order(Fault::Hold, Method::PATCH, COMPLETION, 1);
    stage.annotate("production", force("open", "admin")).await?;
    poll(DEADLINE, "the completion", async || {
        ensure!(proxy.outstanding() == 0, "not yet");
        Ok(())
    })
    .await?;
    let gate = stage.gates().get("production").await?;
    assert_eq!(gate.status.unwrap().state, Some(State::Closed));
    let now = "2026-11-20T19:00:00Z";
    assert_eq!(decides(&stage, &controller, now).await?, State::Closed);

    let statuses = proxy.count(&Method::PATCH, "/gates/production/status");
    proxy.let_go();
    stage.says("production", State::Open, "Forced").await?;
    assert_eq!(decides(&stage, &controller, now).await?, State::Open);
    // Both in one look, one write each.
    stage.settle().await?;
    assert_eq!(proxy.count(&Method::PATCH, COMPLETION), 1);
    let now = proxy.count(&Method::PATCH, "/gates/production/status");
    assert_eq!(now, statuses + 1);
    Ok(())
}

/// How long a request of the RFC lasts is noted with it: a longer window does not bring it back.
#[tokio::test]
async fn a_longer_window_revives_no_request() -> Result<()> {
    let (stage, _proxy, _controller) = evening("revived").await?;
    let request = json!({"open.gate.fluxcd.io/requestedAt": "2026-11-20T19:00:00Z"});
    stage.annotate("production", request).await?;
    stage.says("production", State::Open, "Forced").await?;
    let gate = stage.gates().get("production").await?;
    let seen = annotation(&gate, "sluice.dev/force-seen")?;
    ensure!(seen.contains(r#""window":"1h""#), "{seen}");
    stage.set("2026-11-20T20:00:00Z");
    stage.out_of_hours().await?;

    stage
        .apply(&OFFICE_HOURS.replace("spec: {gatekeepers", "spec: {window: 4h, gatekeepers"))
        .await?;
    let generation = stage.gates().get("production").await?.metadata.generation;
    let seen = |status: &GateStatus| status.observed_generation == generation;
    let gate = stage.until("production", "the new window", seen).await?;
    ensure!(gate.annotations().contains_key("sluice.dev/force-seen"));
    assert_eq!(gate.status.unwrap().state, Some(State::Closed));
    Ok(())
}

/// The note is the controller's alone: anyone who restores a gate leaves it out.
#[tokio::test]
async fn a_backup_is_restored_without_the_note() -> Result<()> {
    let stage = Stage::installed("backup", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let _controller = stage.start().await?;
    stage
        .annotate("production", force("closed", "admin"))
        .await?;
    stage.says("production", State::Closed, "Forced").await?;
    // What closes a gate is told first, and noted then.
    stage.settle().await?;
    let gates = stage.gates();
    let mut backup = gates.get("production").await?;
    backup.metadata = ObjectMeta {
        name: backup.metadata.name,
        annotations: backup.metadata.annotations,
        ..ObjectMeta::default()
    };
    gates.remove("production").await?;

    let restored = gates.add(&backup).await;
    let refused = restored.err().map(|error| error.to_string());
    let words = "metadata.annotations[sluice.dev/force-seen]: is written by the controller alone";
    ensure!(
        refused.as_ref().is_some_and(|why| why.contains(words)),
        "{refused:?}"
    );
    backup
        .annotations_mut()
        .retain(|name, _| !name.starts_with("sluice.dev/force"));
    gates.add(&backup).await?;
    stage.in_hours().await?;
    Ok(())
}
