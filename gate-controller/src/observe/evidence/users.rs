//! Who uses which source: to wake the users when it changes, and to end its watch when it has none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_gatekeepers::{Clients, Source};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::observe::clock::Clock;

/// The users of sources, by source.
#[derive(Default)]
pub(super) struct Users {
    by_source: Mutex<HashMap<Source, HashMap<u64, Arc<Notify>>>>,
    /// A user uses less than before.
    released: Notify,
}

/// One user. When it is dropped, it uses nothing any more.
pub(super) struct User {
    users: Arc<Users>,
    id: u64,
    woken: Arc<Notify>,
    uses: Vec<Source>,
}

impl Users {
    fn wake(&self, source: &Source) {
        let by_source = self.by_source.lock();
        for woken in by_source.get(source).into_iter().flat_map(HashMap::values) {
            woken.notify_one();
        }
    }

    fn wake_all(&self) {
        for woken in self.by_source.lock().values().flat_map(HashMap::values) {
            woken.notify_one();
        }
    }

    fn in_use(&self) -> HashSet<Source> {
        self.by_source.lock().keys().cloned().collect()
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

    /// From now on it uses these sources, and no others.
    pub(super) fn uses(&mut self, sources: Vec<Source>) {
        if self.uses == sources {
            return;
        }
        let before = std::mem::replace(&mut self.uses, sources);
        let mut by_source = self.users.by_source.lock();
        for source in &self.uses {
            by_source
                .entry(source.clone())
                .or_default()
                .insert(self.id, Arc::clone(&self.woken));
        }
        for source in before.iter().filter(|source| !self.uses.contains(source)) {
            if let Some(users) = by_source.get_mut(source) {
                users.remove(&self.id);
                if users.is_empty() {
                    by_source.remove(source);
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

/// Wakes the users of each source that changes.
pub(super) async fn wake_on_changes<K>(users: Arc<Users>, mut changes: Receiver<K>)
where
    K: Into<Source> + Clone,
{
    loop {
        match changes.recv().await {
            Ok(key) => users.wake(&key.into()),
            Err(RecvError::Lagged(_)) => users.wake_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Ends the watches of sources that are not used any more, a while after the last user has gone.
pub(super) async fn release(users: Arc<Users>, clients: Clients, clock: Arc<dyn Clock>) {
    loop {
        match clients.keep(&users.in_use(), clock.now()) {
            None => users.released.notified().await,
            Some(end) => tokio::select! {
                () = users.released.notified() => {}
                () = clock.wait_until(end) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests;
