//! What gatekeepers are judged from inside the cluster: a change of it is a reason to look again.

use std::collections::HashSet;
use std::fmt;

use jiff::Timestamp;

use crate::watching::shared::Signals;
use crate::{Clients, ConfigMapKey};

/// Something that is watched for as long as somebody uses it.
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
    /// Ends the watches that nobody has used for [`KEPT`](crate::watching::shared::KEPT). `in_use` is
    /// what somebody uses at `now`. Returns when the next watch ends if it stays unused: the time
    /// to call again.
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

    /// Has everything that is watched listed again, since nothing that was told before is to be relied
    /// on: the machine slept. What was told counts for a moment, until the lists come.
    pub fn list_again(&self) {
        self.each_signals()
            .into_iter()
            .for_each(Signals::list_again);
    }

    /// The API server is away, for everybody and not only for these watches. What was told counts until
    /// a moment after this was said last: those who decide take nothing from it meanwhile, and evidence
    /// that comes and goes with each outage would be told twice.
    pub fn away(&self) {
        self.each_signals().into_iter().for_each(Signals::away);
    }

    fn each_signals(&self) -> [&Signals; 2] {
        let (maps, objects) = (self.config_maps.watches(), self.objects.watches());
        [maps.signals(), objects.signals()]
    }
}
