//! The guide to pipelines over other clusters, run as people run it: two clusters, each with the real Flux and
//! a controller of its own, and a kubeconfig made by the commands of the page.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::pipeline::{EnvironmentState, Phase};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::{Charts, World};
use sluice_tests::poll;

use crate::delivery::UPSTREAM;
use crate::guide::Guide;
use crate::stage::{DEADLINE, NOW, Stage, app};

const PROD: &str = "prod";
/// What the chart deploys.
const MAP: &str = "app";

/// What the guide calls `home` and `prod`. The app and its pipeline have the name of the namespace in prod,
/// as on the page.
struct Shop<'w> {
    home: Stage<'w>,
    prod: Stage<'w>,
    charts: Charts,
}

impl<'w> Shop<'w> {
    /// Dev runs every version of a chart, and prod what its GatedSource lets out. Its gate is not there yet.
    async fn open(home: &'w World, prod: &'w World) -> Result<Self> {
        let shop = Self {
            home: Stage::within(home, "guide-home", NOW).await?,
            prod: Stage::within(prod, "guide-prod", NOW).await?,
            charts: Charts::serve().await?,
        };
        shop.publish("1.0.0", "one")?;
        let (home, prod, app) = (&shop.home, &shop.prod, shop.app());
        home.helm_chart(UPSTREAM, &shop.charts, "1.x").await?;
        home.helm_release(app, UPSTREAM).await?;
        prod.helm_chart(UPSTREAM, &shop.charts, "1.x").await?;
        let gated = json!({
            "sourceRef": {"kind": "HelmChart", "name": UPSTREAM},
            "gates": {"refs": [{"name": "promoted"}]},
        });
        prod.gate_source(app, gated).await?;
        prod.helm_release(app, app).await?;
        Ok(shop)
    }

    fn app(&self) -> &str {
        self.prod.namespace()
    }

    fn publish(&self, version: &str, word: &str) -> Result<()> {
        let template = app(MAP, word);
        self.charts
            .publish(UPSTREAM, version, &[("app.yaml", &template)])
    }

    /// What people type before there is a pipeline.
    async fn follow(&self, guide: &Guide) -> Result<()> {
        for (heading, context) in [
            ("The account on the other cluster", PROD),
            ("The right to read the Secret", "home"),
            ("An admission to another cluster", PROD),
        ] {
            guide.write("block.yaml", &guide.block(heading, "yaml", 0)?)?;
            let apply = format!("kubectl --context {context} apply --filename block.yaml");
            guide.sh(&apply).await.context(heading)?;
        }
        let token = "kubectl --context prod --namespace flux-system get secret sluice-token \
                     --output 'jsonpath={.data.token}' | grep .";
        poll(DEADLINE, "the token", async || guide.sh(token).await).await?;
        guide.sh(&guide.block("The kubeconfig", "sh", 0)?).await
    }

    /// Waits until `check` is content with the status of the pipeline, and returns it.
    async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let api: Api<Pipeline> = Api::namespaced(self.home.client(), self.home.namespace());
        poll(DEADLINE, what, async || {
            let status = api.get(self.app()).await?.status.context("no status")?;
            ensure!(check(&status), "{}", json!(status));
            Ok::<_, anyhow::Error>(status)
        })
        .await
    }

    /// Waits until the run of a version is completed: prod runs it, and it was admitted to prod.
    async fn completed(&self, version: &str) -> Result<()> {
        let completed = |status: &PipelineStatus| {
            let run = status.run.as_ref();
            run.is_some_and(|run| run.revision == version && run.completed_at.is_some())
        };
        let status = self
            .says("the run to be completed", completed)
            .await
            .context(version.to_owned())?;
        let prod = &status.environments[PROD];
        let record = prod.promotion.as_ref().context("nothing was promoted")?;
        let is_reported = record.reason.as_deref() == Some("Reported")
            || record.reason.as_deref() == Some("Arrived");
        ensure!(
            prod.state == EnvironmentState::Passed
                && record.phase == Phase::Succeeded
                && is_reported,
            "{prod:?}"
        );
        ensure!(status.clusters.iter().all(|it| it.reachable), "{status:?}");
        Ok(())
    }
}

#[tokio::test]
async fn a_version_is_admitted_to_another_cluster_once_dev_runs_it() -> Result<()> {
    let (home, prod) = tokio::try_join!(World::start(), World::start())?;
    let shop = Shop::open(&home, &prod).await?;
    let system =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}});
    shop.prod.apply(&system.to_string()).await?;
    let text = include_str!("../../docs/guides/other-clusters.md");
    let clusters = [("home", shop.home.cluster()), (PROD, shop.prod.cluster())];
    let mut guide = Guide::between(&clusters, text)?;
    guide.says("shop", shop.home.namespace());
    guide.says("podinfo", shop.app());
    shop.follow(&guide).await?;
    let _here = shop.home.start_with_egress().await?;
    let _there = shop.prod.start().await?;

    // What dev runs already goes to prod, which has nothing.
    shop.prod.pends(shop.app(), "1.0.0").await?;
    let pipeline = guide.block("The pipeline", "yaml", 0)?;
    shop.home.apply(&pipeline).await?;
    shop.prod.released(shop.app(), "1.0.0").await?;
    shop.completed("1.0.0").await?;

    // Prod sees the next version first, and waits for dev.
    shop.publish("1.1.0", "two")?;
    for kind in ["HelmRepository", "HelmChart"] {
        shop.prod.reconcile(kind, UPSTREAM).await?;
    }
    shop.prod.pends(shop.app(), "1.1.0").await?;
    shop.prod.deployed(MAP, "one").await?;
    for kind in ["HelmRepository", "HelmChart"] {
        shop.home.reconcile(kind, UPSTREAM).await?;
    }
    shop.prod.released(shop.app(), "1.1.0").await?;
    shop.prod.deployed(MAP, "two").await?;
    shop.completed("1.1.0").await
}
