//! HelmReleases as targets and sources.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_tests::flux::Charts;

use super::{SIZE, Shop, rollout};

/// A chart with one Deployment, called as its release.
const CHART: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/component: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      nodeName: kwok-0
      containers: [{name: app, image: "reg.example/app:1"}]
"#;

impl Shop {
    /// Two releases of a chart, with these fields besides.
    async fn releases(&self, charts: &Charts, with: &Value) -> Result<()> {
        charts.publish("web", "1.0.0", &[("web.yaml", CHART)])?;
        self.stage.helm_chart("web", charts, "1.x").await?;
        for (name, replicas) in [("web-v1", SIZE), ("web-v2", 0)] {
            self.release(name, replicas, with).await?;
            self.stage.released(name, "1.0.0").await?;
        }
        Ok(())
    }

    async fn release(&self, name: &str, replicas: i64, with: &Value) -> Result<()> {
        let mut spec = json!({
            "chartRef": {"kind": "HelmChart", "name": "web"}, "interval": "1h",
            "values": {"replicas": replicas},
        });
        let fields = spec.as_object_mut().context("no object")?;
        fields.extend(with.as_object().context("no object")?.clone());
        self.stage.put("HelmRelease", name, spec).await
    }
}

fn of_releases() -> Result<Value> {
    let app = |name: &str| json!({"kind": "HelmRelease", "name": name});
    rollout(&json!({"targetRef": app("web-v2"), "sourceRef": [app("web-v1")]}))
}

#[tokio::test]
async fn one_release_takes_the_place_of_another() -> Result<()> {
    let shop = Shop::new("ro-helm").await?;
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    shop.releases(&charts, &json!({})).await?;
    shop.stage.apply(&of_releases()?.to_string()).await?;
    let status = shop.succeeds().await?;
    assert_eq!(status.run.context("no run")?.revision, "1.0.0");
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("HelmRelease", &["web-v1", "web-v2"], (0, SIZE))
        .await
}

/// When everything that the API server does today is long ago.
const LATER: &str = "2100-01-01T12:00:00Z";

#[tokio::test]
async fn a_release_that_corrects_drift_holds_until_it_leaves_sizes_alone() -> Result<()> {
    let shop = Shop::new("ro-drift").await?;
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    let corrects = json!({"driftDetection": {"mode": "enabled"}});
    shop.releases(&charts, &corrects).await?;
    shop.stage.apply(&of_releases()?.to_string()).await?;
    // By the clock of the API server its workload has just changed: it may be the release before that is seen.
    shop.is_held("NotApplied").await?;
    shop.stage.set(LATER);
    let held = shop
        .is_held("AppliedAgain")
        .await?
        .held
        .context("not held")?;
    ensure!(
        held.message
            .contains("write into its spec.driftDetection:\n  ignore:"),
        "{}",
        held.message
    );
    shop.has(SIZE, 0).await?;
    let ignore = json!([{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]);
    let leaves = json!({"driftDetection": {"mode": "enabled", "ignore": ignore}});
    for (name, replicas) in [("web-v1", SIZE), ("web-v2", 0)] {
        shop.release(name, replicas, &leaves).await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("HelmRelease", &["web-v1", "web-v2"], (0, SIZE))
        .await
}
