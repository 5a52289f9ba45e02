//! HelmReleases as targets and sources.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluice_tests::flux::Charts;
use sluice_tests::{Namespace, Writes};

use super::{PAIR, SIZE, Shop, extended, of_applications};

/// A chart with one Deployment, called as its release.
const CHART: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/component: web}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      nodeName: kwok-0
      containers: [{name: app, image: "reg.example/app:{{ .Chart.Version }}"}]
"#;

/// When everything that the API server does today is long ago, at noon on a Friday.
const LATER: &str = "2100-01-01T12:00:00Z";

impl Shop {
    /// Two releases of a chart, with these fields besides.
    async fn releases(&self, charts: &Charts, with: &Value) -> Result<()> {
        charts.publish("web", "1.0.0", &[("web.yaml", CHART)])?;
        self.stage.helm_chart("web", charts, "1.x").await?;
        for (name, replicas) in PAIR.into_iter().zip([SIZE, 0]) {
            self.release(name, replicas, with).await?;
            self.stage.released(name, "1.0.0").await?;
        }
        Ok(())
    }

    async fn release(&self, name: &str, replicas: i64, with: &Value) -> Result<()> {
        let spec = json!({
            "chartRef": {"kind": "HelmChart", "name": "web"}, "interval": "1h",
            "values": {"replicaCount": replicas},
        });
        self.stage
            .put("HelmRelease", name, extended(spec, with)?)
            .await
    }

    /// Takes the rules of both releases by which they leave fields alone away, or brings them back.
    async fn rules(&self, rules: Value) -> Result<()> {
        let change = json!({"spec": {"driftDetection": {"ignore": rules}}});
        for name in PAIR {
            let releases = self.stage.api("HelmRelease")?;
            releases.merge(name, change.clone()).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn one_release_takes_the_place_of_another() -> Result<()> {
    let shop = Shop::new("ro-helm").await?;
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    shop.releases(&charts, &json!({})).await?;
    let rollout = of_applications("HelmRelease")?;
    shop.stage.apply(&rollout.to_string()).await?;
    let status = shop.succeeds().await?;
    assert_eq!(status.run.map(|run| run.revision).as_deref(), Some("1.0.0"));
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("HelmRelease", &PAIR, (0, SIZE))
        .await
}

#[tokio::test]
async fn a_release_that_corrects_drift_holds_until_it_leaves_sizes_alone() -> Result<()> {
    let shop = Shop::new("ro-drift").await?;
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    let corrects = json!({"driftDetection": {"mode": "enabled"}});
    shop.releases(&charts, &corrects).await?;
    let rollout = of_applications("HelmRelease")?;
    shop.stage.apply(&rollout.to_string()).await?;
    // By the clock of the API server its workload has just changed: it may be the release before that is seen.
    shop.is_held("NotApplied").await?;
    shop.stage.set(LATER);
    let held = shop.is_held("AppliedAgain").await?;
    ensure!(
        held.message
            .contains("write into its spec.driftDetection:\n  ignore:"),
        "{}",
        held.message
    );
    shop.has(SIZE, 0).await?;
    let ignore = json!([{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]);
    let leaves = json!({"driftDetection": {"mode": "enabled", "ignore": ignore}});
    for (name, replicas) in PAIR.into_iter().zip([SIZE, 0]) {
        shop.release(name, replicas, &leaves).await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("HelmRelease", &PAIR, (0, SIZE))
        .await
}

/// The inventory has the namespace also where the chart does not name it.
#[tokio::test]
async fn a_release_into_another_namespace_holds_and_says_where_its_workload_is() -> Result<()> {
    let shop = Shop::new("ro-into").await?;
    let other = Namespace::create(shop.stage.cluster(), "ro-out").await?;
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    let into = json!({"targetNamespace": other.name()});
    shop.releases(&charts, &into).await?;
    let rollout = of_applications("HelmRelease")?;
    shop.stage.apply(&rollout.to_string()).await?;
    let held = shop.is_held("ApplicationUnfit").await?;
    let expected = format!(
        "spec.targetRef: the workloads of HelmRelease web-v2 are in another namespace: Deployment {}/",
        other.name()
    );
    ensure!(held.message.starts_with(&expected), "{}", held.message);
    Ok(())
}

/// The example, and what becomes of it where the releases correct sizes again midway. helm-controller does that by
/// updates, and not as it has installed them.
#[tokio::test]
async fn drift_that_is_corrected_midway_holds_the_run_and_nobody_fights() -> Result<()> {
    let shop = Shop::new("ro-again").await?;
    shop.stage.set(LATER);
    let _controller = shop.stage.start().await?;
    let charts = Charts::serve().await?;
    for version in ["6.7.0", "6.8.0"] {
        charts.publish("web", version, &[("web.yaml", CHART)])?;
    }
    let example = include_str!("../../../examples/rollout-helmreleases.yaml");
    let example = example.replace("https://charts.example.com", &charts.url());
    shop.stage.apply(&example).await?;
    shop.is_held("LastBatch").await?;
    shop.has(3, 1).await?;
    shop.flux_undoes_nothing("HelmRelease", &PAIR, (3, 1))
        .await?;
    let leaves = json!([{"paths": ["/spec/replicas"]}]);
    shop.rules(Value::Null).await?;
    let held = shop.is_held("FieldOverwritten").await?;
    assert_eq!(held.by.as_deref(), Some("helm-controller"));
    shop.has(SIZE, 0).await?;
    // A person asks for it again, and then decides.
    shop.retry().await?;
    let held = shop.is_held("AppliedAgain").await?;
    let by = format!("HelmRelease {}/web-v2", shop.stage.namespace());
    assert_eq!(held.by, Some(by));
    shop.has(SIZE, 0).await?;
    shop.rules(leaves).await?;
    shop.is_held("LastBatch").await?;
    shop.has(3, 1).await?;
    shop.let_out().await?;
    let status = shop.succeeds().await?;
    assert_eq!(status.run.map(|run| run.revision).as_deref(), Some("6.8.0"));
    shop.has(0, SIZE).await
}
