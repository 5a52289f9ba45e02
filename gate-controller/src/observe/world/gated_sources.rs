//! Whom a change concerns of the gated sources, without looking at all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_core::delivery::gated_source::wanted;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{Baseline, SourceKind, Strategy};

use super::flux::Place;
use super::{World, lock, named};
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::Change;

/// What matters to a GatedSource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Interest {
    /// An object of Flux: a source, a child, whoever says what runs already.
    Flux(Place),
    /// The sources of a kind in a namespace: it selects some of them.
    Selected(SourceKind, Arc<str>),
    /// A gate that it names.
    Gate(ObjectKey),
    /// The labels of a namespace, which policies go by.
    Namespace(Arc<str>),
}

impl World {
    /// Notes what matters to a GatedSource; nothing when it is gone.
    pub fn note_gated_source(&self, key: &ObjectKey, object: Option<&GatedSource>) {
        if object.is_some() {
            self.flux.want();
        }
        let interests = object.map(|object| interests(key, object));
        lock(&self.interests).set(key, interests.unwrap_or_default());
    }

    /// Notes an object of Flux. Returns the GatedSources that it concerns.
    pub fn note_flux(
        &self,
        kind: FluxKind,
        change: &Change<'_, FluxObject>,
    ) -> BTreeSet<ObjectKey> {
        let concerned = self.flux.note(kind, change);
        let interests = lock(&self.interests);
        let mut found = BTreeSet::from_iter(concerned.owners);
        for place in concerned.places {
            if let FluxKind::Source(kind) = place.0 {
                let namespace = Arc::clone(&place.1.namespace);
                found.extend(interests.of(&Interest::Selected(kind, namespace)));
            }
            found.extend(interests.of(&Interest::Flux(place)));
        }
        found.retain(|key| self.gated_sources.get(key.borrowed()).is_some());
        found
    }

    /// The GatedSources to which an object of Flux matters by its name, whether or not it is there.
    pub fn gated_sources_of(&self, place: &Place) -> Vec<ObjectKey> {
        lock(&self.interests).of(&Interest::Flux(place.clone()))
    }

    /// The GatedSources in a namespace.
    pub fn gated_sources_in(&self, namespace: &str) -> Vec<ObjectKey> {
        lock(&self.interests).of(&Interest::Namespace(namespace.into()))
    }

    /// The GatedSources that any of these gates may hold back: those that name it, and where a policy
    /// names it, all.
    pub(super) fn held_by<'a>(
        &self,
        gates: impl IntoIterator<Item = &'a ObjectKey>,
    ) -> BTreeSet<Work> {
        let (interests, policing) = (lock(&self.interests), lock(&self.policing));
        let mut found = BTreeSet::new();
        for gate in gates {
            if policing.any(gate) {
                return self
                    .gated_sources
                    .keys()
                    .into_iter()
                    .map(Work::GatedSource)
                    .collect();
            }
            let held = interests.of(&Interest::Gate(gate.clone()));
            found.extend(held.into_iter().map(Work::GatedSource));
        }
        found
    }
}

fn interests(key: &ObjectKey, object: &GatedSource) -> Vec<Interest> {
    let spec = &object.spec;
    let here = |kind, name: &str| {
        let (namespace, name) = (Arc::clone(&key.namespace), name.into());
        Interest::Flux((kind, ObjectKey { namespace, name }))
    };
    let mut all = vec![Interest::Namespace(Arc::clone(&key.namespace))];
    for source in wanted(object) {
        all.push(here(FluxKind::Source(source.kind), &source.name));
        if spec.strategy != Strategy::Suspend {
            all.push(here(source.child(spec.strategy), &source.target));
        }
        all.extend(source.baseline.as_ref().and_then(|it| consumer(key, it)));
    }
    if let Some(selector) = &spec.selector {
        let namespace = Arc::clone(&key.namespace);
        all.push(Interest::Selected(selector.kind, namespace));
    }
    let gates = spec.gates.refs.iter();
    all.extend(gates.map(|it| Interest::Gate(named(key, it.namespace.as_deref(), &it.name))));
    all
}

fn consumer(key: &ObjectKey, baseline: &Baseline) -> Option<Interest> {
    let from = baseline.from.as_ref()?;
    let place = named(key, from.namespace.as_deref(), &from.name);
    Some(Interest::Flux((FluxKind::Consumer(from.kind), place)))
}
