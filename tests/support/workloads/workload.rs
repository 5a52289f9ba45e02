//! One Deployment, StatefulSet or CloneSet.
//!
//! What comes in: what people and Sluice do to it. What goes out: what its controller has made of that,
//! each waited for with a deadline.

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::pods::{self, Readiness, Replica};
use crate::poll::DEADLINE;
use crate::poll::poll;
use crate::writes::Writes;

/// The kinds of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of Kubernetes.
    Deployment,
    /// Of Kubernetes. OpenKruise has a kind of the same name.
    StatefulSet,
    /// Of OpenKruise.
    CloneSet,
}

impl Kind {
    /// Where its objects are.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Deployment => ("apps", "v1", "Deployment"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet"),
            Self::CloneSet => ("apps.kruise.io", "v1alpha1", "CloneSet"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }
}

/// The counts of a status. A count that is absent is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// All pods.
    pub size: i64,
    /// Those of the newest version.
    pub updated: i64,
    /// Those that are ready, of whatever version.
    pub ready: i64,
}

impl Counts {
    /// All pods are of the newest version, and ready.
    #[must_use]
    pub fn all(size: i64) -> Self {
        Self {
            size,
            updated: size,
            ready: size,
        }
    }

    /// What a status says.
    #[must_use]
    pub fn of(status: &Value) -> Self {
        let count = |field: &str| status[field].as_i64().unwrap_or_default();
        Self {
            size: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
        }
    }
}

/// A workload, which may or may not be there.
pub struct Workload {
    kind: Kind,
    name: String,
    api: Api<DynamicObject>,
    pods: Api<Pod>,
}

impl Workload {
    pub(super) fn new(client: Client, namespace: &str, kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            api: Api::namespaced_with(client.clone(), namespace, &kind.resource()),
            pods: Api::namespaced(client, namespace),
        }
    }

    /// The objects of its kind in its namespace.
    #[must_use]
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Changes its spec, as `kubectl patch --type merge` does.
    ///
    /// # Errors
    ///
    /// If the API server refuses it.
    pub async fn set(&self, spec: Value) -> Result<()> {
        self.api.merge(&self.name, json!({"spec": spec})).await?;
        Ok(())
    }

    /// Gives its template another version.
    ///
    /// # Errors
    ///
    /// If the API server refuses it.
    pub async fn release(&self, version: &str, readiness: Readiness) -> Result<()> {
        let change = pods::change(version, readiness);
        self.set(json!({"template": change})).await
    }

    /// Sets its partition: how many pods keep their version, for a CloneSet also `"50%"`.
    ///
    /// # Errors
    ///
    /// If it is a Deployment, which has none, or the API server refuses it.
    pub async fn partition(&self, partition: impl Into<Value>) -> Result<()> {
        let partition = json!({"partition": partition.into()});
        let strategy = match self.kind {
            Kind::StatefulSet => json!({"rollingUpdate": partition}),
            Kind::CloneSet => partition,
            Kind::Deployment => bail!("Deployment {}: it has no partition", self.name),
        };
        self.set(json!({"updateStrategy": strategy})).await
    }

    /// Sets how many pods it has, by its subresource `scale`.
    ///
    /// # Errors
    ///
    /// If the API server refuses it.
    pub async fn scale(&self, replicas: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let parameters = PatchParams::default();
        self.api
            .patch_scale(&self.name, &parameters, &patch)
            .await?;
        Ok(())
    }

    /// Deletes it, and its pods in the background.
    ///
    /// # Errors
    ///
    /// If it is not there.
    pub async fn delete(&self) -> Result<()> {
        self.api.remove(&self.name).await?;
        Ok(())
    }

    /// Waits until its controller has looked at its spec as it is now, and has done what it does about it
    /// at once: it writes its status last. Returns the status.
    ///
    /// # Errors
    ///
    /// At the deadline, with the status that was seen last.
    pub async fn looked_at(&self) -> Result<Value> {
        self.until("to be looked at", |_| true).await
    }

    /// Waits until its status, for its spec as it is now, says so much. Returns the status.
    ///
    /// # Errors
    ///
    /// At the deadline, with the status that was seen last.
    pub async fn has(&self, counts: Counts) -> Result<Value> {
        let what = format!("to have {counts:?}");
        self.until(&what, |status| Counts::of(status) == counts)
            .await
    }

    /// Waits until `check` is content with its status, for its spec as it is now. Returns the status.
    ///
    /// # Errors
    ///
    /// At the deadline, with the status that was seen last.
    pub async fn until(&self, what: &str, check: impl Fn(&Value) -> bool) -> Result<Value> {
        let what = format!("{:?} {}: {what}", self.kind, self.name);
        poll(DEADLINE, &what, async || {
            let status = self.observed().await?;
            ensure!(check(&status), "{status}");
            Ok(status)
        })
        .await
    }

    /// Its status now.
    ///
    /// # Errors
    ///
    /// If it is not about its spec as it is now.
    pub async fn observed(&self) -> Result<Value> {
        let mut object = self.api.get(&self.name).await?;
        let status = object.data["status"].take();
        let seen = status["observedGeneration"].as_i64();
        let generation = object.metadata.generation;
        ensure!(seen == generation, "generation {generation:?}, {status}");
        Ok(status)
    }

    /// Its pods now, in the order of their names, without those that are being deleted.
    ///
    /// # Errors
    ///
    /// If they cannot be listed, or one has none of our images.
    pub async fn pods(&self) -> Result<Vec<Replica>> {
        let own = ListParams::default().labels(&format!("app={}", self.name));
        let pods = self.pods.list(&own).await?.items.into_iter();
        let staying = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut replicas: Vec<_> = staying
            .map(|pod| Replica::of(&pod))
            .collect::<Result<_>>()?;
        replicas.sort();
        Ok(replicas)
    }

    /// Waits until `check` is content with its pods, and returns them.
    ///
    /// # Errors
    ///
    /// At the deadline, with the pods that were seen last.
    pub async fn until_pods(
        &self,
        what: &str,
        check: impl Fn(&[Replica]) -> bool,
    ) -> Result<Vec<Replica>> {
        let what = format!("the pods of {:?} {}: {what}", self.kind, self.name);
        poll(DEADLINE, &what, async || {
            let pods = self.pods().await?;
            ensure!(check(&pods), "{pods:?}");
            Ok(pods)
        })
        .await
    }
}
