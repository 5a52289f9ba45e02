//! Which source somebody uses, and where they name it.

use anyhow::{Context, Result};
use kube::ResourceExt;
use serde_json::{Map, Value};
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{ConsumerKind, SourceKind};

use crate::cluster::Consumer;

/// A source that somebody uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Used {
    pub(super) kind: FluxKind,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) how: How,
}

/// Where somebody names it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum How {
    /// In `spec.sourceRef`.
    Source,
    /// In `spec.chartRef`.
    ChartRef,
    /// In `spec.chart`, of a repository that holds charts beside other things.
    ChartIn,
    /// In `spec.chart`, of a Helm repository: what has a version is the chart. Holds
    /// `spec.chart.spec`.
    Chart(Map<String, Value>),
}

impl Used {
    /// The source that `consumer` uses.
    ///
    /// # Errors
    /// It names none of a known kind.
    pub(super) fn by(consumer: &Consumer) -> Result<Self> {
        let spec = &consumer.object.spec;
        let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
        let chart = object(spec.get("chart").and_then(|chart| chart.get("spec")));
        let (reference, field) = match (consumer.kind, &chart) {
            (ConsumerKind::Kustomization, _) => (object(spec.get("sourceRef")), "spec.sourceRef"),
            (ConsumerKind::HelmRelease, None) => (object(spec.get("chartRef")), "spec.chartRef"),
            (ConsumerKind::HelmRelease, Some(chart)) => {
                (object(chart.get("sourceRef")), "spec.chart.spec.sourceRef")
            }
        };
        let none = || format!("{}: {field} names no source", consumer.called());
        let reference = reference.with_context(none)?;
        let text = |field: &str| reference.get(field).and_then(Value::as_str);
        let word = text("kind").with_context(none)?;
        let kind = FluxKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        let kind = kind.with_context(|| {
            format!(
                "{}: {field} names a {word}, which is unknown",
                consumer.called()
            )
        })?;
        let is_index = kind == FluxKind::Source(SourceKind::HelmRepository);
        Ok(Self {
            kind,
            name: text("name").with_context(none)?.to_owned(),
            namespace: text("namespace").map_or_else(|| consumer.namespace(), str::to_owned),
            how: match (consumer.kind, chart) {
                (ConsumerKind::Kustomization, _) => How::Source,
                (ConsumerKind::HelmRelease, None) => How::ChartRef,
                (ConsumerKind::HelmRelease, Some(chart)) if is_index => How::Chart(chart),
                (ConsumerKind::HelmRelease, Some(_)) => How::ChartIn,
            },
        })
    }

    /// As messages have it, such as `GitRepository apps/app`.
    pub(super) fn called(&self) -> String {
        format!("{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Reads `kustomization/app` or `helmrelease/app`.
pub(super) fn named(text: &str) -> Option<(ConsumerKind, String)> {
    let (word, name) = text.split_once('/')?;
    let kinds = [
        (
            ConsumerKind::Kustomization,
            ["kustomization", "kustomizations", "ks"],
        ),
        (
            ConsumerKind::HelmRelease,
            ["helmrelease", "helmreleases", "hr"],
        ),
    ];
    let word = word.to_ascii_lowercase();
    // As `get -o name` prints it, with the group.
    let word = word.split_once('.').map_or(word.as_str(), |(kind, _)| kind);
    let (kind, _) = kinds.into_iter().find(|(_, words)| words.contains(&word))?;
    let single = !name.is_empty() && !name.contains('/');
    single.then(|| (kind, name.to_owned()))
}

/// The name that messages and paths have for a kind, such as `kustomization`.
pub(super) fn word(consumer: &Consumer) -> String {
    let (kind, name) = (consumer.kind.as_str(), consumer.object.name_any());
    format!("{} {name}", kind.to_ascii_lowercase())
}
