//! Whose turn it is to fetch: so many at once, and of each namespace fewer, so that one whose
//! upstreams are slow does not keep the others waiting.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::Limits;

pub(super) struct Turns {
    all: Semaphore,
    each: usize,
    namespaces: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// A turn. It is over when this is dropped.
pub(super) struct Turn<'a> {
    _all: Option<SemaphorePermit<'a>>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            all: Semaphore::new(limits.at_once),
            each: limits.each,
            namespaces: Mutex::default(),
        }
    }

    /// Waits for a turn of a namespace.
    pub(super) async fn wait(&self, namespace: &Arc<str>) -> Turn<'_> {
        // Its own first: what waits for that takes nothing from others. None is ever closed.
        let own = self.of(namespace).acquire_owned().await;
        let all = self.all.acquire().await;
        Turn {
            _all: all.ok(),
            _own: own.ok(),
        }
    }

    fn of(&self, namespace: &Arc<str>) -> Arc<Semaphore> {
        let mut all = self.namespaces.lock();
        if let Some(known) = all.get(namespace).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(self.each));
        all.insert(Arc::clone(namespace), Arc::downgrade(&turns));
        turns
    }
}
