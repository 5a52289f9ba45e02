//! Decisions about sets of gates, from the caches.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::gate::View;
use sluice_core::gate_set::{self, Set, Sight};
use sluice_core::revision::Revision;
use sluice_crds::{Decision, Gate, GateReference, GateSet, Subject};

use super::World;
use crate::cache::Seen;
use crate::clock::Clock;
use crate::http::check::Decide;
use crate::key::KeyRef;

/// Decides by the caches and the clock, whenever it is asked.
pub struct Decider {
    /// What decisions are made from.
    pub world: Arc<World>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Decide for Decider {
    /// No kind of gatekeeper tells one revision from another yet.
    fn decide(&self, set: &GateSet, subject: &Subject, _: Option<&Revision>) -> Decision {
        let now = self.world.now(self.clock.now());
        let found: Vec<(String, Found)> = (set.refs.iter())
            .map(|reference| self.find(reference, &subject.namespace, now.at))
            .collect();
        let gates = found.iter().map(|(name, found)| {
            let sight = match found {
                Found::Missing => Sight::Missing,
                Found::Forbidden => Sight::Forbidden,
                Found::Unreadable(why) => Sight::Unreadable(why),
                Found::Gate(gate, keepers) => Sight::Seen(View {
                    gate,
                    keepers: keepers.iter().map(super::Found::sight).collect(),
                    identity: self.world.standing().identity,
                }),
            };
            (name.clone(), sight)
        });
        let own = Set {
            require: set.require,
            policy: None,
            gates: gates.collect(),
        };
        gate_set::decide(subject.clone(), &[own], now)
    }

    fn synced(&self) -> bool {
        self.world.is_synced()
    }
}

/// A gate with the gatekeepers that it names.
enum Found {
    Missing,
    Forbidden,
    Unreadable(Arc<str>),
    Gate(Arc<Gate>, Vec<super::Found>),
}

impl Decider {
    fn find(&self, reference: &GateReference, from: &str, at: Timestamp) -> (String, Found) {
        let GateReference { name, namespace } = reference;
        let namespace = namespace.as_deref().unwrap_or(from);
        let found = match self.world.gates.get(KeyRef { namespace, name }) {
            _ if namespace != from && !self.world.cross_namespace => Found::Forbidden,
            None => Found::Missing,
            Some(Seen::Unreadable(why)) => Found::Unreadable(why),
            Some(Seen::Object(gate)) => {
                let keepers = self.world.found(&gate, at);
                Found::Gate(gate, keepers)
            }
        };
        (format!("{namespace}/{name}"), found)
    }
}
