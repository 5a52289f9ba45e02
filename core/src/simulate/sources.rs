//! A [`World`] as gates and gatekeepers are found in it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::{Gate, GateReference};

use super::{Key, World};
use crate::gate::nested::{Named, Sources};
use crate::gate::{Identity, force};
use crate::gate_policy::{Labels, Readable};
use crate::gate_set;
use crate::gatekeeper::Keeper;

/// A world, seen from an instant on.
pub(crate) struct Seen<'a> {
    pub(crate) world: &'a World,
    pub(crate) identity: Identity,
    pub(crate) from: Timestamp,
}

impl Seen<'_> {
    fn is_forbidden(&self, from: &str, key: &Key) -> bool {
        let World { forbidden, .. } = self.world;
        !forbidden.is_empty() && forbidden.contains(&(from.to_owned(), key.clone()))
    }

    /// Writes into the annotations what the controller would write on seeing them.
    pub(super) fn complete(&self, mut gate: Gate) -> Gate {
        let identity = self.identity(&gate);
        if let Some(completion) = force::read(&gate, identity, self.from).completion {
            let annotations = gate.metadata.annotations.get_or_insert_default();
            annotations.extend(completion);
        }
        gate
    }
}

impl Sources for Seen<'_> {
    fn gate(&self, from: &str, reference: &GateReference) -> Named<Arc<Gate>> {
        let key = Key::from_reference(from, reference.namespace.as_deref(), &reference.name);
        let World { gates, nested, .. } = self.world;
        if self.is_forbidden(from, &key) {
            return Named::Forbidden;
        }
        match gates.get(&key).or_else(|| nested.get(&key)) {
            Some(gate) => Named::Here(Arc::new(self.complete(gate.clone()))),
            None => Named::Missing,
        }
    }

    fn gatekeeper(
        &self,
        from: &str,
        reference: &GatekeeperReference,
        at: Timestamp,
    ) -> Named<Arc<Keeper>> {
        let key = Key::from_reference(from, reference.namespace.as_deref(), &reference.name);
        if self.is_forbidden(from, &key) {
            return Named::Forbidden;
        }
        match self.world.gatekeepers.get(&key) {
            Some(object) => {
                let evidence = self.world.evidence(object, self.identity);
                Named::Here(Arc::new(Keeper::new(Arc::clone(object), evidence, at)))
            }
            None => Named::Missing,
        }
    }

    fn identity(&self, gate: &Gate) -> Identity {
        let known = self.world.identities.get(&Key::of(&gate.metadata));
        known.copied().unwrap_or(self.identity)
    }
}

impl gate_set::Sources for Seen<'_> {
    fn policies(&self) -> Vec<(String, Readable)> {
        let policies = self.world.policies.iter();
        policies
            .map(|(name, policy)| (name.clone(), policy.clone()))
            .collect()
    }

    fn labels(&self, namespace: &str) -> Option<Labels> {
        self.world.namespaces.get(namespace).cloned()
    }
}
