//! A [`World`] as gates and gatekeepers are found in it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::{Approval, Gate, GateReference, Gatekeeper};

use super::{Key, Origin, World};
use crate::gate::nested::{Named, Sources};
use crate::gate::policy::{Labels, Readable};
use crate::gate::{self, Identity, force};
use crate::gatekeeper::approval::Votes;
use crate::gatekeeper::{Evidence, Keeper};

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

    /// What is known of what `gatekeeper` is judged from. An approval in files, which no API server
    /// has taken yet, counts as if it were taken now: so it runs out as any other does.
    fn evidence(&self, gatekeeper: &Gatekeeper) -> Evidence {
        match self.world.evidence(gatekeeper, self.identity) {
            Evidence::Votes(votes) if self.world.origin == Origin::Files => {
                let key = Key::of(&gatekeeper.metadata);
                let own = self.world.approvals_of(&key);
                let taken = own.map(|approval| self.taken(approval));
                Evidence::Votes(Votes {
                    ballot: Arc::new(taken.collect()),
                    ..votes
                })
            }
            evidence => evidence,
        }
    }

    fn taken(&self, mut approval: Arc<Approval>) -> Arc<Approval> {
        if approval.metadata.creation_timestamp.is_none() {
            let now = Some(Time(self.from));
            Arc::make_mut(&mut approval).metadata.creation_timestamp = now;
        }
        approval
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
                let evidence = self.evidence(object);
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

impl gate::set::Sources for Seen<'_> {
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
