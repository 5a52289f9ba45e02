//! Which objects name which others, such as gates their gatekeepers.

use hashbrown::{HashMap, HashSet};

use crate::key::ObjectKey;

/// Which gates name which gatekeepers, both ways.
#[derive(Default)]
pub(super) struct Users {
    gates: HashMap<ObjectKey, HashSet<ObjectKey>>,
    named: HashMap<ObjectKey, Box<[ObjectKey]>>,
}

impl Users {
    /// From now on `gate` names these gatekeepers.
    pub(super) fn set(&mut self, gate: &ObjectKey, mut named: Vec<ObjectKey>) {
        named.sort_unstable();
        named.dedup();
        if self.named.get(gate).map(AsRef::as_ref).unwrap_or_default() == named {
            return;
        }
        for gatekeeper in self.named.remove(gate).into_iter().flatten() {
            if let Some(gates) = self.gates.get_mut(&gatekeeper) {
                gates.remove(gate);
                if gates.is_empty() {
                    self.gates.remove(&gatekeeper);
                }
            }
        }
        for gatekeeper in &named {
            let gates = self.gates.entry(gatekeeper.clone()).or_default();
            gates.insert(gate.clone());
        }
        if !named.is_empty() {
            self.named.insert(gate.clone(), named.into());
        }
    }

    /// The gates that name a gatekeeper.
    pub(super) fn of(&self, gatekeeper: &ObjectKey) -> Vec<ObjectKey> {
        let gates = self.gates.get(gatekeeper);
        gates.into_iter().flatten().cloned().collect()
    }
}
