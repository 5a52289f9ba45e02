//! Decides for those who ask: about sets of gates, from the caches, at the present instant.

use std::sync::Arc;

use sluice_core::gate;
use sluice_core::revision::Revision;
use sluice_core::verdict::question::Question;
use sluice_crds::{Decision, GateSet, Subject};

use super::asking::Decide;
use crate::observe::clock::Clock;
use crate::observe::world::World;

/// Decides by the caches and the clock, whenever it is asked.
pub struct Decider {
    /// What decisions are made from.
    pub world: Arc<World>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Decide for Decider {
    fn decide(
        &self,
        set: Option<&GateSet>,
        subject: &Subject,
        revision: Option<&Revision>,
    ) -> Decision {
        let now = self.world.now(self.clock.now());
        let gathered = gate::set::gather(self.world.as_ref(), set, subject, now.at);
        gathered.decide(subject.clone(), Question::new(now, revision))
    }

    fn synced(&self) -> bool {
        self.world.is_ready()
    }
}
