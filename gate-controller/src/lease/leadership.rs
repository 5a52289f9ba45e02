//! For how long this replica leads, for those who have to know before each write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::observe::clock::Jumps;

/// For how long this replica leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Until when, by the monotonic clock.
    pub until: Instant,
    /// How often the clock had jumped when that was found out: after another jump it has to be found
    /// out again. None: it does not matter.
    pub jumps: Option<u64>,
}

impl Held {
    /// Until then, whether or not the clock jumps.
    pub fn until(until: Instant) -> Self {
        Self { until, jumps: None }
    }

    /// Without a Lease, which would end.
    pub fn for_ever() -> Self {
        Self::until(Instant::now() + Duration::from_secs(100 * 365 * 86_400))
    }
}

/// Until when this replica may write. Workers ask before each step of a look, and so before each write.
/// So a leader that cannot renew stops at its deadline, and one that slept stops at once, even in the
/// middle of a look.
#[derive(Clone)]
pub struct Leadership {
    held: watch::Receiver<Option<Held>>,
    jumps: Arc<Jumps>,
}

impl Leadership {
    /// A leadership, and what tells it until when it lasts.
    pub fn new(jumps: Arc<Jumps>) -> (watch::Sender<Option<Held>>, Self) {
        let (sender, held) = watch::channel(None);
        (sender, Self { held, jumps })
    }

    /// How long this replica may still write. None: not at all.
    pub fn left(&self) -> Option<Duration> {
        let held = (*self.held.borrow())?;
        self.left_of(held)
    }

    fn left_of(&self, held: Held) -> Option<Duration> {
        let is_proven = held.jumps.is_none_or(|jumps| jumps == self.jumps.count());
        let left = held.until.saturating_duration_since(Instant::now());
        (is_proven && !left.is_zero()).then_some(left)
    }

    /// Waits until it may. For ever, if nobody is left to say so.
    pub async fn led(&mut self) {
        while self.left().is_none() {
            if self.held.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until it may not any more.
    pub async fn lost(&mut self) {
        while let Some(left) = self.left() {
            let known = self.jumps.count();
            let jumps = Arc::clone(&self.jumps);
            let changed = async {
                if self.held.changed().await.is_err() {
                    // Nobody is left to renew it: it lasts until its end.
                    std::future::pending::<()>().await;
                }
            };
            let _ = timeout(left, async {
                tokio::select! {
                    () = changed => {}
                    () = jumps.beyond(known) => {}
                }
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use jiff::Timestamp;

    use super::*;
    use crate::observe::clock::SetClock;

    #[tokio::test]
    async fn after_a_machine_slept_the_lead_is_renewed_before_anything_is_written() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let clock = Arc::new(SetClock::new(at(0)));
        let jumps = Arc::new(Jumps::new(clock.clone()));
        let (until, mut leadership) = Leadership::new(Arc::clone(&jumps));
        let renew = |jumps| {
            let until = Instant::now() + Duration::from_secs(3600);
            Some(Held { until, jumps })
        };
        until.send_replace(renew(Some(jumps.count())));
        clock.set(at(10));
        assert!(leadership.left().is_some() && leadership.led().now_or_never().is_some());
        assert!(leadership.lost().now_or_never().is_none());

        // It sleeps: for the monotonic clock no time has passed.
        let before = jumps.count();
        clock.step(at(40));
        assert_eq!(leadership.left(), None);
        assert!(leadership.led().now_or_never().is_none());
        assert!(leadership.lost().now_or_never().is_some());
        // The answer to a request that was made before says nothing.
        until.send_replace(renew(Some(before)));
        assert_eq!(leadership.left(), None);
        until.send_replace(renew(Some(jumps.count())));
        assert!(leadership.left().is_some() && leadership.led().now_or_never().is_some());

        // Without a Lease there is nothing to renew.
        until.send_replace(renew(None));
        clock.step(at(4000));
        assert!(leadership.left().is_some());
    }
}
