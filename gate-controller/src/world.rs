//! Everything that decisions are made from, in memory: the objects, the evidence, how far the
//! clock and the authors of annotations can be relied on.
//!
//! Reading it takes no request, so that a decision is right at its instant, however long the
//! writing of statuses takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;
use jiff::Timestamp;
use sluice_core::clock::{Now, Trust};
use sluice_core::gate::{self, Answer, Identity, Sight, View};
use sluice_core::gatekeeper::{Evidence, Keeper};
use sluice_crds::{Gate, Gatekeeper};

use crate::cache::{Cache, Seen};
use crate::evidence::EvidenceStore;
use crate::key::{KeyRef, ObjectKey};

mod decide;
mod users;

pub use decide::Decider;
use users::Users;

/// The caches and what is derived from them.
pub struct World {
    /// All gates.
    pub gates: Cache<Gate>,
    /// All gatekeepers.
    pub gatekeepers: Cache<Gatekeeper>,
    /// What was observed for them.
    pub evidence: Arc<EvidenceStore>,
    keepers: RwLock<HashMap<ObjectKey, Arc<Keeper>>>,
    users: Mutex<Users>,
    standing: RwLock<Standing>,
    cross_namespace: bool,
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

impl Found {
    fn sight(&self) -> Sight<'_> {
        match self {
            Found::Missing => Sight::Missing,
            Found::Forbidden => Sight::Forbidden,
            Found::Unreadable(why) => Sight::Unreadable(why),
            Found::Keeper(keeper) => Sight::Seen(keeper),
        }
    }
}

impl World {
    /// An empty world.
    pub fn new(standing: Standing, cross_namespace: bool) -> Self {
        Self {
            gates: Cache::default(),
            gatekeepers: Cache::default(),
            evidence: Arc::default(),
            keepers: RwLock::default(),
            users: Mutex::default(),
            standing: RwLock::new(standing),
            cross_namespace,
        }
    }

    /// How far the clock and the authors of annotations can be relied on.
    pub fn standing(&self) -> Standing {
        *read(&self.standing)
    }

    /// Changes that. Says whether it was anything else before.
    pub fn stand(&self, change: impl FnOnce(&mut Standing)) -> bool {
        let mut standing = write(&self.standing);
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
        let found = self.found(gate, at);
        act(&View {
            gate,
            keepers: found.iter().map(Found::sight).collect(),
            identity: self.standing().identity,
        })
    }

    /// The gatekeepers that a gate names, ready to be asked about `at`.
    fn found(&self, gate: &Gate, at: Timestamp) -> Vec<Found> {
        let namespace = gate.metadata.namespace.as_deref().unwrap_or_default();
        let references = gate.spec.gatekeepers.iter();
        references
            .map(|reference| {
                let named = reference.namespace.as_deref().unwrap_or(namespace);
                if named != namespace && !self.cross_namespace {
                    return Found::Forbidden;
                }
                let name = &reference.name;
                let namespace = named;
                self.find(KeyRef { namespace, name }, at)
            })
            .collect()
    }

    /// A gatekeeper, ready to be asked about `at`.
    pub fn keeper(&self, object: &Arc<Gatekeeper>, at: Timestamp) -> Arc<Keeper> {
        let key = KeyRef::of(object.as_ref());
        let evidence = self.evidence.of(object);
        let known = read(&self.keepers).get(&key).cloned();
        let keeper = match known.filter(|keeper| is_current(keeper, object, &evidence, at)) {
            Some(keeper) if Arc::ptr_eq(keeper.object(), object) => return keeper,
            // Only metadata or status have changed: what its spec comes to has not.
            Some(keeper) => Arc::new(keeper.with_object(Arc::clone(object))),
            // Outside the lock: a calendar may take a while, and others have to be decided.
            None => Arc::new(Keeper::new(Arc::clone(object), evidence, at)),
        };
        write(&self.keepers).insert(key.into(), Arc::clone(&keeper));
        keeper
    }

    fn find(&self, key: KeyRef<'_>, at: Timestamp) -> Found {
        match self.gatekeepers.get(key) {
            None => Found::Missing,
            Some(Seen::Unreadable(why)) => Found::Unreadable(why),
            Some(Seen::Object(object)) => Found::Keeper(self.keeper(&object, at)),
        }
    }

    /// Notes which gatekeepers a gate names; none when it is gone.
    pub fn note_gate(&self, key: &ObjectKey, gate: Option<&Gate>) {
        let references = gate.map_or(&[][..], |gate| &gate.spec.gatekeepers);
        let named = references.iter().map(|reference| ObjectKey {
            namespace: match &reference.namespace {
                Some(namespace) => namespace.as_str().into(),
                None => Arc::clone(&key.namespace),
            },
            name: reference.name.as_str().into(),
        });
        lock(&self.users).set(key, named.collect());
    }

    /// Notes that a gatekeeper is gone or cannot be read: nothing is kept ready for it.
    pub fn forget_gatekeeper(&self, key: &ObjectKey) {
        write(&self.keepers).remove(key);
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

// A panic while one of these was locked leaves it as it was between two of its operations.

fn read<T>(shared: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    shared.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(shared: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    shared.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
