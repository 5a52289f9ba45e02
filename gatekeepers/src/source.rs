//! What gatekeepers are judged from inside the cluster: when it changes, look again.

use std::collections::HashSet;
use std::fmt;

use jiff::Timestamp;

use crate::{Clients, ConfigMapKey};
use sluice_watching::shared::Signals;

/// Something that is watched as long as somebody uses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// One ConfigMap.
    ConfigMap(ConfigMapKey),
    /// All objects of one kind.
    Objects(ObjectsKey),
}

/// All objects of one kind, in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectsKey {
    /// The group and version, such as `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. None: they are in none.
    pub namespace: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::ConfigMap(key) => write!(f, "ConfigMap {key}"),
            Source::Objects(key) => write!(f, "{key}"),
        }
    }
}

impl fmt::Display for ObjectsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            api_version,
            kind,
            namespace,
        } = self;
        match namespace {
            Some(namespace) => write!(f, "{api_version} {kind} in namespace {namespace}"),
            None => write!(f, "{api_version} {kind}"),
        }
    }
}

impl From<ConfigMapKey> for Source {
    fn from(key: ConfigMapKey) -> Self {
        Source::ConfigMap(key)
    }
}

impl From<ObjectsKey> for Source {
    fn from(key: ObjectsKey) -> Self {
        Source::Objects(key)
    }
}

impl Clients {
    /// Ends the watches that have not been used for [`KEPT`](sluice_watching::shared::KEPT). `in_use` is
    /// what is used at `now`. Returns when the next watch ends if it stays unused: the time to call
    /// again.
    pub fn keep(&self, in_use: &HashSet<Source>, now: Timestamp) -> Option<Timestamp> {
        let (mut maps, mut objects) = (HashSet::new(), HashSet::new());
        for source in in_use {
            match source {
                Source::ConfigMap(key) => drop(maps.insert(key.clone())),
                Source::Objects(key) => drop(objects.insert(key.clone())),
            }
        }
        let next = [
            self.config_maps.watches().keep(&maps, now),
            self.objects.watches().keep(&objects, now),
        ];
        next.into_iter().flatten().min()
    }

    /// Lists everything that is watched again, because nothing that was read before can be relied on: the
    /// machine slept. What was read counts for a moment longer, until the lists arrive.
    pub fn list_again(&self) {
        self.each_signals()
            .into_iter()
            .for_each(Signals::list_again);
    }

    /// The API server is away, for everything and not only for these watches. What was read counts until
    /// a moment after the last such call: decisions do not use it during that time anyway, and evidence
    /// that disappeared and came back with each outage would be reported twice.
    pub fn away(&self) {
        self.each_signals().into_iter().for_each(Signals::away);
    }

    fn each_signals(&self) -> [&Signals; 2] {
        let (maps, objects) = (self.config_maps.watches(), self.objects.watches());
        [maps.signals(), objects.signals()]
    }
}
