//! Gatekeepers in other namespaces: whether they count is for the controller's flags to say, which
//! nobody else knows.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_crds::State;
use sluice_tests::{Applier, Namespace, Writes};

use super::{GATES, Going, run, says};
use crate::stage::Stage;

/// A gate named `crossing` that names the open gatekeeper of another namespace.
async fn crossing(word: &str) -> Result<(Stage, Namespace)> {
    let stage = Stage::new(word, "2026-11-20T12:00:00Z").await?;
    let platform = Namespace::create(stage.cluster(), "platform").await?;
    let applier = Applier::new(stage.client()).in_namespace(platform.name());
    applier.text(GATES).await?;
    let reference = json!({"name": "on", "namespace": platform.name()});
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "crossing"},
        "spec": {"gatekeepers": [reference]},
    });
    stage.apply(&gate.to_string()).await?;
    Ok((stage, platform))
}

#[tokio::test]
async fn what_the_controller_forbids_is_forbidden_here_too() -> Result<()> {
    let (stage, platform) = crossing("cli-forbidden").await?;
    let mut settings = stage.settings();
    settings.no_cross_namespace_refs = true;
    let _controller = stage.start_with(settings).await?;
    stage
        .says("crossing", State::Closed, "CrossNamespaceRef")
        .await?;
    let words = format!(
        "crossing is Closed (CrossNamespaceRef): {}/on: it is in another namespace, which \
         --no-cross-namespace-refs or --watch-all-namespaces=false forbids",
        platform.name()
    );
    says(&stage, "admin", &["check", "crossing"], 1, &words).await?;
    let mut waiting = Going::start(&stage, "admin", &["wait", "crossing"])?;
    let first = waiting.line().await?;
    ensure!(first == format!("waiting: {words}"), "{first}");
    let why = ["why", "crossing"];
    says(
        &stage,
        "admin",
        &why,
        0,
        "(CrossNamespaceRef), which decides",
    )
    .await?;
    let calendar = ["calendar", "crossing", "-o", "json"];
    let told = run(&stage, "admin", &calendar).await?.out;
    ensure!(told.contains("Closed") && !told.contains("Open"), "{told}");
    // Its own namespace may name it all the same.
    let table = run(&stage, "admin", &["get", "-A"]).await?.out;
    let row = |namespace: &str, gate: &str| {
        let mut rows = table.lines().map(|line| line.split_whitespace());
        let row = rows.find_map(|mut row| {
            (row.next() == Some(namespace) && row.next() == Some(gate)).then(|| row.next())
        });
        row.flatten().map(str::to_owned)
    };
    let states = [
        row(stage.namespace(), "crossing"),
        row(platform.name(), "open"),
    ];
    ensure!(
        states.each_ref().map(Option::as_deref) == [Some("Closed"), Some("Open")],
        "{table}"
    );
    Ok(())
}

/// A controller that watches one namespace sees no other's gatekeepers.
#[tokio::test]
async fn what_the_controller_does_not_see_does_not_count_here_either() -> Result<()> {
    let (stage, platform) = crossing("cli-unseen").await?;
    let _controller = stage.start().await?;
    stage
        .says("crossing", State::Closed, "CrossNamespaceRef")
        .await?;
    let words = format!(
        "{}/on: it is in another namespace, which --no-cross-namespace-refs or \
         --watch-all-namespaces=false forbids",
        platform.name()
    );
    says(&stage, "admin", &["check", "crossing"], 1, &words).await?;
    Ok(())
}

/// What counts is whether the controller follows the reference; what comes of it is decided here.
#[tokio::test]
async fn what_the_controller_follows_is_decided_here_and_now() -> Result<()> {
    let (stage, platform) = crossing("cli-followed").await?;
    let check = ["check", "crossing"];
    let unsaid = "crossing is Closed (NotObserved): ";
    says(&stage, "admin", &check, 1, unsaid).await?;

    let gates = stage.gates();
    let generation = gates.get("crossing").await?.metadata.generation;
    let verdict = json!({
        "gatekeeper": format!("{}/on", platform.name()),
        "state": "Closed", "reason": "Manual", "message": "switched closed",
    });
    let followed = |generation: Option<i64>| {
        let status = json!({"observedGeneration": generation, "verdicts": [verdict.clone()]});
        json!({ "status": status })
    };
    let older = generation.context("no generation")? - 1;
    gates
        .merge_status("crossing", followed(Some(older)))
        .await?;
    says(&stage, "admin", &check, 1, unsaid).await?;
    gates.merge_status("crossing", followed(generation)).await?;
    says(&stage, "admin", &check, 0, "crossing is Open (Manual): ").await?;
    Ok(())
}
