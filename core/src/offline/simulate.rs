//! What gates come to when nothing but time passes: for whoever holds the objects and no
//! controller.
//!
//! What comes in: a [`World`] of Gates, Gatekeepers and ConfigMaps, from files or from a cluster,
//! and instants. What goes out: the [`Decision`] of a gate at an instant, and the [`Stretches`]
//! that it stays open or closed for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::gatekeeper::{self as api, ConfigMapKeyReference, Kind, NotOneKind};
use sluice_crds::{Approval, Gate, GateSet, GateSpec, GatedSource, Gatekeeper, Subject};

use crate::evidence::reading;
use crate::gate::policy::{Labels, Readable};
use crate::gate::{self, Identity};
use crate::gatekeeper::Evidence;
use crate::gatekeeper::approval::{Authors, Votes};
use crate::gatekeeper::revisions::List;
use crate::gatekeeper::schedule::{Reading, Schedule};
use crate::time::calendar::{Calendar, in_config_map};
use crate::verdict::Reason;
use crate::verdict::question::Question;

mod given;
mod scene;
pub(crate) mod sources;
mod stretch;
mod together;

pub use given::Given;
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
    /// Files: there is nothing else. A calendar at an address cannot be had.
    #[default]
    Files,
    /// A cluster: what is not here was seen by the controller, whose report counts while it holds.
    Cluster,
}

/// A text in a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it is to be understood as.
    pub holds: Holds,
    /// The ConfigMap.
    pub map: Key,
    /// The key of its data.
    pub key: String,
}

/// What a text in a ConfigMap is to be understood as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A calendar.
    Calendar,
    /// A list of revisions.
    Revisions,
    /// The authors of revisions.
    Authors,
}

/// Gates, and everything that they are decided from.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The gates.
    pub gates: BTreeMap<Key, Gate>,
    /// The gatekeepers.
    pub gatekeepers: BTreeMap<Key, Arc<Gatekeeper>>,
    /// Gates that nobody asks about but those above: they are nested in them.
    pub nested: BTreeMap<Key, Gate>,
    /// Whether the author of an annotation is known, where that differs from gate to gate.
    pub identities: BTreeMap<Key, Identity>,
    /// The approvals.
    pub approvals: BTreeMap<Key, Arc<Approval>>,
    /// The gated sources: nothing depends on them here.
    pub sources: BTreeMap<Key, Arc<GatedSource>>,
    /// The gate policies by name. Err: one that cannot be read, and why.
    pub policies: BTreeMap<String, Readable>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<String, Labels>,
    /// What objects in a namespace name elsewhere, and may not.
    pub forbidden: BTreeSet<(String, Key)>,
    /// The ConfigMaps. None: it may not be read.
    pub config_maps: BTreeMap<Key, Option<ConfigMap>>,
    /// What gatekeepers have seen that measure something, as it was given.
    pub given: BTreeMap<Key, Evidence>,
    /// Where all this comes from.
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

    /// The texts in ConfigMaps that `gatekeeper` is judged from.
    pub fn texts_of(gatekeeper: &Gatekeeper) -> Vec<Text> {
        let namespace = Key::of(&gatekeeper.metadata).namespace;
        let text = |holds, reference: &ConfigMapKeyReference| Text {
            holds,
            map: Key {
                namespace: namespace.clone(),
                name: reference.name.clone(),
            },
            key: reference.key.clone(),
        };
        match gatekeeper.spec.kind() {
            Ok(Kind::Schedule(spec)) => {
                let windows = spec.open.iter().chain(&spec.closed);
                windows
                    .filter_map(|window| window.calendar.as_ref()?.config_map_ref.as_ref())
                    .map(|reference| text(Holds::Calendar, reference))
                    .collect()
            }
            Ok(Kind::Revisions(spec)) => (spec.allow_from.iter().chain(&spec.deny_from))
                .map(|source| text(Holds::Revisions, &source.config_map_ref))
                .collect(),
            Ok(Kind::Approval(spec)) => (spec.forbid_self.iter())
                .map(|authors| text(Holds::Authors, &authors.config_map_ref))
                .collect(),
            Ok(
                Kind::Manual(_)
                | Kind::Metric(_)
                | Kind::Objects(_)
                | Kind::Http(_)
                | Kind::Gates(_)
                | Kind::External(_),
            )
            | Err(NotOneKind) => Vec::new(),
        }
    }

    /// What is known of what `gatekeeper` is judged from.
    pub(crate) fn evidence(&self, gatekeeper: &Gatekeeper, identity: Identity) -> Evidence {
        if let Some(given) = self.given.get(&Key::of(&gatekeeper.metadata)) {
            return given.clone();
        }
        let verified = self.verifies(gatekeeper, identity);
        match gatekeeper.spec.kind() {
            Ok(Kind::Schedule(spec)) => self.calendars(gatekeeper, spec),
            Ok(Kind::Revisions(_)) => {
                let lists: Option<Vec<_>> = Self::texts_of(gatekeeper)
                    .iter()
                    .map(|text| self.list(text, List::parse))
                    .collect();
                Evidence::Lists(lists.unwrap_or_default())
            }
            Ok(Kind::Approval(_)) => Evidence::Votes(Votes {
                ballot: Arc::new(self.approvals_of(&Key::of(&gatekeeper.metadata)).collect()),
                unreadable: None,
                authors: Self::texts_of(gatekeeper)
                    .first()
                    .and_then(|text| self.list(text, Authors::parse)),
                verified,
            }),
            Ok(Kind::External(_)) => Evidence::Reporters { verified },
            // Nobody measures here: what a status reports counts while it holds.
            Ok(
                Kind::Manual(_)
                | Kind::Metric(_)
                | Kind::Objects(_)
                | Kind::Http(_)
                | Kind::Gates(_),
            )
            | Err(NotOneKind) => Evidence::Nothing,
        }
    }

    /// Whether somebody makes sure who votes and who reports. In a cluster its controller knows.
    fn verifies(&self, gatekeeper: &Gatekeeper, identity: Identity) -> bool {
        // What it says only where somebody does.
        const PROOFS: [Reason; 6] = [
            Reason::DependsOnRevision,
            Reason::Approved,
            Reason::AwaitingApproval,
            Reason::Rejected,
            Reason::External,
            Reason::RevisionNotListed,
        ];
        let status = gatekeeper.status.as_ref();
        let status = status.filter(|it| it.observed_generation == gatekeeper.metadata.generation);
        let verdict = status.and_then(|status| status.verdict.as_ref());
        match self.origin {
            Origin::Files => identity != Identity::Unverified,
            Origin::Cluster => {
                verdict.is_some_and(|said| PROOFS.iter().any(|proof| proof.as_str() == said.reason))
            }
        }
    }

    /// The approvals for a gatekeeper.
    fn approvals_of(&self, gatekeeper: &Key) -> impl Iterator<Item = Arc<Approval>> {
        let own = self
            .approvals
            .iter()
            .filter(|(key, _)| key.namespace == gatekeeper.namespace);
        own.map(|(_, approval)| approval)
            .filter(|approval| approval.spec.gatekeeper_ref.name == gatekeeper.name)
            .cloned()
    }

    fn calendars(&self, gatekeeper: &Gatekeeper, spec: &api::Schedule) -> Evidence {
        let Ok(schedule) = Schedule::read(spec, "spec.schedule") else {
            return Evidence::default();
        };
        let namespace = Key::of(&gatekeeper.metadata).namespace;
        let readings: Option<Vec<Reading>> = schedule
            .calendars()
            .map(|(_, source)| self.reading(&namespace, source, schedule.zone()))
            .collect();
        Evidence::Calendars(readings.unwrap_or_default())
    }

    /// What came of reading one list. None: nobody has looked here, only the controller.
    fn list<T>(
        &self,
        text: &Text,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<reading::Reading<T>> {
        let Text { map: key, .. } = text;
        Some(match self.config_maps.get(key) {
            None => reading::Reading::Unavailable(format!("there is no ConfigMap {key}")),
            Some(None) => return None,
            Some(Some(map)) => match entry(map, &text.key).map(std::str::from_utf8) {
                Err(why) => reading::Reading::Unavailable(format!("the ConfigMap {key} {why}")),
                Ok(Err(_)) => reading::Reading::Broken("it is not UTF-8".to_owned()),
                Ok(Ok(text)) => match parse(text) {
                    Ok(list) => reading::Reading::Read(Arc::new(list)),
                    Err(why) => reading::Reading::Broken(why),
                },
            },
        })
    }

    /// What came of reading one calendar. None: nobody has looked here, only the controller.
    fn reading(&self, namespace: &str, source: &api::Calendar, zone: &TimeZone) -> Option<Reading> {
        let Some(reference) = &source.config_map_ref else {
            return match self.origin {
                Origin::Files => Some(Reading::Unavailable(
                    "it is at an address, and a simulation reads none".to_owned(),
                )),
                Origin::Cluster => None,
            };
        };
        let key = Key {
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
        };
        match self.config_maps.get(&key) {
            None => Some(Reading::Unavailable(format!("there is no ConfigMap {key}"))),
            Some(None) => None,
            Some(Some(map)) => Some(match entry(map, &reference.key) {
                Err(why) => Reading::Unavailable(format!("the ConfigMap {key} {why}")),
                Ok(bytes) => match Calendar::read(bytes, zone) {
                    Ok(calendar) => Reading::Read {
                        calendar: Arc::new(calendar),
                        good_until: None,
                        overdue: None,
                    },
                    Err(error) => Reading::Broken(error),
                },
            }),
        }
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
