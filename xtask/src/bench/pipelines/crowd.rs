//! The crowd: pipelines, with their apps on both API servers.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::Pipeline;
use sluice_tests::{Applier, Writes};

use super::NAMESPACE;
use super::elsewhere::Elsewhere;

/// How many requests are in flight while it is created or changed.
const AT_ONCE: usize = 16;
/// The environments after the first, each on another cluster.
const ENVIRONMENTS: [&str; 4] = ["test", "staging", "canary", "prod"];
/// The environment after the first.
pub(in super::super) const NEXT: &str = ENVIRONMENTS[0];
/// How many targets a pipeline has.
pub(super) const TARGETS: usize = 1 + ENVIRONMENTS.len();
/// The revision that all of them run at first.
pub(super) const FIRST: &str = "1.0.0";
/// The gate before the second environment. It is closed at first.
pub(super) const GATE: &str = "wave";
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
        elsewhere.grant(GROUP, &ENVIRONMENTS).await?;
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

    /// Creates all of them.
    pub(super) async fn create(&self) -> Result<()> {
        let api: Api<Pipeline> = Api::namespaced(self.client.clone(), NAMESPACE);
        self.each(async |place| {
            let name = name(place);
            self.create_app(self.here(), &name).await?;
            for environment in ENVIRONMENTS {
                let there = apps(self.elsewhere.client(), environment);
                self.create_app(there, &name).await?;
            }
            api.add(&serde_json::from_value(self.pipeline(place))?)
                .await?;
            Ok(())
        })
        .await
        .context("cannot create the crowd")
    }

    pub(super) fn pipelines(&self) -> usize {
        self.pipelines
    }

    /// The apps of all first environments run another revision.
    pub(super) async fn release(&self, revision: &str) -> Result<()> {
        self.each(async |place| self.runs(&name(place), revision).await)
            .await
    }

    /// The app of a first environment runs a revision.
    pub(super) async fn runs(&self, name: &str, revision: &str) -> Result<()> {
        let status = status(revision, "True");
        self.here().merge_status(name, &status).await?;
        Ok(())
    }

    /// The apps of all first environments are looked at, and nothing has changed.
    pub(super) async fn look_for_drift(&self) -> Result<()> {
        self.each(async |place| {
            for ready in ["Unknown", "True"] {
                let status = status(FIRST, ready);
                self.here().merge_status(&name(place), &status).await?;
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

    fn here(&self) -> Api<DynamicObject> {
        apps(&self.client, NAMESPACE)
    }

    async fn create_app(&self, api: Api<DynamicObject>, name: &str) -> Result<()> {
        let app =
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "App", "metadata": {"name": name}});
        api.add(&serde_json::from_value(app)?).await?;
        api.merge_status(name, &status(FIRST, "True")).await?;
        Ok(())
    }

    /// The cluster of a pipeline's environment.
    fn cluster(&self, place: usize, environment: usize) -> usize {
        (place + environment) % self.clusters
    }

    fn pipeline(&self, place: usize) -> Value {
        let mut environments = vec![json!({"name": "dev", "targets": [{"namespace": NAMESPACE}]})];
        for (n, name) in ENVIRONMENTS.iter().enumerate() {
            let cluster = json!({"kind": "Secret", "name": secret(self.cluster(place, n))});
            let mut environment = json!({
                "name": name, "targets": [{"namespace": name, "clusterRef": cluster}],
                "promotion": {"strategy": {"admission": {}}},
            });
            if n == 0 {
                environment["gates"] = json!({"refs": [{"name": GATE}]});
            }
            environments.push(environment);
        }
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": name(place)},
            "spec": {
                "appRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "App", "name": name(place)},
                "environments": environments,
            },
        })
    }

    async fn each(&self, work: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
        futures::stream::iter(0..self.pipelines)
            .map(|place| work(place))
            .buffer_unordered(AT_ONCE)
            .try_for_each(async |()| Ok(()))
            .await
    }
}

fn name(place: usize) -> String {
    format!("app-{place:06}")
}

fn secret(cluster: usize) -> String {
    format!("cluster-{cluster:02}")
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
