//! Who applies what a source brings: whoever goes past the gates, and gates that come by the way that
//! they close.

use serde_json::Value;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, Strategy};

use super::Given;
use super::child::consumer_called;

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
    let past =
        |(kind, consumer): &&(ConsumerKind, &FluxObject)| uses(*kind, consumer).iter().any(gated);
    let past = given.consumers.iter().filter(past);
    past.map(|(kind, consumer)| consumer_called(*kind, consumer))
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
