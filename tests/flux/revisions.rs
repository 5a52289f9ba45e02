//! The stories of the gating RFC about one revision, approvals, and what is measured.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::Approval;
use sluice_tests::flux::Git;
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::{Access, Programs, Prometheus};
use sluice_tests::{Writes, poll};

use crate::delivery::{APP, CLOSED, Delivery, GATE, OPEN};
use crate::stage::DEADLINE;

const NOW: &str = "2026-11-19T12:00:00Z";

/// The gate lets one known revision pass, and nothing before or after it.
#[tokio::test]
async fn a_gate_is_open_for_one_revision() -> Result<()> {
    let app = Delivery::begin("one", NOW, CLOSED).await?;
    app.push_behind_the_gate("one").await?;
    let two = app.push_behind_the_gate("two").await?;
    let three = app.push_behind_the_gate("three").await?;
    app.stage
        .keep(GATE, &format!("revisions: {{allow: ['{two}']}}"))
        .await?;
    app.stage.applied(APP, &Git::revision(&two)).await?;
    app.stage.deployed(APP, "two").await?;
    let status = app.stage.pends(APP, &Git::revision(&three)).await?;
    ensure!(status.candidates.len() == 1, "{:?}", status.candidates);
    Ok(())
}

/// Two people approve of a commit while the branch moves on: that commit goes out.
#[tokio::test]
async fn what_was_approved_goes_out_although_the_branch_moves_on() -> Result<()> {
    let app = Delivery::begin("approve", NOW, "approval: {required: 2}").await?;
    let one = app.push_behind_the_gate("one").await?;
    app.stage.grant("sluice-approve", &["alice", "bob"]).await?;
    let approve = async |by: &str| {
        let approval: Approval = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval", "metadata": {"name": by},
            "spec": {
                "gatekeeperRef": {"name": GATE}, "revision": Git::revision(&one),
                "decision": "approve", "by": by,
            },
        }))?;
        let client = app.stage.cluster().client_for(by).await?;
        let approvals = Api::namespaced(client, app.stage.namespace());
        poll(DEADLINE, "the right to approve", async || {
            approvals.add(&approval).await.map(drop)
        })
        .await
    };
    approve("alice").await?;
    let two = app.push_behind_the_gate("two").await?;
    approve("bob").await?;
    app.stage.applied(APP, &Git::revision(&one)).await?;
    app.stage.deployed(APP, "one").await?;
    app.stage.pends(APP, &Git::revision(&two)).await?;
    Ok(())
}

/// Somebody asks for what was out before: it waits for the gate like every other, goes out alone, and
/// gives way to the newest once nobody asks for it any more.
#[tokio::test]
async fn a_revision_that_is_asked_for_is_gated_too_and_stays_until_nobody_asks() -> Result<()> {
    let app = Delivery::begin("asked", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    let two = app.push("two").await?;
    app.deployed(&two, "two").await?;
    app.close().await?;
    let back = json!({"revision": Git::revision(&one)});
    app.stage.gate_source(APP, back).await?;
    app.stage.pends(APP, &Git::revision(&one)).await?;
    app.stage
        .holds(APP, "Blocked", "True", "GatesClosed")
        .await?;
    app.heals("two").await?;
    app.open().await?;
    app.stage.applied(APP, &Git::revision(&one)).await?;
    app.stage.deployed(APP, "one").await?;
    // The source goes on to show the second, and a third: neither goes out, though the gate is open.
    let three = app.push("three").await?;
    let status = app.stage.pends(APP, &Git::revision(&three)).await?;
    let admitted = status.admitted.context("nothing is out")?;
    ensure!(admitted.revision == Git::revision(&one), "{admitted:?}");
    app.stage
        .holds(APP, "Blocked", "True", "NotAskedFor")
        .await?;
    app.heals("one").await?;
    app.stage.gate_source(APP, json!({})).await?;
    app.deployed(&three, "three").await
}

/// The error rate is too high, and then it is not.
#[tokio::test]
async fn a_metric_holds_changes_until_it_is_good() -> Result<()> {
    let prometheus =
        Prometheus::start(&Programs::ensure(&Stderr::new())?, Access::default()).await?;
    prometheus.set("errors", 0.2).await?;
    let asks = json!({
        "address": prometheus.url(), "query": "errors", "range": {"max": 0.05}, "interval": "30s",
    });
    let app = Delivery::begin("metric", NOW, &format!("metric: {asks}")).await?;
    let one = app.push_behind_the_gate("one").await?;
    let message = app
        .stage
        .holds(APP, "Blocked", "True", "GatesClosed")
        .await?;
    ensure!(message.contains("0.2"), "the value is not told: {message}");
    prometheus.set("errors", 0.01).await?;
    app.stage.set("2026-11-19T12:00:40Z");
    app.deployed(&one, "one").await
}
