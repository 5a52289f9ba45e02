//! Pipelines as they are published for Weave GitOps, on a server with the chart: what its account may read
//! is enough to decide them, and the status says what is still missing.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::SystemClock;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, Phase};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::controller::InProcess;
use sluice_tests::helm::Release;
use sluice_tests::stage::Stage;
use sluice_tests::{installation, status};

use crate::chart::CONTROLLER;
use crate::stage::DEADLINE;

/// As they are published for Weave GitOps, with another apiVersion.
pub const PUBLISHED: [&str; 3] = [
    // Two targets of one environment, and nothing said of the version of the app.
    "
metadata: {name: podinfo, namespace: default}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  environments:
    - name: dev
      targets:
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev-us}}
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev-eu}}
    - name: prod
      targets:
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: prod}}
",
    // A version of the app that is no longer served, clusters of another namespace.
    "
metadata: {name: podinfo-02, namespace: flux-system}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: podinfo}
  environments:
    - name: dev
      targets:
        - namespace: podinfo-02-dev
          clusterRef: {kind: GitopsCluster, name: dev, namespace: flux-system}
    - name: test
      targets:
        - namespace: podinfo-02-qa
          clusterRef: {kind: GitopsCluster, name: dev, namespace: flux-system}
        - namespace: podinfo-02-perf
          clusterRef: {kind: GitopsCluster, name: dev, namespace: flux-system}
    - name: prod
      targets:
        - namespace: podinfo-02-prod
          clusterRef: {kind: GitopsCluster, name: prod, namespace: flux-system}
",
    // No cluster at all, and a notification to every environment.
    "
metadata: {name: podinfo, namespace: default}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: podinfo}
  environments:
    - {name: dev, targets: [{namespace: dev}]}
    - {name: prod, targets: [{namespace: prod}]}
  promotion: {strategy: {notification: {}}}
",
];

/// The kinds that they name, in the versions that are served today.
const KINDS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: HelmRelease, plural: helmreleases, singular: helmrelease}
  versions:
    - name: v2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gitopsclusters.gitops.weave.works}
spec:
  group: gitops.weave.works
  scope: Namespaced
  names: {kind: GitopsCluster, plural: gitopsclusters, singular: gitopscluster}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: v1
kind: Namespace
metadata: {name: prod}
";

/// A HelmRelease that runs this healthily.
fn release(namespace: &str, version: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "podinfo", "namespace": namespace},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": version,
            "history": [{"chartVersion": version, "status": "deployed"}],
            "conditions": [{"type": "Ready", "status": "True", "message": ""}],
        },
    })
}

fn gitops_cluster(name: &str) -> Value {
    json!({
        "apiVersion": "gitops.weave.works/v1alpha1", "kind": "GitopsCluster",
        "metadata": {"name": name}, "spec": {"secretRef": {"name": format!("{name}-kubeconfig")}},
    })
}

/// Applies an example as it is published, with our apiVersion and in the namespace of the stage.
async fn publish(stage: &Stage, published: &str, name: &str) -> Result<()> {
    let mut object: Value = serde_saphyr::from_str(published)?;
    object["apiVersion"] = "sluice.dev/v1alpha1".into();
    object["kind"] = "Pipeline".into();
    object["metadata"] = json!({"name": name});
    stage.apply(&object.to_string()).await
}

/// Waits until `check` is content with the status of a pipeline.
async fn says(
    stage: &Stage,
    name: &str,
    what: &str,
    check: impl Fn(&PipelineStatus) -> bool,
) -> Result<PipelineStatus> {
    let pipelines: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let pipeline = status::until(&pipelines, name, DEADLINE, what, check).await?;
    pipeline.status.context("no status")
}

/// Whether `Ready` says this.
fn is_ready_for(status: &PipelineStatus, reason: &str, words: &str) -> bool {
    let mut conditions = status.conditions.iter().filter(|it| it.type_ == "Ready");
    conditions.any(|it| it.reason == reason && it.message.contains(words))
}

#[tokio::test]
async fn published_examples_are_decided() -> Result<()> {
    let (plane, _) = installation::start(&Release::default(), KINDS).await?;
    let cluster = plane.cluster();
    let stage = Stage::with_chart(cluster, "published", "2026-11-20T12:00:00Z").await?;
    let mut settings = stage.settings();
    settings.watch_all_namespaces = true;
    // Nobody listens there.
    settings.events_addr = "http://127.0.0.1:9/".parse().map_err(anyhow::Error::msg)?;
    let account = cluster.client_for(CONTROLLER).await?;
    let _controller = InProcess::start(settings, account, Arc::new(SystemClock)).await?;

    // Its clusters are named by GitopsClusters: first there are none, then they name Secrets.
    let [clusters, _, notifies] = PUBLISHED;
    publish(&stage, clusters, "clusters").await?;
    let own = stage.namespace();
    let missing = format!("there is no GitopsCluster {own}/dev-us");
    let is = |status: &PipelineStatus| is_ready_for(status, "TargetClusterNotFound", &missing);
    says(&stage, "clusters", "the clusters to be missed", is).await?;
    for name in ["dev-us", "dev-eu", "prod"] {
        stage.apply(&gitops_cluster(name).to_string()).await?;
    }
    let right = format!("may not list the Secret {own}/dev-us-kubeconfig");
    let is = |status: &PipelineStatus| is_ready_for(status, "TargetNotReadable", &right);
    let status = says(
        &stage,
        "clusters",
        "the right on the Secret to be missed",
        is,
    )
    .await?;
    ensure!(
        status.clusters.len() == 3 && status.run.is_none(),
        "{}",
        json!(status)
    );

    // Everything is on this cluster: a run begins, and is to be told to those who listen.
    stage.apply(&release("dev", "6.1.6").to_string()).await?;
    stage.apply(&release("prod", "6.1.0").to_string()).await?;
    publish(&stage, notifies, "notifies").await?;
    let is = |status: &PipelineStatus| {
        let prod = status.environments.get("prod");
        prod.is_some_and(|it| it.state == EnvironmentState::Failed)
    };
    let status = says(&stage, "notifies", "nobody to listen", is).await?;
    let run = status.run.context("no run")?;
    ensure!((run.revision.as_str(), run.environment.as_str()) == ("6.1.6", "prod"));
    let record = status.environments["prod"].promotion.as_ref();
    let record = record.context("no record")?;
    let why = record.message.as_deref().unwrap_or_default();
    ensure!(
        record.phase == Phase::Failed && why.contains("connection refused"),
        "{record:?}"
    );
    Ok(())
}
