//! An object of Flux as it is observed: whether it exists, and what its status says.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::flux::{FluxObject, Release};
use sluice_crds::gated_source::{ConsumerKind, SourceKind};

/// The result of looking up a name.
#[derive(Clone, Debug)]
pub enum Found {
    /// Here it is.
    Here(Arc<FluxObject>),
    /// There is none of that name.
    Missing,
    /// The API server does not know its kind.
    NotInstalled,
    /// Why it cannot be read or listed.
    Unreadable(Arc<str>),
}

impl Found {
    /// The object, if it is here.
    pub fn object(&self) -> Option<&Arc<FluxObject>> {
        match self {
            Found::Here(object) => Some(object),
            Found::Missing | Found::NotInstalled | Found::Unreadable(_) => None,
        }
    }
}

pub(crate) fn is_suspended(object: &FluxObject) -> bool {
    object.spec.get("suspend") == Some(&true.into())
}

/// Whether its controller still works on the present spec of the source.
pub(crate) fn is_at_work(object: &FluxObject) -> bool {
    let ready = condition(object, "Ready");
    let is_behind = !is_observed(object) || ready.is_none_or(|ready| ready.status == "Unknown");
    is_behind && !is_suspended(object)
}

/// Whether its controller has reconciled the present generation.
pub(crate) fn is_observed(object: &FluxObject) -> bool {
    object.status.observed_generation == object.metadata.generation
}

/// Why the artifact may not be what the spec asks for.
pub(crate) fn doubt(object: &FluxObject) -> Option<String> {
    let current = |name: &str| {
        let condition = condition(object, name)?;
        (condition.observed_generation == object.metadata.generation).then_some(condition)
    };
    match current("Ready") {
        Some(ready) if ready.status == "True" => {}
        Some(ready) => return Some(format!("is not ready: {}", ready.message)),
        None => return Some("is not ready: it has not been looked at yet".to_owned()),
    }
    if object.spec.contains_key("verify")
        && current("SourceVerified").is_none_or(|verified| verified.status != "True")
    {
        return Some("asks for verification, and is not verified".to_owned());
    }
    None
}

/// The condition of that name.
pub(crate) fn condition<'a>(object: &'a FluxObject, name: &str) -> Option<&'a Condition> {
    let mut conditions = object.status.conditions.iter();
    conditions.find(|condition| condition.type_ == name)
}

/// The revision of a source that a consumer runs: for a HelmRelease the newest that was deployed, by the
/// digest of the artifact if the chart is from a registry.
pub(crate) fn runs(of: SourceKind, kind: ConsumerKind, consumer: &FluxObject) -> Option<&str> {
    match kind {
        ConsumerKind::Kustomization => consumer.status.last_applied_revision.as_deref(),
        ConsumerKind::HelmRelease => {
            let deployed = |release: &&Release| release.status.as_deref() == Some("deployed");
            let mut history = consumer.status.history.iter();
            let release = history.find(deployed)?;
            match of {
                SourceKind::OCIRepository => release.oci_digest.as_deref(),
                SourceKind::GitRepository
                | SourceKind::HelmChart
                | SourceKind::Bucket
                | SourceKind::HelmRepository => Some(&release.chart_version),
            }
        }
    }
}
