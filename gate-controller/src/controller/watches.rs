//! The watches that keep the caches up to date, and wake those whom a change concerns.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sluice_crds::flux::FluxKind;
use sluice_crds::{Approval, Gate, GatePolicy, Gatekeeper};
use sluice_watching::Guard;
use tokio::task::JoinSet;

use super::Parts;
use crate::act::reconcile::Reconciled;
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};
use crate::observe::evidence::Tracker;
use crate::tell::definitions::Defines;

mod gated_sources;
mod named;
mod pipelines;
mod promotion_strategies;
mod pull_requests;
mod rollouts;

/// Follows gates, gatekeepers, approvals, policies with the namespaces that they select, gated sources
/// with the objects of Flux that matter to them, pipelines with the apps that they promote, promotion
/// strategies with what they are decided from, rollouts with their workloads, and all other evidence.
pub(super) fn follow(parts: &Parts, background: &mut JoinSet<()>) {
    background.spawn(follow_gates(parts.clone()));
    background.spawn(follow_approvals(parts.clone()));
    background.spawn(follow_policies(parts.clone()));
    background.spawn(follow_namespaces(parts.clone()));
    background.spawn(follow_gatekeepers(parts.clone(), tracker(parts)));
    background.spawn(gated_sources::follow(parts.clone()));
    background.spawn(pipelines::follow(parts.clone()));
    background.spawn(pipelines::follow_apps(parts.clone()));
    background.spawn(pull_requests::follow(parts.clone()));
    background.spawn(promotion_strategies::follow(parts.clone()));
    background.spawn(promotion_strategies::follow_accesses(parts.clone()));
    background.spawn(promotion_strategies::follow_commit_statuses(parts.clone()));
    background.spawn(promotion_strategies::follow_revert_commits(parts.clone()));
    background.spawn(rollouts::follow(parts.clone()));
    background.spawn(rollouts::follow_workloads(parts.clone()));
    if parts.settings.compare_clocks {
        background.spawn(follow_jumps(parts.clone()));
    }
    for kind in FluxKind::ALL {
        if parts.shard.asks_gates() {
            background.spawn(gated_sources::follow_flux(parts.clone(), kind));
        }
    }
}

/// Has evidence listed again after each jump of the clock, as the caches are by themselves.
async fn follow_jumps(parts: Parts) {
    let mut known = parts.jumps.count();
    loop {
        parts.jumps.beyond(known).await;
        known = parts.jumps.count();
        parts.clients.list_again();
        parts.apps.watched.fleet().list_again();
        parts.workloads.watched.fleet().list_again();
    }
}

/// Follows a kind of ours whose objects are looked at: what each is interested in, what it is, and who
/// has to look again. `told` is called with each change before anything is woken by it.
async fn follow_kind<K>(parts: &Parts, api: Api<Guard<K>>, told: impl Fn(&Change<'_, K>))
where
    K: Reconciled + Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    let waker = parts.waker.clone();
    let told = |change: Change<'_, K>| {
        let work = Work::own(K::KIND, change.key.clone());
        if change.is_respecified() {
            let object = change.now.and_then(Seen::object);
            let interests = object.map(|object| object.interests(change.key));
            parts.world.note(&work, interests.unwrap_or_default());
        }
        told(&change);
        if !K::is_reported(&parts.world) {
            if K::may_matter(&change) {
                waker.concerned(&work);
            }
            return;
        }
        parts.define(&work, &change);
        match change.now {
            Some(_) if change.is_known() => {}
            Some(_) => waker.changed(&change),
            None => {
                waker.concerned(&work);
                parts.gone(&work);
            }
        }
    };
    let cache = K::cache(&parts.world);
    cache.follow(api, Config::default(), told).await;
}

async fn follow_gates(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: &Change<'_, Gate>| {
        let is_there = |seen: Option<&Seen<Gate>>| seen.map(|seen| seen.object().is_some());
        if GatePolicy::is_reported(&parts.world) && is_there(change.before) != is_there(change.now)
        {
            waker.policies_of(&Work::own(Kind::Gate, change.key.clone()));
        }
    };
    follow_kind(&parts, parts.api(), told).await;
}

async fn follow_approvals(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: Change<'_, Approval>| {
        for gatekeeper in parts.world.note_approval(&change) {
            waker.news(Work::own(Kind::Gatekeeper, gatekeeper));
        }
        for pipeline in pipelines::approved(&parts, &change) {
            waker.wake(Work::own(Kind::Pipeline, pipeline));
        }
    };
    let approvals = parts.api();
    let config = Config::default();
    parts.world.approvals.follow(approvals, config, told).await;
}

async fn follow_policies(parts: Parts) {
    let (world, waker) = (&parts.world, parts.waker.clone());
    let policies = Api::all(parts.client.clone());
    let following = follow_kind::<GatePolicy>(&parts, policies, |_| {});
    // Nothing was decided before; and where there is no policy, none wakes anything.
    let listed = async {
        world.policies.synced().await;
        waker.consumers();
    };
    tokio::join!(following, listed);
}

/// Of namespaces only the metadata is kept. Only what goes out by itself is woken: for all others the
/// labels are read when something is decided.
async fn follow_namespaces(parts: Parts) {
    let (world, waker) = (&parts.world, parts.waker.clone());
    let told = |change: Change<'_, PartialObjectMeta<Namespace>>| {
        if change.differs(|namespace| namespace.labels().clone()) {
            waker.concerned(&Work::own(Kind::Namespace, change.key.clone()));
        }
    };
    let namespaces = Api::all(parts.client.clone());
    let following = world.namespaces.follow(namespaces, Config::default(), told);
    let listed = async {
        world.namespaces.synced().await;
        waker.consumers();
    };
    tokio::join!(following, listed);
}

async fn follow_gatekeepers(parts: Parts, tracker: Tracker) {
    let told = |change: &Change<'_, Gatekeeper>| {
        let object = change.now.and_then(Seen::object);
        parts.world.note_gatekeeper(change.key, object);
        match object {
            Some(object) if parts.shard.asks_gates() => tracker.track(object),
            Some(_) => {}
            None => tracker.forget(change.key),
        }
    };
    follow_kind(&parts, parts.api(), told).await;
}

fn tracker(parts: &Parts) -> Tracker {
    let waker = parts.waker.clone();
    Tracker::new(
        parts.clients.clone(),
        Arc::clone(&parts.clock),
        Arc::clone(&parts.world.evidence),
        move |key| waker.news(Work::own(Kind::Gatekeeper, key.clone())),
    )
}

impl Parts {
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

    /// Notes what an object is and was. A deletion is reported at once, by the replica that would write
    /// the object: nobody looks at it any more.
    fn define<K: Defines>(&self, work: &Work, change: &Change<'_, K>) {
        self.definitions.note(work, change);
        if let (None, Some(before)) = (change.now, change.before.and_then(Seen::object))
            && self.shard.holds(work.kind, before.labels())
            && self.load().leads()
        {
            self.telling().gone(work, before.as_ref());
        }
    }

    /// Forgets an object that is gone: at once, because a replica that does not lead never looks. If it
    /// is being looked at now, another look after that finds it gone.
    fn gone(&self, work: &Work) {
        if self.queue.forget(work, self.clock.now()) {
            self.counters.reconciles.forget(work);
            self.failures.forget(work);
        }
    }
}
