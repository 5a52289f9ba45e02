//! The controllers that are installed, as their Deployments say.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::ListParams;
use serde::Serialize;
use sluice_core::operation::shard;

use super::connection::Connection;
use super::request::list;

/// What the chart labels everything with that belongs to us.
const OURS: &str = "app.kubernetes.io/part-of=sluice";
/// What it says of the version.
const VERSION: &str = "app.kubernetes.io/version";
/// The flags that it starts the controller with, as far as they matter here.
const ELECTS: &str = "--enable-leader-election";
const ONE_NAMESPACE: &str = "--watch-all-namespaces=false";
const TRUSTS: &str = "--trust-unverified-identity";
const SHARD: &str = "--watch-label-selector=";
const KINDS: &str = "--kinds=";

/// A controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Controller {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// As the chart says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// How many pods are ready.
    pub(crate) ready: i32,
    /// The user name that it acts under.
    #[serde(skip)]
    pub(crate) user: String,
    #[serde(skip)]
    arguments: Vec<String>,
}

impl Controller {
    fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.as_ref();
        let pod = deployment.spec.template.spec.as_ref();
        let container = pod.and_then(|pod| pod.containers.first());
        let account = pod.and_then(|pod| pod.service_account_name.clone());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let namespace = deployment.namespace().unwrap_or_default();
        Self {
            user: format!("system:serviceaccount:{namespace}:{account}"),
            name: deployment.name_any(),
            version: deployment.labels().get(VERSION).cloned(),
            image: container.and_then(|it| it.image.clone()),
            ready: status.and_then(|it| it.ready_replicas).unwrap_or_default(),
            arguments: container.and_then(|it| it.args.clone()).unwrap_or_default(),
            namespace,
        }
    }

    /// Whether its replicas agree on a leader by a Lease.
    pub(crate) fn elects(&self) -> bool {
        self.has_flag(ELECTS)
    }

    /// The name of that Lease, in its namespace: each shard has its own.
    pub(crate) fn lease(&self) -> String {
        let given = |flag| {
            let mut given = self.arguments.iter();
            given.find_map(|argument| argument.strip_prefix(flag))
        };
        let kinds = given(KINDS).into_iter().flat_map(|kinds| kinds.split(','));
        shard::lease(given(SHARD), &kinds.collect::<Vec<_>>())
    }

    /// The namespace that it watches. None: all.
    pub(crate) fn watches(&self) -> Option<&str> {
        self.has_flag(ONE_NAMESPACE).then_some(&self.namespace)
    }

    /// Whether it trusts the name in a force, without policies.
    pub(crate) fn trusts(&self) -> bool {
        self.has_flag(TRUSTS)
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument == flag)
    }

    /// In a line.
    pub(crate) fn line(&self) -> String {
        let Self {
            namespace, name, ..
        } = self;
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        let image = self.image.as_ref().map(|image| format!(" (image {image})"));
        let image = image.unwrap_or_default();
        format!("gate-controller {version} is installed as {namespace}/{name}{image}")
    }
}

/// All that are installed.
///
/// # Errors
/// Anything that keeps us from listing Deployments.
pub(crate) async fn controllers(connection: &Connection) -> Result<Vec<Controller>> {
    let page = ListParams::default().labels(OURS);
    let found = list(&connection.all(), page).await?;
    Ok(found.iter().map(Controller::of).collect())
}

#[cfg(test)]
impl Controller {
    /// One that is started with these arguments.
    pub(crate) fn started(namespace: &str, name: &str, arguments: &[&str]) -> Self {
        let deployment = serde_json::json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {}, "template": {"spec": {
                "serviceAccountName": name,
                "containers": [{"name": "manager", "args": arguments}],
            }}},
        });
        // It is written above.
        Self::of(&serde_json::from_value(deployment).unwrap())
    }
}
