//! What gates say when nothing but time passes: for tools that have the objects and no controller.
//!
//! What comes in: a [`World`] of Gates, Gatekeepers and ConfigMaps, from files or from a cluster,
//! and instants. What goes out: the [`Decision`] of a gate at an instant, and the [`Stretches`]
//! that it stays open or closed for; the [`Course`] of a Pipeline; and how a Rollout goes out ([`Rolling`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::pipeline::Environment;
use sluice_crds::{
    Approval, Gate, GateSet, GateSpec, GatedSource, Gatekeeper, GitRepositoryAccess, Pipeline,
    PromotionStrategy, Rollout, Subject,
};

use crate::delivery::pipeline::{self, What};
use crate::delivery::rollout;
use crate::gate::policy::{Labels, Readable};
use crate::gate::{self, Identity};
use crate::gatekeeper::kind::{KindSpec, Text};
use crate::gatekeeper::{self, Evidence};
use crate::time::calendar::in_config_map;
use crate::verdict::question::Question;

mod course;
mod given;
mod rolling;
mod scene;
pub(crate) mod sources;
mod stretch;
mod together;

pub use course::{Course, Step, course};
pub use rolling::{BatchStep, Rolling, rolling};
pub use scene::{Decision, Scene};
pub use stretch::{Stretch, Stretches};
pub use together::{Set, together};

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The name of an object, in [`DEFAULT_NAMESPACE`] unless it says otherwise. One whose name
    /// the API server has yet to complete goes by the part that is given.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let name = metadata.name.as_ref().or(metadata.generate_name.as_ref());
        let namespace = metadata.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        Self {
            namespace: namespace.to_owned(),
            name: name.cloned().unwrap_or_default(),
        }
    }

    /// What an object in the namespace `from` means by the name of another.
    pub fn from_reference(from: &str, namespace: Option<&str>, name: &str) -> Self {
        let namespace = match namespace.unwrap_or(from) {
            "" => DEFAULT_NAMESPACE,
            given => given,
        };
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// What an object in the namespace `from` means by a text: a name, or `namespace/name`.
    pub fn from_text(from: &str, text: &str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or((from, text));
        Self::from_reference(namespace, None, name)
    }

    /// What `gate` means by `reference`.
    pub fn named_by(gate: &Gate, reference: &GatekeeperReference) -> Self {
        let own = Self::of(&gate.metadata).namespace;
        Self::from_reference(&own, reference.namespace.as_deref(), &reference.name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where the objects of a [`World`] come from, which decides what counts for evidence that is not
/// among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Files: there is nothing else. A calendar at an address cannot be read.
    #[default]
    Files,
    /// A cluster: what is not here was seen by the controller, whose report counts while it holds.
    Cluster,
}

/// Gates, and everything that they are decided from.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The gates.
    pub gates: BTreeMap<Key, Gate>,
    /// The gatekeepers.
    pub gatekeepers: BTreeMap<Key, Arc<Gatekeeper>>,
    /// Gates that are asked about only by those above: they are nested in them.
    pub nested: BTreeMap<Key, Gate>,
    /// Whether the author of an annotation is known, where that differs from gate to gate.
    pub identities: BTreeMap<Key, Identity>,
    /// The approvals.
    pub approvals: BTreeMap<Key, Arc<Approval>>,
    /// The gated sources: nothing depends on them here.
    pub sources: BTreeMap<Key, Arc<GatedSource>>,
    /// The pipelines. None: it may not be read.
    pub pipelines: BTreeMap<Key, Option<Arc<Pipeline>>>,
    /// The promotion strategies: nothing depends on them here.
    pub strategies: BTreeMap<Key, Arc<PromotionStrategy>>,
    /// The rollouts: nothing depends on them here.
    pub rollouts: BTreeMap<Key, Arc<Rollout>>,
    /// The accesses to repositories, which strategies name.
    pub accesses: BTreeMap<Key, Arc<GitRepositoryAccess>>,
    /// Objects of kinds that are none of ours, as they were read, by group, kind and name: a Pipeline may
    /// promote one.
    pub apps: BTreeMap<(String, String, Key), Arc<Value>>,
    /// The gate policies by name. Err: one that cannot be read, and why.
    pub policies: BTreeMap<String, Readable>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<String, Labels>,
    /// What objects in a namespace name elsewhere, and may not.
    pub forbidden: BTreeSet<(String, Key)>,
    /// The ConfigMaps. None: it may not be read.
    pub config_maps: BTreeMap<Key, Option<ConfigMap>>,
    /// The evidence that was given for gatekeepers that measure something.
    pub given: BTreeMap<Key, Evidence>,
    /// The origin of these objects.
    pub origin: Origin,
}

impl World {
    /// The gate of that name. Where files hold no gates at all, every gatekeeper is taken to keep
    /// one of its own name.
    pub fn gate(&self, key: &Key) -> Option<Gate> {
        let known = self.gates.get(key).or_else(|| self.nested.get(key));
        match (known, self.origin) {
            (None, Origin::Files) if self.gates.is_empty() => {
                self.gatekeepers.get(key).map(|_| implied_gate(key))
            }
            (known, _) => known.cloned(),
        }
    }

    /// The names that [`World::gate`] knows.
    pub fn gate_names(&self) -> Vec<&Key> {
        if self.gates.is_empty() {
            self.gatekeepers.keys().collect()
        } else {
            self.gates.keys().collect()
        }
    }

    /// The ConfigMaps that `gatekeeper` is judged from.
    pub fn maps_of(gatekeeper: &Gatekeeper) -> Vec<Key> {
        let maps = Self::texts_of(gatekeeper).into_iter().map(|(map, _)| map);
        maps.collect()
    }

    /// The texts in ConfigMaps that `gatekeeper` is judged from, each with its ConfigMap.
    pub(crate) fn texts_of(gatekeeper: &Gatekeeper) -> Vec<(Key, Text<'_>)> {
        let namespace = Key::of(&gatekeeper.metadata).namespace;
        let texts = gatekeeper::kind(&gatekeeper.spec).map_or_else(|_| Vec::new(), KindSpec::texts);
        texts
            .into_iter()
            .map(|text| {
                (
                    Key::from_reference(&namespace, None, &text.reference.name),
                    text,
                )
            })
            .collect()
    }
}

/// Whether what `subject` wants to do may pass the gates of `own`, if it names any, and those of the
/// policies of `world`, as the controller decides it.
pub fn decide(
    world: &World,
    own: Option<&GateSet>,
    subject: Subject,
    identity: Identity,
    question: Question<'_>,
) -> sluice_crds::Decision {
    gather(world, own, &subject, identity, question).decide(subject, question)
}

/// The gates that a promotion to an environment of a Pipeline has to pass, with all that they depend on.
pub fn gather_promotion(
    world: &World,
    object: &Pipeline,
    environment: &Environment,
    identity: Identity,
    question: Question<'_>,
) -> gate::set::Gathered {
    let revision = question.revision.map(ToString::to_string);
    let subject = pipeline::subject(
        object,
        &environment.name,
        What::Promote,
        revision.as_deref(),
    );
    let namespaces = pipeline::namespaces(object, environment);
    let (own, at) = (environment.gates.as_ref(), question.now.at);
    let seen = sources::Seen {
        world,
        identity,
        from: at,
    };
    gate::set::gather_among(&seen, own, &subject, &namespaces, at)
}

/// The gates that a batch of a Rollout has to pass, with all that they depend on.
pub fn gather_batch(
    world: &World,
    asked: &rollout::Question,
    identity: Identity,
    question: Question<'_>,
) -> gate::set::Gathered {
    let at = question.now.at;
    let seen = sources::Seen {
        world,
        identity,
        from: at,
    };
    gate::set::gather_all(&seen, &asked.sets, &asked.subject, at)
}

/// The same gates with all that they depend on, to be asked more than once.
pub fn gather(
    world: &World,
    own: Option<&GateSet>,
    subject: &Subject,
    identity: Identity,
    question: Question<'_>,
) -> gate::set::Gathered {
    let seen = sources::Seen {
        world,
        identity,
        from: question.now.at,
    };
    gate::set::gather(&seen, own, subject, question.now.at)
}

/// What `map` has under `key`, or what stands in the way.
pub(crate) fn entry<'a>(map: &'a ConfigMap, key: &str) -> Result<&'a [u8], String> {
    in_config_map(map, key).ok_or_else(|| format!("has no key {key}"))
}

fn implied_gate(key: &Key) -> Gate {
    let reference = GatekeeperReference {
        name: key.name.clone(),
        namespace: None,
    };
    let spec = GateSpec {
        gatekeepers: vec![reference],
        ..GateSpec::default()
    };
    let mut gate = Gate::new(&key.name, spec);
    gate.metadata.namespace = Some(key.namespace.clone());
    gate
}

#[cfg(test)]
mod tests;
