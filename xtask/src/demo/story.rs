//! The story: a table, a freeze, a force, two votes, a calendar, a window.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::Value;
use sluice_crds::{Gate, State};
use sluice_tests::poll;

use super::screen::Screen;
use super::stage::{Controller, Stage};
use super::{NAMESPACE, PEOPLE, kubectl_gate};

/// How long anything may take that comes about at once.
const SOON: Duration = Duration::from_secs(20);
/// What is approved of.
const COMMIT: &str = "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
/// How long the force of the story lasts.
const FORCE: &str = "10s";

pub(super) async fn tell(screen: &Screen, stage: &Stage) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(stage.client.clone(), NAMESPACE);
    decided(&gates).await?;
    screen.scene("Gates, their state, why, and until when");
    show(screen, stage, &["get"]).await?;
    screen.scene("Office hours, but no deploys on Fridays");
    show(screen, stage, &["why", "production"]).await?;
    force(screen, stage, &gates).await?;
    approve(screen, stage).await?;
    screen.scene("The coming week");
    show(
        screen,
        stage,
        &["calendar", "production", "payroll", "--days", "7"],
    )
    .await?;
    window(screen, &gates).await
}

/// Waits for the first decisions.
async fn decided(gates: &Api<Gate>) -> Result<()> {
    poll(SOON, "every gate to be decided", async || {
        let all = gates.list(&kube::api::ListParams::default()).await?;
        let decided = |gate: &Gate| {
            gate.status
                .as_ref()
                .is_some_and(|status| status.state.is_some())
        };
        ensure!(
            !all.items.is_empty() && all.items.iter().all(decided),
            "some are not"
        );
        Ok::<_, anyhow::Error>(())
    })
    .await
}

pub(super) async fn show(screen: &Screen, stage: &Stage, arguments: &[&str]) -> Result<()> {
    screen.command("alice", &format!("kubectl gate {}", arguments.join(" ")));
    let said = kubectl_gate(stage, "alice", arguments).await?;
    screen.quote(&said.text);
    ensure!(said.success, "kubectl gate {} failed", arguments.join(" "));
    Ok(())
}

/// A force that is refused to one, granted to another, and runs out.
async fn force(screen: &Screen, stage: &Stage, gates: &Api<Gate>) -> Result<()> {
    screen.scene("Forcing a gate needs a right of its own, a name, a reason and an end");
    // On any day of the week: force the gate to the state that it is not in.
    let before = state(&gates.get("production").await?)?;
    let (verb, forced) = match before {
        State::Closed | State::Conditional => ("open", State::Open),
        State::Open => ("close", State::Closed),
    };
    ask(screen, stage, verb, "production", FORCE).await?;
    let is = async |wanted: State| {
        poll(SOON, &format!("production to be {wanted}"), async || {
            let gate = gates.get("production").await?;
            ensure!(state(&gate)? == wanted, "it is {}", state(&gate)?);
            Ok::<_, anyhow::Error>(gate)
        })
        .await
    };
    let gate = is(forced).await?;
    screen.happened(message(&gate));
    let gate = is(before).await?;
    screen.happened("the force has run out");
    screen.happened(message(&gate));
    Ok(())
}

/// Asks for a force, which is refused to alice and granted to bob.
pub(super) async fn ask(
    screen: &Screen,
    stage: &Stage,
    verb: &str,
    gate: &str,
    length: &str,
) -> Result<()> {
    let arguments = [verb, gate, "--for", length, "--reason", "hotfix 4711"];
    let command = format!("kubectl gate {verb} {gate} --for {length} --reason 'hotfix 4711'");
    for (who, granted) in [("alice", false), ("bob", true)] {
        screen.command(who, &command);
        let said = kubectl_gate(stage, who, &arguments).await?;
        screen.quote(&said.text);
        ensure!(
            said.success == granted,
            "{who} should have been {}",
            if granted { "granted" } else { "refused" }
        );
    }
    Ok(())
}

/// What is on record about prod: the decisions that are `wanted`, and who has forced a gate.
pub(super) async fn record(
    screen: &Screen,
    stage: &Stage,
    controller: &Controller,
    wanted: impl Fn(&Value) -> bool,
) -> Result<()> {
    screen.scene("Who let it out, and why? What the controller has logged about prod");
    let log = controller.process.log()?;
    let decisions = log.iter().filter(|line| line["target"] == "decision");
    for line in decisions.filter(|line| wanted(line)) {
        // With blanks, so that it can be broken.
        screen.quote(&line.to_string().replace(",\"", ", \""));
    }
    let log = controller.audit.display().to_string();
    let arguments = ["audit", &log, "--type", "override"];
    let command = arguments.join(" ").replace(&log, "audit.log");
    screen.command("alice", &format!("kubectl gate {command}"));
    let said = kubectl_gate(stage, "alice", &arguments).await?;
    screen.quote(&said.text);
    ensure!(said.success, "kubectl gate audit failed");
    Ok(())
}

/// Two people who say yes to one commit, each in their own name.
async fn approve(screen: &Screen, stage: &Stage) -> Result<()> {
    screen.scene("Two people approve of one commit, and of nothing that comes after it");
    for who in PEOPLE {
        let vote = ["approve", "billing", "--revision", COMMIT];
        screen.command(who, &format!("kubectl gate {}", vote.join(" ")));
        let said = kubectl_gate(stage, who, &vote).await?;
        screen.quote(&said.text);
        ensure!(said.success, "{who} could not approve");
    }
    let wait = ["wait", "billing", "--timeout", "20s", "--revision", COMMIT];
    show(screen, stage, &wait).await
}

/// A window that opens and closes, each change with its delay.
async fn window(screen: &Screen, gates: &Api<Gate>) -> Result<()> {
    screen.scene("A maintenance window, half of every minute (the next two changes)");
    let config = watcher::Config::default().fields("metadata.name=maintenance");
    let mut changes = watcher(gates.clone(), config)
        .default_backoff()
        .applied_objects()
        .boxed();
    let first = next(&mut changes).await?;
    screen.fact(message(&first));
    let mut was = first;
    for _ in 0..2 {
        let due = upcoming(&was).context("the window has no next change")?;
        screen.waiting(&format!("waiting for {due}"));
        let gate = loop {
            let gate = next(&mut changes).await?;
            if state(&gate)? != state(&was)? {
                break gate;
            }
        };
        let late = now().duration_since(due);
        screen.waited();
        screen.happened(&format!(
            "{} at {due}, in the status {} ms later: {}",
            state(&gate)?,
            late.as_millis(),
            message(&gate)
        ));
        was = gate;
    }
    Ok(())
}

async fn next<S>(changes: &mut S) -> Result<Gate>
where
    S: futures::Stream<Item = Result<Gate, watcher::Error>> + Unpin,
{
    let change = tokio::time::timeout(Duration::from_secs(90), changes.try_next()).await;
    change
        .context("the maintenance window did not change")??
        .context("the watch ended")
}

fn state(gate: &Gate) -> Result<State> {
    match gate.status.as_ref().and_then(|status| status.state) {
        Some(state) => Ok(state),
        None => bail!("gate {} has not been decided", gate.name_any()),
    }
}

fn message(gate: &Gate) -> &str {
    gate.status
        .as_ref()
        .and_then(|status| status.message.as_deref())
        .unwrap_or_default()
}

fn upcoming(gate: &Gate) -> Option<Timestamp> {
    Some(gate.status.as_ref()?.upcoming.first()?.at.0)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the demo measures how late a change is seen, and writes windows around the present"
)]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
