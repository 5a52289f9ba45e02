//! Decisions about sets of gates, from the caches.

use std::sync::Arc;

use sluice_core::gate::nested;
use sluice_core::gate_set::{self, Set};
use sluice_core::question::Question;
use sluice_core::revision::Revision;
use sluice_crds::{Decision, GateSet, Subject};

use super::World;
use crate::clock::Clock;
use crate::http::check::Decide;

/// Decides by the caches and the clock, whenever it is asked.
pub struct Decider {
    /// What decisions are made from.
    pub world: Arc<World>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Decide for Decider {
    fn decide(&self, set: &GateSet, subject: &Subject, revision: Option<&Revision>) -> Decision {
        let now = self.world.now(self.clock.now());
        let from = &subject.namespace;
        let found: Vec<_> = (set.refs.iter())
            .map(|reference| {
                let namespace = reference.namespace.as_ref().unwrap_or(from);
                let found = nested::find(self.world.as_ref(), from, reference, now.at);
                (format!("{namespace}/{}", reference.name), found)
            })
            .collect();
        let gates = found.iter().map(|(name, found)| {
            let view = found.as_ref().map(|(gate, gathered)| gathered.view(gate));
            (name.clone(), view)
        });
        let own = Set {
            require: set.require,
            policy: None,
            gates: gates.collect(),
        };
        gate_set::decide(subject.clone(), &[own], Question::new(now, revision))
    }

    fn synced(&self) -> bool {
        self.world.is_ready()
    }
}
