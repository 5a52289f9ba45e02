//! Decides for those who ask: about sets of gates, from the caches, at the present instant. Shows them the
//! Pipelines in the caches.

use std::sync::Arc;

use sluice_core::delivery::pipeline::{View, view};
use sluice_core::gate;
use sluice_core::revision::Revision;
use sluice_core::verdict::question::Question;
use sluice_crds::{Decision, GateSet, Subject};

use super::asking::{Decide, Wanted};
use crate::cluster::key::KeyRef;
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

    fn pipelines(&self, wanted: Wanted<'_>) -> Vec<View> {
        let Wanted {
            namespace,
            after,
            most,
        } = wanted;
        let mut found = self.world.pipelines.select(|key, _| {
            let key = (&*key.namespace, &*key.name);
            namespace.is_none_or(|namespace| key.0 == namespace)
                && after.is_none_or(|after| key > after)
        });
        found.sort_by(|(a, _), (b, _)| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let found = found.iter().take(most);
        found.map(|(_, object)| view(object, &[])).collect()
    }

    fn pipeline(&self, namespace: &str, name: &str) -> Option<View> {
        let found = self.world.pipelines.get(KeyRef { namespace, name })?;
        Some(view(found.object()?, &[]))
    }

    fn synced(&self) -> bool {
        self.world.is_ready()
    }
}
