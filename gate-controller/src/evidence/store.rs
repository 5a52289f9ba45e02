//! What was observed last, for decisions to read.

use std::sync::{PoisonError, RwLock};

use hashbrown::HashMap;
use sluice_core::gatekeeper::Evidence;
use sluice_crds::Gatekeeper;
use sluice_gatekeepers::{Observation, needs_evidence};

use crate::key::{KeyRef, ObjectKey};

/// What was observed for every gatekeeper.
#[derive(Default)]
pub struct EvidenceStore(RwLock<HashMap<ObjectKey, Stored>>);

struct Stored {
    /// Of the observer, the only one that may write here.
    id: u64,
    uid: Option<String>,
    generation: Option<i64>,
    observation: Observation,
}

impl Stored {
    /// What is known for `object`, which may be another one of the same name, or have another
    /// spec than the one that was observed for.
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
    /// What was observed for this very object with this very spec; nothing where some of it has
    /// not been observed yet.
    pub fn of(&self, object: &Gatekeeper) -> Evidence {
        if !needs_evidence(&object.spec) {
            return Evidence::default();
        }
        let stored = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let stored = stored.get(&KeyRef::of(object));
        stored
            .map(|stored| stored.evidence_for(object))
            .unwrap_or_default()
    }

    /// From now on the observer `id` writes what is observed for `object`.
    pub(super) fn begin(&self, key: &ObjectKey, id: u64, object: &Gatekeeper) {
        let mut stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another observer of the same object goes on where the one before it ended.
        let before = stored
            .remove(key)
            .filter(|before| before.uid == object.metadata.uid);
        let fresh = Stored {
            id,
            uid: object.metadata.uid.clone(),
            generation: object.metadata.generation,
            observation: Observation::default(),
        };
        stored.insert(
            key.clone(),
            before.map_or(fresh, |before| Stored { id, ..before }),
        );
    }

    /// Stores what the observer `id` has observed for `object`. Returns whether that is anything
    /// else than was known. What comes from an observer that has been replaced is dropped.
    pub(super) fn put(
        &self,
        key: &ObjectKey,
        id: u64,
        object: &Gatekeeper,
        observation: Observation,
    ) -> bool {
        let mut stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = stored.get_mut(key).filter(|stored| stored.id == id) else {
            return false;
        };
        let news = stored.evidence_for(object) != observation.evidence;
        stored.generation = object.metadata.generation;
        stored.observation = observation;
        news
    }

    /// Nothing is known of it any more.
    pub(super) fn remove(&self, key: &ObjectKey) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }
}
