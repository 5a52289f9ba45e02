//! The clock, injected wherever time matters.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest anyone waits before the wall clock is read again, so that a clock that was set, or
/// a machine that slept, is noticed.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// What tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// Waits for `at`, or less: whoever waits reads the clock again and waits on.
    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that waits for it"
    )]
    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let left = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
        Box::pin(tokio::time::sleep(left.min(READ_AGAIN)))
    }
}

/// A clock that stands still until it is set: for tests and simulations.
#[derive(Debug)]
pub struct SetClock(watch::Sender<Timestamp>);

impl SetClock {
    /// A clock that shows `at`.
    pub fn new(at: Timestamp) -> Self {
        Self(watch::Sender::new(at))
    }

    /// Sets the clock, forwards or back, and wakes whoever waits.
    pub fn set(&self, at: Timestamp) {
        self.0.send_replace(at);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut time = self.0.subscribe();
        Box::pin(async move {
            if *time.borrow_and_update() < at {
                // Set back it wakes too. The sender lives as long as `self`.
                let _ = time.changed().await;
            }
        })
    }
}
