//! Which objects are to be looked at again when something has changed.
//!
//! What comes in: what has changed. What goes out: pieces of work, into the queue.

use std::sync::Arc;

use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::{Gate, Gatekeeper};

use crate::act::queue::Shared;
use crate::act::reconcile::Reconciled;
use crate::artifacts;
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::observe::cache::Change;
use crate::observe::clock::Clock;
use crate::observe::world::World;

/// Puts objects into the queue.
#[derive(Clone)]
pub(crate) struct Waker {
    pub(crate) world: Arc<World>,
    pub(crate) queue: Arc<Shared>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Waker {
    /// An object that is to be looked at, if its kind is looked at by itself.
    pub(crate) fn wake(&self, work: Work) {
        if let Some(look) = work.kind.look() {
            self.queue.push(work, look.urgency, self.clock.now());
        }
    }

    /// All objects whose decisions depend on an object, directly or indirectly.
    pub(crate) fn concerned(&self, what: &Work) {
        for work in self.world.concerned(what) {
            self.wake(work);
        }
    }

    /// An object whose meaning for decisions has changed, and all objects whose decisions depend on it.
    pub(crate) fn news(&self, what: Work) {
        self.concerned(&what);
        self.wake(what);
    }

    /// An object that has changed, and the objects to which that may matter.
    pub(crate) fn changed<K: Reconciled>(&self, change: &Change<'_, K>) {
        let work = Work::own(K::KIND, change.key.clone());
        if K::may_matter(change) {
            self.concerned(&work);
        }
        self.queue.push(work, K::urgency(change), self.clock.now());
    }

    /// A gate was created or deleted, or can or cannot be read any more: the policies that name it.
    pub(crate) fn policies_of(&self, gate: &Work) {
        let mut policies = self.world.interested(gate);
        policies.retain(|work| work.kind == Kind::GatePolicy);
        policies.into_iter().for_each(|policy| self.wake(policy));
    }

    /// Everything that waits for gates: any policy may make it wait for others.
    pub(crate) fn consumers(&self) {
        self.concerned(&Work::all(Kind::GatePolicy, ""));
    }

    /// An object of Flux: the gated sources that it concerns.
    pub(crate) fn flux(&self, kind: FluxKind, change: &Change<'_, FluxObject>) {
        for work in self.world.flux.note(kind, change) {
            self.wake(work);
        }
    }

    /// What is stored has changed.
    pub(crate) fn artifacts(&self, news: artifacts::News<'_>) {
        match news {
            artifacts::News::Changed => self.consumers(),
            // Each of them was reported by itself.
            artifacts::News::Ready => {}
            artifacts::News::Of(child) => {
                let kind = Kind::Flux(FluxKind::ExternalArtifact);
                self.concerned(&Work::own(kind, child.clone()));
            }
        }
    }

    /// All gates, gatekeepers and consumers of gates.
    pub(crate) fn everything(&self) {
        self.consumers();
        self.all::<Gate>();
        self.all::<Gatekeeper>();
    }

    /// All objects of a kind.
    pub(crate) fn all<K: Reconciled>(&self) {
        for key in K::cache(&self.world).keys() {
            self.wake(Work::own(K::KIND, key));
        }
    }
}
