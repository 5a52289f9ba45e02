//! What happens to what is out when the upstream changes its mind, or its password.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_crds::GatedSourceStatus;
use sluice_tests::flux::{Charts, Git};
use sluice_tests::{Writes, poll};

use crate::delivery::{APP, CLOSED, Delivery, GATE, OPEN, UPSTREAM};
use crate::stage::{DEADLINE, Stage, app};

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

/// A chart is published again under its version while the gate is closed. Flux takes no notice of that
/// before it fetches again: then the source shows it as a change that waits, and a child that has come
/// to it says that nobody has admitted it.
#[tokio::test]
async fn a_chart_may_be_published_anew_under_its_version() -> Result<()> {
    let stage = Stage::new("republished", NOW).await?;
    let charts = Charts::serve().await?;
    let publish = |word: &str| charts.publish(UPSTREAM, "1.0.0", &[("app.yaml", &app(APP, word))]);
    publish("one")?;
    let _controller = stage.releases(&charts).await?;
    let digest = async |name: &str| -> Result<String> {
        let artifact = stage.fetched("HelmChart", name, "1.0.0").await?;
        let digest = artifact["digest"].as_str();
        Ok(digest.context("an artifact without a digest")?.to_owned())
    };
    let one = digest(APP).await?;
    stage.keep(GATE, CLOSED).await?;

    publish("two")?;
    stage.reconcile("HelmRepository", UPSTREAM).await?;
    stage.reconcile("HelmChart", UPSTREAM).await?;
    ensure!(digest(UPSTREAM).await? == one, "Flux has taken notice");
    // Whatever is written again in its spec has Flux fetch it again.
    let charts_of = json!({"kind": "HelmRepository", "name": UPSTREAM});
    let spec =
        json!({"chart": UPSTREAM, "version": "1.x", "interval": "2h", "sourceRef": charts_of});
    stage.put("HelmChart", UPSTREAM, spec).await?;
    stage.reconcile("HelmChart", UPSTREAM).await?;
    let two = digest(UPSTREAM).await?;
    let called = format!("1.0.0@{two}");
    stage.pends(APP, &called).await?;
    ensure!(digest(APP).await? == one, "the child has followed");

    let children = stage.api("HelmChart")?;
    children.remove(APP).await?;
    let message = stage.holds(APP, "Ready", "False", "Republished").await?;
    ensure!(
        message.contains(&one) && message.contains(&two),
        "{message}"
    );
    stage
        .holds(APP, "Recoverable", "False", "CannotBeFetched")
        .await?;

    // A third one: the child has the second still when the gate admits it, and fetches it again.
    publish("three")?;
    let spec =
        json!({"chart": UPSTREAM, "version": "1.x", "interval": "3h", "sourceRef": charts_of});
    stage.put("HelmChart", UPSTREAM, spec).await?;
    stage.reconcile("HelmChart", UPSTREAM).await?;
    let three = digest(UPSTREAM).await?;
    ensure!(three != two, "it is the same");
    let status = stage.pends(APP, &format!("1.0.0@{three}")).await?;
    ensure!(status.candidates.len() == 1, "{:?}", status.candidates);
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &format!("1.0.0@{three}")).await?;
    ensure!(digest(APP).await? == three, "the child has not followed");
    // helm-controller goes by what Chart.yaml says: it runs what it has until it is made to upgrade.
    stage.reconcile("HelmRelease", APP).await?;
    stage.deployed(APP, "one").await
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

/// The source asks for signatures: what carries none is not fetched and never becomes a candidate, though
/// the gate is open, and the status says why.
#[tokio::test]
async fn what_is_not_signed_never_becomes_a_candidate() -> Result<()> {
    let delivery = Delivery::begin("signed", NOW, OPEN).await?;
    let stage = &delivery.stage;
    let keys = tempfile::tempdir()?;
    let key = keys.path().join("key");
    let mut generate = Command::new("ssh-keygen");
    generate.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
    ensure!(generate.arg(&key).status()?.success(), "no key");
    let public = std::fs::read_to_string(key.with_extension("pub"))?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "signers"},
        "stringData": {"test.sshpub": public},
    });
    stage.apply(&secret.to_string()).await?;
    let spec = json!({
        "url": delivery.git.url(), "interval": "1h", "ref": {"branch": "main"},
        "verify": {"mode": "HEAD", "secretRef": {"name": "signers"}},
    });
    stage.put("GitRepository", UPSTREAM, spec).await?;
    let signed = |word: &str| {
        let files = [("app.yaml", app(APP, word))];
        delivery.git.commit_signed(&key, &files)
    };
    let one = signed("one")?;
    stage.reconcile("GitRepository", UPSTREAM).await?;
    delivery.deployed(&one, "one").await?;

    delivery.push("unsigned").await?;
    let says_why = |status: &GatedSourceStatus| {
        status.conditions.iter().any(|it| {
            (it.type_.as_str(), it.reason.as_str()) == ("Ready", "Serving")
                && it.message.contains("nothing newer is seen")
                && it.message.contains("signature")
        })
    };
    let status = stage.source(APP, "to say why", says_why).await?;
    ensure!(status.candidates.is_empty(), "{:?}", status.candidates);
    delivery.heals("one").await?;

    let two = signed("two")?;
    stage.reconcile("GitRepository", UPSTREAM).await?;
    delivery.deployed(&two, "two").await
}
