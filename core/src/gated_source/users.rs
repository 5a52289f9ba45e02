//! Who applies what a source brings: whoever goes past the gates, and gates that come by the way that
//! they close.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind, Strategy};

use super::child::{consumer_called, is_taken};
use super::{Given, KIND, Source};
use crate::gate::set::Gathered;

/// A source as a consumer names it: kind, namespace, name.
pub type Used<'a> = (&'a str, &'a str, &'a str);

/// Something that has come by a Kustomization or a HelmRelease, as Flux's labels say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What, such as `Gate flux-system/production`.
    pub what: String,
    /// The kind that brought it.
    pub by: ConsumerKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// By these labels Flux says what has brought an object: whose they are, and that of the name and of
/// the namespace.
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

/// What Flux has brought of a GatedSource and everything that decides about it: gates of policies and
/// gates behind gates, too.
pub fn carried(object: &GatedSource, gates: &Gathered) -> Vec<Carried> {
    let own = [(KIND, &object.metadata)];
    let all = own.into_iter().chain(gates.objects());
    let mut carried = Vec::new();
    for brought in all.flat_map(|(kind, metadata)| by_labels(kind, metadata)) {
        if !carried.contains(&brought) {
            carried.push(brought);
        }
    }
    carried
}

/// What has brought an object, as its labels say.
fn by_labels(kind: &str, metadata: &ObjectMeta) -> Vec<Carried> {
    let name = metadata.name.as_deref().unwrap_or_default();
    let what = match &metadata.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    };
    let label = |label: &str| metadata.labels.as_ref()?.get(label).cloned();
    let carriers = CARRIERS.into_iter().filter_map(|(by, name, namespace)| {
        Some(Carried {
            what: what.clone(),
            by,
            namespace: label(namespace)?,
            name: label(name)?,
        })
    });
    carriers.collect()
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
fn chart_of<'a>(spec: &'a Map<String, Value>, own: &'a str) -> Option<(&'a str, Used<'a>)> {
    let source = used(spec.get("sourceRef")?, own)?;
    let chart = spec.get("chart")?.as_str()?;
    (source.0 == SourceKind::HelmRepository.as_str()).then_some((chart, source))
}

/// The repository of charts that a source is from, and that somebody may use past it.
pub fn repository<'a>(kind: SourceKind, source: &'a FluxObject) -> Option<Used<'a>> {
    let own = source.metadata.namespace.as_deref().unwrap_or_default();
    let chart = chart_of(&source.spec, own).filter(|_| kind == SourceKind::HelmChart)?;
    Some(chart.1)
}

/// Whether a HelmRelease takes the same chart out of the same repository.
fn takes(given: &Given<'_>, source: &Source<'_>, kind: ConsumerKind, user: &FluxObject) -> bool {
    if (kind, source.wanted.kind) != (ConsumerKind::HelmRelease, SourceKind::HelmChart) {
        return false;
    }
    let own = user.metadata.namespace.as_deref().unwrap_or_default();
    let taken = user.spec.get("chart").and_then(|chart| chart.get("spec"));
    let taken = taken
        .and_then(Value::as_object)
        .and_then(|spec| chart_of(spec, own));
    let gated = source.upstream.object();
    let gated = gated.and_then(|object| chart_of(&object.spec, given.namespace()));
    taken.is_some() && taken == gated
}

/// Whoever still uses a source that is gated, past its gates.
pub(super) fn bypassing(given: &Given<'_>) -> Vec<String> {
    if given.object.spec.strategy == Strategy::Suspend {
        return Vec::new();
    }
    let own = given.namespace();
    let gated = |used: &Used<'_>| {
        (given.sources.iter())
            .any(|it| *used == (it.wanted.kind.as_str(), own, it.wanted.name.as_str()))
    };
    let past = |(kind, consumer): &&(ConsumerKind, &FluxObject)| {
        let mut sources = given.sources.iter();
        uses(*kind, consumer).iter().any(gated)
            || sources.any(|source| takes(given, source, *kind, consumer))
    };
    let past = given.consumers.iter().filter(past);
    past.map(|(kind, consumer)| consumer_called(*kind, consumer))
        .collect()
}

/// Who uses an object under the name of a child that is somebody else's.
pub(super) fn misled(given: &Given<'_>) -> Vec<String> {
    let own = given.namespace();
    let strategy = given.object.spec.strategy;
    let taken = |used: &Used<'_>| {
        let mut sources = given.sources.iter().filter(|it| is_taken(given, it));
        sources.any(|it| {
            let wanted = &it.wanted;
            *used == (wanted.child(strategy).as_str(), own, wanted.target.as_str())
        })
    };
    let uses =
        |(kind, consumer): &&(ConsumerKind, &FluxObject)| uses(*kind, consumer).iter().any(taken);
    let misled = given.consumers.iter().filter(uses);
    misled
        .map(|(kind, consumer)| consumer_called(*kind, consumer))
        .collect()
}

/// What is brought by way of a child (or a source that is suspended) and decides about it: a change of
/// it cannot come while it holds back.
pub(super) fn self_gated(given: &Given<'_>) -> Vec<String> {
    let own = given.namespace();
    let strategy = given.object.spec.strategy;
    let ours = |used: &Used<'_>| {
        (given.sources.iter()).any(|it| {
            let name = match strategy {
                Strategy::Pin | Strategy::Artifact => &it.wanted.target,
                Strategy::Suspend => &it.wanted.name,
            };
            *used == (it.wanted.child(strategy).as_str(), own, name)
        })
    };
    let by_us = |carried: &&Carried| {
        let carrier = given.consumers.iter().find(|(kind, consumer)| {
            let metadata = &consumer.metadata;
            *kind == carried.by
                && metadata.namespace.as_ref() == Some(&carried.namespace)
                && metadata.name.as_ref() == Some(&carried.name)
        });
        carrier.is_some_and(|(kind, consumer)| uses(*kind, consumer).iter().any(ours))
    };
    let carried = given.carried.iter().filter(by_us);
    carried.map(|carried| carried.what.clone()).collect()
}
