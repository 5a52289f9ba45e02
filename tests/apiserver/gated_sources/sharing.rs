//! Several controllers: shards that share the work, and replicas of which one does it.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxObject;
use sluice_tests::poll;

use super::scene::{GIT, Scene, commit};
use crate::replicas::{SHORT, replica};
use crate::stage::DEADLINE;

/// By which Flux and we share the work.
const SHARD: &str = "sharding.fluxcd.io/key";

/// A shard works on what carries its label, and what it makes is the work of Flux's shard of the source.
#[tokio::test]
async fn a_shard_leaves_the_other_gated_sources_alone() -> Result<()> {
    let scene = Scene::open("gated-shard").await?;
    let label = json!({"metadata": {"labels": {SHARD: "flux2", "team": "web"}}});
    scene.patch(GIT, "app-upstream", &label).await?;
    for (name, labels) in [("app", json!({SHARD: "shard1"})), ("theirs", json!({}))] {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": "app-upstream"},
                "gates": {"refs": [{"name": "production"}]},
            },
        });
        scene.stage.apply(&object.to_string()).await?;
    }
    let theirs = async || -> Result<GatedSource> {
        let all: kube::Api<GatedSource> =
            kube::Api::namespaced(scene.stage.client(), scene.stage.namespace());
        Ok(all.get("theirs").await?)
    };
    let mut settings = scene.stage.settings();
    settings.watch_label_selector = Some(format!("{SHARD}=shard1"));
    let shard = scene.stage.start_with(settings).await?;
    let child = scene.pinned(&commit('a')).await?;
    let labels = child.metadata.labels.context("no labels")?;
    // What else the source is labelled with is its own affair.
    ensure!(labels == [(SHARD.to_owned(), "flux2".to_owned())].into());
    scene.until("Ready", "False", "Progressing").await?;
    scene.stage.settle().await?;
    ensure!(theirs().await?.status.is_none(), "the shard wrote it");
    ensure!(scene.object(GIT, "theirs").await?.is_none());
    shard.stop().await;

    let before = scene.get().await?.metadata.resource_version;
    let mut settings = scene.stage.settings();
    settings.watch_label_selector = Some(format!("{SHARD}!=shard1"));
    let _rest = scene.stage.start_with(settings).await?;
    poll(DEADLINE, "the other one", async || {
        let child = scene.object(GIT, "theirs").await?.context("no child")?;
        ensure!(child.spec["ref"]["commit"] == commit('a'));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    ensure!(scene.get().await?.metadata.resource_version == before);
    Ok(())
}

/// The leader is killed while something waits, and the gate opens while nobody leads: another replica
/// lets it out, and writes nothing that is written already.
#[tokio::test]
async fn another_replica_goes_on_where_the_leader_was_killed() -> Result<()> {
    let scene = Scene::open("gated-replicas").await?;
    scene.gated(json!({})).await?;
    let one = replica(&scene.stage, "one", &SHORT).await?;
    one.leads(true).await?;
    scene.serves(&commit('a')).await?;
    scene.gate("closed").await?;
    scene.upstream("main", &commit('b')).await?;
    let held = scene.until("Blocked", "True", "GatesClosed").await?;
    let pending = held.status.context("no status")?.pending;
    let two = replica(&scene.stage, "two", &SHORT).await?;
    two.has_synced().await?;

    one.kill().await?;
    two.leads(true).await?;
    // It has looked at all there is when it has answered for something new.
    scene.stage.apply(LATER).await?;
    poll(DEADLINE, "the new leader to work", async || {
        let gate = scene.stage.gates().get("later").await?;
        gate.status.context("no status")
    })
    .await?;
    let after = scene.get().await?;
    ensure!(
        after.metadata.resource_version == held.metadata.resource_version,
        "{after:?}"
    );

    scene.gate("open").await?;
    let child = scene.pinned(&commit('b')).await?;
    // One write made it, one moved it.
    ensure!(child.metadata.generation == Some(2), "{child:?}");
    scene
        .fetched("app", &format!("main@sha1:{}", commit('b')))
        .await?;
    let served = scene.until("Ready", "True", "Serving").await?;
    let status = served.status.context("no status")?;
    let admitted = status.admitted.context("nothing is out")?;
    ensure!(
        Some(&admitted.revision) == pending.as_ref().map(|pending| &pending.revision),
        "{admitted:?}, {pending:?}"
    );
    let child: FluxObject = scene.child().await?.context("no child")?;
    ensure!(child.metadata.generation == Some(2), "{child:?}");
    two.terminate().await
}

/// A gate that nobody has seen before.
const LATER: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: later}
spec: {default: open}
";
