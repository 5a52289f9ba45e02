//! Pipelines: a commit that runs healthily in one namespace gets to the next by a pull request in a real
//! Gitea, from which Flux fetches, too.

use anyhow::{Context, Result, ensure};
use http::Method;
use jiff::SignedDuration;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::gitea::{BRANCH, Gitea, OWNER, gitea};
use sluice_tests::installation::CONTROLLER;
use sluice_tests::poll;

use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
const FLEET: &str = "fleet";
const NAME: &str = "pulled";
const PROD: &str = "prod";
const REPOSITORY: &str = "pulled";

/// Two namespaces of one cluster. Dev follows the branch; prod a commit that a file on that branch names.
struct Shop<'w> {
    dev: Stage<'w>,
    prod: Stage<'w>,
    gitea: &'static Gitea,
    /// It has the clock of the controller.
    keeper: &'w Stage<'w>,
}

impl<'w> Shop<'w> {
    async fn open(keeper: &'w Stage<'w>) -> Result<Self> {
        let dev = Stage::within(keeper.world(), "pulled-dev", NOW).await?;
        let prod = Stage::within(keeper.world(), "pulled-prod", NOW).await?;
        let gitea = gitea().await?;
        gitea.repository(REPOSITORY).await?;
        let shop = Self {
            dev,
            prod,
            gitea,
            keeper,
        };
        shop.put_tokens().await?;
        let pin = shop.pin(&shop.commit("one").await?);
        gitea
            .push(REPOSITORY, BRANCH, "fleet/app.yaml", pin.as_bytes())
            .await?;
        for (stage, name) in [(&shop.dev, APP), (&shop.prod, FLEET)] {
            let spec = json!({
                "url": gitea.url(OWNER, REPOSITORY), "secretRef": {"name": "git"},
                "ref": {"branch": BRANCH}, "interval": "1h",
            });
            stage.put("GitRepository", name, spec).await?;
        }
        for (stage, name) in [(&shop.dev, APP), (&shop.prod, FLEET), (&shop.prod, APP)] {
            let spec = json!({
                "sourceRef": {"kind": "GitRepository", "name": name}, "path": format!("./{name}"),
                "interval": "1h", "retryInterval": "2s", "timeout": "30s", "prune": true,
                "targetNamespace": stage.namespace(),
            });
            stage.put("Kustomization", name, spec).await?;
        }
        Ok(shop)
    }

    /// The Secrets with a token, for Flux and for the controller, which may read that one alone.
    async fn put_tokens(&self) -> Result<()> {
        let bot = self.gitea.bot(REPOSITORY).await?;
        let git = bot.secret_for_flux("git").to_string();
        for stage in [&self.dev, &self.prod] {
            stage.apply(&git).await?;
        }
        let secret = bot.secret_for_pipelines("git-token");
        self.dev.apply(&secret.to_string()).await?;
        let rule = json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["git-token"],
            "verbs": ["get"],
        });
        self.dev.grant_rules("forge", CONTROLLER, &[rule]).await
    }

    /// What prod has of the app, in the file that pull requests change.
    fn pin(&self, commit: &str) -> String {
        let mark = format!("{}:{NAME}:{PROD}:commit", self.dev.namespace());
        let url = self.gitea.url(OWNER, REPOSITORY);
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: {APP}}}
spec:
  url: {url}
  secretRef: {{name: git}}
  interval: 1h
  ref:
    branch: {BRANCH}
    commit: \"{commit}\" # {{\"$promotion\": \"{mark}\"}}
"
        )
    }

    /// A commit of the app. Nobody has fetched it yet.
    async fn commit(&self, word: &str) -> Result<String> {
        let file = app(APP, word);
        self.gitea
            .push(REPOSITORY, BRANCH, "app/app.yaml", file.as_bytes())
            .await
    }

    /// Both fetch the newest commit of the branch, which is this.
    async fn fetch(&self) -> Result<String> {
        let path = format!("/branches/{BRANCH}");
        let branch = self
            .gitea
            .in_repository(REPOSITORY, Method::GET, &path, &Value::Null);
        let branch = branch.await?;
        self.dev.reconcile("GitRepository", APP).await?;
        self.prod.reconcile("GitRepository", FLEET).await?;
        let head = branch["commit"]["id"].as_str().context("no commit")?;
        Ok(head.to_owned())
    }

    /// Waits, while the clock of the controller goes on.
    async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let api: Api<Pipeline> = Api::namespaced(self.dev.client(), self.dev.namespace());
        poll(DEADLINE, what, async || {
            let later = self.keeper.now() + SignedDuration::from_millis(500);
            self.keeper.clock().step(later);
            let status = api.get(NAME).await?.status.context("no status")?;
            ensure!(check(&status), "{}", json!(status));
            Ok::<_, anyhow::Error>(status)
        })
        .await
    }

    /// Waits until the run of a commit is merged for prod, and returns the commit of the merge.
    async fn merged(&self, commit: &str) -> Result<String> {
        let merge = |status: &PipelineStatus| {
            let run = status.run.as_ref()?;
            let record = status.environments.get(PROD)?.promotion.as_ref()?;
            let is_it = run.revision.ends_with(commit) && record.run == run.id;
            let of = record.pull_request.as_ref().filter(|_| is_it)?;
            of.merge_commit.clone()
        };
        let status = self
            .says("the merge", |status| merge(status).is_some())
            .await?;
        merge(&status).context("no merge")
    }

    /// Waits until a run is completed, and returns its number.
    async fn completed(&self, commit: &str) -> Result<i64> {
        let is = |status: &PipelineStatus| {
            let mut run = status.run.iter();
            run.any(|run| run.revision.ends_with(commit) && run.completed_at.is_some())
        };
        let status = self.says("the run to be completed", is).await?;
        Ok(status.run.context("no run")?.id)
    }
}

fn pipeline(shop: &Shop<'_>) -> String {
    let strategy = json!({
        "type": "gitea", "url": shop.gitea.url(OWNER, REPOSITORY), "merge": "auto",
        "secretRef": {"name": "git-token"}, "paths": ["fleet/app.yaml"],
    });
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": NAME},
        "spec": {
            "appRef": {"kind": "Kustomization", "name": APP},
            "environments": [
                {"name": "dev", "targets": [{"namespace": shop.dev.namespace()}]},
                {
                    "name": PROD, "targets": [{"namespace": shop.prod.namespace()}],
                    "gates": {"refs": [{"name": "pulled"}]},
                    "promotion": {"strategy": {"pull-request": strategy}},
                },
            ],
        },
    })
    .to_string()
}

async fn turn(stage: &Stage<'_>, default: &str) -> Result<()> {
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "pulled"},
        "spec": {"default": default},
    });
    stage.apply(&gate.to_string()).await
}

/// Two commits, each of which gets to prod by a merge of the controller into the branch that dev follows:
/// such a merge begins no run. `keeper` has a controller that sees all namespaces.
pub async fn story(keeper: &Stage<'_>) -> Result<()> {
    let shop = Shop::open(keeper).await?;
    shop.prod.deployed(APP, "one").await?;
    let mut commit = shop.fetch().await?;
    shop.dev
        .applied(APP, &format!("{BRANCH}@sha1:{commit}"))
        .await?;
    turn(&shop.dev, "closed").await?;
    shop.dev.apply(&pipeline(&shop)).await?;
    let is_held = |status: &PipelineStatus| {
        let prod = status.environments.get(PROD);
        prod.is_some_and(|it| it.state == EnvironmentState::GatesClosed)
    };
    shop.says("the gate to hold the first run", is_held).await?;
    turn(&shop.dev, "open").await?;
    for word in ["one", "two"] {
        if word == "two" {
            commit = shop.commit(word).await?;
            shop.fetch().await?;
        }
        let merge = shop.merged(&commit).await?;
        ensure!(shop.fetch().await? == merge, "{merge} is not the newest");
        let run = shop.completed(&commit).await?;
        shop.prod.deployed(APP, word).await?;
        shop.prod
            .applied(APP, &format!("{BRANCH}@sha1:{commit}"))
            .await?;
        // Dev runs the merge, and nothing follows from that.
        shop.dev
            .applied(APP, &format!("{BRANCH}@sha1:{merge}"))
            .await?;
        ensure!(shop.completed(&commit).await? == run);
    }
    Ok(())
}
