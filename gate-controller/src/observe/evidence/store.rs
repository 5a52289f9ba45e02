//! What was observed last, for decisions to read.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use parking_lot::RwLock;
use sluice_core::gatekeeper::Evidence;
use sluice_crds::Gatekeeper;
use sluice_gatekeepers::{Observation, needs_evidence};
use tokio::sync::watch;

use crate::cluster::key::{KeyRef, ObjectKey};

/// What was observed for every gatekeeper.
#[derive(Default)]
pub struct EvidenceStore {
    stored: RwLock<HashMap<ObjectKey, Stored>>,
    /// The gatekeepers whose first look has not been taken yet.
    awaited: watch::Sender<BTreeSet<ObjectKey>>,
}

struct Stored {
    /// Of the observer, the only one that may write here.
    id: u64,
    uid: Option<String>,
    generation: Option<i64>,
    observation: Observation,
}

impl Stored {
    /// What is known for `object`, which may be another object of the same name, or have another spec
    /// than the one that was observed.
    fn evidence_for(&self, object: &Gatekeeper) -> Evidence {
        if self.uid != object.metadata.uid {
            Evidence::default()
        } else if self.generation == object.metadata.generation {
            self.observation.evidence.clone()
        } else {
            self.observation.evidence_for(object).unwrap_or_default()
        }
    }
}

impl EvidenceStore {
    /// What was observed for exactly this object with exactly this spec; nothing if some of it has not
    /// been observed yet.
    pub fn of(&self, object: &Gatekeeper) -> Evidence {
        if !needs_evidence(&object.spec) {
            return Evidence::default();
        }
        let stored = self.stored.read();
        let stored = stored.get(&KeyRef::of(object));
        stored
            .map(|stored| stored.evidence_for(object))
            .unwrap_or_default()
    }

    /// From now on the observer `id` writes what is observed for `object`.
    pub(super) fn begin(&self, key: &ObjectKey, id: u64, object: &Gatekeeper) {
        let mut stored = self.stored.write();
        // Another observer of the same object continues where the one before it ended.
        let before = stored
            .remove(key)
            .filter(|before| before.uid == object.metadata.uid);
        let fresh = Stored {
            id,
            uid: object.metadata.uid.clone(),
            generation: object.metadata.generation,
            observation: Observation::default(),
        };
        if before.is_none() {
            self.awaited
                .send_if_modified(|awaited| awaited.insert(key.clone()));
        }
        stored.insert(
            key.clone(),
            before.map_or(fresh, |before| Stored { id, ..before }),
        );
    }

    /// Stores what the observer `id` has observed for `object`. Returns whether that differs from what
    /// was known. What an observer that has been replaced brings is dropped.
    pub(super) fn put(
        &self,
        key: &ObjectKey,
        id: u64,
        object: &Gatekeeper,
        observation: Observation,
    ) -> bool {
        let mut stored = self.stored.write();
        let Some(stored) = stored.get_mut(key).filter(|stored| stored.id == id) else {
            return false;
        };
        let news = stored.evidence_for(object) != observation.evidence;
        stored.generation = object.metadata.generation;
        stored.observation = observation;
        self.arrived(key);
        news
    }

    /// Forgets everything that is known of it.
    pub(super) fn remove(&self, key: &ObjectKey) {
        self.stored.write().remove(key);
        self.arrived(key);
    }

    /// Waits until a first look has been taken for every gatekeeper. Before that, a status says what was
    /// true before this controller started, and not what has changed since then.
    pub async fn first_looks(&self) {
        let mut awaited = self.awaited.subscribe();
        // The sender lives as long as `self`.
        let _ = awaited.wait_for(BTreeSet::is_empty).await;
    }

    fn arrived(&self, key: &ObjectKey) {
        self.awaited.send_if_modified(|awaited| awaited.remove(key));
    }
}
