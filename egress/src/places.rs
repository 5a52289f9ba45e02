//! So many places for all, and fewer of them for each namespace: one team that fills its share
//! leaves places to the others.
//!
//! What comes in: who wants a place. What goes out: a [`Place`], held until it is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places, of which each namespace has a share.
pub struct Places {
    all: Arc<Semaphore>,
    shares: Shares,
}

/// A number of places for each name.
pub(crate) struct Shares {
    each: usize,
    /// For as long as somebody uses them.
    known: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place that is held. A part is `None` only if a semaphore was closed, which never happens: there
/// would be no limit to keep.
#[derive(Debug)]
pub struct Place {
    _share: Option<OwnedSemaphorePermit>,
    _one_of_all: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// `all` places, of which a namespace has at most `each`.
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            shares: Shares::new(each),
        }
    }

    /// Waits for a place: in the share of the namespace first, so that the many who wait there hold
    /// nothing that others wait for.
    pub async fn take(&self, namespace: &str) -> Place {
        let share = self.shares.of(namespace).acquire_owned().await.ok();
        let one_of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place {
            _share: share,
            _one_of_all: one_of_all,
        }
    }

    /// A place, if one is free and nobody waits for it.
    pub(crate) fn take_at_once(&self, namespace: &str) -> Option<Place> {
        let share = self.shares.of(namespace).try_acquire_owned().ok()?;
        let one_of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place {
            _share: Some(share),
            _one_of_all: Some(one_of_all),
        })
    }
}

impl Shares {
    /// So many places for each name.
    pub(crate) fn new(each: usize) -> Self {
        Self {
            each,
            known: Mutex::default(),
        }
    }

    /// The places of a name.
    pub(crate) fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut known = self.known.lock();
        if let Some(share) = known.get(name).and_then(Weak::upgrade) {
            return share;
        }
        known.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.each));
        known.insert(name.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_namespace_leaves_places_to_others() {
        let places = Places::new(3, 2);
        let _held = [places.take("apps").await, places.take("apps").await];
        assert!(places.take_at_once("apps").is_none());
        let mut third = pin!(places.take("apps"));
        assert!(poll!(&mut third).is_pending());
        let other = places.take("shop").await;
        assert!(places.take_at_once("web").is_none());
        drop(other);
        assert!(places.take_at_once("web").is_some());
    }

    #[tokio::test]
    async fn names_that_nobody_uses_are_forgotten() {
        let places = Places::new(100, 1);
        for n in 0..1_000 {
            drop(places.take(&format!("team-{n}")).await);
        }
        let known = places.shares.known.lock().len();
        assert_eq!(known, 1);
    }
}
