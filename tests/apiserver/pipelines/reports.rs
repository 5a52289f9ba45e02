//! Admissions that are reported to a gatekeeper of another cluster: two real API servers, and an account on
//! the second one that has no rights but those that it is given.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use gate_controller::observe::clock::{Clock, SetClock};
use jiff::SignedDuration;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;
use sluice_crds::gatekeeper::ExternalReport;
use sluice_crds::pipeline::{Phase, PromotionRecord};
use sluice_crds::{Gatekeeper, Pipeline};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::rights::{grant_rules, rule};
use sluice_tests::{Applier, Writes, poll};

use crate::clusters::scene::{ACCOUNT, Scene};
use crate::stage::DEADLINE;
use sluice_tests::line::Line;

const PROD: &str = "prod";
pub const NAME: &str = "promoted";

/// Dev is on the first server, prod on the second, where a gatekeeper is told of admissions.
pub struct Told {
    pub scene: Scene,
    clock: Arc<SetClock>,
    written: i64,
}

impl Told {
    pub async fn new(word: &str) -> Result<Self> {
        let scene = Scene::new(word).await?;
        scene.define_here().await?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crds/yaml");
        let crd = crds.join("sluice.dev_gatekeepers.yaml");
        Applier::new(scene.remote()).path(&crd).await?;
        let told = Self {
            scene,
            clock: Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse()?)),
            written: 0,
        };
        let (scene, remote) = (&told.scene, told.scene.remote());
        scene.runs_at(&remote, scene.apps(), 1, "0.9.0").await?;
        Ok(told)
    }

    pub async fn dev_runs(&mut self, revision: &str) -> Result<()> {
        self.written += 1;
        let (scene, own) = (&self.scene, self.scene.own());
        let namespace = scene.namespace();
        scene.runs_at(&own, namespace, self.written, revision).await
    }

    pub async fn pipeline(&self) -> Result<()> {
        let cluster = json!({"kind": "Secret", "name": "prod-kubeconfig"});
        let target = json!({"namespace": self.scene.apps(), "clusterRef": cluster});
        let named = json!({"admission": {"gatekeeperRef": {"name": NAME}}});
        let pipeline = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "web"},
            "spec": {
                "appRef": {"apiVersion": self.scene.api_version(), "kind": "Widget", "name": "web"},
                "environments": [
                    {"name": "dev", "targets": [{"namespace": self.scene.namespace()}]},
                    {"name": PROD, "targets": [target], "promotion": {"strategy": named}},
                ],
            },
        });
        let applier = Applier::new(self.scene.own()).in_namespace(self.scene.namespace());
        applier.text(&pipeline.to_string()).await?;
        Ok(())
    }

    async fn start(&self) -> Result<InProcess> {
        let mut settings = controller::settings(self.scene.namespace());
        settings.egress_allow = vec!["127.0.0.0/8".parse()?];
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        InProcess::start(settings, self.scene.own(), clock).await
    }

    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{ACCOUNT}", self.scene.apps())
    }

    /// Lets the account do this with gatekeepers.
    pub async fn grant(&self, verbs: &[&str], on_status: &[&str]) -> Result<()> {
        let mut rules = vec![rule("sluice.dev", &["gatekeepers"], verbs)];
        if !on_status.is_empty() {
            rules.push(rule("sluice.dev", &["gatekeepers/status"], on_status));
        }
        let (remote, apps) = (self.scene.remote(), self.scene.apps());
        grant_rules(remote, apps, "gatekeepers", &self.user(), &rules).await
    }

    pub async fn gatekeeper(&self, writers: &[&str]) -> Result<()> {
        let gatekeeper = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": {"name": NAME},
            "spec": {"external": {"writers": writers}},
        });
        let applier = Applier::new(self.scene.remote()).in_namespace(self.scene.apps());
        applier.text(&gatekeeper.to_string()).await?;
        Ok(())
    }

    pub fn gatekeepers(&self) -> Api<Gatekeeper> {
        Api::namespaced(self.scene.remote(), self.scene.apps())
    }

    /// Waits until the gatekeeper has a report of this revision, for its present generation.
    pub async fn is_reported(&self, revision: &str) -> Result<ExternalReport> {
        poll(DEADLINE, "the report", async || {
            let gatekeeper = self.gatekeepers().get(NAME).await?;
            let report = gatekeeper.status.as_ref().and_then(|it| it.report.clone());
            let report = *report.context("there is none")?;
            ensure!(report.revisions == [revision], "{report:?}");
            let generation = gatekeeper.metadata.generation;
            ensure!(Some(report.for_generation) == generation, "{report:?}");
            Ok::<_, anyhow::Error>(report)
        })
        .await
    }

    async fn record(&self) -> Result<PromotionRecord> {
        let api: Api<Pipeline> = Api::namespaced(self.scene.own(), self.scene.namespace());
        let status = api.get("web").await?.status.context("no status")?;
        let prod = status.environments.get(PROD).context("no prod")?;
        prod.promotion.clone().context("no promotion")
    }

    async fn until(&self, what: &str, is: impl Fn(&PromotionRecord) -> bool) -> Result<()> {
        poll(DEADLINE, what, async || {
            let record = self.record().await?;
            ensure!(is(&record), "{record:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Lets time pass to each next try, until one fails with these words.
    async fn fails(&self, words: &str) -> Result<()> {
        poll(DEADLINE, words, async || {
            let record = self.record().await?;
            let message = record.message.clone().unwrap_or_default();
            if record.phase == Phase::Failed && !message.contains(words) {
                self.clock
                    .set(self.clock.now() + SignedDuration::from_mins(16));
            }
            ensure!(message.contains(words), "{record:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    pub async fn succeeds(&self, revision: &str) -> Result<()> {
        poll(DEADLINE, "it to be reported", async || {
            let record = self.record().await?;
            if record.phase == Phase::Failed {
                self.clock
                    .set(self.clock.now() + SignedDuration::from_mins(16));
            }
            ensure!(record.reason.as_deref() == Some("Reported"), "{record:?}");
            ensure!(record.revision == revision, "{record:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}

#[tokio::test]
async fn an_admission_is_reported_with_the_rights_to_that_alone_and_written_again() -> Result<()> {
    let mut told = Told::new("reported").await?;
    told.dev_runs("1.0.0").await?;
    let (server, token) = (told.scene.server(), told.scene.token().await?);
    told.scene.put_kubeconfig(server, &token).await?;
    told.pipeline().await?;
    let _controller = told.start().await?;

    // Each right and each object that is missing is told.
    told.fails("Gatekeeper.sluice.dev in namespace").await?;
    told.grant(&["get", "list", "watch"], &[]).await?;
    told.fails("there is no Gatekeeper").await?;
    told.gatekeeper(&["somebody"]).await?;
    let user = told.user();
    let unnamed = format!("spec.external.writers does not name `{user}`");
    told.fails(&unnamed).await?;
    told.gatekeeper(&[&user]).await?;
    told.fails("grant patch on gatekeepers/status").await?;
    told.grant(&["get", "list", "watch"], &["patch"]).await?;
    let report = told.is_reported("1.0.0");
    told.succeeds("1.0.0").await?;
    let report = report.await?;
    ensure!(report.by == user, "{report:?}");
    ensure!(report.expires_at.0 == "9999-01-01T00:00:00Z".parse()?);

    // Somebody wipes it, twice; then the spec changes.
    for _ in 0..2 {
        let wiped = json!({"status": {"report": null}});
        told.gatekeepers().merge_status(NAME, &wiped).await?;
        told.is_reported("1.0.0").await?;
    }
    told.gatekeeper(&[&user, "somebody"]).await?;
    told.is_reported("1.0.0").await?;

    // The next run reports its own revision in its place.
    told.dev_runs("1.1.0").await?;
    told.is_reported("1.1.0").await?;
    told.succeeds("1.1.0").await
}

#[tokio::test]
async fn a_controller_that_is_killed_before_it_reports_does_so_once() -> Result<()> {
    let mut told = Told::new("killed").await?;
    let user = told.user();
    told.grant(&["get", "list", "watch"], &["patch"]).await?;
    told.gatekeeper(&[&user]).await?;
    let line = Line::open(told.scene.server()).await?;
    let token = told.scene.token().await?;
    told.scene.put_kubeconfig(line.server(), &token).await?;
    told.dev_runs("1.0.0").await?;
    told.pipeline().await?;
    let first = told.start().await?;
    told.succeeds("1.0.0").await?;

    // The status says that it is decided; nothing of it arrives.
    line.hold();
    told.dev_runs("1.1.0").await?;
    let is_decided =
        |record: &PromotionRecord| record.revision == "1.1.0" && record.phase == Phase::Attempting;
    told.until("1.1.0 to be decided", is_decided).await?;
    drop(first);
    line.cut();
    line.release();
    let before = told.gatekeepers().get(NAME).await?;
    let version = before.metadata.resource_version.context("no version")?;
    let _second = told.start().await?;
    told.succeeds("1.1.0").await?;

    // Every version of the gatekeeper since, up to one that we write.
    let gatekeepers = told.gatekeepers();
    let mark = json!({"metadata": {"annotations": {"test": "over"}}});
    gatekeepers.merge(NAME, &mark).await?;
    let params = WatchParams::default().fields(&format!("metadata.name={NAME}"));
    let mut events = gatekeepers.watch(&params, &version).await?.boxed();
    let mut reports = 0;
    while let Some(event) = events.next().await {
        let WatchEvent::Modified(gatekeeper) = event? else {
            continue;
        };
        if gatekeeper.metadata.annotations.is_some() {
            break;
        }
        reports += 1;
    }
    ensure!(reports == 1, "{reports} reports were written");
    Ok(())
}
