//! Rollouts of what the real Flux applies: pairs of Deployments, StatefulSets, and whole applications.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::rollout::RollingState;
use sluice_crds::{Rollout, RolloutStatus};
use sluice_tests::flux::Git;
use sluice_tests::status;
use sluice_tests::workloads::{Counts, Kind, NODE, Workload, Workloads};
use sluice_tests::{DEADLINE, Writes};

use crate::guide::Guide;
use crate::stage::Stage;

mod releases;

/// Noon on a Friday.
const NOW: &str = "2026-11-20T12:00:00Z";
/// The repository that Kustomizations apply.
const SOURCE: &str = "shop";
/// The partition that no number of pods reaches.
const ARMED: i64 = 2_147_483_647;
/// How many pods the old version has.
const SIZE: i64 = 4;

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

    /// A Kustomization that applies a folder of the repository, with these fields besides.
    async fn applies(&self, name: &str, path: &str, with: Value) -> Result<()> {
        let mut spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": SOURCE}, "path": path,
            "interval": "1h", "retryInterval": "2s", "timeout": "30s", "prune": true,
            "targetNamespace": self.stage.namespace(),
        });
        let fields = spec.as_object_mut().context("no object")?;
        fields.extend(with.as_object().context("no object")?.clone());
        self.stage.put("Kustomization", name, spec).await
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

    async fn is_held(&self, reason: &str) -> Result<RolloutStatus> {
        let what = format!("to be held by {reason}");
        self.until(&what, |status| held_by(status) == Some(reason))
            .await
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
            for (name, size) in [("web-v1", sizes.0), ("web-v2", sizes.1)] {
                let api = self.deployment(name);
                let object = api.api().get(name).await?;
                let found = &object.data["spec"]["replicas"];
                ensure!(
                    *found == size,
                    "{name} has {found}, and {size} were written"
                );
            }
        }
        Ok(())
    }
}

fn held_by(status: &RolloutStatus) -> Option<&str> {
    status.held.as_ref().map(|held| held.reason.as_str())
}

fn has_succeeded(status: &RolloutStatus) -> bool {
    status.rolling_state == Some(RollingState::RolloutSucceed)
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

/// The Rollout `web` of two batches, with these fields besides.
fn rollout(with: &Value) -> Result<Value> {
    let mut spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"kind": "Deployment", "name": "web-v1"}],
        "rolloutPlan": {"numBatches": 2},
    });
    let fields = spec.as_object_mut().context("no object")?;
    fields.extend(with.as_object().context("no object")?.clone());
    Ok(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web"}, "spec": spec,
    }))
}

/// Two Deployments, and the Rollout that takes pods from one to the other: as files of one folder.
fn pair(with: &Value) -> Result<Vec<(&'static str, Value)>> {
    Ok(vec![
        ("shop/web-v1.yaml", deployment("web-v1", "1", SIZE)),
        ("shop/web-v2.yaml", deployment("web-v2", "2", 0)),
        ("shop/rollout.yaml", rollout(with)?),
    ])
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

#[tokio::test]
async fn flux_brings_a_pair_with_its_rollout_and_undoes_nothing() -> Result<()> {
    let shop = Shop::new("ro-pair").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&up_to(0))?).await?;
    let with = json!({"ignore": ignore()});
    shop.applies("shop", "./shop", with).await?;
    shop.stage.applied("shop", &first).await?;
    shop.is_held("LastBatch").await?;
    shop.has(2, 2).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (2, 2))
        .await?;
    // The last batch is let out in Git.
    let second = shop.push(&pair(&up_to(1))?).await?;
    shop.stage.applied("shop", &second).await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (0, SIZE))
        .await
}

/// What the message says is written as it stands there, until nothing is missing any more.
#[tokio::test]
async fn what_flux_would_undo_does_not_begin_and_says_what_to_write() -> Result<()> {
    let shop = Shop::new("ro-lines").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&json!({}))?).await?;
    shop.applies("shop", "./shop", json!({})).await?;
    shop.stage.applied("shop", &first).await?;
    let mut rules = Vec::new();
    for name in ["web-v2", "web-v1"] {
        let about = format!("/spec/replicas of Deployment {name} again");
        let is_told = |status: &RolloutStatus| {
            let held = status.held.as_ref();
            held.is_some_and(|it| it.reason == "AppliedAgain" && it.message.contains(&about))
        };
        let held = shop
            .until(&about, is_told)
            .await?
            .held
            .context("not held")?;
        let by = format!("Kustomization {}/shop", shop.stage.namespace());
        assert_eq!(held.by, Some(by));
        shop.has(SIZE, 0).await?;
        let (_, lines) = held.message.split_once(":\n").context("no lines")?;
        let lines: Value = serde_saphyr::from_str(lines)?;
        rules.extend(lines["ignore"].as_array().context("no rules")?.clone());
        shop.applies("shop", "./shop", json!({"ignore": rules}))
            .await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (0, SIZE))
        .await
}

#[tokio::test]
async fn rules_that_are_taken_away_midway_hold_the_run_and_nobody_fights() -> Result<()> {
    let shop = Shop::new("ro-midway").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&up_to(0))?).await?;
    let ignoring = json!({"ignore": ignore()});
    shop.applies("shop", "./shop", ignoring.clone()).await?;
    shop.stage.applied("shop", &first).await?;
    shop.is_held("LastBatch").await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (2, 2))
        .await?;
    // What the run has written is not said to be Flux's any more, however often that has looked.
    let object = shop.deployment("web-v2").api().get("web-v2").await?;
    let flux = object.metadata.managed_fields.into_iter().flatten();
    let flux = flux.filter(|it| it.manager.as_deref() == Some("kustomize-controller"));
    let mut owned = flux.filter_map(|it| it.fields_v1);
    ensure!(owned.all(|it| it.0.pointer("/f:spec/f:replicas").is_none()));
    // Flux writes what Git says: the new pods are lost, and the run does not write them again.
    shop.applies("shop", "./shop", json!({})).await?;
    let held = shop.is_held("FieldOverwritten").await?.held;
    assert_eq!(
        held.and_then(|it| it.by).as_deref(),
        Some("kustomize-controller")
    );
    shop.has(SIZE, 0).await?;
    shop.stage.settle().await?;
    shop.has(SIZE, 0).await?;
    // A person decides.
    shop.applies("shop", "./shop", ignoring).await?;
    shop.stage.reconcile("Kustomization", "shop").await?;
    let retry = json!({"metadata": {"annotations": {"sluice.dev/retry": "1"}}});
    shop.rollouts().merge("web", retry).await?;
    shop.is_held("LastBatch").await?;
    shop.has(2, 2).await?;
    shop.let_out().await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await
}

/// As the guide has it: each commit is a run of its own, asked about by its revision. The Kustomization brings the
/// Rollout, too, and waits for it: neither waits for the other for ever.
#[tokio::test]
async fn a_stateful_set_is_rolled_out_commit_by_commit() -> Result<()> {
    let shop = Shop::new("ro-set").await?;
    shop.stage
        .keep("office-hours", "manual: {state: open}")
        .await?;
    let _controller = shop.stage.start().await?;
    let text = include_str!("../../docs/guides/stateful-rollouts.md");
    let guide = Guide::of(shop.stage.cluster(), text)?;
    let block = |place| -> Result<Value> {
        let text = guide.block("With Flux", "yaml", place)?;
        Ok(serde_saphyr::from_str(&text)?)
    };
    let (kustomization, mut rollout) = (block(0)?, block(1)?);
    rollout["metadata"]["name"] = "web".into();
    let set = |version| {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
            "spec": {
                "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": ARMED}},
                "template": template("db", version),
            },
        })
    };
    let spec = &kustomization["spec"];
    let with = json!({"wait": spec["wait"], "ignore": spec["ignore"]});
    let db = shop.workloads.workload(Kind::StatefulSet, "db");
    for version in ["1", "2", "3"] {
        let files = [
            ("db/db.yaml", set(version)),
            ("db/rollout.yaml", rollout.clone()),
        ];
        let revision = shop.push(&files).await?;
        shop.applies("db", "./db", with.clone()).await?;
        let is_out = |status: &RolloutStatus| {
            let run = status.run.as_ref();
            has_succeeded(status) && run.is_some_and(|run| run.revision == revision)
        };
        let status = shop
            .until(&format!("version {version} to be out"), is_out)
            .await?;
        if version != "1" {
            let asked = status.last_decision.context("no decision")?.subject;
            assert_eq!(asked.revision.as_deref(), Some(revision.as_str()));
        }
        db.until_pods("to be of the version", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| pod.version == version && pod.ready)
        })
        .await?;
        shop.stage.applied("db", &revision).await?;
        let object = db.api().get("db").await?;
        let partition = object
            .data
            .pointer("/spec/updateStrategy/rollingUpdate/partition");
        assert_eq!(partition, Some(&json!(ARMED)));
    }
    Ok(())
}

/// Two Kustomizations, each with a folder.
#[tokio::test]
async fn one_application_takes_the_place_of_another() -> Result<()> {
    let shop = Shop::new("ro-apps").await?;
    let _controller = shop.stage.start().await?;
    let worker = |name: &str| {
        let mut worker = deployment(name, "1", 1);
        worker["metadata"]["labels"] = json!({"app.kubernetes.io/component": "worker"});
        worker
    };
    let revision = shop
        .push(&[
            ("web-v1/web.yaml", deployment("web-v1", "1", SIZE)),
            ("web-v2/web.yaml", deployment("web-v2", "2", 0)),
            ("web-v2/worker.yaml", worker("worker")),
        ])
        .await?;
    for name in ["web-v1", "web-v2"] {
        let with = json!({"ignore": ignore()});
        shop.applies(name, &format!("./{name}"), with).await?;
        shop.stage.applied(name, &revision).await?;
    }
    let app = |name: &str| json!({"kind": "Kustomization", "name": name});
    let apps = json!({"targetRef": app("web-v2"), "sourceRef": [app("web-v1")]});
    shop.stage.apply(&rollout(&apps)?.to_string()).await?;
    let held = shop.is_held("ApplicationUnfit").await?.held;
    let message = held.context("not held")?.message;
    ensure!(
        message.contains("Deployment web-v2 (web), Deployment worker (worker); write which one"),
        "{message}"
    );
    let component = json!({"spec": {"component": "web"}});
    shop.rollouts().merge("web", component).await?;
    let status = shop.succeeds().await?;
    assert_eq!(status.run.context("no run")?.revision, revision);
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["web-v1", "web-v2"], (0, SIZE))
        .await?;
    shop.deployment("worker").has(Counts::all(1)).await?;
    Ok(())
}

/// The commit of the guide.
const COMMIT: &str = "1111111111111111111111111111111111111111";

/// The guide, from the account to the last batch.
#[tokio::test]
async fn the_guide_is_typed() -> Result<()> {
    let shop = Shop::without_rights("ro-guide").await?;
    let (stage, namespace) = (&shop.stage, shop.stage.namespace());
    let text = include_str!("../../docs/guides/rollouts-with-flux.md");
    let mut guide = Guide::of(stage.cluster(), text)?;
    guide.says("https://git.example.com/shop/app.git", &shop.git.url());
    guide.says("shop", namespace);
    let here = |mut deployment: Value| {
        deployment["metadata"]["namespace"] = namespace.into();
        deployment.to_string()
    };
    let commit = shop.git.commit(&[
        ("web-v1/web.yaml", here(deployment("web-v1", "1", SIZE))),
        ("web-v2/web.yaml", here(deployment("web-v2", "2", 0))),
    ])?;
    guide.commit(COMMIT, &commit);
    let _controller = stage.start().await?;
    guide.run("Set it up").await?;
    guide.run("What Flux leaves alone").await?;
    guide.run("The last batch").await
}
