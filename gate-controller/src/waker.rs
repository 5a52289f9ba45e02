//! Who is to be looked at again when something has changed.
//!
//! What comes in: what has changed. What goes out: pieces of work, into the queue.

use std::sync::Arc;

use crate::clock::Clock;
use crate::key::{ObjectKey, Work};
use crate::queue::Shared;
use crate::worker::urgency;
use crate::world::World;

/// Puts objects into the queue.
#[derive(Clone)]
pub(crate) struct Waker {
    pub(crate) world: Arc<World>,
    pub(crate) queue: Arc<Shared<Work>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Waker {
    fn wake(&self, work: Work) {
        let urgency = urgency(&work);
        self.queue.push(work, urgency, self.clock.now());
    }

    /// A gatekeeper, and if it may now say anything else, the gates that it keeps.
    pub(crate) fn gatekeeper(&self, key: &ObjectKey, gates_too: bool) {
        if gates_too {
            for gate in self.world.gates_of(key) {
                self.wake(Work::Gate(gate));
            }
        }
        self.wake(Work::Gatekeeper(key.clone()));
    }

    /// All gates and gatekeepers.
    pub(crate) fn everything(&self) {
        for key in self.world.gates.keys() {
            self.wake(Work::Gate(key));
        }
        for key in self.world.gatekeepers.keys() {
            self.wake(Work::Gatekeeper(key));
        }
    }
}
