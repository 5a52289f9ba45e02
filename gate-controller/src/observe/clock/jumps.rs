//! Whether the wall clock has jumped: somebody set it, or the machine slept.
//!
//! What comes in: the wall clock and the monotonic one, which nobody can set and which stops while a
//! machine sleeps. On one machine both run at the same rate, so that only a jump makes them differ. What
//! goes out: how many jumps there were. Everything that was found out before the last jump has to be
//! found out again before it is used: what time it is, who leads, and what the API server holds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use sluice_core::time::clock::REPORTED;
use tokio::sync::watch;

use super::{BoxFuture, Clock};

/// How often the clocks are read while somebody waits for a jump, so that those who wait for an instant
/// are woken soon after a machine slept.
const LOOK: Duration = Duration::from_secs(1);

/// Notices jumps, at the latest when it is asked.
pub struct Jumps {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    count: watch::Sender<u64>,
}

/// What both clocks showed at one time, and the last jump.
struct Seen {
    now: Timestamp,
    awake: Duration,
    by: SignedDuration,
}

impl fmt::Debug for Jumps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jumps")
    }
}

impl Jumps {
    /// None yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (now, awake) = clock.now_and_awake();
        Self {
            clock,
            seen: Mutex::new(Seen {
                now,
                awake,
                by: SignedDuration::ZERO,
            }),
            count: watch::Sender::new(0),
        }
    }

    /// How many there were, up to now.
    pub fn count(&self) -> u64 {
        let mut seen = self.seen.lock();
        let (now, awake) = self.clock.now_and_awake();
        let passed = SignedDuration::try_from(awake.saturating_sub(seen.awake));
        let jump = now.duration_since(seen.now) - passed.unwrap_or(SignedDuration::MAX);
        if jump.abs() > REPORTED {
            *seen = Seen {
                now,
                awake,
                by: jump,
            };
            // Before anything else reads the clocks.
            self.count.send_modify(|count| *count += 1);
        }
        *self.count.borrow()
    }

    /// By how much the clock jumped last: forwards, or back if it is negative.
    pub fn last(&self) -> SignedDuration {
        self.seen.lock().by
    }

    /// Waits until there were more than `known`.
    pub async fn beyond(&self, known: u64) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`.
        let _ = count.wait_for(|count| *count > known).await;
    }

    /// Reads the clocks now and then, for ever.
    pub async fn notice(&self) {
        loop {
            let before = *self.count.borrow();
            if self.count() > before {
                tracing::warn!(
                    by_seconds = self.last().as_secs(),
                    "the clock was set, or the machine slept; until the clock is compared with the \
                     API server's, the lead is renewed and everything is listed again, nothing goes \
                     out"
                );
            }
            pause().await;
        }
    }
}

impl sluice_watching::Jumps for Jumps {
    fn count(&self) -> u64 {
        Jumps::count(self)
    }

    fn beyond(&self, known: u64) -> BoxFuture<'_, ()> {
        Box::pin(Jumps::beyond(self, known))
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "on the monotonic clock: the other one is in question"
)]
async fn pause() {
    tokio::time::sleep(LOOK).await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rstest::rstest;

    use super::*;
    use crate::observe::clock::SetClock;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[rstest]
    #[case::forwards(3600)]
    #[case::back(-3600)]
    #[case::just_enough(6)]
    fn a_clock_that_is_set_has_jumped_once(#[case] by: i64) {
        let clock = Arc::new(SetClock::new(at(0)));
        let jumps = Jumps::new(clock.clone());
        // Time passes on both clocks.
        clock.set(at(600));
        assert_eq!(jumps.count(), 0);
        assert!(jumps.beyond(0).now_or_never().is_none());
        clock.step(at(600 + by));
        assert_eq!((jumps.count(), jumps.count()), (1, 1));
        assert_eq!(jumps.last(), SignedDuration::from_secs(by));
        assert!(jumps.beyond(0).now_or_never().is_some());
        clock.set(at(1200 + by));
        assert_eq!(jumps.count(), 1);
        clock.step(at(1200));
        assert_eq!(jumps.count(), 2);
    }

    #[test]
    fn a_clock_that_is_set_by_little_has_not_jumped() {
        let clock = Arc::new(SetClock::new(at(0)));
        let jumps = Jumps::new(clock.clone());
        clock.step(at(5));
        assert_eq!(jumps.count(), 0);
        // Little by little it has, all the same.
        clock.step(at(10));
        assert_eq!(jumps.count(), 1);
    }
}
