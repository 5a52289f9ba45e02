//! Evidence: what gatekeepers are judged from, in addition to spec and clock, gathered in the background.
//!
//! What comes in: gatekeepers as they are seen, and their deletion. What goes out: an [`EvidenceStore`]
//! that decisions read without waiting, and a call for each gatekeeper whose evidence has changed. Each
//! gatekeeper that needs evidence has a separate task, so that a slow address delays no other; the number
//! of requests at once is limited below, in `sluice_egress`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sluice_core::verdict::status::REQUESTED_AT;
use sluice_crds::Gatekeeper;
use sluice_gatekeepers::{Clients, needs_evidence};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::cluster::key::ObjectKey;
use crate::observe::clock::Clock;

mod observer;
mod store;
#[cfg(test)]
mod tests;
mod users;

pub use store::EvidenceStore;

use observer::Observer;
use users::Users;

/// Gathers evidence for every gatekeeper that needs it. That ends with its last clone.
#[derive(Clone)]
pub struct Tracker(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    observers: Mutex<HashMap<ObjectKey, Tracked>>,
    next_id: AtomicU64,
    _background: [AbortOnDropHandle<()>; 3],
}

/// What the observers share.
struct Shared {
    clients: Clients,
    clock: Arc<dyn Clock>,
    store: Arc<EvidenceStore>,
    changed: Box<dyn Fn(&ObjectKey) + Send + Sync>,
    users: Arc<Users>,
}

/// A gatekeeper that is observed.
struct Tracked {
    uid: Option<String>,
    objects: watch::Sender<Arc<Gatekeeper>>,
    task: AbortOnDropHandle<()>,
}

impl Tracker {
    /// `changed` is called with the key of each gatekeeper whose evidence in `store` has changed.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(
        clients: Clients,
        clock: Arc<dyn Clock>,
        store: Arc<EvidenceStore>,
        changed: impl Fn(&ObjectKey) + Send + Sync + 'static,
    ) -> Self {
        let users = Arc::new(Users::default());
        let (maps, objects) = (clients.config_maps.changes(), clients.objects.changes());
        let background = [
            tokio::spawn(users::wake_on_changes(Arc::clone(&users), maps)),
            tokio::spawn(users::wake_on_changes(Arc::clone(&users), objects)),
            tokio::spawn(users::release(
                Arc::clone(&users),
                clients.clone(),
                Arc::clone(&clock),
            )),
        ];
        let changed = Box::new(changed);
        Self(Arc::new(Inner {
            shared: Arc::new(Shared {
                clients,
                clock,
                store,
                changed,
                users,
            }),
            observers: Mutex::default(),
            next_id: AtomicU64::new(0),
            _background: background.map(AbortOnDropHandle::new),
        }))
    }

    /// Observes for this object from now on, if it needs evidence. A look is taken when its spec or its
    /// `reconcile.fluxcd.io/requestedAt` has changed; otherwise this does nothing.
    pub fn track(&self, object: &Arc<Gatekeeper>) {
        let key = ObjectKey::of(object.as_ref());
        if !needs_evidence(&object.spec) {
            return self.forget(&key);
        }
        let mut observers = self.0.observers.lock();
        match observers.get(&key) {
            Some(tracked) if tracked.observes(object) => tracked.tell(object),
            Some(_) | None => {
                let tracked = self.observe(&key, object);
                observers.insert(key, tracked);
            }
        }
    }

    /// It is gone, or there is nothing to observe for it any more.
    pub fn forget(&self, key: &ObjectKey) {
        if self.0.observers.lock().remove(key).is_some() {
            self.0.shared.store.remove(key);
        }
    }

    fn observe(&self, key: &ObjectKey, object: &Arc<Gatekeeper>) -> Tracked {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.0.shared.store.begin(key, id, object);
        let (objects, seen) = watch::channel(Arc::clone(object));
        let observer = Observer::new(Arc::clone(&self.0.shared), id, key.clone(), seen);
        let task = AbortOnDropHandle::new(tokio::spawn(observer.run()));
        Tracked {
            uid: object.metadata.uid.clone(),
            objects,
            task,
        }
    }
}

impl Tracked {
    /// Whether exactly this object is observed, and its observer still works.
    fn observes(&self, object: &Gatekeeper) -> bool {
        self.uid == object.metadata.uid && !self.task.is_finished()
    }

    fn tell(&self, object: &Arc<Gatekeeper>) {
        self.objects.send_if_modified(|known| {
            let same = known.metadata.generation == object.metadata.generation
                && requested_at(known) == requested_at(object);
            // Keep the newest in any case: the one before takes as much memory.
            *known = Arc::clone(object);
            !same
        });
    }
}

/// When somebody last asked for a look.
fn requested_at(object: &Gatekeeper) -> Option<&str> {
    object
        .metadata
        .annotations
        .as_ref()?
        .get(REQUESTED_AT)
        .map(String::as_str)
}
