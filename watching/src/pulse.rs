//! Whether a watch is alive: whether what changes on the API server is still seen here.
//!
//! What comes in: each sign of life of a watch, and each failure. What goes out: since when nothing was
//! heard. What was read may be used for decisions for a while after that, and not for ever: a person may
//! have closed a gate since then.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long nothing may be heard of what gates are decided from before it counts no more. The API
/// server sends a bookmark about every minute, the client gives a silent connection up after two and a
/// half, and a watch is begun again after two.
pub const SILENCE: Duration = Duration::from_secs(180);

/// Counts the jumps of the clock: somebody set it, or the machine slept, which heard nothing in that time
/// and does not know how long it was.
pub trait Jumps: fmt::Debug + Send + Sync {
    /// How many there were, up to this very moment.
    fn count(&self) -> u64;

    /// Waits until there were more than `known`.
    fn beyond(&self, known: u64) -> BoxFuture<'_, ()>;
}

/// When a watch was heard of last.
#[derive(Debug)]
pub struct Pulse {
    /// How long nothing may be heard before what was read counts no more.
    silence: Duration,
    /// For how long what was read counts after a jump, until it is listed again.
    grace: Duration,
    beat: Mutex<Beat>,
    jumps: OnceLock<Arc<dyn Jumps>>,
}

#[derive(Debug, Default)]
struct Beat {
    /// None: nothing has been listed yet.
    heard: Option<Instant>,
    /// Until when what was read counts, if nothing more is heard.
    until: Option<Instant>,
    /// How often the clock had jumped when the last list was begun.
    jumps: u64,
    /// Why it fails, since it was heard of last.
    trouble: Option<Arc<str>>,
}

impl Beat {
    fn is_alive(&self, now: Instant, jumps: u64) -> bool {
        self.until.is_none_or(|until| now <= until) && self.jumps == jumps
    }
}

/// Of what gates are decided from: after a jump nothing of it counts.
impl Default for Pulse {
    fn default() -> Self {
        Self::new(SILENCE, Duration::ZERO)
    }
}

impl Pulse {
    /// What was read counts for `silence` after the last sign of life, and for `grace` after a jump.
    pub fn new(silence: Duration, grace: Duration) -> Self {
        Self {
            silence,
            grace,
            beat: Mutex::default(),
            jumps: OnceLock::new(),
        }
    }

    /// From now on only what was listed since the clock jumped last is relied on.
    pub fn heed(&self, jumps: Arc<dyn Jumps>) {
        // The second one brings the same.
        let _ = self.jumps.set(jumps);
    }

    /// How often the clock has jumped.
    pub fn jumps(&self) -> u64 {
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
    pub fn listed(&self, now: Instant, jumps: u64) {
        *self.beat.lock() = Beat {
            heard: Some(now),
            until: Some(now + self.silence),
            jumps,
            trouble: None,
        };
    }

    /// The watch was heard of. After a silence that was too long, that is not enough: what has changed
    /// during it is still to come, and it is not known when all of it has arrived. Then only a list
    /// helps.
    pub(super) fn heard(&self, now: Instant) {
        let jumps = self.jumps();
        let mut beat = self.beat.lock();
        beat.trouble = None;
        if beat.is_alive(now, jumps) && beat.heard.is_some() {
            beat.heard = Some(now);
            beat.until = Some(now + self.silence);
        }
    }

    /// The clock has jumped. Says whether what was read counts for a while all the same.
    pub(super) fn jumped(&self, now: Instant) -> bool {
        let mut beat = self.beat.lock();
        beat.until = beat.until.map(|until| until.min(now + self.grace));
        !self.grace.is_zero()
    }

    /// What was read counts until then, although nothing is heard.
    pub(super) fn excuse(&self, until: Instant) {
        self.beat.lock().until = Some(until);
    }

    /// Until when what was read counts, if nothing more is heard. None: nothing was listed yet.
    pub(super) fn until(&self) -> Option<Instant> {
        self.beat.lock().until
    }

    /// The watch fails.
    pub fn fails(&self, why: &str) {
        self.beat.lock().trouble = Some(why.into());
    }

    /// Why it fails, since it was heard of last.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.beat.lock().trouble.clone()
    }

    /// Whether what was read may be decided from. What has never been listed is not asked about here.
    pub fn is_alive(&self, now: Instant) -> bool {
        let jumps = self.jumps();
        self.beat.lock().is_alive(now, jumps)
    }

    /// Why nothing is heard, if too little is.
    pub fn silence(&self, now: Instant) -> Option<Arc<str>> {
        if self.is_alive(now) {
            return None;
        }
        let why = || "the API server says nothing".into();
        Some(self.trouble().unwrap_or_else(why))
    }

    /// For how long nothing was heard. None: it was never listed.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let heard = self.beat.lock().heard?;
        Some(now.saturating_duration_since(heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Signals;

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
        // It is watched again; what happened in between comes after that.
        pulse.heard(after(282));
        let why = pulse.silence(after(282));
        assert_eq!(why.as_deref(), Some("the API server says nothing"));
        pulse.listed(after(283), 0);
        assert_eq!(pulse.silence(after(463)), None);
        assert!(!pulse.is_alive(after(464)));
    }

    #[test]
    fn after_a_machine_slept_everything_is_listed_again() {
        let signals = Arc::new(Signals::default());
        let (pulse, now) = (Pulse::default(), Instant::now());
        pulse.heed(signals.clone());
        pulse.listed(now, pulse.jumps());
        assert!(pulse.is_alive(now));
        signals.list_again();
        assert!(!pulse.is_alive(now));
        pulse.heard(now);
        // A list that was begun before.
        pulse.listed(now, 0);
        assert!(!pulse.is_alive(now));
        pulse.listed(now, pulse.jumps());
        assert!(pulse.is_alive(now));
    }
}
