//! What to look at, when, and in which order.
//!
//! Events only wake: after each event, whatever it is, the queue holds the object once, to be looked at.
//! Of the work that is due, the more urgent comes first: people before what goes out, that before gates,
//! gates before gatekeepers, because the API server takes fewer writes a second than many gates that change
//! together need. Of what is equally urgent, the namespace with the fewest looks under way comes first
//! ([`due`]), and then what was due first. How many looks may be under way is limited ([`places`]). Due
//! instants are wall-clock instants, so that they follow a clock that is set.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cluster::key::{Cluster, Work};
use crate::cluster::kind::{Kind, Urgency};
use crate::observe::clock::Clock;

mod due;
mod places;

use due::{Due, Entry};
use places::Places;

/// How urgent a look is that nobody has asked for.
pub(crate) fn urgency(kind: Kind) -> Urgency {
    kind.look().map_or(Urgency::Report, |look| look.urgency)
}

/// The clock counts as set back if it went back by at least this much: less is noise.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// Which places a look takes: if one object hangs, others of its kind on the same cluster probably hang,
/// too.
type Lane = (Cluster, Kind);

fn lane(work: &Work) -> Lane {
    (work.cluster.clone(), work.kind)
}

/// The queue itself, without a clock: a pure structure.
#[derive(Debug)]
pub struct Queue {
    /// The latest instant at which anything was asked for.
    latest: Timestamp,
    /// What is not due yet, by instant.
    waiting: BTreeSet<Entry>,
    /// What is due, by urgency, cluster and kind: if there is no place left for a cluster and kind, all of
    /// its work is left out in one step. Those with nothing due are not in it.
    ready: BTreeMap<(Urgency, Lane), Due>,
    /// Where each piece of work is in the two above.
    place: HashMap<Work, (Urgency, Timestamp)>,
    /// What is being looked at: it is not handed out a second time until that ends.
    taken: Places,
}

impl Queue {
    /// An empty queue, with this limit for looks at once.
    pub fn new(limit: usize) -> Self {
        Self {
            latest: Timestamp::MIN,
            waiting: BTreeSet::new(),
            ready: BTreeMap::new(),
            place: HashMap::new(),
            taken: Places::new(limit),
        }
    }

    /// Has `work` looked at, at `due` at the latest. If it is queued already, the earlier instant and the
    /// greater urgency are kept.
    pub fn push(&mut self, work: Work, urgency: Urgency, due: Timestamp) {
        let (urgency, due) = match self.remove(&work) {
            Some((queued, at)) => (queued.min(urgency), at.min(due)),
            None => (urgency, due),
        };
        self.place.insert(work.clone(), (urgency, due));
        self.waiting.insert((due, work));
    }

    /// The most urgent piece of work that is due, is not being looked at, and has a free place.
    pub fn take(&mut self, now: Timestamp) -> Option<Work> {
        self.notice(now);
        while let Some((due, _)) = self.waiting.first()
            && *due <= now
            && let Some((due, work)) = self.waiting.pop_first()
        {
            let urgency = self
                .place
                .get(&work)
                .map_or(Urgency::Report, |place| place.0);
            let ready = self.ready.entry((urgency, lane(&work))).or_default();
            ready.insert((due, work));
        }
        let (urgency, work) = self.next()?;
        self.remove(&work);
        self.taken.take(work.clone(), urgency);
        Some(work)
    }

    /// What is to be taken next, independent of how much is due: the first of a namespace, after skipping
    /// work that is queued again while it is being looked at.
    fn next(&self) -> Option<(Urgency, Work)> {
        let mut next: Option<(Urgency, (usize, &Entry))> = None;
        for ((urgency, lane), due) in &self.ready {
            if next.is_some_and(|(found, _)| found < *urgency) {
                break;
            }
            if !self.taken.admits(lane, *urgency) {
                continue;
            }
            let under_way = |work: &Work| self.taken.beside(work, *urgency);
            let first = due.next(under_way, |work| self.taken.holds(work));
            let first = first.map(|first| (*urgency, first));
            next = [next, first].into_iter().flatten().min();
        }
        next.map(|(urgency, (_, (_, work)))| (urgency, work.clone()))
    }

    /// The look at `work` has ended.
    pub fn done(&mut self, work: &Work) {
        self.taken.leave(work);
    }

    /// The look at `work` takes longer than most looks: others may begin.
    pub fn slow(&mut self, work: &Work) {
        self.taken.slow(work);
    }

    /// `work` is gone and need not be looked at any more. Returns false if it is being looked at now;
    /// then it is looked at once more after that, at `now`.
    pub fn forget(&mut self, work: &Work, now: Timestamp) -> bool {
        if self.taken.holds(work) {
            self.push(work.clone(), Urgency::Report, now);
            return false;
        }
        self.remove(work);
        true
    }

    /// When the next piece of work becomes due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// How many pieces of work are due.
    pub fn backlog(&self) -> usize {
        self.place.len() - self.waiting.len()
    }

    /// Whether more is due than is being looked at now. Work that waits for something that hangs does not
    /// count.
    pub fn busy(&self) -> bool {
        !self.ready.is_empty() && self.taken.quick() > 0
    }

    /// Whether anything is being looked at.
    pub fn looking(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Once the clock was set back, everything that waits for an instant is due: that instant was chosen
    /// at a time that, by the new clock, is in the future.
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

    fn remove(&mut self, work: &Work) -> Option<(Urgency, Timestamp)> {
        let (urgency, due) = self.place.remove(work)?;
        let (entry, place) = ((due, work.clone()), (urgency, lane(work)));
        self.waiting.remove(&entry);
        if let Some(ready) = self.ready.get_mut(&place) {
            ready.remove(&entry);
            if ready.is_empty() {
                self.ready.remove(&place);
            }
        }
        Some((urgency, due))
    }
}

/// The queue, shared between those who find work and those who do it.
pub struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl Shared {
    /// See [`Queue::new`].
    pub fn new(limit: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(limit)),
            changed: Notify::new(),
        }
    }

    /// See [`Queue::push`].
    pub fn push(&self, work: Work, urgency: Urgency, due: Timestamp) {
        self.queue.lock().push(work, urgency, due);
        self.changed.notify_one();
    }

    /// See [`Queue::forget`].
    pub fn forget(&self, work: &Work, now: Timestamp) -> bool {
        let forgotten = self.queue.lock().forget(work, now);
        self.changed.notify_one();
        forgotten
    }

    /// See [`Queue::done`].
    pub fn done(&self, work: &Work) {
        self.queue.lock().done(work);
        self.changed.notify_one();
    }

    /// See [`Queue::slow`].
    pub fn slow(&self, work: &Work) {
        self.queue.lock().slow(work);
        self.changed.notify_one();
    }

    /// See [`Queue::busy`].
    pub fn busy(&self) -> bool {
        self.queue.lock().busy()
    }

    /// See [`Queue::backlog`].
    pub fn backlog(&self) -> usize {
        self.queue.lock().backlog()
    }

    /// See [`Queue::looking`].
    pub fn looking(&self) -> bool {
        self.queue.lock().looking()
    }

    /// Waits for the next piece of work.
    pub async fn next(&self, clock: &dyn Clock) -> Work {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut queue = self.queue.lock();
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
}

#[cfg(test)]
mod tests;
