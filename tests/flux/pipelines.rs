//! Pipelines: a commit that runs healthily in one namespace is admitted to the next.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::pipeline::{EnvironmentState, Phase};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::{Git, World};
use sluice_tests::poll;

use crate::pulls;
use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
const UPSTREAM: &str = "app-upstream";
const PROD: &str = "prod";

/// Two namespaces of one cluster, and a repository that both follow.
struct Shop<'w> {
    dev: Stage<'w>,
    prod: Stage<'w>,
    git: Git,
}

impl<'w> Shop<'w> {
    /// In dev every commit is applied; in prod what the pipeline has admitted.
    async fn open(world: &'w World) -> Result<Self> {
        let dev = Stage::within(world, "pipeline-dev", NOW).await?;
        let prod = Stage::within(world, "pipeline-prod", NOW).await?;
        let git = Git::serve().await?;
        git.commit(&[("app.yaml", &app(APP, "one"))])?;
        dev.git_repository(APP, &git).await?;
        dev.kustomization(APP, "GitRepository", APP).await?;
        dev.apply(&pipeline(dev.namespace(), prod.namespace()))
            .await?;
        prod.git_repository(UPSTREAM, &git).await?;
        prod.apply(&delivery(dev.namespace())).await?;
        prod.kustomization(APP, "GitRepository", APP).await?;
        Ok(Self { dev, prod, git })
    }

    /// A commit that both have fetched.
    async fn commit(&self, word: &str) -> Result<String> {
        self.push(&app(APP, word)).await
    }

    async fn push(&self, file: &str) -> Result<String> {
        let commit = self.git.commit(&[("app.yaml", file)])?;
        self.prod.reconcile("GitRepository", UPSTREAM).await?;
        self.dev.reconcile("GitRepository", APP).await?;
        Ok(Git::revision(&commit))
    }

    /// Waits until `check` is content with the status of the pipeline, and returns it.
    async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let api: Api<Pipeline> = Api::namespaced(self.dev.client(), self.dev.namespace());
        poll(DEADLINE, what, async || {
            let status = api.get("shop").await?.status.context("no status")?;
            ensure!(check(&status), "{}", json!(status));
            Ok::<_, anyhow::Error>(status)
        })
        .await
    }

    /// Waits until prod is in this state with a revision.
    async fn prod_is(&self, state: EnvironmentState, revision: &str) -> Result<PipelineStatus> {
        let what = format!("prod to be {} with {revision}", state.as_str());
        let is = |status: &PipelineStatus| {
            let run = status.run.as_ref();
            run.is_some_and(|run| run.revision == revision)
                && status
                    .environments
                    .get(PROD)
                    .is_some_and(|it| it.state == state)
        };
        self.says(&what, is).await
    }
}

/// The pipeline, and the gate of prod: a switch.
fn pipeline(dev: &str, prod: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {{name: shop}}
spec:
  appRef: {{kind: Kustomization, name: {APP}}}
  environments:
    - name: dev
      targets: [{{namespace: {dev}}}]
    - name: {PROD}
      targets: [{{namespace: {prod}}}]
      gates: {{refs: [{{name: production}}]}}
      promotion: {{strategy: {{admission: {{}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: switch}}
spec: {{manual: {{state: open}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: production}}
spec: {{gatekeepers: [{{name: switch}}]}}
"
    )
}

/// What lets the commits out in prod: what the pipeline has admitted.
fn delivery(dev: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: promoted}}
spec: {{pipeline: {{name: shop, namespace: {dev}, environment: {PROD}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: promoted}}
spec: {{gatekeepers: [{{name: promoted}}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GatedSource
metadata: {{name: {APP}}}
spec:
  sourceRef: {{kind: GitRepository, name: {UPSTREAM}}}
  gates: {{refs: [{{name: promoted}}]}}
"
    )
}

async fn turn(stage: &Stage<'_>, state: &str) -> Result<()> {
    let switch = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": {"name": "switch"},
        "spec": {"manual": {"state": state}},
    });
    stage.apply(&switch.to_string()).await
}

/// The whole way of two commits, and of one that fails: in a world of its own, because the controller
/// sees all namespaces.
#[tokio::test]
async fn a_commit_is_admitted_to_prod_when_dev_runs_it_and_the_gate_opens() -> Result<()> {
    let world = World::start().await?;
    let shop = Shop::open(&world).await?;
    let mut settings = shop.dev.settings();
    settings.watch_all_namespaces = true;
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let _controller = shop.dev.start_with(settings).await?;
    shop.prod.deployed(APP, "one").await?;
    let says = |status: &PipelineStatus| {
        status
            .run
            .as_ref()
            .is_some_and(|run| run.completed_at.is_some())
    };
    shop.says("the first run to be completed", says).await?;

    turn(&shop.dev, "closed").await?;
    let two = shop.commit("two").await?;
    shop.dev.deployed(APP, "two").await?;
    let status = shop.prod_is(EnvironmentState::GatesClosed, &two).await?;
    let run = status.run.context("no run")?;
    let gate = format!("{}/production", shop.dev.namespace());
    ensure!(
        run.environment == PROD && run.decided_by == Some(gate),
        "{run:?}"
    );
    ensure!(shop.prod.says_now(APP).await?.as_deref() == Some("one"));

    turn(&shop.dev, "open").await?;
    shop.prod.deployed(APP, "two").await?;
    let status = shop.prod_is(EnvironmentState::Passed, &two).await?;
    let promotion = &status.environments[PROD].promotion;
    let promotion = promotion.as_ref().context("nothing was promoted")?;
    ensure!(
        promotion.phase == Phase::Succeeded && promotion.run == run.id,
        "{promotion:?}"
    );
    let admitted = &status.environments[PROD].admitted;
    ensure!(
        admitted.len() == 2 && admitted[0].revision == two,
        "{admitted:?}"
    );

    // What dev cannot apply goes no further, although the gate is open.
    shop.push("kind: Nonsense").await?;
    let pending = |status: &PipelineStatus| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == "PromotionPending" && it.status == "True")
    };
    let status = shop.says("dev not to be ready", pending).await?;
    ensure!(status.environments[PROD].admitted[0].revision == two);
    ensure!(shop.prod.says_now(APP).await?.as_deref() == Some("two"));
    // The same controller, and another pipeline.
    pulls::story(&shop.dev).await
}
