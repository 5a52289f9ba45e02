//! What gates come to when nothing but time passes: for whoever holds the objects and no
//! controller.
//!
//! What comes in: a [`World`] of Gates, Gatekeepers and ConfigMaps, from files or from a cluster,
//! and instants. What goes out: the [`Decision`] of a gate at an instant, and the [`Stretches`]
//! that it stays open or closed for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::gatekeeper::Calendar as Source;
use sluice_crds::{Gate, GateSpec, Gatekeeper};

use crate::calendar::Calendar;
use crate::gatekeeper::Evidence;
use crate::schedule::{Reading, Schedule};

mod scene;
mod stretch;

pub use scene::{Decision, Scene};
pub use stretch::{Stretch, Stretches};

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

    /// What `gate` means by `reference`.
    pub fn named_by(gate: &Gate, reference: &GatekeeperReference) -> Self {
        let own = Self::of(&gate.metadata).namespace;
        let namespace = reference.namespace.clone().unwrap_or(own);
        Self {
            namespace,
            name: reference.name.clone(),
        }
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

/// Gates, and everything that they are decided from.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The gates.
    pub gates: BTreeMap<Key, Gate>,
    /// The gatekeepers.
    pub gatekeepers: BTreeMap<Key, Arc<Gatekeeper>>,
    /// The ConfigMaps. None: it may not be read.
    pub config_maps: BTreeMap<Key, Option<ConfigMap>>,
    /// Where all this comes from.
    pub origin: Origin,
}

impl World {
    /// The gate of that name. Where there are no gates at all, every gatekeeper is taken to keep
    /// one of its own name.
    pub fn gate(&self, key: &Key) -> Option<Gate> {
        match self.gates.get(key) {
            None if self.gates.is_empty() => self.gatekeepers.get(key).map(|_| implied_gate(key)),
            gate => gate.cloned(),
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

    /// The calendars in ConfigMaps that `gatekeeper` names, as (ConfigMap, key of its data).
    pub fn calendars_of(gatekeeper: &Gatekeeper) -> Vec<(Key, String)> {
        let Some(schedule) = &gatekeeper.spec.schedule else {
            return Vec::new();
        };
        let windows = schedule.open.iter().chain(&schedule.closed);
        let references =
            windows.filter_map(|window| window.calendar.as_ref()?.config_map_ref.as_ref());
        let namespace = Key::of(&gatekeeper.metadata).namespace;
        let named = |name: &String| Key {
            namespace: namespace.clone(),
            name: name.clone(),
        };
        references
            .map(|reference| (named(&reference.name), reference.key.clone()))
            .collect()
    }

    /// What is known of the calendars that `gatekeeper` needs.
    pub(crate) fn evidence(&self, gatekeeper: &Gatekeeper) -> Evidence {
        let Some(spec) = &gatekeeper.spec.schedule else {
            return Evidence::default();
        };
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

    /// What came of reading one calendar. None: nobody has looked here, only the controller.
    fn reading(&self, namespace: &str, source: &Source, zone: &TimeZone) -> Option<Reading> {
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
            Some(Some(map)) => Some(match text(map, &reference.key) {
                Err(why) => Reading::Unavailable(format!("the ConfigMap {key} {why}")),
                Ok(text) => match Calendar::parse(text, zone) {
                    Ok(calendar) => Reading::Read {
                        calendar: Arc::new(calendar),
                        good_until: None,
                    },
                    Err(error) => Reading::Broken(error),
                },
            }),
        }
    }
}

/// The text under `key`, or what stands in the way.
pub(crate) fn text<'a>(map: &'a ConfigMap, key: &str) -> Result<&'a str, String> {
    let binary = map
        .binary_data
        .as_ref()
        .is_some_and(|data| data.contains_key(key));
    match map.data.as_ref().and_then(|data| data.get(key)) {
        Some(text) => Ok(text),
        None if binary => Err(format!("has {key} in binaryData, where no text is")),
        None => Err(format!("has no key {key}")),
    }
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
