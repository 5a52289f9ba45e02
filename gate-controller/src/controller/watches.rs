//! The watches that keep the caches up to date, and wake those whom a change concerns.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Resource, ResourceExt};
use sluice_crds::flux::FluxKind;
use sluice_crds::{Approval, Gate, GatePolicy, Gatekeeper};
use sluice_gatekeepers::watching::Guard;
use tokio::task::JoinSet;

use super::Parts;
use crate::cluster::key::Work;
use crate::observe::cache::{Change, Seen};
use crate::observe::evidence::Tracker;
use crate::tell::definitions::{Defines, Telling};

mod gated_sources;

/// Follows gates, gatekeepers, approvals, policies with the namespaces that they select, gated
/// sources with the objects of Flux that matter to them, and whatever else is evidence.
pub(super) fn follow(parts: &Parts, background: &mut JoinSet<()>) {
    background.spawn(follow_gates(parts.clone()));
    background.spawn(follow_approvals(parts.clone()));
    background.spawn(follow_policies(parts.clone()));
    background.spawn(follow_namespaces(parts.clone()));
    background.spawn(follow_gatekeepers(parts.clone(), tracker(parts)));
    background.spawn(gated_sources::follow(parts.clone()));
    if parts.settings.compare_clocks {
        background.spawn(follow_jumps(parts.clone()));
    }
    for kind in FluxKind::ALL {
        background.spawn(gated_sources::follow_flux(parts.clone(), kind));
    }
}

/// Has evidence listed again after each jump of the clock, as the caches are by themselves.
async fn follow_jumps(parts: Parts) {
    let mut known = parts.jumps.count();
    loop {
        parts.jumps.beyond(known).await;
        known = parts.jumps.count();
        parts.clients.list_again();
    }
}

async fn follow_gates(parts: Parts) {
    let waker = parts.waker();
    let told = |change: Change<'_, Gate>| {
        let gate = change.now.and_then(Seen::object).map(AsRef::as_ref);
        parts.world.note_gate(change.key, gate);
        let is_there = |seen: Option<&Seen<Gate>>| seen.map(|seen| seen.object().is_some());
        if parts.reports_policies() && is_there(change.before) != is_there(change.now) {
            waker.policies_of(change.key);
        }
        let work = Work::Gate(change.key.clone());
        parts.define(&work, &change);
        match change.now {
            Some(now) if parts.is_ours(&work, now) => waker.accepted(&change),
            Some(_) => waker.gate(&change),
            None => {
                waker.dependents(change.key);
                parts.gone(&work);
            }
        }
    };
    let gates = parts.api();
    parts
        .world
        .gates
        .follow(gates, Config::default(), told)
        .await;
}

async fn follow_approvals(parts: Parts) {
    let waker = parts.waker();
    let told = |change: Change<'_, Approval>| {
        for gatekeeper in parts.world.note_approval(&change) {
            waker.gatekeeper(&gatekeeper, true);
        }
    };
    let approvals = parts.api();
    let config = Config::default();
    parts.world.approvals.follow(approvals, config, told).await;
}

async fn follow_policies(parts: Parts) {
    let (world, waker) = (&parts.world, parts.waker());
    let told = |change: Change<'_, GatePolicy>| {
        let policy = change.now.and_then(Seen::object);
        world.note_policy(change.key, policy.map(AsRef::as_ref));
        if is_another_policy(&change) {
            waker.gated_sources();
        }
        if !parts.reports_policies() {
            return;
        }
        let work = Work::GatePolicy(change.key.clone());
        parts.define(&work, &change);
        match change.now {
            Some(now) if parts.is_ours(&work, now) => {}
            Some(_) => waker.policy(change.key),
            None => parts.gone(&work),
        }
    };
    let policies = Api::all(parts.client.clone());
    let config = Config::default();
    let following = world.policies.follow(policies, config, told);
    // Nothing was decided before, and where there is none, no policy wakes anybody.
    let listed = async {
        world.policies.synced().await;
        waker.gated_sources();
    };
    tokio::join!(following, listed);
}

/// Whether a policy may hold back others than before, or ask for other gates.
fn is_another_policy(change: &Change<'_, GatePolicy>) -> bool {
    let asks = |seen: &Seen<GatePolicy>| {
        let metadata = &seen.object()?.metadata;
        Some((metadata.uid.clone(), metadata.generation))
    };
    match (change.before.and_then(asks), change.now.and_then(asks)) {
        (Some(before), Some(now)) => before != now,
        (None, _) | (_, None) => true,
    }
}

/// Of namespaces nothing is kept but their metadata. Only what goes out by itself is woken: for
/// everybody else their labels are asked for when something is decided.
async fn follow_namespaces(parts: Parts) {
    let (world, waker) = (&parts.world, parts.waker());
    let told = |change: Change<'_, PartialObjectMeta<Namespace>>| {
        let labels = |seen: Option<&Seen<PartialObjectMeta<Namespace>>>| {
            Some(seen?.object()?.labels().clone())
        };
        if labels(change.before) != labels(change.now) {
            waker.namespace(&change.key.name);
        }
    };
    let namespaces = Api::all(parts.client.clone());
    let following = world.namespaces.follow(namespaces, Config::default(), told);
    let listed = async {
        world.namespaces.synced().await;
        waker.gated_sources();
    };
    tokio::join!(following, listed);
}

async fn follow_gatekeepers(parts: Parts, tracker: Tracker) {
    let (world, waker) = (&parts.world, parts.waker());
    let told = |change: Change<'_, Gatekeeper>| {
        let object = change.now.and_then(Seen::object);
        world.note_gatekeeper(change.key, object);
        match object {
            Some(object) => tracker.track(object),
            None => tracker.forget(change.key),
        }
        let work = Work::Gatekeeper(change.key.clone());
        parts.define(&work, &change);
        let respecified = is_respecified(&change);
        // Of a list, the write may be known before what it was decided from has been told.
        if change.now.is_some_and(|now| parts.is_ours(&work, now)) && !respecified {
            return;
        }
        waker.gatekeeper(change.key, respecified);
        if change.now.is_none() {
            parts.gone(&work);
        }
    };
    let gatekeepers = parts.api();
    let config = Config::default();
    world.gatekeepers.follow(gatekeepers, config, told).await;
}

/// Whether a gatekeeper may say anything else, or somebody else may bring it, as its labels say: another
/// spec, another object of the same name, or another report of a third party.
fn is_respecified(change: &Change<'_, Gatekeeper>) -> bool {
    let asks = |seen: &Seen<Gatekeeper>| {
        let object = seen.object()?;
        let metadata = &object.metadata;
        let report = object.status.as_ref().and_then(|it| it.report.clone());
        let labels = metadata.labels.clone();
        Some((metadata.uid.clone(), metadata.generation, labels, report))
    };
    match (change.before.and_then(asks), change.now.and_then(asks)) {
        (Some(before), Some(now)) => before != now,
        (None, _) | (_, None) => true,
    }
}

fn tracker(parts: &Parts) -> Tracker {
    let waker = parts.waker();
    Tracker::new(
        parts.clients.clone(),
        Arc::clone(&parts.clock),
        Arc::clone(&parts.world.evidence),
        move |key| waker.gatekeeper(key, true),
    )
}

impl Parts {
    /// Whether the statuses of policies are ours to write. Who sees the gates of one namespace cannot
    /// say whether those of a policy are there, and several such controllers would each write
    /// another status.
    fn reports_policies(&self) -> bool {
        self.settings.watch_all_namespaces
    }

    fn api<K>(&self) -> Api<Guard<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        if self.settings.watch_all_namespaces {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.settings.runtime_namespace)
        }
    }

    /// Whether what has come is nothing but what this controller wrote.
    fn is_ours<K: Resource>(&self, work: &Work, now: &Seen<K>) -> bool {
        let version = now
            .object()
            .and_then(|object| object.meta().resource_version.as_deref());
        self.written.came_back(work, version)
    }

    /// Notes what an object is and was. That it is gone is told at once, by the replica that would
    /// write it: nobody looks at it any more.
    fn define<K: Defines>(&self, work: &Work, change: &Change<'_, K>) {
        self.definitions.note(work, change);
        if let (None, Some(before)) = (change.now, change.before.and_then(Seen::object))
            && self.shard.holds(before.labels())
            && self.load().leads()
        {
            let telling = Telling {
                definitions: &self.definitions,
                events: &self.events,
                audit: &self.audit,
            };
            telling.gone(work, before.as_ref());
        }
    }

    /// Forgets an object that is gone: at once, because a replica that does not lead never looks.
    /// Where somebody looks at it now, another look after that finds it gone.
    fn gone(&self, work: &Work) {
        if self.queue.forget(work, self.clock.now()) {
            self.counters.reconciles.forget(work);
            self.written.forget(work);
            self.failures.forget(work);
        }
    }
}
