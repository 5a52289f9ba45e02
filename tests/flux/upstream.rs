//! What happens to what is out when the upstream changes its mind, or its password.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluice_tests::flux::Git;
use sluice_tests::poll;

use crate::delivery::{APP, Delivery, OPEN, UPSTREAM};
use crate::stage::{DEADLINE, app};

const NOW: &str = "2026-11-19T12:00:00Z";

/// The branch is rewritten: what is out stays out and is kept, the new history waits like any change.
#[tokio::test]
async fn an_upstream_may_be_force_pushed() -> Result<()> {
    let delivery = Delivery::begin("rewritten", NOW, OPEN).await?;
    let base = delivery.push("base").await?;
    let one = delivery.push("one").await?;
    delivery.deployed(&one, "one").await?;
    delivery.close().await?;
    let other = delivery
        .git
        .rewrite(&base, &[("app.yaml", &app(APP, "other"))])?;
    delivery.stage.reconcile("GitRepository", UPSTREAM).await?;
    delivery.stage.pends(APP, &Git::revision(&other)).await?;
    delivery.heals("one").await?;
    delivery.open().await?;
    delivery.deployed(&other, "other").await
}

/// A tag that moves is another change, which waits.
#[tokio::test]
async fn a_tag_may_be_moved() -> Result<()> {
    let delivery = Delivery::begin("tag", NOW, OPEN).await?;
    let one = delivery.git.commit(&[("app.yaml", &app(APP, "one"))])?;
    delivery.git.tag("v1", &one)?;
    let spec = json!({
        "url": delivery.git.url(), "interval": "1h", "ref": {"tag": "v1"},
    });
    delivery.stage.put("GitRepository", UPSTREAM, spec).await?;
    let revision = |commit: &str| format!("v1@sha1:{commit}");
    delivery.stage.serves(APP, &revision(&one)).await?;
    delivery.stage.deployed(APP, "one").await?;
    delivery.close().await?;
    let two = delivery.git.commit(&[("app.yaml", &app(APP, "two"))])?;
    delivery.git.tag("v1", &two)?;
    delivery.stage.reconcile("GitRepository", UPSTREAM).await?;
    delivery.stage.pends(APP, &revision(&two)).await?;
    delivery.heals("one").await?;
    delivery.open().await?;
    delivery.stage.serves(APP, &revision(&two)).await?;
    delivery.stage.deployed(APP, "two").await
}

/// The password changes while the gate is closed: the child follows at once, for without it what is
/// out could not be fetched again.
#[tokio::test]
async fn credentials_may_be_rotated_while_the_gate_is_closed() -> Result<()> {
    let delivery = Delivery::begin("rotated", NOW, OPEN).await?;
    let login = |name: &str, password: &str| {
        let data = json!({"username": "flux", "password": password});
        let metadata = json!({"name": name});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
            .to_string()
    };
    let with = |secret: &str| -> Value {
        json!({
            "url": delivery.git.url(), "interval": "1h", "ref": {"branch": "main"},
            "secretRef": {"name": secret},
        })
    };
    delivery.git.ask_for("flux", "first");
    delivery.stage.apply(&login("first", "first")).await?;
    delivery
        .stage
        .put("GitRepository", UPSTREAM, with("first"))
        .await?;
    let one = delivery.push("one").await?;
    delivery.deployed(&one, "one").await?;
    delivery.close().await?;
    delivery.git.ask_for("flux", "second");
    delivery.stage.apply(&login("second", "second")).await?;
    delivery
        .stage
        .put("GitRepository", UPSTREAM, with("second"))
        .await?;
    let children = delivery.stage.api("GitRepository")?;
    poll(DEADLINE, "the child to know the new secret", async || {
        let spec = children.get(APP).await?.data["spec"].clone();
        ensure!(spec["secretRef"]["name"] == "second", "{spec}");
        ensure!(spec["ref"]["commit"] == one.as_str(), "{spec}");
        Ok(())
    })
    .await?;
    delivery.stage.reconcile("GitRepository", APP).await?;
    delivery
        .stage
        .fetched("GitRepository", APP, &Git::revision(&one))
        .await?;
    let two = delivery.push_behind_the_gate("two").await?;
    delivery.open().await?;
    delivery.deployed(&two, "two").await
}
