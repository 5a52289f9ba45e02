//! The events that wait for one receiver, with a limit on their number and on their bytes. Events beyond
//! that are dropped, and counted: the log has them all.
//!
//! No namespace may have more than it leaves to all others: the first that has very many has half, another one a
//! quarter. After a dozen of these little is left.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Waiting;

/// How many may wait: 10,000 gates of one namespace that change together have room in its half.
pub(super) const WAITING: usize = 32_768;
/// How many bytes of them: about 800 for each of those gates, twice what a note of one sentence needs.
pub(super) const BYTES: usize = 16 << 20;

/// Where they are put.
#[derive(Clone)]
pub(super) struct Lane {
    queue: mpsc::Sender<Queued>,
    room: Arc<Mutex<Room>>,
}

/// What they are taken from to be sent. It ends with the last of [`Events`](super::Events).
pub type Sending = mpsc::Receiver<Queued>;

/// An event that has its room until it is dropped: also while it is being sent.
pub struct Queued {
    waiting: Arc<Waiting>,
    bytes: usize,
    room: Arc<Mutex<Room>>,
}

impl Deref for Queued {
    type Target = Waiting;

    fn deref(&self) -> &Waiting {
        &self.waiting
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let namespace = self.waiting.told.about.namespace();
        self.room.lock().give(namespace, self.bytes);
    }
}

/// An empty one.
pub(super) fn lane() -> (Lane, Sending) {
    let (queue, sending) = mpsc::channel(WAITING);
    let room = Arc::default();
    (Lane { queue, room }, sending)
}

impl Lane {
    /// Has an event wait. False: there is no room.
    pub(super) fn put(&self, waiting: Arc<Waiting>) -> bool {
        let bytes = waiting.bytes();
        let namespace = waiting.told.about.namespace();
        if !self.room.lock().take(namespace, bytes) {
            return false;
        }
        let queued = Queued {
            waiting,
            bytes,
            room: Arc::clone(&self.room),
        };
        self.queue.try_send(queued).is_ok()
    }
}

/// What has been taken of the room.
#[derive(Default)]
struct Room {
    all: Load,
    /// By the namespaces that have any.
    of: BTreeMap<Box<str>, Load>,
}

impl Room {
    /// Takes room for an event of a namespace. False: it would have more than it leaves to all others.
    fn take(&mut self, namespace: &str, bytes: usize) -> bool {
        let own = self.of.get(namespace).copied().unwrap_or_default();
        let (own, all) = (own.with(bytes), self.all.with(bytes));
        if own.events > WAITING.saturating_sub(all.events)
            || own.bytes > BYTES.saturating_sub(all.bytes)
        {
            return false;
        }
        self.all = all;
        self.of.insert(namespace.into(), own);
        true
    }

    /// Gives it back. A namespace that has nothing left is forgotten.
    fn give(&mut self, namespace: &str, bytes: usize) {
        self.all = self.all.without(bytes);
        if let Some(own) = self.of.get_mut(namespace) {
            *own = own.without(bytes);
            if own.events == 0 {
                self.of.remove(namespace);
            }
        }
    }
}

/// So many events, of so many bytes.
#[derive(Clone, Copy, Default)]
struct Load {
    events: usize,
    bytes: usize,
}

impl Load {
    fn with(self, bytes: usize) -> Self {
        Self {
            events: self.events + 1,
            bytes: self.bytes + bytes,
        }
    }

    fn without(self, bytes: usize) -> Self {
        Self {
            events: self.events.saturating_sub(1),
            bytes: self.bytes.saturating_sub(bytes),
        }
    }
}
