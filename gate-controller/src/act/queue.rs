//! What to look at, when, and in which order.
//!
//! Events only wake: whatever happened, the queue holds that an object is to be looked at, once.
//! Of what is due, the more urgent comes first, then what was due first: people before what goes
//! out, that before gates, gates before gatekeepers, because the API server takes fewer writes a
//! second than a herd of gates that change together asks for. How many may be under way is bounded
//! ([`places`]). Due instants are wall-clock instants, so that a clock that is set is obeyed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::observe::clock::Clock;

mod places;
mod work;

pub use places::OfKind;
pub(crate) use work::urgency;

use places::Places;

/// How urgent a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// A person waits for it.
    Person,
    /// Something goes out.
    Delivery,
    /// Somebody decides by it.
    Gate,
    /// It is a report.
    Report,
    /// Whatever it is: the last look has taken long, and failed.
    Hung,
}

/// By how much the clock must have gone back to have been set: less is noise.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// The queue itself, without a clock: a pure structure.
#[derive(Debug)]
pub struct Queue<W> {
    /// The latest instant at which anything was asked for.
    latest: Timestamp,
    /// What is not due yet, by instant.
    waiting: BTreeSet<(Timestamp, W)>,
    /// What is due, by urgency and kind, then by instant: where a kind has no place left, all of it is
    /// left out in one step. Kinds of which nothing is due are not in it.
    ready: BTreeMap<(Urgency, &'static str), BTreeSet<(Timestamp, W)>>,
    /// Where each piece of work is in the two above.
    place: HashMap<W, (Urgency, Timestamp)>,
    /// What somebody is looking at: it is not handed out a second time meanwhile.
    taken: Places<W>,
}

impl<W: Clone + Ord + Hash + OfKind> Queue<W> {
    /// Nothing, of which so much may be looked at at once.
    pub fn new(limit: usize) -> Self {
        Self {
            latest: Timestamp::MIN,
            waiting: BTreeSet::new(),
            ready: BTreeMap::new(),
            place: HashMap::new(),
            taken: Places::new(limit),
        }
    }

    /// Have `work` looked at, at `due` at the latest. What is queued already keeps the earlier
    /// instant and the greater urgency.
    pub fn push(&mut self, work: W, urgency: Urgency, due: Timestamp) {
        let (urgency, due) = match self.remove(&work) {
            Some((queued, at)) => (queued.min(urgency), at.min(due)),
            None => (urgency, due),
        };
        self.place.insert(work.clone(), (urgency, due));
        self.waiting.insert((due, work));
    }

    /// The most urgent piece of work that is due, that nobody is looking at, and that there is a place
    /// for.
    pub fn take(&mut self, now: Timestamp) -> Option<W> {
        self.notice(now);
        while let Some((due, _)) = self.waiting.first()
            && *due <= now
            && let Some((due, work)) = self.waiting.pop_first()
        {
            let urgency = self
                .place
                .get(&work)
                .map_or(Urgency::Report, |place| place.0);
            let ready = self.ready.entry((urgency, work.kind())).or_default();
            ready.insert((due, work));
        }
        let (urgency, work) = self.next()?;
        self.remove(&work);
        self.taken.take(work.clone(), urgency);
        Some(work)
    }

    /// What is to be taken next, however much is due: of each kind the first, after what is queued
    /// again while somebody is looking at it.
    fn next(&self) -> Option<(Urgency, W)> {
        let mut next: Option<(Urgency, &(Timestamp, W))> = None;
        for ((urgency, kind), due) in &self.ready {
            if next.is_some_and(|(found, _)| found < *urgency) {
                break;
            }
            if !self.taken.admits(kind, *urgency) {
                continue;
            }
            let mut due = due.iter();
            let first = due.find(|(_, work)| !self.taken.holds(work));
            let first = first.map(|first| (*urgency, first));
            next = match (next, first) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        next.map(|(urgency, (_, work))| (urgency, work.clone()))
    }

    /// The look at `work` has ended.
    pub fn done(&mut self, work: &W) {
        self.taken.leave(work);
    }

    /// The look at `work` takes longer than most do: others may begin meanwhile.
    pub fn slow(&mut self, work: &W) {
        self.taken.slow(work);
    }

    /// `work` is gone: nobody is to look at it any more. Returns false where somebody does just
    /// now; then it is looked at once more after that, at `now`.
    pub fn forget(&mut self, work: &W, now: Timestamp) -> bool {
        if self.taken.holds(work) {
            self.push(work.clone(), Urgency::Report, now);
            return false;
        }
        self.remove(work);
        true
    }

    /// When the next piece of work is due that is not due yet.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// How many pieces of work are due.
    pub fn backlog(&self) -> usize {
        self.ready.values().map(BTreeSet::len).sum()
    }

    /// Whether more is due than is looked at just now. What waits for something that hangs does not
    /// count.
    pub fn busy(&self) -> bool {
        !self.ready.is_empty() && self.taken.quick() > 0
    }

    /// Whether somebody is looking at something.
    pub fn looking(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Once the clock was set back, what waits for an instant is due: what it was made to wait for
    /// was decided at an instant that has not come yet.
    fn notice(&mut self, now: Timestamp) {
        if self.latest.duration_since(now) > SET_BACK {
            for (_, work) in std::mem::take(&mut self.waiting) {
                if let Some((_, due)) = self.place.get_mut(&work) {
                    *due = now;
                }
                self.waiting.insert((now, work));
            }
            self.latest = now;
        }
        self.latest = self.latest.max(now);
    }

    fn remove(&mut self, work: &W) -> Option<(Urgency, Timestamp)> {
        let (urgency, due) = self.place.remove(work)?;
        let (entry, kind) = ((due, work.clone()), work.kind());
        self.waiting.remove(&entry);
        if let Some(ready) = self.ready.get_mut(&(urgency, kind)) {
            ready.remove(&entry);
            if ready.is_empty() {
                self.ready.remove(&(urgency, kind));
            }
        }
        Some((urgency, due))
    }
}

/// The queue, shared between those who find work and those who do it.
pub struct Shared<W> {
    queue: Mutex<Queue<W>>,
    changed: Notify,
}

impl<W: Clone + Ord + Hash + OfKind> Shared<W> {
    /// See [`Queue::new`].
    pub fn new(limit: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(limit)),
            changed: Notify::new(),
        }
    }

    /// See [`Queue::push`].
    pub fn push(&self, work: W, urgency: Urgency, due: Timestamp) {
        self.lock().push(work, urgency, due);
        self.changed.notify_one();
    }

    /// See [`Queue::forget`].
    pub fn forget(&self, work: &W, now: Timestamp) -> bool {
        let forgotten = self.lock().forget(work, now);
        self.changed.notify_one();
        forgotten
    }

    /// See [`Queue::done`].
    pub fn done(&self, work: &W) {
        self.lock().done(work);
        self.changed.notify_one();
    }

    /// See [`Queue::slow`].
    pub fn slow(&self, work: &W) {
        self.lock().slow(work);
        self.changed.notify_one();
    }

    /// See [`Queue::busy`].
    pub fn busy(&self) -> bool {
        self.lock().busy()
    }

    /// See [`Queue::backlog`].
    pub fn backlog(&self) -> usize {
        self.lock().backlog()
    }

    /// See [`Queue::looking`].
    pub fn looking(&self) -> bool {
        self.lock().looking()
    }

    /// Waits for the next piece of work.
    pub async fn next(&self, clock: &dyn Clock) -> W {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut queue = self.lock();
                if let Some(work) = queue.take(clock.now()) {
                    // There may be more, and a single notification wakes a single worker.
                    self.changed.notify_one();
                    return work;
                }
                queue.next_due()
            };
            match due {
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = clock.wait_until(due) => {}
                },
                None => changed.await,
            }
        }
    }

    /// A panic while the queue was locked leaves it as it was between two of its operations.
    fn lock(&self) -> MutexGuard<'_, Queue<W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
