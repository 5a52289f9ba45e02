//! Several sources under one decision.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_tests::controller::InProcess;
use sluice_tests::flux::{Git, Pushed};
use sluice_tests::poll;

use crate::delivery::{APP, CLOSED, GATE, OPEN, UPSTREAM};
use crate::stage::{DEADLINE, Stage, app};

const NOW: &str = "2026-11-19T12:00:00Z";

/// The source in the registry, its child, and what it brings.
const CONFIG: &str = "config";
const CONFIG_OUT: &str = "config-out";
/// The child of the repository: the name of the GatedSource, and its own.
const APP_OUT: &str = "app-upstream";

/// An app in Git and its configuration in a registry, which go out together.
struct Pair {
    stage: Stage<'static>,
    git: Git,
    _controller: InProcess,
}

impl Pair {
    /// Both at `one`, out and applied.
    async fn begin(word: &str) -> Result<(Self, (String, Pushed))> {
        let stage = Stage::new(word, NOW).await?;
        let git = Git::serve().await?;
        stage.keep(GATE, OPEN).await?;
        let controller = stage.start().await?;
        let pair = Self {
            stage,
            git,
            _controller: controller,
        };
        let one = (pair.commit("one")?, pair.push("one").await?);
        let stage = &pair.stage;
        stage.git_repository(UPSTREAM, &pair.git).await?;
        stage.oci_repository(CONFIG, "stable").await?;
        pair.gate(json!([
            {"kind": "GitRepository", "name": UPSTREAM},
            {"kind": "OCIRepository", "name": CONFIG, "target": {"name": CONFIG_OUT}},
        ]))
        .await?;
        stage.kustomization(APP, "GitRepository", APP_OUT).await?;
        stage
            .kustomization(CONFIG, "OCIRepository", CONFIG_OUT)
            .await?;
        pair.serve(&one, "one").await?;
        Ok((pair, one))
    }

    /// Gates these sources.
    async fn gate(&self, sources: serde_json::Value) -> Result<()> {
        let with = json!({"sourceRef": null, "sourceRefs": sources});
        self.stage.gate_source(APP, with).await
    }

    fn commit(&self, word: &str) -> Result<String> {
        self.git.commit(&[("app.yaml", &app(APP, word))])
    }

    async fn push(&self, word: &str) -> Result<Pushed> {
        self.stage.push(CONFIG, word).await
    }

    /// Both are out, and applied.
    async fn serve(&self, (commit, pushed): &(String, Pushed), word: &str) -> Result<()> {
        let stage = &self.stage;
        let commit = Git::revision(commit);
        stage.serves(APP, &both(&commit, pushed)).await?;
        stage.applied(APP, &commit).await?;
        stage.applied(CONFIG, &pushed.digest).await?;
        stage.deployed(APP, word).await?;
        stage.deployed(CONFIG, word).await
    }

    /// Neither child is anywhere else, and both are kept as they are.
    async fn stays(&self, (commit, pushed): &(String, Pushed), word: &str) -> Result<()> {
        let stage = &self.stage;
        stage.settle().await?;
        let child = stage.api("GitRepository")?.get(APP_OUT).await?;
        let pin = &child.data["spec"]["ref"]["commit"];
        ensure!(pin == commit.as_str(), "{pin}");
        let child = stage.api("OCIRepository")?.get(CONFIG_OUT).await?;
        let pin = &child.data["spec"]["ref"];
        ensure!(*pin == json!({"digest": pushed.digest}), "{pin}");
        for name in [APP, CONFIG] {
            stage.lose(name).await?;
            stage.reconcile("Kustomization", name).await?;
            stage.deployed(name, word).await?;
        }
        Ok(())
    }
}

/// What a status says of two sources.
fn both(git: &str, oci: &Pushed) -> String {
    format!("{git}, {}", oci.revision())
}

/// A list that admits one of two changes admits neither: they go out together or not at all.
#[tokio::test]
async fn several_sources_go_out_together_or_not_at_all() -> Result<()> {
    let (pair, one) = Pair::begin("together").await?;
    let stage = &pair.stage;
    stage.keep(GATE, CLOSED).await?;
    let pushed = pair.push("two").await?;
    stage.reconcile("OCIRepository", CONFIG).await?;
    stage
        .pends(APP, &both(&Git::revision(&one.0), &pushed))
        .await?;
    let two = (pair.commit("two")?, pushed);
    stage.reconcile("GitRepository", UPSTREAM).await?;
    let pending = both(&Git::revision(&two.0), &two.1);
    stage.pends(APP, &pending).await?;

    stage
        .keep(GATE, &format!("revisions: {{allow: ['{}']}}", two.0))
        .await?;
    let refused = |status: &sluice_crds::GatedSourceStatus| {
        let decision = status.last_decision.as_ref();
        decision.is_some_and(|it| !it.allowed && it.message.contains("is not on a list"))
    };
    stage.source(APP, "the list to be asked", refused).await?;
    let status = stage.pends(APP, &pending).await?;
    let subject = status.last_decision.context("no decision")?.subject;
    ensure!(subject.revision == Some(two.1.revision()), "{subject:?}");
    pair.stays(&one, "one").await?;

    let list = format!("revisions: {{allow: ['{}', '{}']}}", two.0, two.1.digest);
    stage.keep(GATE, &list).await?;
    pair.serve(&two, "two").await
}

/// A source that is taken out of the list while the gate is closed: what is out stays out, nobody has
/// to admit it anew, and its child is left to the one who uses it.
#[tokio::test]
async fn a_source_may_be_taken_out_while_the_gate_is_closed() -> Result<()> {
    let (pair, one) = Pair::begin("fewer").await?;
    let stage = &pair.stage;
    stage.keep(GATE, CLOSED).await?;
    pair.gate(json!([{"kind": "GitRepository", "name": UPSTREAM}]))
        .await?;
    let generation = stage.gated().get(APP).await?.metadata.generation;
    let looked = |status: &sluice_crds::GatedSourceStatus| status.observed_generation == generation;
    stage.source(APP, "the fewer sources", looked).await?;
    stage
        .holds(APP, "Blocked", "False", "NothingPending")
        .await?;
    pair.stays(&one, "one").await?;
    // It is as before: the next change waits, and goes out when the gate opens.
    let two = pair.commit("two")?;
    stage.reconcile("GitRepository", UPSTREAM).await?;
    stage.pends(APP, &Git::revision(&two)).await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &Git::revision(&two)).await?;
    stage.deployed(APP, "two").await?;
    poll(DEADLINE, "the configuration to stay", async || {
        let said = stage.says_now(CONFIG).await?;
        ensure!(said.as_deref() == Some("one"), "{said:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}
