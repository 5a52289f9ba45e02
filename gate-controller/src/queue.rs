//! What to look at, when, and in which order.
//!
//! Events only wake: whatever happened, the queue holds that an object is to be looked at, once.
//! Of what is due, the more urgent comes first, then what was due first: people before what goes
//! out, that before gates, gates before gatekeepers, because the API server takes fewer writes a
//! second than a herd of gates that change together asks for. Due instants are wall-clock instants, so that a
//! clock that is set is obeyed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::clock::Clock;

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
    /// What is due, by urgency, then by instant.
    ready: BTreeSet<(Urgency, Timestamp, W)>,
    /// Where each piece of work is in the two above.
    place: HashMap<W, (Urgency, Timestamp)>,
    /// What somebody is looking at: it is not handed out a second time meanwhile.
    taken: HashSet<W>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            latest: Timestamp::MIN,
            waiting: BTreeSet::new(),
            ready: BTreeSet::new(),
            place: HashMap::new(),
            taken: HashSet::new(),
        }
    }
}

impl<W: Clone + Ord + Hash> Queue<W> {
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

    /// The most urgent piece of work that is due and that nobody is looking at.
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
            self.ready.insert((urgency, due, work));
        }
        let next = self
            .ready
            .iter()
            .find(|(_, _, work)| !self.taken.contains(work))
            .cloned();
        let (_, _, work) = next?;
        self.remove(&work);
        self.taken.insert(work.clone());
        Some(work)
    }

    /// Whoever took `work` is done with it.
    pub fn done(&mut self, work: &W) {
        self.taken.remove(work);
    }

    /// `work` is gone: nobody is to look at it any more. Returns false where somebody does just
    /// now; then it is looked at once more after that, at `now`.
    pub fn forget(&mut self, work: &W, now: Timestamp) -> bool {
        if self.taken.contains(work) {
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
        self.ready.len()
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
        self.waiting.remove(&(due, work.clone()));
        self.ready.remove(&(urgency, due, work.clone()));
        Some((urgency, due))
    }
}

/// The queue, shared between those who find work and those who do it.
pub struct Shared<W> {
    queue: Mutex<Queue<W>>,
    changed: Notify,
}

impl<W> Default for Shared<W> {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            changed: Notify::new(),
        }
    }
}

impl<W: Clone + Ord + Hash> Shared<W> {
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
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn people_come_first_then_what_goes_out_then_gates_then_reports() {
        let mut queue = Queue::default();
        queue.push("delivery", Urgency::Delivery, at(3));
        queue.push("report", Urgency::Report, at(1));
        queue.push("gate", Urgency::Gate, at(2));
        queue.push("person", Urgency::Person, at(3));
        let order: Vec<_> = std::iter::from_fn(|| queue.take(at(3))).collect();
        assert_eq!(order, ["person", "delivery", "gate", "report"]);
    }

    #[test]
    fn nothing_is_looked_at_twice_at_once_nor_forgotten() {
        let mut queue = Queue::default();
        queue.push("gate", Urgency::Gate, at(1));
        assert!(!queue.looking());
        assert_eq!(queue.take(at(1)), Some("gate"));
        assert!(queue.looking());
        queue.push("gate", Urgency::Gate, at(1));
        assert_eq!(queue.take(at(1)), None);
        queue.done(&"gate");
        assert!(!queue.looking());
        assert_eq!(queue.take(at(1)), Some("gate"));
    }

    #[test]
    fn what_is_gone_is_forgotten_unless_somebody_looks_at_it() {
        let mut queue = Queue::default();
        queue.push("gate", Urgency::Gate, at(10));
        assert!(queue.forget(&"gate", at(1)));
        assert_eq!((queue.take(at(20)), queue.next_due()), (None, None));
        queue.push("gate", Urgency::Gate, at(1));
        assert_eq!(queue.take(at(20)), Some("gate"));
        assert!(!queue.forget(&"gate", at(20)));
        queue.done(&"gate");
        assert_eq!(queue.take(at(20)), Some("gate"));
    }

    #[test]
    fn what_is_due_later_waits() {
        let mut queue = Queue::default();
        queue.push("gate", Urgency::Gate, at(10));
        assert_eq!((queue.take(at(9)), queue.next_due()), (None, Some(at(10))));
        queue.push("gate", Urgency::Report, at(5));
        assert_eq!(queue.next_due(), Some(at(5)));
        assert_eq!(queue.take(at(5)), Some("gate"));
        assert_eq!((queue.take(at(20)), queue.next_due()), (None, None));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_everything_due() {
        let mut queue = Queue::default();
        assert_eq!(queue.take(at(100)), None);
        queue.push("gate", Urgency::Gate, at(200));
        assert_eq!(queue.take(at(99)), None);
        assert_eq!(queue.take(at(50)), Some("gate"));
        queue.done(&"gate");
        queue.push("gate", Urgency::Gate, at(70));
        assert_eq!((queue.take(at(50)), queue.next_due()), (None, Some(at(70))));
    }

    proptest! {
        /// Against the obvious structure: a list that is searched.
        #[test]
        fn it_hands_out_the_most_urgent_that_is_due(
            pushes in prop::collection::vec((0u8..8, 0u8..4, 0i64..20), 0..40),
            now in 0i64..20,
        ) {
            let levels = [Urgency::Person, Urgency::Delivery, Urgency::Gate, Urgency::Report];
            let urgency = |n| levels[usize::from(n)];
            let mut queue = Queue::default();
            let mut model: BTreeMap<u8, (Urgency, i64)> = BTreeMap::new();
            for (work, urgent, due) in pushes {
                queue.push(work, urgency(urgent), at(due));
                let place = model.entry(work).or_insert((urgency(urgent), due));
                *place = (place.0.min(urgency(urgent)), place.1.min(due));
            }
            let mut expected: Vec<_> = model
                .iter()
                .filter(|(_, (_, due))| *due <= now)
                .map(|(work, (urgency, due))| (*urgency, *due, *work))
                .collect();
            expected.sort_unstable();
            let taken: Vec<u8> = std::iter::from_fn(|| queue.take(at(now))).collect();
            prop_assert_eq!(taken, expected.into_iter().map(|place| place.2).collect::<Vec<_>>());
        }
    }
}
