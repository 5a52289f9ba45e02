//! Watches of gated sources, and of the objects of Flux that matter to them.

use std::sync::Arc;

use kube::runtime::watcher::Config;
use kube::{Api, Resource};
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};

use super::Parts;
use crate::artifacts::{News, Store};
use crate::cluster::key::Work;
use crate::observe::cache::{Change, Seen};
use crate::observe::world::{Flux, World};

/// Follows gated sources, and what is stored for them.
pub(super) async fn follow(parts: Parts) {
    let (world, waker) = (&parts.world, parts.waker());
    if let Some(store) = &parts.artifacts {
        let (waker, this) = (parts.waker(), Arc::downgrade(store));
        store.follow(move |news| {
            if let (News::Changed | News::Ready, Some(store)) = (news, this.upgrade()) {
                // Copies whose GatedSource went while nobody was here belong to nobody: what they are
                // kept for has to be known, though nobody else wants to know.
                if !store.keys().is_empty() {
                    waker.world.flux.want();
                }
                tidy(&waker.world, &store);
            }
            waker.artifacts(news);
        });
    }
    let told = |change: Change<'_, GatedSource>| {
        let object = change.now.and_then(Seen::object);
        world.note_gated_source(change.key, object.map(AsRef::as_ref));
        let work = Work::GatedSource(change.key.clone());
        parts.define(&work, &change);
        match change.now {
            None => {
                parts.gone(&work);
                parts.tidy();
            }
            Some(_) if is_known(&change) => {}
            Some(_) if is_changed(&change) => {
                // A child may have another name now.
                parts.tidy();
                waker.gated_source(change.key);
            }
            Some(_) => waker.gated_source(change.key),
        }
    };
    let following = (world.gated_sources).follow(parts.api(), Config::default(), told);
    let steps = async {
        let mut steps = world.gated_sources.progressing();
        // That there are none is told by no object.
        while steps.changed().await.is_ok() {
            parts.tidy();
        }
    };
    tokio::join!(following, steps);
}

/// Whether the watch has brought what the cache had already: what this controller wrote.
fn is_known<K: Resource>(change: &Change<'_, K>) -> bool {
    let version = |seen: Option<&Seen<K>>| seen?.object()?.meta().resource_version.clone();
    let before = version(change.before);
    before.is_some() && before == version(change.now)
}

/// Whether somebody has changed its spec.
fn is_changed<K: Resource>(change: &Change<'_, K>) -> bool {
    let generation = |seen: Option<&Seen<K>>| seen?.object()?.meta().generation;
    let before = generation(change.before);
    before.is_some() && before != generation(change.now)
}

/// Follows a kind of Flux once somebody wants to know. As soon as the API server has said what there
/// is of it, decisions that have waited for that are made.
pub(super) async fn follow_flux(parts: Parts, kind: FluxKind) {
    let (world, waker) = (&parts.world, parts.waker());
    world.flux.is_wanted().await;
    let client = parts.client.clone();
    let objects = match parts.settings.watch_all_namespaces {
        true => Api::all_with(client, &kind),
        false => Api::namespaced_with(client, &parts.settings.runtime_namespace, &kind),
    };
    let cache = world.flux.of(kind);
    let told = |change: Change<'_, FluxObject>| {
        waker.flux(kind, &change);
        if kind == FluxKind::ExternalArtifact && change.now.is_none() {
            parts.tidy();
        }
    };
    let following = Flux::following(kind);
    let following = cache.follow_kind(&following, objects, Config::default(), told);
    let steps = async {
        let mut steps = cache.progressing();
        while steps.changed().await.is_ok() {
            parts.tidy();
            waker.gated_sources();
        }
    };
    tokio::join!(following, steps);
}

impl Parts {
    fn tidy(&self) {
        if let Some(store) = &self.artifacts {
            tidy(&self.world, store);
        }
    }
}

/// Keeps no artifacts of what is not there and has nobody who would make it.
fn tidy(world: &World, store: &Store) {
    let kind = FluxKind::ExternalArtifact;
    let served = world.flux.of(kind);
    if !world.gated_sources.is_synced() || !served.is_synced() {
        return;
    }
    for key in store.keys() {
        let is_there = served.get(key.borrowed()).is_some();
        if !is_there && world.gated_sources_of(&(kind, key.clone())).is_empty() {
            store.forget(&key);
        }
    }
}
