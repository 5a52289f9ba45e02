//! Room for bytes: how much is held for one namespace, for one cluster, for all.
//!
//! What comes in: how many bytes there are more, or fewer. What goes out: whether there is room for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Room for so many bytes, perhaps within a larger room.
#[derive(Debug)]
pub struct Room {
    /// What takes it, for messages.
    what: &'static str,
    most: usize,
    used: AtomicUsize,
    within: Option<Arc<Room>>,
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} take more than {most} bytes")]
pub struct Full {
    /// What takes the room.
    pub what: &'static str,
    most: usize,
}

impl Room {
    /// Room for `most` bytes of `what`, which are counted `within` a larger room, too.
    pub fn new(what: &'static str, most: usize, within: Option<Arc<Room>>) -> Arc<Self> {
        Arc::new(Self {
            what,
            most,
            used: AtomicUsize::new(0),
            within,
        })
    }

    /// Takes room for more bytes.
    ///
    /// # Errors
    /// There is not so much; then nothing is taken.
    pub fn take(&self, bytes: usize) -> Result<(), Full> {
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.most);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.used.fetch_update(set, fetch, more).is_err() {
            let (what, most) = (self.what, self.most);
            return Err(Full { what, most });
        }
        if let Some(Err(full)) = self.within.as_ref().map(|within| within.take(bytes)) {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(full);
        }
        Ok(())
    }

    /// Gives room back that was taken.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(within) = &self.within {
            within.give(bytes);
        }
    }

    /// How many bytes are taken.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Rooms of namespaces, each for as long as somebody uses it.
#[derive(Debug)]
pub struct Rooms {
    what: &'static str,
    each: usize,
    within: Arc<Room>,
    of: Mutex<HashMap<String, Weak<Room>>>,
}

impl Rooms {
    /// Rooms for `each` bytes of `what`, within a larger one. None is used yet.
    pub fn new(what: &'static str, each: usize, within: Arc<Room>) -> Self {
        let of = Mutex::default();
        Self {
            what,
            each,
            within,
            of,
        }
    }

    /// The room of a namespace.
    pub fn of(&self, namespace: &str) -> Arc<Room> {
        let mut all = self.of.lock();
        if let Some(room) = all.get(namespace).and_then(Weak::upgrade) {
            return room;
        }
        // Now and then, so that each costs little.
        if all.len() == all.capacity() {
            all.retain(|_, room| room.strong_count() > 0);
        }
        let room = Room::new(self.what, self.each, Some(Arc::clone(&self.within)));
        all.insert(namespace.to_owned(), Arc::downgrade(&room));
        room
    }
}
