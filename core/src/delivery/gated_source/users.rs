//! Who applies what a source brings: whoever goes past the gates, and gates that come by the way that
//! they close.

use serde_json::Value;
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind, Strategy};

use super::child::is_taken;
use super::{Given, KIND, Source};
use crate::flux::users::{Carried, Used, by_labels, chart_of, consumer_called, uses};
use crate::gate::set::Gathered;

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
