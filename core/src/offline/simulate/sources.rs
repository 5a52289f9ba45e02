//! A [`World`] as gates and gatekeepers are found in it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::gatekeeper::{ConfigMapKeyReference, PipelineRule};
use sluice_crds::{Approval, Gate, GateReference, Gatekeeper, Pipeline};

use super::{Key, Origin, World, entry};
use crate::gate::Named;
use crate::gate::nested::Sources;
use crate::gate::policy::{Labels, Readable};
use crate::gate::{self, Identity, force};
use crate::gatekeeper::approval::Ballot;
use crate::gatekeeper::kind::Texts;
use crate::gatekeeper::{self, Evidence, Keeper, Known};
use crate::verdict::Reason;

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

    /// What is known of what `gatekeeper` is judged from.
    pub(crate) fn evidence(&self, gatekeeper: &Gatekeeper) -> Evidence {
        let Seen { world, .. } = self;
        let key = Key::of(&gatekeeper.metadata);
        let read = || {
            let kind = gatekeeper::kind(&gatekeeper.spec).ok();
            let texts = Beside {
                world,
                namespace: &key.namespace,
            };
            kind.map_or_else(Evidence::default, |kind| kind.read(&texts))
        };
        let observed = world.given.get(&key).cloned().unwrap_or_else(read);
        gatekeeper::evidence(gatekeeper, observed, self)
    }

    /// An approval in files, which no API server has taken yet, counts as if it were taken now: so
    /// it runs out as any other does.
    fn taken(&self, mut approval: Arc<Approval>) -> Arc<Approval> {
        let is_in_a_file = self.world.origin == Origin::Files;
        if is_in_a_file && approval.metadata.creation_timestamp.is_none() {
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

impl Known for Seen<'_> {
    /// In a cluster its controller knows this: some reasons are in a status only if it is verified.
    fn is_verified(&self, gatekeeper: &Gatekeeper) -> bool {
        let said = || Reason::of(&gatekeeper.current_status()?.verdict.as_ref()?.reason);
        match self.world.origin {
            Origin::Files => self.identity != Identity::Unverified,
            Origin::Cluster => said().is_some_and(Reason::is_verified),
        }
    }

    fn ballot(&self, gatekeeper: &Gatekeeper) -> Arc<Ballot> {
        let key = Key::of(&gatekeeper.metadata);
        let approvals = self.world.approvals.iter();
        let own = approvals.filter(|(own, approval)| {
            let named = approval.spec.gatekeeper_ref.as_ref();
            own.namespace == key.namespace && named.is_some_and(|named| named.name == key.name)
        });
        let taken = own.map(|(_, approval)| self.taken(Arc::clone(approval)));
        Arc::new(taken.collect())
    }

    fn unreadable(&self, _: &Gatekeeper) -> Option<Arc<str>> {
        None
    }

    fn pipeline(
        &self,
        gatekeeper: &Gatekeeper,
        named: &PipelineRule,
    ) -> Option<Named<Arc<Pipeline>>> {
        let own = Key::of(&gatekeeper.metadata).namespace;
        let key = Key::from_reference(&own, named.namespace.as_deref(), &named.name);
        if self.is_forbidden(&own, &key) {
            return Some(Named::Forbidden);
        }
        match self.world.pipelines.get(&key) {
            Some(Some(pipeline)) => Some(Named::Here(Arc::clone(pipeline))),
            Some(None) => None,
            None => Some(Named::Missing),
        }
    }
}

/// The texts in ConfigMaps of one namespace.
struct Beside<'a> {
    world: &'a World,
    namespace: &'a str,
}

impl Texts for Beside<'_> {
    fn text(&self, reference: &ConfigMapKeyReference) -> Option<Result<&[u8], String>> {
        let key = Key::from_reference(self.namespace, None, &reference.name);
        let Some(map) = self.world.config_maps.get(&key) else {
            return Some(Err(format!("there is no ConfigMap {key}")));
        };
        let text = entry(map.as_ref()?, &reference.key);
        Some(text.map_err(|why| format!("the ConfigMap {key} {why}")))
    }

    fn without_addresses(&self) -> Option<String> {
        let why = "it is at an address, and a simulation reads none";
        (self.world.origin == Origin::Files).then(|| why.to_owned())
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
