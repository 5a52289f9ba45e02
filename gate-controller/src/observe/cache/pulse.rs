//! Whether a watch is alive: whether what changes on the API server is still seen here.
//!
//! What comes in: each sign of life of a watch, and that it fails. What goes out: since when nothing
//! was heard. What is cached may be decided from for a while after that, and not for ever: a person
//! may have closed a gate meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub use sluice_gatekeepers::watching::SILENCE;
use tokio::time::Instant;

use crate::observe::clock::Jumps;

/// When a watch was heard of last.
#[derive(Debug, Default)]
pub struct Pulse {
    beat: Mutex<Beat>,
    /// What the clock does. A machine that slept has heard nothing, and does not know for how long.
    jumps: OnceLock<Arc<Jumps>>,
}

#[derive(Debug, Default)]
struct Beat {
    /// None: nothing has been listed yet.
    heard: Option<Instant>,
    /// How often the clock had jumped when the last list was begun.
    jumps: u64,
    /// Why it fails, since it was heard of last.
    trouble: Option<Arc<str>>,
}

impl Beat {
    fn is_alive(&self, now: Instant, jumps: u64) -> bool {
        let heard = |heard| now.saturating_duration_since(heard) <= SILENCE;
        self.heard.is_none_or(heard) && self.jumps == jumps
    }
}

impl Pulse {
    /// From now on only what was listed since the clock jumped last is relied on.
    pub(crate) fn heed(&self, jumps: Arc<Jumps>) {
        // The second one brings the same.
        let _ = self.jumps.set(jumps);
    }

    /// How often the clock has jumped.
    pub(crate) fn jumps(&self) -> u64 {
        self.jumps.get().map_or(0, |jumps| jumps.count())
    }

    /// Waits until the clock has jumped more often.
    pub(super) async fn beyond(&self, known: u64) {
        match self.jumps.get() {
            Some(jumps) => jumps.beyond(known).await,
            None => std::future::pending().await,
        }
    }

    /// Everything is listed, as it was asked for when the clock had jumped so often.
    pub(crate) fn listed(&self, now: Instant, jumps: u64) {
        *self.lock() = Beat {
            heard: Some(now),
            jumps,
            trouble: None,
        };
    }

    /// The watch was heard of. After too long a silence that is not enough: what has changed meanwhile
    /// is still to come, and nobody knows when all of it is here. Then only a list helps.
    pub(super) fn heard(&self, now: Instant) {
        let jumps = self.jumps();
        let mut beat = self.lock();
        beat.trouble = None;
        if beat.is_alive(now, jumps) && beat.heard.is_some() {
            beat.heard = Some(now);
        }
    }

    /// The watch fails.
    pub(crate) fn fails(&self, why: &str) {
        self.lock().trouble = Some(why.into());
    }

    /// Whether what is cached may be decided from. What has never been listed is not asked about here.
    pub fn is_alive(&self, now: Instant) -> bool {
        let jumps = self.jumps();
        self.lock().is_alive(now, jumps)
    }

    /// Why nothing is heard, if too little is.
    pub fn silence(&self, now: Instant) -> Option<Arc<str>> {
        let jumps = self.jumps();
        let beat = self.lock();
        if beat.is_alive(now, jumps) {
            return None;
        }
        let why = || "the API server says nothing".into();
        Some(beat.trouble.clone().unwrap_or_else(why))
    }

    /// For how long nothing was heard. None: it was never listed.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let heard = self.lock().heard?;
        Some(now.saturating_duration_since(heard))
    }

    /// A panic while it was locked leaves it whole.
    fn lock(&self) -> MutexGuard<'_, Beat> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::observe::clock::SetClock;

    #[test]
    fn a_watch_that_is_not_heard_of_for_long_counts_no_more_until_everything_is_listed() {
        let (pulse, start) = (Pulse::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        // Before it was listed, others say so.
        assert_eq!((pulse.silence(after(900)), pulse.age(start)), (None, None));
        pulse.listed(start, 0);
        pulse.heard(after(100));
        pulse.fails("cannot watch gates: refused");
        assert_eq!(pulse.silence(after(280)), None);
        let why = pulse.silence(after(281));
        assert_eq!(why.as_deref(), Some("cannot watch gates: refused"));
        assert_eq!(pulse.age(after(281)), Some(Duration::from_secs(181)));
        // It is watched again; what happened meanwhile comes after that.
        pulse.heard(after(282));
        let why = pulse.silence(after(282));
        assert_eq!(why.as_deref(), Some("the API server says nothing"));
        pulse.listed(after(283), 0);
        assert_eq!(pulse.silence(after(463)), None);
        assert!(!pulse.is_alive(after(464)));
    }

    #[test]
    fn after_a_machine_slept_everything_is_listed_again() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let clock = Arc::new(SetClock::new(at(0)));
        let jumps = Arc::new(Jumps::new(clock.clone()));
        let (pulse, now) = (Pulse::default(), Instant::now());
        pulse.heed(Arc::clone(&jumps));
        pulse.listed(now, pulse.jumps());
        assert!(pulse.is_alive(now));
        clock.step(at(3600));
        assert!(!pulse.is_alive(now));
        pulse.heard(now);
        // A list that was begun before.
        pulse.listed(now, 0);
        assert!(!pulse.is_alive(now));
        pulse.listed(now, pulse.jumps());
        assert!(pulse.is_alive(now));
    }
}
