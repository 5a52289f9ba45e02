//! The crowd: pipelines, with their apps on both API servers.

use std::ops::Range;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::{Gate, Pipeline};
use sluice_tests::{Applier, Writes};

use super::super::seen::{LAST, NEXT};
use super::NAMESPACE;
use super::elsewhere::Elsewhere;

/// How many requests are in flight while it is created or changed.
const AT_ONCE: usize = 16;
/// The environments after the first, each on another cluster.
pub(super) const ENVIRONMENTS: [&str; 4] = [NEXT, "staging", "canary", LAST];
/// How many targets a pipeline has.
pub(super) const TARGETS: usize = 1 + ENVIRONMENTS.len();
/// The revision that all of them run at first.
pub(super) const FIRST: &str = "1.0.0";
/// The gate before the second environment. It is closed at first.
const GATE: &str = "wave";
/// The pipeline that has nothing but many watches, and how many these are: as many as a pipeline can have.
const WIDE: &str = "wide";
pub(super) const WIDTH: usize = 128;
const GROUP: &str = "bench.sluice.dev";

pub(super) struct Crowd {
    client: Client,
    elsewhere: Elsewhere,
    pipelines: usize,
    clusters: usize,
}

impl Crowd {
    /// Starts the second API server, and defines what all of them need. Nobody is there yet.
    pub(super) async fn define(client: &Client, pipelines: usize, clusters: usize) -> Result<Self> {
        let elsewhere = Elsewhere::start().await?;
        for one in [client, elsewhere.client()] {
            let applier = Applier::new(one.clone());
            applier.text(&definition().to_string()).await?;
        }
        let namespaces: Vec<_> = (0..clusters).map(namespace).collect();
        elsewhere.grant(GROUP, &namespaces).await?;
        let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
        for cluster in 0..clusters {
            let secret = elsewhere.kubeconfig(&secret(cluster), cluster == 0).await?;
            applier.text(&secret.to_string()).await?;
        }
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": GATE},
            "spec": {"default": "closed"},
        });
        applier.text(&gate.to_string()).await?;
        Ok(Self {
            client: client.clone(),
            elsewhere,
            pipelines,
            clusters,
        })
    }

    /// Creates some of them.
    pub(super) async fn create(&self, places: Range<usize>) -> Result<()> {
        let api = self.api();
        each(places, async |place| {
            let name = name(place);
            for app in self.apps(place) {
                create_app(&app, &name).await?;
            }
            api.add(&serde_json::from_value(self.pipeline(place))?)
                .await?;
            Ok(())
        })
        .await
        .context("cannot create the crowd")
    }

    /// Creates a pipeline that wants many more watches, in namespaces where nothing is.
    pub(super) async fn widen(&self) -> Result<()> {
        let cluster = json!({"kind": "Secret", "name": secret(self.clusters - 1)});
        let environments = (0..16).map(|n| {
            let namespaces = (0..WIDTH / 16).map(|target| format!("nothing-{n}-{target}"));
            let targets = namespaces.map(|it| json!({"namespace": it, "clusterRef": cluster}));
            json!({"name": format!("env-{n}"), "targets": targets.collect::<Vec<_>>()})
        });
        let wide = pipeline(WIDE, &environments.collect::<Vec<_>>());
        self.api().add(&serde_json::from_value(wide)?).await?;
        Ok(())
    }

    /// Takes it away again.
    pub(super) async fn narrow(&self) -> Result<()> {
        self.api().remove(WIDE).await?;
        Ok(())
    }

    /// Waits until the other clusters together have so many watches of the apps.
    pub(super) async fn has_watches(&self, count: usize) -> Result<()> {
        self.elsewhere.has_watches(GROUP, count).await
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn pipelines(&self) -> usize {
        self.pipelines
    }

    pub(super) fn clusters(&self) -> usize {
        self.clusters
    }

    /// Opens the gate before the second environment.
    pub(super) async fn open_gate(&self) -> Result<()> {
        let gates: Api<Gate> = Api::namespaced(self.client.clone(), NAMESPACE);
        let open = json!({"spec": {"default": "open"}});
        gates.merge(GATE, &open).await?;
        Ok(())
    }

    /// The apps of all first environments run another revision.
    pub(super) async fn release(&self, revision: &str) -> Result<()> {
        each(0..self.pipelines, async |place| {
            self.runs(&name(place), revision).await
        })
        .await
    }

    /// The app of a first environment runs a revision.
    pub(super) async fn runs(&self, name: &str, revision: &str) -> Result<()> {
        runs(&self.here(), name, revision).await
    }

    /// The apps of all environments are looked at, and nothing has changed.
    pub(super) async fn look_for_drift(&self) -> Result<()> {
        each(0..self.pipelines, async |place| {
            for ready in ["Unknown", "True"] {
                let status = status(FIRST, ready);
                for app in self.apps(place) {
                    app.merge_status(&name(place), &status).await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// One of the other clusters does not answer any more.
    pub(super) fn lose_a_cluster(&self) {
        self.elsewhere.lose();
    }

    /// The pipelines that do not name the cluster that is lost.
    pub(super) fn unconcerned(&self) -> impl Iterator<Item = String> {
        let is_concerned =
            |place: usize| (0..ENVIRONMENTS.len()).any(|n| self.cluster(place, n) == 0);
        let all = (0..self.pipelines).filter(move |place| !is_concerned(*place));
        all.map(name)
    }

    /// Apps on this cluster.
    pub(super) fn here(&self) -> Api<DynamicObject> {
        apps(&self.client, NAMESPACE)
    }

    /// Apps on another cluster, which is not going to be lost, and the target of a pipeline there.
    pub(super) fn there(&self) -> (Api<DynamicObject>, Value) {
        let cluster = json!({"kind": "Secret", "name": secret(1)});
        let target = json!({"namespace": namespace(1), "clusterRef": cluster});
        (apps(self.elsewhere.client(), &namespace(1)), target)
    }

    /// Where the apps of a pipeline are.
    fn apps(&self, place: usize) -> Vec<Api<DynamicObject>> {
        let clusters = (0..ENVIRONMENTS.len()).map(|n| self.cluster(place, n));
        let others = clusters.map(|it| apps(self.elsewhere.client(), &namespace(it)));
        [self.here()].into_iter().chain(others).collect()
    }

    pub(super) fn api(&self) -> Api<Pipeline> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The cluster of a pipeline's environment.
    fn cluster(&self, place: usize, environment: usize) -> usize {
        (place + environment) % self.clusters
    }

    fn pipeline(&self, place: usize) -> Value {
        let mut environments = vec![json!({"name": "dev", "targets": [{"namespace": NAMESPACE}]})];
        for (n, name) in ENVIRONMENTS.iter().enumerate() {
            let cluster = self.cluster(place, n);
            let reference = json!({"kind": "Secret", "name": secret(cluster)});
            let mut environment = json!({
                "name": name,
                "targets": [{"namespace": namespace(cluster), "clusterRef": reference}],
                "promotion": {"strategy": {"admission": {}}},
            });
            if n == 0 {
                environment["gates"] = json!({"refs": [{"name": GATE}]});
            }
            environments.push(environment);
        }
        pipeline(&name(place), &environments)
    }
}

/// Does something for each of these, some of them at once.
pub(super) async fn each(
    places: Range<usize>,
    work: impl AsyncFn(usize) -> Result<()>,
) -> Result<()> {
    futures::stream::iter(places)
        .map(|place| work(place))
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |()| Ok(()))
        .await
}

/// A pipeline, whose apps have its name.
pub(super) fn pipeline(name: &str, environments: &[Value]) -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "appRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "App", "name": name},
            "environments": environments,
        },
    })
}

/// Creates an app that runs the first revision.
pub(super) async fn create_app(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    let app =
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "App", "metadata": {"name": name}});
    api.add(&serde_json::from_value(app)?).await?;
    runs(api, name, FIRST).await
}

/// An app runs a revision healthily.
pub(super) async fn runs(api: &Api<DynamicObject>, name: &str, revision: &str) -> Result<()> {
    api.merge_status(name, &status(revision, "True")).await?;
    Ok(())
}

fn name(place: usize) -> String {
    format!("app-{place:06}")
}

fn secret(cluster: usize) -> String {
    format!("cluster-{cluster:02}")
}

/// What is on a cluster is in a namespace of its own: all of them are one API server.
fn namespace(cluster: usize) -> String {
    format!("apps-{cluster:02}")
}

fn apps(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1", "App");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

fn status(revision: &str, ready: &str) -> Value {
    let condition = json!({
        "type": "Ready", "status": ready, "reason": "R", "message": "",
        "lastTransitionTime": "2026-11-20T12:00:00Z",
    });
    json!({"status": {
        "observedGeneration": 1, "conditions": [condition],
        "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
    }})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("apps.{GROUP}"), "labels": {"sluice.dev/test": "true"}},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "App", "plural": "apps", "singular": "app"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}
