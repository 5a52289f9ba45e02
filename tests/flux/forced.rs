//! A gate in Git that is forced closed, and those who want it open without the right to force:
//! whatever they do with the gate, the force lasts, although Flux applies the gate all the while.

use anyhow::{Context, Result, ensure};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::{Gate, State};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::Git;
use sluice_tests::{Writes, poll};

use crate::stage::{DEADLINE, NOW, Stage};

const GATE: &str = "production";
const GATES: &str = "gates";
/// May update and delete gates, and not force them.
const TENANT: &str = "tenant";

const MANIFEST: &str = "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: production}\n\
                        spec: {default: open}\n";

struct Scene {
    stage: Stage<'static>,
    _git: Git,
    _controller: InProcess,
}

impl Scene {
    /// A gate that Flux applies from Git, open by default and forced closed.
    async fn new() -> Result<Self> {
        let stage = Stage::new("forced", NOW).await?;
        let git = Git::serve().await?;
        let commit = git.commit(&[("gate.yaml", MANIFEST)])?;
        stage.git_repository(GATES, &git).await?;
        stage.kustomization(GATES, "GitRepository", GATES).await?;
        stage.applied(GATES, &Git::revision(&commit)).await?;
        stage.grant("sluice-edit", &[TENANT]).await?;
        let controller = stage.start().await?;
        stage.says(GATE, State::Open, "Default").await?;
        let scene = Self {
            stage,
            _git: git,
            _controller: controller,
        };
        let label = json!({"metadata": {"labels": {"team": "tenant"}}});
        poll(DEADLINE, "the tenant's rights", async || {
            Ok::<_, anyhow::Error>(scene.patch(label.clone()).await?)
        })
        .await?;
        let close = json!({
            "sluice.dev/force": "closed", "sluice.dev/force-by": "admin",
            "sluice.dev/force-reason": "incident 4711",
        });
        scene.stage.annotate(GATE, close).await?;
        scene
            .stage
            .until(GATE, "the force", |status| status.r#override.is_some())
            .await?;
        Ok(scene)
    }

    async fn gates(&self) -> Result<Api<Gate>> {
        let client = self.stage.cluster().client_for(TENANT).await?;
        Ok(Api::namespaced(client, self.stage.namespace()))
    }

    async fn patch(&self, change: Value) -> kube::Result<Gate> {
        let gates = self
            .gates()
            .await
            .map_err(|why| kube::Error::Service(std::io::Error::other(why.to_string()).into()))?;
        let patch = change;
        gates.merge(GATE, &patch).await
    }

    /// Flux applies the gate from Git, and the gate is the same one, and forced.
    async fn holds(&self, uid: &str) -> Result<()> {
        self.stage.reconcile("Kustomization", GATES).await?;
        self.stage.settle().await?;
        let gate = self.stage.gates().get(GATE).await?;
        ensure!(gate.uid().as_deref() == Some(uid), "it was made again");
        let annotations = gate.annotations();
        ensure!(
            annotations.contains_key("sluice.dev/force"),
            "{annotations:?}"
        );
        self.stage.says(GATE, State::Closed, "Forced").await?;
        Ok(())
    }
}

fn refused<T>(what: &str, answer: kube::Result<T>) -> Result<()> {
    let why = answer.err().map(|why| why.to_string()).unwrap_or_default();
    ensure!(why.contains("needs the verb override"), "{what}: {why:?}");
    Ok(())
}

#[tokio::test]
async fn nobody_ends_a_closed_force_without_the_right_to_force() -> Result<()> {
    let scene = Scene::new().await?;
    let gate = scene.stage.gates().get(GATE).await?;
    let uid = gate.uid().context("no uid")?;

    let dead = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }]);
    let dead = json!({"metadata": {"ownerReferences": dead}});
    refused("a dead owner", scene.patch(dead).await)?;
    let gates = scene.gates().await?;
    refused("a deletion", gates.remove(GATE).await)?;
    let mut entries = json!(gate.managed_fields());
    for entry in entries.as_array_mut().context("nobody owns anything")? {
        if entry["manager"] == "gate-controller-force" {
            entry["manager"] = json!("kustomize-controller");
        }
    }
    let stolen = json!({"metadata": {"managedFields": entries}});
    refused("another field manager", scene.patch(stolen).await)?;
    scene.holds(&uid).await
}
