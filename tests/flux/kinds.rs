//! Sources of other kinds than Git, and other strategies than pinning.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_tests::Writes;
use sluice_tests::flux::{Charts, Git};

use crate::copies::{copied, storing};
use crate::delivery::{APP, CLOSED, Delivery, GATE, OPEN, UPSTREAM, says};
use crate::stage::{Stage, app};

const NOW: &str = "2026-11-19T12:00:00Z";

/// A HelmRelease uses the gated chart by `chartRef`: a new version waits, and is released.
#[tokio::test]
async fn a_chart_is_promoted_through_chart_ref() -> Result<()> {
    let stage = Stage::new("charts", NOW).await?;
    let charts = Charts::serve().await?;
    charts.publish(UPSTREAM, "1.0.0", &[("app.yaml", &app(APP, "one"))])?;
    let _controller = stage.releases(&charts).await?;
    stage.keep(GATE, CLOSED).await?;
    charts.publish(UPSTREAM, "1.1.0", &[("app.yaml", &app(APP, "two"))])?;
    stage.reconcile("HelmRepository", UPSTREAM).await?;
    stage.reconcile("HelmChart", UPSTREAM).await?;
    stage.pends(APP, "1.1.0").await?;
    stage.reconcile("HelmRelease", APP).await?;
    stage.released(APP, "1.0.0").await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, "1.1.0").await?;
    stage.released(APP, "1.1.0").await?;
    stage.deployed(APP, "two").await
}

/// A tag of a registry moves: the digest that was admitted stays.
#[tokio::test]
async fn an_oci_artifact_is_pinned_by_its_digest() -> Result<()> {
    let stage = Stage::new("digest", NOW).await?;
    let push = async |word: &str| {
        let registry = &stage.world().registry;
        let files = [("app.yaml", app(APP, word))];
        let repository = stage.repository(UPSTREAM);
        registry.push(&repository, "stable", &files).await
    };
    let one = push("one").await?;
    stage.oci_repository(UPSTREAM, "stable").await?;
    stage.keep(GATE, OPEN).await?;
    let source = json!({"sourceRef": {"kind": "OCIRepository", "name": UPSTREAM}});
    stage.gate_source(APP, source).await?;
    stage.kustomization(APP, "OCIRepository", APP).await?;
    let _controller = stage.start().await?;
    stage.serves(APP, &one.revision()).await?;
    stage.deployed(APP, "one").await?;
    stage.keep(GATE, CLOSED).await?;
    let two = push("two").await?;
    stage.reconcile("OCIRepository", UPSTREAM).await?;
    stage.pends(APP, &two.revision()).await?;
    stage.lose(APP).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.deployed(APP, "one").await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &two.revision()).await?;
    stage.deployed(APP, "two").await
}

/// This controller keeps a copy and serves it: the upstream may forget what is out.
#[tokio::test]
async fn an_artifact_is_served_although_the_upstream_has_forgotten_it() -> Result<()> {
    let stage = Stage::new("served", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app(APP, "one"))])?;
    stage.git_repository(UPSTREAM, &git).await?;
    let folder = tempfile::tempdir()?;
    let controller = copied(&stage, json!({}), &folder).await?;
    stage.serves(APP, &Git::revision(&one)).await?;
    stage.deployed(APP, "one").await?;
    stage.keep(GATE, CLOSED).await?;
    // Another history: nobody can fetch the first commit any more.
    let other = Git::serve().await?;
    let two = other.commit(&[("app.yaml", &app(APP, "two"))])?;
    stage.git_repository(UPSTREAM, &other).await?;
    stage.pends(APP, &Git::revision(&two)).await?;
    stage.lose(APP).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.deployed(APP, "one").await?;
    drop(controller);
    let _controller = stage.start_with(storing(&stage, &folder)?).await?;
    stage.lose(APP).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.deployed(APP, "one").await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &Git::revision(&two)).await?;
    stage.deployed(APP, "two").await
}

/// The source itself stands still while the gate is closed, and what is deployed is kept.
#[tokio::test]
async fn a_source_is_suspended_while_the_gate_is_closed() -> Result<()> {
    let delivery = Delivery::begin("suspend", NOW, OPEN).await?;
    let stage = &delivery.stage;
    stage
        .gate_source("still", json!({"strategy": "suspend"}))
        .await?;
    stage
        .kustomization("direct", "GitRepository", UPSTREAM)
        .await?;
    let one = delivery.push("one").await?;
    stage.applied("direct", &Git::revision(&one)).await?;
    delivery.close().await?;
    stage.holds("still", "Ready", "True", "Holding").await?;
    let is = async |suspended: bool| -> Result<()> {
        let what = format!("suspend: {suspended}");
        let check =
            |source: &Value| source["spec"]["suspend"].as_bool().unwrap_or(false) == suspended;
        stage
            .object("GitRepository", UPSTREAM, &what, check)
            .await?;
        Ok(())
    };
    is(true).await?;
    let two = delivery.git.commit(&[("app.yaml", &app(APP, "two"))])?;
    stage.reconcile("Kustomization", "direct").await?;
    stage.applied("direct", &Git::revision(&one)).await?;
    delivery.open().await?;
    is(false).await?;
    stage.applied("direct", &Git::revision(&two)).await?;
    let bypass = stage.source(APP, "the bypass", |status| {
        says(status, "Bypassed").is_some()
    });
    let message = bypass
        .await?
        .conditions
        .into_iter()
        .find(|it| it.type_ == "Bypassed");
    let message = message.context("it is gone")?.message;
    ensure!(message.contains("direct"), "{message}");
    Ok(())
}

/// All sources with a label stand still together, whatever else is in the namespace, and go on together.
#[tokio::test]
async fn sources_are_suspended_by_their_labels() -> Result<()> {
    let stage = Stage::new("labels", NOW).await?;
    let git = Git::serve().await?;
    let commit = |word: &str| {
        let files = [("one", "one"), ("two", "two"), ("free", "free")]
            .map(|(folder, name)| (format!("{folder}/app.yaml"), app(name, word)));
        let files = files
            .each_ref()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        git.commit(&files)
    };
    commit("before")?;
    for name in ["one", "two", "free"] {
        stage.git_repository(name, &git).await?;
        let spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": name}, "path": name,
            "interval": "1h", "retryInterval": "2s", "prune": true,
            "targetNamespace": stage.namespace(),
        });
        stage.put("Kustomization", name, spec).await?;
        stage.deployed(name, "before").await?;
    }
    let sources = stage.api("GitRepository")?;
    let label = json!({"metadata": {"labels": {"tier": "front"}}});
    for name in ["one", "two"] {
        sources.merge(name, &label).await?;
    }
    stage.keep(GATE, CLOSED).await?;
    let selector = json!({"kind": "GitRepository", "matchLabels": {"tier": "front"}});
    let with = json!({"sourceRef": null, "selector": selector, "strategy": "suspend"});
    stage.gate_source(APP, with).await?;
    let _controller = stage.start().await?;
    let message = stage.holds(APP, "Ready", "True", "Holding").await?;
    ensure!(message.contains("2 of 2"), "{message}");
    for name in ["one", "two"] {
        let is_suspended = |object: &Value| object["spec"]["suspend"] == true;
        stage
            .object("GitRepository", name, "to be suspended", is_suspended)
            .await?;
    }
    commit("after")?;
    stage.reconcile("GitRepository", "free").await?;
    stage.deployed("free", "after").await?;
    for name in ["one", "two"] {
        // What is out goes on being mended.
        stage.lose(name).await?;
        stage.reconcile("Kustomization", name).await?;
        stage.deployed(name, "before").await?;
    }
    stage.keep(GATE, OPEN).await?;
    for name in ["one", "two"] {
        stage.deployed(name, "after").await?;
    }
    stage.holds(APP, "Ready", "True", "Released").await?;
    Ok(())
}
