//! Who is to be looked at again when something has changed.
//!
//! What comes in: what has changed. What goes out: pieces of work, into the queue.

use std::sync::Arc;

use sluice_core::gate::force;
use sluice_crds::Gate;
use sluice_crds::flux::{FluxKind, FluxObject};

use crate::act::queue::{Shared, Urgency, urgency};
use crate::artifacts;
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::{Change, Seen};
use crate::observe::clock::Clock;
use crate::observe::world::World;

/// Whether somebody has changed what a gate asks for, in its spec or by annotations. A gate that
/// comes is one of many at the start, and waits its turn unless it is forced.
fn is_touched(change: &Change<'_, Gate>) -> bool {
    let Some(now) = change.now.and_then(Seen::object) else {
        return false;
    };
    match change.before.and_then(Seen::object) {
        None => force::is_asked_for(now),
        Some(before) => {
            let (before, now) = (&before.metadata, &now.metadata);
            before.generation != now.generation || before.annotations != now.annotations
        }
    }
}

/// Whether gates that a gate is nested in may come to anything else: whatever happened but a change
/// of nothing else than its status.
fn may_matter(change: &Change<'_, Gate>) -> bool {
    let asks = |seen: &Seen<Gate>| {
        let metadata = &seen.object()?.metadata;
        Some((
            metadata.uid.clone(),
            metadata.generation,
            metadata.annotations.clone(),
            // Whoever brings it writes its name there, and a gated source says so.
            metadata.labels.clone(),
        ))
    };
    match (change.before.and_then(asks), change.now.and_then(asks)) {
        (Some(before), Some(now)) => before != now,
        (None, _) | (_, None) => true,
    }
}

/// Puts objects into the queue.
#[derive(Clone)]
pub(crate) struct Waker {
    pub(crate) world: Arc<World>,
    pub(crate) queue: Arc<Shared<Work>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Waker {
    fn wake(&self, work: Work) {
        let urgency = urgency(&work);
        self.queue.push(work, urgency, self.clock.now());
    }

    /// A gate that has changed: urgently, if somebody changed what it asks for.
    pub(crate) fn gate(&self, change: &Change<'_, Gate>) {
        let urgency = if is_touched(change) {
            Urgency::Person
        } else {
            Urgency::Gate
        };
        let work = Work::Gate(change.key.clone());
        self.queue.push(work, urgency, self.clock.now());
        if may_matter(change) {
            self.dependents(change.key);
        }
    }

    /// What this controller wrote onto a gate has come back. For the gate itself it is no news; the
    /// gates that it is nested in see a force on it that was accepted.
    pub(crate) fn accepted(&self, change: &Change<'_, Gate>) {
        if may_matter(change) {
            self.dependents(change.key);
        }
    }

    /// A gate is gone: whatever depends on it.
    pub(crate) fn dependents(&self, gate: &ObjectKey) {
        for work in self.world.dependents(gate) {
            self.wake(work);
        }
    }

    /// A gate has come, gone, or can be read or not as before: the policies that name it.
    pub(crate) fn policies_of(&self, gate: &ObjectKey) {
        for policy in self.world.policies_of(gate) {
            self.wake(Work::GatePolicy(policy));
        }
    }

    /// A policy.
    pub(crate) fn policy(&self, key: &ObjectKey) {
        self.wake(Work::GatePolicy(key.clone()));
    }

    /// A gatekeeper, and if it may now say anything else, the gates that it keeps.
    pub(crate) fn gatekeeper(&self, key: &ObjectKey, gates_too: bool) {
        if gates_too {
            for gate in self.world.gates_of(key) {
                self.dependents(&gate);
                self.wake(Work::Gate(gate));
            }
        }
        self.wake(Work::Gatekeeper(key.clone()));
    }

    /// A GatedSource.
    pub(crate) fn gated_source(&self, key: &ObjectKey) {
        self.wake(Work::GatedSource(key.clone()));
    }

    /// All gated sources.
    pub(crate) fn gated_sources(&self) {
        for key in self.world.gated_sources.keys() {
            self.wake(Work::GatedSource(key));
        }
    }

    /// The labels of a namespace have changed: policies may concern others than before.
    pub(crate) fn namespace(&self, name: &str) {
        for key in self.world.gated_sources_in(name) {
            self.wake(Work::GatedSource(key));
        }
    }

    /// An object of Flux: the gated sources that it concerns.
    pub(crate) fn flux(&self, kind: FluxKind, change: &Change<'_, FluxObject>) {
        for key in self.world.note_flux(kind, change) {
            self.wake(Work::GatedSource(key));
        }
    }

    /// What is stored has changed.
    pub(crate) fn artifacts(&self, news: artifacts::News<'_>) {
        match news {
            artifacts::News::Changed => self.gated_sources(),
            // Each of them was told by itself.
            artifacts::News::Ready => {}
            artifacts::News::Of(child) => {
                let place = (FluxKind::ExternalArtifact, child.clone());
                for key in self.world.gated_sources_of(&place) {
                    self.gated_source(&key);
                }
            }
        }
    }

    /// All gates, gatekeepers and gated sources.
    pub(crate) fn everything(&self) {
        self.gated_sources();
        for key in self.world.gates.keys() {
            self.wake(Work::Gate(key));
        }
        for key in self.world.gatekeepers.keys() {
            self.wake(Work::Gatekeeper(key));
        }
    }
}
