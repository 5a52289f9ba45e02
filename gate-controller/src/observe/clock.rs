//! The clock, injected wherever time matters.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

mod jumps;
pub mod skew;

pub use jumps::Jumps;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest anyone waits before the wall clock is read again, so that a clock that was set, or
/// a machine that slept, is noticed.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// What tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// The present instant, and at the same time how long it has been since some other, by the
    /// monotonic clock: nobody can set it, and it stands still while the machine sleeps.
    fn now_and_awake(&self) -> (Timestamp, Duration);

    /// Waits for `at`, or less: the one who waits reads the clock again and waits on.
    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;
}

/// A clock that shows this much less than it did was set back: what was waited for may be far.
pub const SET_BACK: SignedDuration = SignedDuration::from_secs(60);

/// Waits until the clock shows `at`, or is set back.
pub async fn reach(clock: &dyn Clock, at: Timestamp) {
    let mut latest = clock.now();
    while latest < at {
        clock.wait_until(at).await;
        let now = clock.now();
        if now.duration_since(latest) < -SET_BACK {
            return;
        }
        latest = latest.max(now);
    }
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

    fn now_and_awake(&self) -> (Timestamp, Duration) {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        // A pause between the two looks like a jump, and costs a comparison.
        let awake = START.elapsed();
        (self.now(), awake)
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
pub struct SetClock(watch::Sender<Shown>);

/// What a clock shows that is set.
#[derive(Clone, Copy, Debug)]
struct Shown {
    now: Timestamp,
    awake: Duration,
}

impl SetClock {
    /// A clock that shows `at`.
    pub fn new(at: Timestamp) -> Self {
        // It can be turned back by as much.
        let awake = Duration::from_secs(100 * 365 * 86_400);
        Self(watch::Sender::new(Shown { now: at, awake }))
    }

    /// Lets time pass until `at`, or sets it back, and wakes everybody who waits.
    pub fn set(&self, at: Timestamp) {
        self.0.send_modify(|shown| {
            let passed = at.duration_since(shown.now);
            let by = passed.unsigned_abs();
            shown.awake = match passed.is_negative() {
                true => shown.awake.saturating_sub(by),
                false => shown.awake.saturating_add(by),
            };
            shown.now = at;
        });
    }

    /// Sets the wall clock alone, as an administrator does, or a machine that wakes from sleep.
    pub fn step(&self, at: Timestamp) {
        self.0.send_modify(|shown| shown.now = at);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        self.0.borrow().now
    }

    fn now_and_awake(&self) -> (Timestamp, Duration) {
        let shown = *self.0.borrow();
        (shown.now, shown.awake)
    }

    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut time = self.0.subscribe();
        Box::pin(async move {
            if time.borrow_and_update().now < at {
                // Set back it wakes too. The sender lives as long as `self`.
                let _ = time.changed().await;
            }
        })
    }
}
