//! The guides to a first pipeline, and to going back, run as people run them: a commit that runs healthily in
//! one namespace is admitted to the next, taken back by a person, and overtaken by a hot fix.

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::{Clock, SystemClock};
use kube::Api;
use serde_json::json;
use sluice_crds::pipeline::{EnvironmentState, Phase};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::{Git, World};
use sluice_tests::{Writes, status};

use crate::guide::Guide;
use crate::pulls;
use crate::stage::{DEADLINE, NOW, Stage, app};
use crate::steady;

const APP: &str = "app";
const UPSTREAM: &str = "app-upstream";
const PROD: &str = "prod";

/// The office hours of the guide are over, and begin again.
const EVENING: &str = "2026-11-20T18:00:00Z";
const MONDAY: &str = "2026-11-23T09:00:00Z";
/// The state of what has not come back is looked at again.
const LATER: &str = "2026-11-23T09:31:00Z";

/// The commits of the guides.
const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";
const THREE: &str = "3333333333333333333333333333333333333333";

/// Two namespaces of one cluster, and a repository that both follow.
struct Shop<'w> {
    dev: Stage<'w>,
    prod: Stage<'w>,
    git: Git,
    /// The first commit.
    one: String,
}

impl<'w> Shop<'w> {
    /// In dev every commit is applied; in prod what the pipeline has admitted.
    async fn open(world: &'w World) -> Result<Self> {
        let dev = Stage::within(world, "pipeline-dev", NOW).await?;
        let prod = Stage::within(world, "pipeline-prod", NOW).await?;
        let git = Git::serve().await?;
        let one = git.commit(&[("app.yaml", &app(APP, "one"))])?;
        prod.git_repository(UPSTREAM, &git).await?;
        prod.kustomization(APP, "GitRepository", APP).await?;
        Ok(Self {
            dev,
            prod,
            git,
            one,
        })
    }

    /// A page about this app.
    fn guide(&self, text: &str) -> Result<Guide> {
        let mut guide = Guide::of(self.dev.cluster(), text)?;
        guide.says("https://git.example.com/shop/app.git", &self.git.url());
        guide.says("shop-dev", self.dev.namespace());
        guide.says("shop-prod", self.prod.namespace());
        Ok(guide)
    }

    /// What the guide to a first pipeline has one apply.
    async fn set_up(&self) -> Result<()> {
        let guide = self.guide(include_str!("../../docs/guides/first-pipeline.md"))?;
        for heading in ["The app in dev", "The pipeline", "What lets it out in prod"] {
            guide.write("block.yaml", &guide.block(heading, "yaml", 0)?)?;
            guide.sh("kubectl apply --filename block.yaml").await?;
        }
        Ok(())
    }

    /// A commit of the app that both have fetched.
    async fn commit(&self, word: &str) -> Result<String> {
        self.push(&app(APP, word)).await
    }

    async fn push(&self, file: &str) -> Result<String> {
        let commit = self.git.commit(&[("app.yaml", file)])?;
        self.prod.reconcile("GitRepository", UPSTREAM).await?;
        self.dev.reconcile("GitRepository", APP).await?;
        Ok(commit)
    }

    /// Waits until `check` is content with the status of the pipeline, and returns it.
    async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let api: Api<Pipeline> = Api::namespaced(self.dev.client(), self.dev.namespace());
        let pipeline = status::until(&api, "shop", DEADLINE, what, check).await?;
        pipeline.status.context("no status")
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

/// The whole way of two commits, back to the first one, and of a fix that dev does not run: in a world of its
/// own, because the controller sees all namespaces.
#[tokio::test]
async fn a_commit_is_admitted_to_prod_when_dev_runs_it_and_the_gate_opens() -> Result<()> {
    let world = World::start().await?;
    let shop = Shop::open(&world).await?;
    shop.set_up().await?;
    let mut settings = shop.dev.settings();
    settings.watch_all_namespaces = true;
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let controller = shop.dev.start_with(settings).await?;
    shop.prod.deployed(APP, "one").await?;
    let says = |status: &PipelineStatus| {
        status
            .run
            .as_ref()
            .is_some_and(|run| run.completed_at.is_some())
    };
    shop.says("the first run to be completed", says).await?;

    shop.dev.set(EVENING);
    let two = shop.commit("two").await?;
    shop.dev.deployed(APP, "two").await?;
    let revision = Git::revision(&two);
    let closed = EnvironmentState::GatesClosed;
    let status = shop.prod_is(closed, &revision).await?;
    let run = status.run.context("no run")?;
    let gate = format!("{}/production", shop.dev.namespace());
    ensure!(
        run.environment == PROD && run.decided_by == Some(gate),
        "{run:?}"
    );
    ensure!(shop.prod.says_now(APP).await?.as_deref() == Some("one"));

    shop.dev.set(MONDAY);
    shop.prod.deployed(APP, "two").await?;
    let status = shop.prod_is(EnvironmentState::Passed, &revision).await?;
    let promotion = &status.environments[PROD].promotion;
    let promotion = promotion.as_ref().context("nothing was promoted")?;
    ensure!(
        promotion.phase == Phase::Succeeded && promotion.run == run.id,
        "{promotion:?}"
    );

    goes_back_and_is_fixed(&shop, &two).await?;
    // The same controller, and other pipelines.
    steady::story(&shop.dev, &controller).await?;
    pulls::story(&shop.dev).await
}

/// A person takes prod back. Then dev breaks, and prod gets a fix without it.
async fn goes_back_and_is_fixed(shop: &Shop<'_>, two: &str) -> Result<()> {
    let mut guide = shop.guide(include_str!("../../docs/guides/pipeline-going-back.md"))?;
    guide.commit(ONE, &shop.one);
    guide.commit(TWO, two);
    guide.run("Go back").await?;
    shop.prod.deployed(APP, "one").await?;
    let revision = Git::revision(two);
    shop.prod_is(EnvironmentState::Promoted, &revision).await?;
    shop.dev.set(LATER);
    let status = shop.prod_is(EnvironmentState::NoEffect, &revision).await?;
    ensure!(status.environments[PROD].admitted.len() == 2, "{status:?}");
    ensure!(shop.prod.says_now(APP).await?.as_deref() == Some("one"));

    // What dev cannot apply goes no further, although the gate is open.
    shop.push("kind: Nonsense").await?;
    let pending = |status: &PipelineStatus| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == "PromotionPending" && it.status == "True")
    };
    let status = shop.says("dev not to be ready", pending).await?;
    ensure!(status.environments[PROD].admitted[0].revision == revision);

    // Dev does not get the fix.
    let suspended = json!({"spec": {"suspend": true}});
    let kustomizations = shop.dev.api("Kustomization")?;
    kustomizations.merge(APP, &suspended).await?;
    let three = shop.commit("three").await?;
    guide.commit(THREE, &three);
    // The plugin says when the force ends by the clock of the machine.
    shop.dev.set(&SystemClock.now().to_string());
    guide.run("A hot fix").await?;
    shop.prod.deployed(APP, "three").await?;
    let fixed = Git::revision(&three);
    let runs = |status: &PipelineStatus| {
        status.environments[PROD].targets[0].revision.as_ref() == Some(&fixed)
    };
    let status = shop.says("prod to be seen", runs).await?;
    ensure!(status.environments[PROD].admitted.len() == 2, "{status:?}");
    Ok(())
}
