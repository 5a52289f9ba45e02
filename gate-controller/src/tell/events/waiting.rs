//! The events that wait for one receiver, with a limit on their number and on their bytes. Events beyond
//! that are dropped, and counted: the log has them all.

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::Waiting;

/// How many may wait.
pub(super) const WAITING: usize = 16_384;
/// How many bytes of them: 10,000 gates that change together need about half of that.
pub(super) const BYTES: usize = 16 << 20;

/// Where they are put.
#[derive(Clone)]
pub(super) struct Lane {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

/// What they are taken from to be sent. It ends with the last of [`Events`](super::Events).
pub type Sending = mpsc::Receiver<Queued>;

/// An event that has its room until it is dropped.
pub struct Queued {
    waiting: Arc<Waiting>,
    _room: OwnedSemaphorePermit,
}

impl Deref for Queued {
    type Target = Waiting;

    fn deref(&self) -> &Waiting {
        &self.waiting
    }
}

/// An empty one.
pub(super) fn lane() -> (Lane, Sending) {
    let (queue, sending) = mpsc::channel(WAITING);
    let room = Arc::new(Semaphore::new(BYTES));
    (Lane { queue, room }, sending)
}

impl Lane {
    /// Has an event wait. False: there is no room.
    pub(super) fn put(&self, waiting: Arc<Waiting>) -> bool {
        let Ok(bytes) = waiting.bytes().try_into() else {
            return false;
        };
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes);
        let Ok(room) = room else {
            return false;
        };
        let queued = Queued {
            waiting,
            _room: room,
        };
        self.queue.try_send(queued).is_ok()
    }
}
