//! What lets batches out: gates, windows, people.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use gate_controller::Settings;
use http::Method;
use kube::{Client, Config};
use serde_json::{Value, json};
use sluice_crds::{RolloutStatus, State};
use sluice_tests::controller::InProcess;
use sluice_tests::proxy::{Fault, Proxy};
use sluice_tests::stage::OFFICE_HOURS;
use sluice_tests::workloads::{Counts, Readiness};

use super::hooks::Hooks;
use super::play::{Play, in_three, is_blocked, of_pair};

#[tokio::test]
async fn a_gate_that_closes_holds_the_next_batch_and_stops_none_that_is_out() -> Result<()> {
    let play = Play::new("gate").await?;
    let (old, new) = play.pair(6).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&in_three())).await?;
    play.holds("GatesClosed").await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);

    play.gate("open").await?;
    new.until("to have a pod", |status| Counts::of(status).size == 1)
        .await?;
    // It closes while the pod of the batch is on its way: the other half of the batch is done all the same.
    play.gate("closed").await?;
    old.has(Counts::all(6)).await?;
    play.heal(&new, 1).await?;
    play.holds("GatesClosed").await?;
    old.has(Counts::all(5)).await?;
    play.gate("open").await?;
    play.heal(&new, 6).await?;
    play.succeeds().await?;
    Ok(())
}

#[tokio::test]
async fn a_person_raises_the_last_batch_that_may_go_out() -> Result<()> {
    let play = Play::new("last").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut plan = in_three();
    plan["lastBatchToRollout"] = json!(0);
    play.rollout(of_pair(&plan)).await?;
    let held = play.until("it to wait for a person", is_blocked).await?;
    let why = held.held.context("not held")?;
    assert_eq!(why.reason, "LastBatch");
    new.has(Counts::all(1)).await?;
    old.has(Counts::all(5)).await?;
    play.raise().await?;
    play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    Ok(())
}

/// Half of it is out when the office closes. It goes on by itself on Monday morning.
#[tokio::test]
async fn a_window_that_ends_holds_the_next_batch_until_the_next_one_begins() -> Result<()> {
    let play = Play::new("night").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.stage.apply(OFFICE_HOURS).await?;
    play.stage.set("2026-11-20T16:59:00Z");
    let controller = play.stage.start().await?;
    play.rollout(in_office_hours()).await?;
    new.until("to have pods", |status| Counts::of(status).size == 2)
        .await?;
    play.stage.set("2026-11-20T17:01:00Z");
    play.heal(&new, 2).await?;
    let held = play.holds("GatesClosed").await?.held.context("not held")?;
    ensure!(held.message.contains("2026-11-23"), "{}", held.message);
    old.has(Counts::all(2)).await?;
    for now in ["2026-11-21T12:00:00Z", "2026-11-23T08:59:59Z"] {
        play.stage.set(now);
        play.rests(&controller).await?;
        play.holds("GatesClosed").await?;
        new.has(Counts::all(2)).await?;
    }
    play.stage.set("2026-11-23T09:00:00Z");
    play.heal(&new, 4).await?;
    let status = play.succeeds().await?;
    let waited = status.batches[1].waited.unwrap_or(0);
    // From Friday's end to Monday's begin, in seconds.
    assert_eq!(waited, 63 * 3600 + 59 * 60);
    Ok(())
}

fn in_office_hours() -> Value {
    let mut spec = of_pair(&json!({"numBatches": 2}));
    spec["gates"] = json!({"refs": [{"name": "production"}]});
    spec
}

/// A gate that is forced, until this instant.
fn force(state: &str, until: &str) -> Value {
    json!({
        "sluice.dev/force": state, "sluice.dev/force-until": until,
        "sluice.dev/force-by": "alice", "sluice.dev/force-reason": "incident 4711",
    })
}

#[tokio::test]
async fn people_close_and_open_the_gate_of_a_batch() -> Result<()> {
    let play = Play::new("forced").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.stage.apply(OFFICE_HOURS).await?;
    let mut settings = play.stage.settings();
    settings.trust_unverified_identity = true;
    let controller = play.stage.start_with(settings).await?;
    play.rollout(in_office_hours()).await?;
    new.until("to have pods", |status| Counts::of(status).size == 2)
        .await?;
    play.stage
        .annotate("production", force("closed", "2026-11-20T14:00:00Z"))
        .await?;
    play.stage
        .says("production", State::Closed, "Forced")
        .await?;
    play.heal(&new, 2).await?;
    let held = play.holds("GatesClosed").await?.held.context("not held")?;
    ensure!(held.message.contains("incident 4711"), "{}", held.message);
    play.rests(&controller).await?;
    old.has(Counts::all(2)).await?;
    // In the night, the other way round.
    play.stage.set("2026-11-20T23:00:00Z");
    play.stage.out_of_hours().await?;
    play.rests(&controller).await?;
    play.holds("GatesClosed").await?;
    play.stage
        .annotate("production", force("open", "2026-11-21T01:00:00Z"))
        .await?;
    play.heal(&new, 4).await?;
    let status = play.succeeds().await?;
    let decision = status.batches[1].decision.clone().context("no decision")?;
    ensure!(decision.message.contains("incident 4711"), "{decision:?}");
    Ok(())
}

/// The answer that counts is the one of the instant at which the batch would go out: a hook may take long.
#[tokio::test]
async fn a_gate_that_closes_while_a_hook_is_called_keeps_the_batch_back() -> Result<()> {
    let play = Play::new("hooked").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[200]).await?;
    let line = Proxy::start(Client::try_from(Config::new(hooks.url.parse()?))?).await?;
    line.order_for(Fault::Hold, Method::POST, ("/", r#""batch":1"#), 1);
    let controller = play.stage.start_with_egress().await?;
    let hook = json!({
        "type": "pre-batch-rollout", "name": "ask", "url": line.url(), "timeout": "60s",
    });
    let plan = json!({"numBatches": 2, "rolloutWebhooks": [hook]});
    play.rollout(of_pair(&plan)).await?;
    line.came().await?;
    play.gate("closed").await?;
    play.holds("GatesClosed").await?;
    line.let_go();
    let is_answered = |status: &RolloutStatus| {
        let mut hooks = status.hooks.iter();
        hooks.any(|it| it.batch == Some(1) && it.done)
    };
    play.until("the answer to be recorded", is_answered).await?;
    play.rests(&controller).await?;
    let status = play.holds("GatesClosed").await?;
    let held = status.held.context("not held")?;
    assert_eq!(held.by, Some(format!("{}/office", play.stage.namespace())));
    ensure!(held.message.starts_with("batch 1 "), "{held:?}");
    ensure!(status.batches[1].decision.is_none(), "{:?}", status.batches);
    new.has(Counts::all(2)).await?;
    old.has(Counts::all(2)).await?;
    play.gate("open").await?;
    play.succeeds().await?;
    // The hook of each batch, which is not asked again.
    assert_eq!(hooks.calls().len(), 2);
    Ok(())
}

/// The settings of a controller that writes an audit log there.
fn recording(play: &Play, log: &Path) -> Result<Settings> {
    let mut settings = play.stage.settings();
    let log = log.to_str().context("no text")?;
    settings.audit_log = Some(log.parse().map_err(anyhow::Error::msg)?);
    Ok(settings)
}

/// What an audit log says of the batches of Rollouts, in its order: those that were let out, or those that were not.
fn recorded(log: &Path, allowed: bool) -> Result<Vec<String>> {
    let mut batches = Vec::new();
    for line in std::fs::read_to_string(log)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let decision = &line["event"]["decision"];
        let subject = &decision["subject"];
        if subject["kind"] == "Rollout" && decision["allowed"] == allowed {
            let word = |field: &str| subject[field].as_str().unwrap_or_default();
            batches.push(format!("{} {}", word("action"), word("step")));
        }
    }
    Ok(batches)
}

/// Each batch is a question and an answer of its own, which is recorded before anything goes out. Where it cannot
/// be recorded, nothing does.
#[tokio::test]
async fn a_batch_waits_until_its_answer_is_recorded() -> Result<()> {
    let play = Play::new("audited").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let required = |log: &Path| {
        let mut settings = recording(&play, log)?;
        settings.audit_required = true;
        Ok::<_, anyhow::Error>(settings)
    };
    // A disk that is full.
    let full = required(Path::new("/dev/full"))?;
    let controller = play.stage.start_with(full).await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.holds("GatesClosed").await?;
    play.rests(&controller).await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    old.has(Counts::all(4)).await?;
    controller.stop().await;

    let folder = tempfile::tempdir()?;
    let log = folder.path().join("audit.log");
    let controller = play.stage.start_with(required(&log)?).await?;
    play.succeeds().await?;
    controller.stop().await;
    // One decision for each batch.
    assert_eq!(recorded(&log, true)?, ["rollout 1/2", "advance 2/2"]);
    Ok(())
}

/// The controller is started again before each batch, while its pods are on their way, and after the end: it knows from
/// the status what was let out, and does not answer that once more.
#[tokio::test]
async fn each_batch_is_recorded_once_whenever_the_controller_is_started_again() -> Result<()> {
    let play = Play::new("recorded").await?;
    let (old, new) = play.pair(6).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("closed").await?;
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("audit.log");
    let mut controller = play.stage.start_with(recording(&play, &log)?).await?;
    let again = async |before: InProcess| {
        before.stop().await;
        let after = play.stage.start_with(recording(&play, &log)?).await?;
        play.rests(&after).await?;
        Ok::<_, anyhow::Error>(after)
    };
    play.rollout(of_pair(&in_three())).await?;
    for size in [1, 4, 6] {
        play.holds("GatesClosed").await?;
        controller = again(controller).await?;
        play.gate("open").await?;
        let is_out = |status: &Value| Counts::of(status).size == size;
        new.until("to have the pods of the batch", is_out).await?;
        play.gate("closed").await?;
        controller = again(controller).await?;
        play.heal(&new, size).await?;
    }
    play.succeeds().await?;
    again(controller).await?.stop().await;
    old.has(Counts::all(0)).await?;
    let batches = ["rollout 1/3", "advance 2/3", "advance 3/3"];
    assert_eq!(recorded(&log, true)?, batches);
    // Each of them has waited, which is recorded as well.
    let mut waited = recorded(&log, false)?;
    waited.dedup();
    assert_eq!(waited, batches);
    Ok(())
}
