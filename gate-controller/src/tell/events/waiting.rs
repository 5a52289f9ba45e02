//! The events that wait for one receiver, with a limit on their bytes. What does not fit is dropped, and counted: the
//! log has it all.
//!
//! Namespaces take turns: of each the oldest event is sent. Where there is no room, that of the namespace that has the
//! most is taken, from its newest events. So one that floods delays no other, and takes no room that others need.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Waiting;

/// How many bytes of events may wait: about 1,600 for each of 10,000 gates that change together, where one with a note
/// of a sentence needs 1,000.
pub(super) const BYTES: usize = 16 << 20;

/// Where they are put.
#[derive(Clone)]
pub(super) struct Lane {
    /// Tells that one waits.
    news: mpsc::Sender<()>,
    room: Arc<Mutex<Room>>,
}

/// What they are taken from to be sent. It ends with the last of [`Events`](super::Events).
pub struct Sending {
    news: mpsc::Receiver<()>,
    room: Arc<Mutex<Room>>,
}

/// An event that has its room until it is dropped: also while it is being sent.
pub struct Queued {
    waiting: Arc<Waiting>,
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
        self.room.lock().give(&self.waiting);
    }
}

/// An empty one.
pub(super) fn lane() -> (Lane, Sending) {
    let (news, listens) = mpsc::channel(1);
    let room = Arc::<Mutex<Room>>::default();
    let sending = Sending {
        news: listens,
        room: Arc::clone(&room),
    };
    (Lane { news, room }, sending)
}

impl Lane {
    /// Has an event wait, and says how many were dropped for want of room: it, or others.
    pub(super) fn put(&self, waiting: Arc<Waiting>) -> u64 {
        let dropped = self.room.lock().put(waiting);
        // One that was not heard yet is enough.
        let _ = self.news.try_send(());
        dropped
    }
}

impl Sending {
    /// The next one. None: there will be no more.
    pub async fn recv(&mut self) -> Option<Queued> {
        loop {
            if let Some(queued) = self.try_next() {
                return Some(queued);
            }
            self.news.recv().await?;
        }
    }

    /// For how long the oldest one has waited: this one, which is being sent, or one of those that wait.
    pub(super) fn waited(&self, sent: &Queued) -> Duration {
        let oldest = self.room.lock().oldest();
        let since = oldest.map_or(sent.since, |oldest| oldest.min(sent.since));
        since.elapsed()
    }

    /// How many namespaces have an event that waits.
    pub(super) fn namespaces(&self) -> usize {
        self.room.lock().turns.len()
    }

    /// Has an event that was not taken wait again, before all others of its namespace.
    pub(super) fn put_back(&self, queued: Queued) {
        self.room.lock().put_back(Arc::clone(&queued.waiting));
        // It has room of its own again, and gives up that which it had until now.
        drop(queued);
    }

    /// The next one, if one waits.
    pub fn try_next(&self) -> Option<Queued> {
        let waiting = self.room.lock().next()?;
        let room = Arc::clone(&self.room);
        Some(Queued { waiting, room })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        *self.room.lock() = Room {
            is_closed: true,
            ..Room::default()
        };
    }
}

/// What waits, and the room that it takes.
#[derive(Default)]
struct Room {
    /// Nobody takes anything any more.
    is_closed: bool,
    bytes: usize,
    /// By the namespaces that have any.
    of: BTreeMap<Arc<str>, Share>,
    /// The namespaces of which an event waits, the next one first.
    turns: VecDeque<Arc<str>>,
}

/// What a namespace has.
#[derive(Default)]
struct Share {
    /// Together with what is being sent.
    bytes: usize,
    /// The oldest first.
    waiting: VecDeque<Arc<Waiting>>,
}

impl Room {
    /// Has an event wait, and says how many were dropped: it, or others.
    fn put(&mut self, waiting: Arc<Waiting>) -> u64 {
        if self.is_closed {
            return 1;
        }
        let bytes = waiting.bytes();
        let own = self.of.get(waiting.namespace());
        let own = own.map_or(0, |share| share.bytes) + bytes;
        let mut dropped = 0;
        while self.bytes + bytes > BYTES {
            dropped += 1;
            match self.largest() {
                Some((namespace, most)) if most > own => self.drop_newest(&namespace),
                Some(_) | None => return dropped,
            }
        }
        self.add(waiting);
        dropped
    }

    /// The namespace that has the most, of those of which an event waits, and what it has.
    fn largest(&self) -> Option<(Arc<str>, usize)> {
        let shares = self.of.iter().filter(|(_, it)| !it.waiting.is_empty());
        let (namespace, largest) = shares.max_by_key(|(_, share)| share.bytes)?;
        Some((Arc::clone(namespace), largest.bytes))
    }

    fn drop_newest(&mut self, namespace: &Arc<str>) {
        let Some(share) = self.of.get_mut(namespace) else {
            return;
        };
        let newest = share.waiting.pop_back();
        if share.waiting.is_empty() {
            self.turns.retain(|it| it != namespace);
        }
        if let Some(newest) = newest {
            self.give(&newest);
        }
    }

    fn add(&mut self, waiting: Arc<Waiting>) {
        self.share(&waiting).waiting.push_back(waiting);
    }

    fn put_back(&mut self, waiting: Arc<Waiting>) {
        self.share(&waiting).waiting.push_front(waiting);
    }

    /// The share of its namespace, in which an event has room from now on, and a turn.
    fn share(&mut self, waiting: &Waiting) -> &mut Share {
        let namespace = match self.of.get_key_value(waiting.namespace()) {
            Some((namespace, _)) => Arc::clone(namespace),
            None => waiting.namespace().into(),
        };
        let bytes = waiting.bytes();
        self.bytes += bytes;
        let share = self.of.entry(Arc::clone(&namespace)).or_default();
        share.bytes += bytes;
        if share.waiting.is_empty() {
            self.turns.push_back(namespace);
        }
        share
    }

    /// The event whose turn it is. It has its room until it is given back.
    fn next(&mut self) -> Option<Arc<Waiting>> {
        let namespace = self.turns.pop_front()?;
        let share = self.of.get_mut(&namespace)?;
        let next = share.waiting.pop_front();
        if !share.waiting.is_empty() {
            self.turns.push_back(namespace);
        }
        next
    }

    /// Since when the oldest event has waited.
    fn oldest(&self) -> Option<Instant> {
        let first = self.of.values().filter_map(|share| share.waiting.front());
        first.map(|waiting| waiting.since).min()
    }

    /// Gives the room of an event back. A namespace that has nothing left is forgotten.
    fn give(&mut self, waiting: &Waiting) {
        let bytes = waiting.bytes();
        let namespace = waiting.namespace();
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(share) = self.of.get_mut(namespace) {
            share.bytes = share.bytes.saturating_sub(bytes);
            if share.bytes == 0 {
                self.of.remove(namespace);
            }
        }
    }
}
