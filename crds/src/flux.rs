//! What is read of Flux's API: of each object its metadata, its spec unchanged, and the parts of its
//! status that delivery depends on. Flux defines these kinds (`source.toolkit.fluxcd.io/v1` and its
//! neighbours).

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::gated_source::{ConsumerKind, SourceKind};

/// The kinds of Flux that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FluxKind {
    /// A source that people write.
    Source(SourceKind),
    /// A source whose artifact another controller serves.
    ExternalArtifact,
    /// An object that applies what a source brings.
    Consumer(ConsumerKind),
}

impl FluxKind {
    /// Every kind.
    pub const ALL: [FluxKind; 8] = [
        FluxKind::Source(SourceKind::GitRepository),
        FluxKind::Source(SourceKind::OCIRepository),
        FluxKind::Source(SourceKind::HelmChart),
        FluxKind::Source(SourceKind::Bucket),
        FluxKind::Source(SourceKind::HelmRepository),
        FluxKind::ExternalArtifact,
        FluxKind::Consumer(ConsumerKind::Kustomization),
        FluxKind::Consumer(ConsumerKind::HelmRelease),
    ];

    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            FluxKind::Source(kind) => kind.as_str(),
            FluxKind::ExternalArtifact => "ExternalArtifact",
            FluxKind::Consumer(kind) => kind.as_str(),
        }
    }

    /// Its group.
    pub fn group(self) -> &'static str {
        match self {
            FluxKind::Source(_) | FluxKind::ExternalArtifact => "source.toolkit.fluxcd.io",
            FluxKind::Consumer(ConsumerKind::Kustomization) => "kustomize.toolkit.fluxcd.io",
            FluxKind::Consumer(ConsumerKind::HelmRelease) => "helm.toolkit.fluxcd.io",
        }
    }

    /// Its version.
    pub fn version(self) -> &'static str {
        match self {
            FluxKind::Source(_)
            | FluxKind::ExternalArtifact
            | FluxKind::Consumer(ConsumerKind::Kustomization) => "v1",
            FluxKind::Consumer(ConsumerKind::HelmRelease) => "v2",
        }
    }

    /// Its name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            FluxKind::Source(SourceKind::GitRepository) => "gitrepositories",
            FluxKind::Source(SourceKind::OCIRepository) => "ocirepositories",
            FluxKind::Source(SourceKind::HelmChart) => "helmcharts",
            FluxKind::Source(SourceKind::Bucket) => "buckets",
            FluxKind::Source(SourceKind::HelmRepository) => "helmrepositories",
            FluxKind::ExternalArtifact => "externalartifacts",
            FluxKind::Consumer(ConsumerKind::Kustomization) => "kustomizations",
            FluxKind::Consumer(ConsumerKind::HelmRelease) => "helmreleases",
        }
    }
}

impl SourceKind {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::GitRepository => "GitRepository",
            SourceKind::OCIRepository => "OCIRepository",
            SourceKind::HelmChart => "HelmChart",
            SourceKind::Bucket => "Bucket",
            SourceKind::HelmRepository => "HelmRepository",
        }
    }
}

impl ConsumerKind {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            ConsumerKind::Kustomization => "Kustomization",
            ConsumerKind::HelmRelease => "HelmRelease",
        }
    }
}

/// An object of Flux. Its kind is not part of it: the code that uses it knows the kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FluxObject {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its spec, unchanged: fields that this version does not know stay in it.
    #[serde(default)]
    pub spec: Map<String, Value>,
    /// What is read of its status.
    #[serde(default)]
    pub status: FluxStatus,
}

/// What is read of a status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FluxStatus {
    /// The generation that its controller has dealt with; -1 before it has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Of a HelmRelease: the generation with which it has begun to act last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_generation: Option<i64>,
    /// Its conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Of a source: what it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Of a Kustomization: what it applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Of a Kustomization: the revision that its source has from elsewhere, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_origin_revision: Option<String>,
    /// Of a Kustomization: what it tried to apply last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// Of a HelmRelease: its releases, the newest first. A Kustomization has a list with another form
    /// under the same name; nothing is read from that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Release>,
}

/// What a source serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its path below the server's address.
    pub path: String,
    /// The URL from which it can be downloaded.
    pub url: String,
    /// The revision.
    pub revision: String,
    /// The digest of the file, with its algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was last changed.
    pub last_update_time: Time,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Other metadata of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<std::collections::BTreeMap<String, String>>,
}

/// A release of a HelmRelease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The version of the chart; empty in the list of a Kustomization.
    #[serde(default)]
    pub chart_version: String,
    /// The digest of the artifact that the chart is from, if that artifact is in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_digest: Option<String>,
    /// Its status, such as `deployed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl Resource for FluxObject {
    type DynamicType = FluxKind;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(kind: &FluxKind) -> Cow<'_, str> {
        kind.as_str().into()
    }

    fn group(kind: &FluxKind) -> Cow<'_, str> {
        kind.group().into()
    }

    fn version(kind: &FluxKind) -> Cow<'_, str> {
        kind.version().into()
    }

    fn plural(kind: &FluxKind) -> Cow<'_, str> {
        kind.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_that_nobody_has_looked_at_is_read() {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": { "name": "app" },
            "spec": { "url": "https://git.example.com/app", "interval": "1m" },
            "status": { "observedGeneration": -1 },
        });
        let object: FluxObject = serde_json::from_value(object).unwrap();
        assert_eq!(object.status.observed_generation, Some(-1));
        assert_eq!(object.spec["interval"], "1m");
        assert!(object.status.artifact.is_none());
    }

    /// Since Flux 2.7 a Kustomization keeps a history, too.
    #[test]
    fn a_history_without_charts_is_read() {
        let object = json!({
            "metadata": { "name": "app" },
            "status": {
                "lastAppliedRevision": "main@sha1:4f2a",
                "history": [{ "digest": "sha256:9d1c", "lastReconciledStatus": "ReconciliationSucceeded" }],
            },
        });
        let object: FluxObject = serde_json::from_value(object).unwrap();
        let revision = object.status.last_applied_revision;
        assert_eq!(revision.as_deref(), Some("main@sha1:4f2a"));
    }

    #[test]
    fn every_kind_has_names_of_its_own() {
        let mut names: Vec<_> = FluxKind::ALL
            .map(|kind| (kind.as_str(), kind.plural()))
            .into();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FluxKind::ALL.len());
    }
}
