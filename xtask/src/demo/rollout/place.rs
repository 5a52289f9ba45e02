//! Where the story of the rollout takes place: a cluster whose controllers make pods, and a Prometheus.
//!
//! What comes in: the cluster of the demo. What goes out: a shop of 20 pods, its next version without any, and a
//! rollout from the one to the other.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use sluice_tests::controller::Process;
use sluice_tests::kubectl;
use sluice_tests::progress::{Stderr, human};
use sluice_tests::prometheus::{self, Access, Prometheus};
use sluice_tests::workloads::{self, Counts, Kind, Readiness, Workload, Workloads};

use super::{NEW, OLD, PODS};
use crate::demo::NAMESPACE;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;

/// How long a pod takes to become ready, so that there is something to see.
const START: Readiness = Readiness::After("2s");
/// The gauge that the metric of the story asks for.
const GAUGE: &str = "errors";

/// Everything that runs beside the cluster of the demo. Dropped, it ends.
pub(super) struct Place {
    _node: Process,
    prometheus: Prometheus,
    pub(super) old: Workload,
    pub(super) new: Workload,
    pub(super) kubectl: PathBuf,
}

impl Place {
    pub(super) async fn start(screen: &Screen, stage: &Stage) -> Result<Self> {
        let began = Instant::now();
        let progress = Stderr::new();
        let kubectl = kubectl::ensure(&progress)?;
        let of_metrics = prometheus::Programs::ensure(&progress)?;
        screen.waiting("a node and Prometheus are starting");
        let (node, prometheus) = tokio::try_join!(
            workloads::node(&progress, &stage.cluster),
            Prometheus::start(&of_metrics, Access::default()),
        )?;
        let workloads = Workloads::within(stage.client.clone(), NAMESPACE).await?;
        screen.waited();
        screen.fact(&format!(
            "a node and Prometheus, built or found, and ready: {}",
            human(began.elapsed())
        ));
        Ok(Self {
            _node: node,
            prometheus,
            old: workloads.workload(Kind::Deployment, OLD),
            new: workloads.workload(Kind::Deployment, NEW),
            kubectl,
        })
    }

    /// Makes the shop, and its next version. No request fails.
    pub(super) async fn furnish(&self, stage: &Stage) -> Result<()> {
        self.errors(0.002).await?;
        let workloads = Workloads::within(stage.client.clone(), NAMESPACE).await?;
        for (name, replicas) in [(OLD, PODS), (NEW, 0)] {
            let spec = json!({"replicas": replicas});
            let made = workloads.create(Kind::Deployment, name, spec).await?;
            made.has(Counts::all(i64::from(replicas))).await?;
        }
        self.new.release("2", START).await?;
        let rights = include_str!("rights.yaml");
        stage.apply(rights, "rights.yaml").await
    }

    /// Writes the rollout, its gate and its metric.
    pub(super) async fn roll_out(&self, stage: &Stage) -> Result<()> {
        let yaml = include_str!("rollout.yaml").replace("PROMETHEUS", &self.prometheus.url());
        stage.apply(&yaml, "rollout.yaml").await
    }

    /// So many of the requests to the shop fail from now on.
    pub(super) async fn errors(&self, rate: f64) -> Result<()> {
        self.prometheus.set(GAUGE, rate).await
    }

    /// Waits until the old version has all its pods again, and the new one has none.
    pub(super) async fn is_back(&self) -> Result<()> {
        self.old.has(Counts::all(i64::from(PODS))).await?;
        self.new.has(Counts::all(0)).await?;
        let pods = self.new.pods().await?;
        ensure!(pods.is_empty(), "{pods:?}");
        Ok(())
    }
}
