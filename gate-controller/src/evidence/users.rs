//! Who uses which ConfigMap: to wake them when it changes, and to end its watch when nobody does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_gatekeepers::{ConfigMapKey, ConfigMaps};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Clock;

/// The users of ConfigMaps, by map.
#[derive(Default)]
pub(super) struct Users {
    by_map: Mutex<HashMap<ConfigMapKey, HashMap<u64, Arc<Notify>>>>,
    /// Somebody uses less than before.
    released: Notify,
}

/// One user. Dropped, it uses nothing any more.
pub(super) struct User {
    users: Arc<Users>,
    id: u64,
    woken: Arc<Notify>,
    uses: Vec<ConfigMapKey>,
}

impl Users {
    fn wake(&self, map: &ConfigMapKey) {
        for woken in self.lock().get(map).into_iter().flat_map(HashMap::values) {
            woken.notify_one();
        }
    }

    fn wake_all(&self) {
        for woken in self.lock().values().flat_map(HashMap::values) {
            woken.notify_one();
        }
    }

    fn in_use(&self) -> HashSet<ConfigMapKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConfigMapKey, HashMap<u64, Arc<Notify>>>> {
        self.by_map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl User {
    /// A user of nothing yet, who is woken through `woken`.
    pub(super) fn new(users: Arc<Users>, id: u64, woken: Arc<Notify>) -> Self {
        Self {
            users,
            id,
            woken,
            uses: Vec::new(),
        }
    }

    /// It uses these maps, and no others.
    pub(super) fn uses(&mut self, maps: Vec<ConfigMapKey>) {
        if self.uses == maps {
            return;
        }
        let before = std::mem::replace(&mut self.uses, maps);
        let mut by_map = self.users.lock();
        for map in &self.uses {
            by_map
                .entry(map.clone())
                .or_default()
                .insert(self.id, Arc::clone(&self.woken));
        }
        for map in before.iter().filter(|map| !self.uses.contains(map)) {
            if let Some(users) = by_map.get_mut(map) {
                users.remove(&self.id);
                if users.is_empty() {
                    by_map.remove(map);
                    self.users.released.notify_one();
                }
            }
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.uses(Vec::new());
    }
}

/// Wakes the users of each map that changes.
pub(super) async fn wake_on_changes(users: Arc<Users>, mut changes: Receiver<ConfigMapKey>) {
    loop {
        match changes.recv().await {
            Ok(map) => users.wake(&map),
            Err(RecvError::Lagged(_)) => users.wake_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Ends the watches of maps that nobody uses any more, a while after the last user has gone.
pub(super) async fn release(users: Arc<Users>, maps: ConfigMaps, clock: Arc<dyn Clock>) {
    loop {
        match maps.keep(&users.in_use(), clock.now()) {
            None => users.released.notified().await,
            Some(end) => tokio::select! {
                () = users.released.notified() => {}
                () = clock.wait_until(end) => {}
            },
        }
    }
}
