//! Everything that the decision about a gated source needs, from the caches.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use sluice_core::delivery::gated_source::{self, Consumer, Given, Source, Wanted};
use sluice_core::flux::observed::Found;
use sluice_core::flux::users::{self, Carried};
use sluice_core::gate;
use sluice_core::time::clock::Now;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, SourceKind, SourceSelector, Strategy};

use super::stored;
use crate::act::reconcile::Context;
use crate::cluster::key::{KeyRef, ObjectKey};
use crate::observe::world::{Place, World};

/// Whether it is known which objects there are of the kinds that matter to it, and what is stored of it.
pub(super) fn is_known(context: &Context, object: &GatedSource) -> bool {
    let strategy = object.spec.strategy;
    let wanted = gated_source::wanted(object);
    let named = wanted.iter().flat_map(|source| {
        let upstream = FluxKind::Source(source.kind);
        [upstream, source.child(strategy)]
    });
    let selected = object.spec.selector.iter();
    let selected = selected.map(|selector| FluxKind::Source(selector.kind));
    let consumers = [ConsumerKind::Kustomization, ConsumerKind::HelmRelease];
    let mut kinds = named
        .chain(selected)
        .chain(consumers.map(FluxKind::Consumer));
    // Before it is deleted, everything that has its mark has to be known, of every kind.
    let is_deleting = object.metadata.deletion_timestamp.is_some();
    let needs_store = strategy == Strategy::Artifact && !is_deleting;
    let has_answered = |kind| context.world.flux.has_answered(kind);
    kinds.all(has_answered)
        && (!is_deleting || FluxKind::ALL.into_iter().all(has_answered))
        && (!needs_store || stored::is_known(context))
}

/// All of it, as it is at `now`.
pub(super) fn gather(
    context: &Context,
    key: &ObjectKey,
    object: Arc<GatedSource>,
    now: Now,
) -> Given {
    let world = context.world.as_ref();
    let subject = gated_source::subject(&object, None);
    let gates = gate::set::gather(world, Some(&object.spec.gates), &subject, now.at);
    let sources = sources(world, key, &object);
    let carried = gated_source::carried(&object, &gates);
    Given {
        strays: strays(world, key, &object, &sources),
        dropped: dropped(world, key, &object, &sources),
        consumers: consumers(world, key, &object, &sources, &carried),
        sources,
        carried,
        gates,
        store: Box::new(stored::Stored::of(context)),
        object,
        now,
    }
}

/// Its sources with their children, in the order of the spec; those that it selects, by name.
fn sources(world: &World, key: &ObjectKey, object: &GatedSource) -> Vec<Source> {
    let see = |kind, name: &str| {
        let namespace = &*key.namespace;
        world.flux.see(kind, KeyRef { namespace, name })
    };
    let strategy = object.spec.strategy;
    let named = gated_source::wanted(object)
        .into_iter()
        .map(|wanted| Source {
            upstream: see(FluxKind::Source(wanted.kind), &wanted.name),
            child: match strategy {
                Strategy::Suspend => Found::Missing,
                Strategy::Pin | Strategy::Artifact => see(wanted.child(strategy), &wanted.target),
            },
            wanted,
        });
    let selected = object.spec.selector.iter();
    let selected = selected.flat_map(|selector| selected_by(world, key, selector));
    named.chain(selected).collect()
}

/// What is shown instead of the sources of a kind that cannot be listed, so that the status reports it.
fn unlisted(world: &World, key: &ObjectKey, selector: &SourceSelector) -> Option<Source> {
    let namespace = &*key.namespace;
    let nobody = KeyRef {
        namespace,
        name: "",
    };
    let upstream = world.flux.see(FluxKind::Source(selector.kind), nobody);
    let labels = selector.match_labels.iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    match upstream {
        Found::Here(_) | Found::Missing => None,
        Found::NotInstalled | Found::Unreadable(_) => Some(Source {
            wanted: Wanted {
                kind: selector.kind,
                name: format!("with {}", labels.join(",")),
                target: String::new(),
                baseline: None,
            },
            upstream,
            child: Found::Missing,
        }),
    }
}

fn selected_by(world: &World, key: &ObjectKey, selector: &SourceSelector) -> Vec<Source> {
    let SourceSelector { kind, match_labels } = selector;
    if let Some(unknown) = unlisted(world, key, selector) {
        return vec![unknown];
    }
    let is_selected = |place: &ObjectKey, object: &FluxObject| {
        let labels = object.labels();
        place.namespace == key.namespace
            && match_labels
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value))
    };
    let mut selected = world.flux.of(FluxKind::Source(*kind)).select(is_selected);
    selected.sort_by(|one, other| one.0.cmp(&other.0));
    let source = |(place, object): (ObjectKey, Arc<FluxObject>)| Source {
        wanted: Wanted {
            kind: *kind,
            name: place.name.to_string(),
            target: String::new(),
            baseline: None,
        },
        upstream: Found::Here(object),
        child: Found::Missing,
    };
    selected.into_iter().map(source).collect()
}

/// What has its mark, and is the child of none of its sources.
fn strays(
    world: &World,
    key: &ObjectKey,
    object: &GatedSource,
    sources: &[Source],
) -> Vec<(FluxKind, Arc<FluxObject>)> {
    let strategy = object.spec.strategy;
    let is_child = |(kind, place): &Place| {
        sources.iter().any(|source| {
            let wanted = &source.wanted;
            (wanted.child(strategy), wanted.target.as_str()) == (*kind, &*place.name)
        })
    };
    let mut strays = world.flux.children_of(key);
    strays.retain(|place| !is_child(place));
    strays.sort_unstable();
    let objects = strays
        .iter()
        .filter_map(|place| Some((place.0, world.flux.object(place)?)));
    objects.collect()
}

/// What has its mark of a suspension, and is none of the sources that it holds.
fn dropped(
    world: &World,
    key: &ObjectKey,
    object: &GatedSource,
    sources: &[Source],
) -> Vec<(SourceKind, Arc<FluxObject>)> {
    let is_held = |kind, place: &ObjectKey| {
        object.spec.strategy == Strategy::Suspend
            && (sources.iter())
                .any(|it| (it.wanted.kind, it.wanted.name.as_str()) == (kind, &*place.name))
    };
    let mut marked = world.flux.suspended_by(key);
    marked.sort_unstable();
    let dropped = marked.iter().filter_map(|place| match place.0 {
        FluxKind::Source(kind) if !is_held(kind, &place.1) => {
            Some((kind, world.flux.object(place)?))
        }
        FluxKind::Source(_) | FluxKind::ExternalArtifact | FluxKind::Consumer(_) => None,
    });
    dropped.collect()
}

/// Everybody who uses a source or a child of it, is named by a baseline, or brings what is carried.
fn consumers(
    world: &World,
    key: &ObjectKey,
    object: &GatedSource,
    sources: &[Source],
    carried: &[Carried],
) -> Vec<Consumer> {
    let here = |name: &str| ObjectKey {
        namespace: Arc::clone(&key.namespace),
        name: name.into(),
    };
    let mut places: BTreeSet<Place> = BTreeSet::new();
    for source in sources {
        let wanted = &source.wanted;
        let upstream = (FluxKind::Source(wanted.kind), here(&wanted.name));
        places.extend(world.flux.consumers_of(&upstream));
        if let Found::Here(object) = &source.upstream
            && let Some((_, _, name)) = users::repository(wanted.kind, object)
        {
            let repository = FluxKind::Source(SourceKind::HelmRepository);
            places.extend(world.flux.consumers_of(&(repository, here(name))));
        }
        let child = (wanted.child(object.spec.strategy), here(&wanted.target));
        places.extend(world.flux.consumers_of(&child));
        let from = wanted
            .baseline
            .as_ref()
            .and_then(|baseline| baseline.from.as_ref());
        places.extend(from.map(|from| {
            let namespace = from
                .namespace
                .as_deref()
                .map_or(Arc::clone(&key.namespace), Arc::from);
            let name = from.name.as_str().into();
            (FluxKind::Consumer(from.kind), ObjectKey { namespace, name })
        }));
    }
    places.extend(carried.iter().map(|carried| {
        let (namespace, name) = (
            carried.namespace.as_str().into(),
            carried.name.as_str().into(),
        );
        (
            FluxKind::Consumer(carried.by),
            ObjectKey { namespace, name },
        )
    }));
    let consumer = |place: Place| match place.0 {
        FluxKind::Consumer(kind) => Some((kind, world.flux.object(&place)?)),
        FluxKind::Source(_) | FluxKind::ExternalArtifact => None,
    };
    places.into_iter().filter_map(consumer).collect()
}
