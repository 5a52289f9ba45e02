//! Watches of gated sources, and of the objects of Flux that matter to them.

use std::sync::Arc;

use kube::Api;
use kube::runtime::watcher::Config;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};

use super::{Parts, follow_kind};
use crate::artifacts::{News, Store};
use crate::cluster::key::Work;
use crate::observe::cache::Change;
use crate::observe::world::{Flux, World};

/// Follows gated sources, and what is stored for them.
pub(super) async fn follow(parts: Parts) {
    let world = &parts.world;
    if let Some(store) = &parts.artifacts {
        let (waker, this) = (parts.waker.clone(), Arc::downgrade(store));
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
    let told = |change: &Change<'_, GatedSource>| {
        // A child may have another name now, or none.
        if change.before.is_some() && change.is_respecified() {
            parts.tidy();
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    let steps = async {
        let mut steps = world.gated_sources.progressing();
        // If there are none, no object reports that.
        while steps.changed().await.is_ok() {
            parts.tidy();
        }
    };
    tokio::join!(following, steps);
}

/// Follows a kind of Flux once somebody wants to know. As soon as the API server has said what there
/// is of it, decisions that have waited for that are made.
pub(super) async fn follow_flux(parts: Parts, kind: FluxKind) {
    let (world, waker) = (&parts.world, parts.waker.clone());
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
            waker.consumers();
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
        if !is_there
            && world
                .concerned(&Work::own(kind.into(), key.clone()))
                .is_empty()
        {
            store.forget(&key);
        }
    }
}
