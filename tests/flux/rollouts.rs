//! Rollouts of what the real Flux applies: one module a subject.
//!
//! What comes in: files in a repository, and Kustomizations that apply them. What goes out: what a Rollout says, and
//! the sizes that its workloads have.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::rollout::{Held, RollingState};
use sluice_crds::{Rollout, RolloutStatus};
use sluice_tests::flux::Git;
use sluice_tests::status;
use sluice_tests::workloads::{Counts, Kind, NODE, Workload, Workloads};
use sluice_tests::{DEADLINE, Writes};

use crate::stage::{NOW, Stage};

mod accounts;
mod applications;
mod elsewhere;
mod guides;
mod pairs;
mod releases;

/// The repository that Kustomizations apply.
const SOURCE: &str = "shop";
/// How many pods the old version has.
const SIZE: i64 = 4;
/// The two versions.
const PAIR: [&str; 2] = ["web-v1", "web-v2"];

/// A namespace in which Rollouts may act, and a repository that Flux follows.
struct Shop {
    stage: Stage<'static>,
    workloads: Workloads,
    git: Git,
}

impl Shop {
    async fn new(word: &str) -> Result<Self> {
        let shop = Self::without_rights(word).await?;
        let account = format!(
            "system:serviceaccount:{}:sluice-rollout",
            shop.stage.namespace()
        );
        shop.stage.grant("sluice-rollout", &[&account]).await?;
        Ok(shop)
    }

    async fn without_rights(word: &str) -> Result<Self> {
        let stage = Stage::new(word, NOW).await?;
        let workloads = Workloads::within(stage.client(), stage.namespace()).await?;
        let git = Git::serve().await?;
        Ok(Self {
            stage,
            workloads,
            git,
        })
    }

    /// Pushes files, has Flux fetch them, and returns their revision.
    async fn push(&self, files: &[(&str, Value)]) -> Result<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, it)| (*name, it.to_string()))
            .collect();
        let revision = Git::revision(&self.git.commit(&files)?);
        self.stage.git_repository(SOURCE, &self.git).await?;
        self.stage.reconcile("GitRepository", SOURCE).await?;
        self.stage
            .fetched("GitRepository", SOURCE, &revision)
            .await?;
        Ok(revision)
    }

    /// A Kustomization that applies a folder of the repository, with these fields, too.
    async fn applies(&self, name: &str, path: &str, with: Value) -> Result<()> {
        let spec = self.kustomization(path, &with)?;
        self.stage.put("Kustomization", name, spec).await
    }

    /// The spec of such a Kustomization.
    fn kustomization(&self, path: &str, with: &Value) -> Result<Value> {
        let spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": SOURCE}, "path": path,
            "interval": "1h", "retryInterval": "2s", "timeout": "30s", "prune": true,
            "targetNamespace": self.stage.namespace(),
        });
        extended(spec, with)
    }

    fn deployment(&self, name: &str) -> Workload {
        self.workloads.workload(Kind::Deployment, name)
    }

    /// Waits until the two Deployments have so many pods.
    async fn has(&self, old: i64, new: i64) -> Result<()> {
        self.deployment("web-v1").has(Counts::all(old)).await?;
        self.deployment("web-v2").has(Counts::all(new)).await?;
        Ok(())
    }

    fn rollouts(&self) -> Api<Rollout> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    /// Waits until the status of the Rollout is so.
    async fn until(
        &self,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        let found = status::until(&self.rollouts(), "web", DEADLINE, what, check).await?;
        found.status.context("no status")
    }

    async fn is_held(&self, reason: &str) -> Result<Held> {
        let what = format!("to be held by {reason}");
        let is_held = |status: &RolloutStatus| {
            let held = status.held.as_ref();
            held.is_some_and(|held| held.reason == reason)
        };
        self.until(&what, is_held).await?.held.context("not held")
    }

    /// Waits until the Rollout says these words of whether it is ready, and returns all that it says of that.
    async fn says(&self, words: &str) -> Result<String> {
        let status = self.until(words, |status| ready(status).contains(words));
        let status = status.await?;
        Ok(ready(&status).to_owned())
    }

    async fn succeeds(&self) -> Result<RolloutStatus> {
        self.until("to succeed", has_succeeded).await
    }

    /// Lets all batches out.
    async fn let_out(&self) -> Result<()> {
        let plan = json!({"spec": {"rolloutPlan": {"lastBatchToRollout": null}}});
        self.rollouts().merge("web", plan).await?;
        Ok(())
    }

    /// Begins another run, as a person does.
    async fn retry(&self) -> Result<()> {
        let retry = json!({"metadata": {"annotations": {"sluice.dev/retry": "1"}}});
        self.rollouts().merge("web", retry).await?;
        Ok(())
    }

    /// Says on a Deployment how Flux is to apply it, as `kubectl annotate` does.
    async fn mark(&self, name: &str, ssa: &str) -> Result<()> {
        let mark = json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/ssa": ssa}}});
        self.deployment(name).api().merge(name, mark).await?;
        Ok(())
    }

    /// Flux looks twice more at what it applies, and each time the sizes stay.
    async fn flux_undoes_nothing(
        &self,
        kind: &str,
        names: &[&str],
        sizes: (i64, i64),
    ) -> Result<()> {
        for _ in 0..2 {
            for name in names {
                self.stage.reconcile(kind, name).await?;
            }
            self.keeps(sizes).await?;
        }
        Ok(())
    }

    /// The two Deployments are to have these sizes, and have them.
    async fn keeps(&self, sizes: (i64, i64)) -> Result<()> {
        for (name, size) in PAIR.into_iter().zip([sizes.0, sizes.1]) {
            let object = self.deployment(name).api().get(name).await?;
            let found = &object.data["spec"]["replicas"];
            ensure!(
                *found == size,
                "{name} has {found}, and {size} were written"
            );
        }
        Ok(())
    }
}

fn has_succeeded(status: &RolloutStatus) -> bool {
    status.rolling_state == Some(RollingState::RolloutSucceed)
}

/// What a status says of whether the Rollout is ready.
fn ready(status: &RolloutStatus) -> &str {
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    ready.map_or("", |it| &it.message)
}

/// An object with these fields, too.
fn extended(mut object: Value, with: &Value) -> Result<Value> {
    let fields = object.as_object_mut().context("no object")?;
    fields.extend(with.as_object().context("no object")?.clone());
    Ok(object)
}

fn template(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": "app", "image": format!("reg.example/app:{version}")}],
        },
    })
}

fn deployment(name: &str, version: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/component": "web"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": template(name, version),
        },
    })
}

/// The Rollout `web` of two batches, with these fields, too.
fn rollout(with: &Value) -> Result<Value> {
    let spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"kind": "Deployment", "name": "web-v1"}],
        "rolloutPlan": {"numBatches": 2},
    });
    Ok(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web"}, "spec": extended(spec, with)?,
    }))
}

/// The same from one application of this kind to another.
fn of_applications(kind: &str) -> Result<Value> {
    let named = |name: &str| json!({"kind": kind, "name": name});
    rollout(&json!({"targetRef": named("web-v2"), "sourceRef": [named("web-v1")]}))
}

/// Two Deployments, and the Rollout that takes pods from one to the other: as files of one folder.
fn pair(with: &Value) -> Result<Vec<(&'static str, Value)>> {
    Ok(vec![
        ("shop/web-v1.yaml", deployment("web-v1", "1", SIZE)),
        ("shop/web-v2.yaml", deployment("web-v2", "2", 0)),
        ("shop/rollout.yaml", rollout(with)?),
    ])
}

/// Two Deployments, each in a folder of its own.
fn folders() -> [(&'static str, Value); 2] {
    [
        ("web-v1/web.yaml", deployment("web-v1", "1", SIZE)),
        ("web-v2/web.yaml", deployment("web-v2", "2", 0)),
    ]
}

fn up_to(last: i64) -> Value {
    json!({"rolloutPlan": {"numBatches": 2, "lastBatchToRollout": last}})
}

/// What a rollout writes, Flux leaves alone.
fn ignore() -> Value {
    json!([{
        "paths": ["/spec/replicas", "/spec/paused"],
        "target": {"kind": "Deployment", "name": "web-v.*"},
    }])
}
