//! The workloads of one namespace.
//!
//! What comes in: a namespace. What goes out: workloads there, made or found.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::workload::{Kind, Workload};
use super::{Readiness, Serving, pods};
use crate::poll::{DEADLINE, poll};
use crate::writes::Writes;

/// The workloads of one namespace.
pub struct Workloads {
    client: Client,
    namespace: String,
}

impl Workloads {
    /// Those of a new namespace of a [`super::World`], once pods may be made there.
    ///
    /// # Errors
    ///
    /// If there is no default service account in time, which every pod needs.
    pub async fn within(client: Client, namespace: &str) -> Result<Self> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        let what = "the default service account";
        poll(DEADLINE, what, async || accounts.get("default").await).await?;
        Ok(Self::of(client, namespace))
    }

    pub(super) fn of(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
        }
    }

    /// Makes a workload with this spec. Its selector, and a template of version `1` whose pods become
    /// ready, need not be there.
    ///
    /// # Errors
    ///
    /// If the API server refuses it.
    pub async fn create(&self, kind: Kind, name: &str, spec: Value) -> Result<Workload> {
        let mut whole = json!({
            "selector": {"matchLabels": {"app": name}},
            "template": pods::template(name, "1"),
        });
        if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
            whole.extend(spec);
        }
        let resource = kind.resource();
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": name}, "spec": whole,
        });
        let object: DynamicObject = serde_json::from_value(object)?;
        let workload = self.workload(kind, name);
        workload.api().add(&object).await?;
        Ok(workload)
    }

    /// A workload that is there already, or will be.
    #[must_use]
    pub fn workload(&self, kind: Kind, name: &str) -> Workload {
        Workload::new(self.client.clone(), &self.namespace, kind, name)
    }

    /// The pods here, of whatever workload.
    #[must_use]
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Watches how many pods there are, and how many of them are ready, from now on.
    ///
    /// # Errors
    ///
    /// If they cannot be listed.
    pub async fn serving(&self) -> Result<Serving> {
        Serving::start(self.pods()).await
    }

    /// Lets a pod that is there become ready or break.
    ///
    /// # Errors
    ///
    /// If there is no such pod.
    pub async fn turn(&self, pod: &str, readiness: Readiness) -> Result<()> {
        let change = json!({"metadata": {"annotations": readiness.annotations()}});
        self.pods().merge(pod, change).await?;
        Ok(())
    }
}
