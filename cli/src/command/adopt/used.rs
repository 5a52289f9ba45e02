//! Which source somebody uses, where they name it, and which revision of it they run.

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{Baseline, Consumer as Runs, ConsumerKind, SourceKind};

use crate::arguments::split;
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
        let who = consumer.called();
        let none = || format!("{who}: {field} names no source");
        let reference = reference.with_context(none)?;
        let text = |field: &str| reference.get(field).and_then(Value::as_str);
        let word = text("kind").with_context(none)?;
        let kind = FluxKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        let unknown = || format!("{who}: {field} names a {word}, which is unknown");
        let kind = kind.with_context(unknown)?;
        let own = || consumer.key().namespace;
        let is_index = kind == FluxKind::Source(SourceKind::HelmRepository);
        Ok(Self {
            kind,
            name: text("name").with_context(none)?.to_owned(),
            namespace: text("namespace").map_or_else(own, str::to_owned),
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
    let (word, name) = split(text)?;
    let kind = match word.as_str() {
        "kustomization" | "kustomizations" | "ks" => ConsumerKind::Kustomization,
        "helmrelease" | "helmreleases" | "hr" => ConsumerKind::HelmRelease,
        _ => return None,
    };
    Some((kind, name.to_owned()))
}

/// What somebody runs.
pub(super) fn runs(consumer: &Consumer) -> Option<&str> {
    let status = &consumer.object.status;
    match consumer.kind {
        ConsumerKind::Kustomization => status.last_applied_revision.as_deref(),
        ConsumerKind::HelmRelease => {
            let mut releases = status.history.iter();
            let deployed = releases.find(|it| it.status.as_deref() == Some("deployed"))?;
            Some(&deployed.chart_version)
        }
    }
}

/// Whether what somebody runs is in the words of the source: a HelmRelease knows the version of a
/// chart alone.
pub(super) fn tells(consumer: &Consumer, kind: SourceKind) -> bool {
    consumer.kind == ConsumerKind::Kustomization || kind == SourceKind::HelmChart
}

/// What a GatedSource admits at once so that `consumer` goes on as it is, and what there is to say of
/// it.
pub(super) fn baseline(
    consumer: &Consumer,
    used: &Used,
    upstream: &FluxObject,
    kind: SourceKind,
) -> (Option<Baseline>, Vec<String>) {
    let who = consumer.called();
    let mut notes = Vec::new();
    if upstream.spec.get("type") == Some(&"oci".into()) {
        notes.push(format!(
            "the charts of {} can be moved under their versions; an OCIRepository with chartRef is \
             pinned by digest",
            used.called()
        ));
    }
    if runs(consumer).is_none() {
        notes.push(format!(
            "{who} has applied nothing yet, so the first revision has to pass the gates, too"
        ));
        return (None, notes);
    }
    if tells(consumer, kind) {
        let baseline = Baseline {
            from: Some(Runs {
                kind: consumer.kind,
                name: consumer.key().name,
                namespace: None,
            }),
            revision: None,
        };
        return (Some(baseline), notes);
    }
    let revision = upstream.status.artifact.as_ref();
    let revision = revision.map(|artifact| artifact.revision.clone());
    notes.push(match &revision {
        Some(revision) => format!(
            "{who} does not say which revision it runs; {revision}, which {} serves now, is taken \
             for it",
            used.called()
        ),
        None => format!(
            "{} serves nothing, so nothing is admitted at once",
            used.called()
        ),
    });
    let baseline = revision.map(|revision| Baseline {
        from: None,
        revision: Some(revision),
    });
    (baseline, notes)
}
