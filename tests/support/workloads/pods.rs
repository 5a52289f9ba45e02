//! Pods, as tests want them and as they are seen.
//!
//! What comes in: a version, and how its pods start. What goes out: the template of a workload, and of
//! the pods that came of it what tests look at.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::NODE;

/// What the image of every pod is called, but for its version.
const IMAGE: &str = "reg.example/app";

/// How a pod starts. `stages.yaml` makes it true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It is ready at once.
    Ready,
    /// It runs at once, and is ready so long afterwards: `2s`.
    After(&'static str),
    /// It never starts, as if its image could not be fetched.
    Never,
    /// It runs and is not ready, as if it answered no probe.
    Broken,
}

impl Readiness {
    /// The annotations of such a pod: a patch that also takes away those of any other.
    #[must_use]
    pub fn annotations(self) -> Value {
        let (ready, after) = match self {
            Self::Ready => return Value::Null,
            Self::After(duration) => (None, Some(duration)),
            Self::Never => (Some("never"), None),
            Self::Broken => (Some("broken"), None),
        };
        json!({"tests/ready": ready, "tests/ready-after": after})
    }
}

/// A pod template for `name`, of a version.
pub(super) fn template(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"nodeName": NODE, "containers": [container(version)]},
    })
}

/// What changes in a pod template that becomes another version.
pub(super) fn change(version: &str, readiness: Readiness) -> Value {
    json!({
        "metadata": {"annotations": readiness.annotations()},
        "spec": {"containers": [container(version)]},
    })
}

fn container(version: &str) -> Value {
    json!({"name": "app", "image": format!("{IMAGE}:{version}")})
}

/// A pod of a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// It is another one for every pod, also where the name is the same.
    pub uid: String,
    /// What stands behind the colon in its image.
    pub version: String,
    /// The revision that its controller has labelled it with.
    pub revision: String,
    /// `Pending` or `Running`.
    pub phase: String,
    /// Whether it is ready.
    pub ready: bool,
}

impl Replica {
    /// What a pod shows.
    pub(super) fn of(pod: &Pod) -> Result<Self> {
        let name = pod.name_any();
        let containers = pod.spec.as_ref().map(|spec| &spec.containers);
        let image = containers.and_then(|all| all.first()?.image.as_deref());
        let version = image.and_then(|image| image.strip_prefix(IMAGE)?.strip_prefix(':'));
        let version = version.with_context(|| format!("pod {name}: no version in {image:?}"))?;
        let labels = pod.labels();
        let revision = ["controller-revision-hash", "pod-template-hash"];
        let revision = revision.iter().find_map(|label| labels.get(*label));
        let status = pod.status.as_ref();
        Ok(Self {
            uid: pod.uid().context("a pod without uid")?,
            version: version.to_owned(),
            revision: revision.cloned().unwrap_or_default(),
            phase: status
                .and_then(|status| status.phase.clone())
                .unwrap_or_default(),
            ready: status.is_some_and(is_ready),
            name,
        })
    }
}

pub(super) fn is_ready(status: &PodStatus) -> bool {
    let conditions = status.conditions.iter().flatten();
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    ready.any(|ready| ready.status == "True")
}
