//! What lets batches out: gates, windows, people.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_tests::stage::OFFICE_HOURS;
use sluice_tests::workloads::{Counts, Readiness};

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

/// Each batch is a question and an answer of its own, which is recorded before anything goes out. Where it cannot
/// be recorded, nothing does.
#[tokio::test]
async fn a_batch_waits_until_its_answer_is_recorded() -> Result<()> {
    let play = Play::new("audited").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let required = |path: &str| {
        let mut settings = play.stage.settings();
        settings.audit_log = Some(path.parse().map_err(anyhow::Error::msg)?);
        settings.audit_required = true;
        Ok::<_, anyhow::Error>(settings)
    };
    // A disk that is full.
    let controller = play.stage.start_with(required("/dev/full")?).await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.holds("GatesClosed").await?;
    play.rests(&controller).await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    old.has(Counts::all(4)).await?;
    controller.stop().await;

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("audit.log");
    let path = path.to_str().context("no text")?;
    let controller = play.stage.start_with(required(path)?).await?;
    play.succeeds().await?;
    controller.stop().await;
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let subject = |line: &Value| line["event"]["decision"]["subject"].clone();
    let ours = lines
        .iter()
        .map(subject)
        .filter(|it| it["kind"] == "Rollout");
    let steps: Vec<_> = ours
        .map(|it| (it["action"].clone(), it["step"].clone()))
        .collect();
    // One decision for each batch.
    let expected = [("rollout", "1/2"), ("advance", "2/2")];
    let expected = expected.map(|(action, step)| (json!(action), json!(step)));
    assert_eq!(steps, expected, "{text}");
    Ok(())
}
