//! Everything that decisions are made from, in memory: the objects, the evidence, how far the
//! clock and the authors of annotations can be relied on.
//!
//! Reading it takes no request, so that a decision is right at its instant, however long the
//! writing of statuses takes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use sluice_core::clock::{Now, Trust};
use sluice_core::gate::{self, Answer, Identity, Sight, View};
use sluice_core::gatekeeper::{Evidence, Keeper};
use sluice_crds::{Gate, Gatekeeper};

use crate::cache::{Cache, Seen};
use crate::evidence::EvidenceStore;
use crate::key::ObjectKey;

/// The caches and what is derived from them.
pub struct World {
    /// All gates.
    pub gates: Cache<Gate>,
    /// All gatekeepers.
    pub gatekeepers: Cache<Gatekeeper>,
    /// What was observed for them.
    pub evidence: Arc<EvidenceStore>,
    keepers: Mutex<HashMap<ObjectKey, Arc<Keeper>>>,
    specs: Mutex<HashMap<ObjectKey, Spec>>,
    users: Mutex<Users>,
    standing: RwLock<Standing>,
    cross_namespace: bool,
}

/// Which spec of which object.
#[derive(Clone, PartialEq)]
struct Spec {
    uid: Option<String>,
    generation: Option<i64>,
}

/// How far the clock and the authors of annotations can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The clock.
    pub trust: Trust,
    /// The authors.
    pub identity: Identity,
}

/// A gatekeeper that a gate names, as [`Sight`] borrows it.
enum Found {
    Missing,
    Forbidden,
    Unreadable(Arc<str>),
    Keeper(Arc<Keeper>),
}

impl World {
    /// An empty world.
    pub fn new(standing: Standing, cross_namespace: bool) -> Self {
        Self {
            gates: Cache::default(),
            gatekeepers: Cache::default(),
            evidence: Arc::default(),
            specs: Mutex::default(),
            keepers: Mutex::default(),
            users: Mutex::default(),
            standing: RwLock::new(standing),
            cross_namespace,
        }
    }

    /// How far the clock and the authors of annotations can be relied on.
    pub fn standing(&self) -> Standing {
        *self.standing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes that. Says whether it was anything else before.
    pub fn stand(&self, change: impl FnOnce(&mut Standing)) -> bool {
        let mut standing = self
            .standing
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = *standing;
        change(&mut standing);
        before != *standing
    }

    /// The present instant, as far as the clock that tells it can be relied on.
    pub fn now(&self, at: Timestamp) -> Now {
        Now {
            at,
            trust: self.standing().trust,
        }
    }

    /// Whether every gate and gatekeeper has been listed: before that nothing is decided.
    pub fn is_synced(&self) -> bool {
        self.gates.is_synced() && self.gatekeepers.is_synced()
    }

    /// Waits for that.
    pub async fn synced(&self) {
        self.gates.synced().await;
        self.gatekeepers.synced().await;
    }

    /// Whether a gate is open at `at`, decided here and now.
    pub fn answer(&self, gate: &Gate, at: Timestamp) -> Answer {
        self.with_view(gate, at, |view| gate::answer(view, self.now(at)))
    }

    /// Does something with a gate and everything that it names.
    pub fn with_view<R>(&self, gate: &Gate, at: Timestamp, act: impl FnOnce(&View<'_>) -> R) -> R {
        let namespace = gate.metadata.namespace.as_deref().unwrap_or_default();
        let found: Vec<Found> = gate
            .spec
            .gatekeepers
            .iter()
            .map(|reference| {
                let named = reference.namespace.as_deref().unwrap_or(namespace);
                if named != namespace && !self.cross_namespace {
                    return Found::Forbidden;
                }
                let key = ObjectKey {
                    namespace: named.to_owned(),
                    name: reference.name.clone(),
                };
                self.find(&key, at)
            })
            .collect();
        let sights = found.iter().map(|found| match found {
            Found::Missing => Sight::Missing,
            Found::Forbidden => Sight::Forbidden,
            Found::Unreadable(why) => Sight::Unreadable(why),
            Found::Keeper(keeper) => Sight::Seen(keeper),
        });
        act(&View {
            gate,
            keepers: sights.collect(),
            identity: self.standing().identity,
        })
    }

    /// A gatekeeper, ready to be asked about `at`.
    pub fn keeper(&self, object: &Arc<Gatekeeper>, at: Timestamp) -> Arc<Keeper> {
        let key = ObjectKey::of(object.as_ref());
        let evidence = self.evidence.of(object);
        let known = lock(&self.keepers).get(&key).cloned();
        let keeper = match known.filter(|keeper| is_current(keeper, object, &evidence, at)) {
            Some(keeper) if Arc::ptr_eq(keeper.object(), object) => return keeper,
            // Only metadata or status have changed: what its spec comes to has not.
            Some(keeper) => Arc::new(keeper.with_object(Arc::clone(object))),
            // Outside the lock: a calendar may take a while, and others have to be decided.
            None => Arc::new(Keeper::new(Arc::clone(object), evidence, at)),
        };
        lock(&self.keepers).insert(key, Arc::clone(&keeper));
        keeper
    }

    fn find(&self, key: &ObjectKey, at: Timestamp) -> Found {
        match self.gatekeepers.get(key) {
            None => Found::Missing,
            Some(Seen::Unreadable(why)) => Found::Unreadable(why),
            Some(Seen::Object(object)) => Found::Keeper(self.keeper(&object, at)),
        }
    }

    /// Notes which gatekeepers a gate names; none when it is gone.
    pub fn note_gate(&self, key: &ObjectKey, gate: Option<&Gate>) {
        let named = gate.map(|gate| {
            let namespace = |own: &Option<String>| own.clone().unwrap_or(key.namespace.clone());
            let references = gate.spec.gatekeepers.iter();
            references
                .map(|reference| ObjectKey {
                    namespace: namespace(&reference.namespace),
                    name: reference.name.clone(),
                })
                .collect()
        });
        lock(&self.users).set(key, named.unwrap_or_default());
    }

    /// Notes a gatekeeper as it was seen, or that it is gone or cannot be read. Says whether its
    /// spec is another one than before, so that its gates may have changed.
    pub fn note_gatekeeper(&self, key: &ObjectKey, object: Option<&Gatekeeper>) -> bool {
        let spec = object.map(|object| Spec {
            uid: object.metadata.uid.clone(),
            generation: object.metadata.generation,
        });
        let mut specs = lock(&self.specs);
        if let Some(spec) = spec {
            specs.insert(key.clone(), spec.clone()) != Some(spec)
        } else {
            lock(&self.keepers).remove(key);
            specs.remove(key);
            true
        }
    }

    /// The gates that name a gatekeeper.
    pub fn gates_of(&self, gatekeeper: &ObjectKey) -> Vec<ObjectKey> {
        lock(&self.users).of(gatekeeper)
    }
}

/// Whether a keeper still is what its object and evidence come to.
fn is_current(keeper: &Keeper, object: &Gatekeeper, evidence: &Evidence, at: Timestamp) -> bool {
    let (known, seen) = (&keeper.object().metadata, &object.metadata);
    known.uid == seen.uid
        && known.generation == seen.generation
        && keeper.evidence() == evidence
        && keeper.reaches(at)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which gates name which gatekeepers, both ways.
#[derive(Default)]
struct Users {
    gates: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    named: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Users {
    fn set(&mut self, gate: &ObjectKey, named: BTreeSet<ObjectKey>) {
        if self.named.get(gate) == Some(&named) {
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
            self.gates
                .entry(gatekeeper.clone())
                .or_default()
                .insert(gate.clone());
        }
        if !named.is_empty() {
            self.named.insert(gate.clone(), named);
        }
    }

    fn of(&self, gatekeeper: &ObjectKey) -> Vec<ObjectKey> {
        self.gates
            .get(gatekeeper)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}
