//! Who uses a source, and what has applied an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind};

/// A source as a consumer names it: kind, namespace, name.
pub type Used<'a> = (&'a str, &'a str, &'a str);

/// An object that a Kustomization or a HelmRelease has applied, as the labels of Flux say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What, such as `Gate flux-system/production`.
    pub what: String,
    /// The kind of what has applied it.
    pub by: ConsumerKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The labels in which Flux writes what has applied an object: the kind, and the labels for its name
/// and its namespace.
const CARRIERS: [(ConsumerKind, &str, &str); 2] = [
    (
        ConsumerKind::Kustomization,
        "kustomize.toolkit.fluxcd.io/name",
        "kustomize.toolkit.fluxcd.io/namespace",
    ),
    (
        ConsumerKind::HelmRelease,
        "helm.toolkit.fluxcd.io/name",
        "helm.toolkit.fluxcd.io/namespace",
    ),
];

/// These labels.
pub(crate) fn labels() -> impl Iterator<Item = &'static str> {
    let carriers = CARRIERS.into_iter();
    carriers.flat_map(|(_, name, namespace)| [name, namespace])
}

/// What has applied an object, as its labels say.
pub(crate) fn by_labels(kind: &str, metadata: &ObjectMeta) -> Vec<Carried> {
    let name = metadata.name.as_deref().unwrap_or_default();
    let what = match &metadata.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    };
    let label = |label: &str| metadata.labels.as_ref()?.get(label).cloned();
    let carriers = labelled(label).into_iter();
    carriers
        .map(|(by, namespace, name)| Carried {
            what: what.clone(),
            by,
            namespace,
            name,
        })
        .collect()
}

/// What has applied an object with these labels: kind, namespace and name.
pub(crate) fn labelled(
    label: impl Fn(&str) -> Option<String>,
) -> Vec<(ConsumerKind, String, String)> {
    let carriers = CARRIERS.into_iter();
    carriers
        .filter_map(|(by, name, namespace)| Some((by, label(namespace)?, label(name)?)))
        .collect()
}

/// The sources that a consumer names.
pub fn uses(kind: ConsumerKind, consumer: &FluxObject) -> Vec<Used<'_>> {
    let own = consumer.metadata.namespace.as_deref().unwrap_or_default();
    let spec = &consumer.spec;
    let references = match kind {
        ConsumerKind::Kustomization => [spec.get("sourceRef"), None],
        ConsumerKind::HelmRelease => {
            let chart = spec
                .get("chart")
                .and_then(|chart| chart.pointer("/spec/sourceRef"));
            [spec.get("chartRef"), chart]
        }
    };
    let references = references.into_iter().flatten();
    references.filter_map(|it| used(it, own)).collect()
}

fn used<'a>(reference: &'a Value, own: &'a str) -> Option<Used<'a>> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    Some((
        text("kind")?,
        text("namespace").unwrap_or(own),
        text("name")?,
    ))
}

/// The repository of charts that a chart is from, and its name there: as a HelmRelease writes it that
/// has Flux make a HelmChart of its own, and as a HelmChart does.
pub(crate) fn chart_of<'a>(
    spec: &'a Map<String, Value>,
    own: &'a str,
) -> Option<(&'a str, Used<'a>)> {
    let source = used(spec.get("sourceRef")?, own)?;
    let chart = spec.get("chart")?.as_str()?;
    (source.0 == SourceKind::HelmRepository.as_str()).then_some((chart, source))
}

/// The chart repository of a source. Somebody may use it directly, without the gates of the source.
pub fn repository<'a>(kind: SourceKind, source: &'a FluxObject) -> Option<Used<'a>> {
    let own = source.metadata.namespace.as_deref().unwrap_or_default();
    let chart = chart_of(&source.spec, own).filter(|_| kind == SourceKind::HelmChart)?;
    Some(chart.1)
}

/// The kinds of sources that a consumer can name.
pub(crate) fn consumer_called(kind: ConsumerKind, consumer: &FluxObject) -> String {
    let metadata = &consumer.metadata;
    format!(
        "{} {}/{}",
        kind.as_str(),
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    )
}
