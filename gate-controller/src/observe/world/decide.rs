//! Decisions about sets of gates, from the caches.

use std::sync::Arc;

use kube::ResourceExt;
use sluice_core::gate_policy::{Labels, Readable};
use sluice_core::gate_set::{self, Sources};
use sluice_core::question::Question;
use sluice_core::revision::Revision;
use sluice_crds::{Decision, GateSet, Subject};

use super::World;
use crate::cluster::key::KeyRef;
use crate::observe::cache::Seen;
use crate::observe::clock::Clock;
use crate::serve::check::Decide;

/// What stands for the policies that may have come while changes were not seen.
const UNSEEN: &str = "not seen";

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
        let gathered = gate_set::gather(self.world.as_ref(), set, subject, now.at);
        gathered.decide(subject.clone(), Question::new(now, revision))
    }

    fn synced(&self) -> bool {
        self.world.is_ready()
    }
}

impl Sources for World {
    fn policies(&self) -> Vec<(String, Readable)> {
        let mut policies: Vec<_> = (self.policies.all().into_iter())
            .map(|(key, seen)| {
                let policy = match seen {
                    Seen::Object(policy) => Ok(policy),
                    Seen::Unreadable(why) => Err(why),
                };
                (key.name.to_string(), policy)
            })
            .collect();
        // One that nobody here has seen may name any gate for anyone.
        policies.extend(
            self.silence()
                .map(|why| (UNSEEN.to_owned(), Err(why.into()))),
        );
        policies.sort_by(|one, other| one.0.cmp(&other.0));
        policies
    }

    fn labels(&self, namespace: &str) -> Option<Labels> {
        let key = KeyRef {
            namespace: "",
            name: namespace,
        };
        let seen = self.namespaces.get(key)?;
        Some(seen.object()?.labels().clone())
    }
}
