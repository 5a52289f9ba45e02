//! A clock that goes as the machine's does, and that a test puts forward.
//!
//! What comes in: how far. What goes out: a [`Clock`] for a controller that retries what fails in real time,
//! and whose minutes need not be waited for.

use std::time::Duration;

use gate_controller::observe::clock::{BoxFuture, Clock, SystemClock};
use jiff::Timestamp;
use tokio::sync::watch;

/// A clock that is ahead of the machine's.
#[derive(Debug, Default)]
pub struct AheadClock(watch::Sender<Duration>);

impl AheadClock {
    /// Lets so much time pass at once.
    pub fn put_forward(&self, by: Duration) {
        self.0
            .send_modify(|ahead| *ahead = ahead.saturating_add(by));
    }
}

impl Clock for AheadClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + *self.0.borrow()
    }

    fn now_and_awake(&self) -> (Timestamp, Duration) {
        let (now, awake) = SystemClock.now_and_awake();
        let ahead = *self.0.borrow();
        (now + ahead, awake + ahead)
    }

    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut ahead = self.0.subscribe();
        let at = at - *ahead.borrow_and_update();
        Box::pin(async move {
            tokio::select! {
                () = SystemClock.wait_until(at) => {}
                _ = ahead.changed() => {}
            }
        })
    }
}
