//! Whose turn it is: how many requests there are at once, so that those who are slow or dead delay
//! nobody else.
//!
//! What comes in: requests, each with its host. What goes out: what came of them.
//!
//! There are two lanes, each with a bound for all and a bound for each host. A request begins in
//! the quick one, and leaves it after [`QUICK`] at the latest: for the slow lane, if that has room,
//! else it is given up and begins anew once that has. Whoever was slow the last time begins in the
//! slow lane. So nobody holds a quick turn for longer than [`QUICK`], and nobody who is known to be
//! slow holds one at all: who answers in time waits for others who do, and for no one else.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use reqwest::Url;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Limits;

/// Who answers within this is quick.
const QUICK: Duration = Duration::from_secs(1);
/// How many of the slow are known. With more all are forgotten, and have to show it again.
const MOST_KNOWN: usize = 16_384;

/// The turns of everybody.
pub(super) struct Turns {
    quick: Lane,
    slow: Lane,
    known_slow: Mutex<HashSet<u64>>,
}

/// A number of turns, and a smaller one for each host.
struct Lane {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// What is held while a request is under way. None of a semaphore that is closed, which is never
/// so: there would be no limit to keep.
type Turn = [Option<OwnedSemaphorePermit>; 2];

impl Turns {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            quick: Lane::new(limits.in_flight, limits.per_host),
            slow: Lane::new(limits.slow, limits.per_host),
            known_slow: Mutex::default(),
        }
    }

    /// Makes a request to `url` when it is its turn. It may be begun twice.
    pub(super) async fn take<T, Asking>(&self, url: &Url, request: impl Fn() -> Asking) -> T
    where
        Asking: Future<Output = T>,
    {
        let (who, host) = (hash(url), host(url));
        let is_slow = self.known_slow().contains(&who);
        if !is_slow && let Some(outcome) = self.quickly(who, &host, &request).await {
            return outcome;
        }
        let _turn = self.slow.turn(&host).await;
        let mut asked = pin!(request());
        match timeout(QUICK, &mut asked).await {
            Ok(outcome) => {
                self.known_slow().remove(&who);
                outcome
            }
            Err(_) => asked.await,
        }
    }

    /// In the quick lane first. None: it has to begin anew in the slow one, which is full.
    async fn quickly<T, Asking>(
        &self,
        who: u64,
        host: &str,
        request: impl Fn() -> Asking,
    ) -> Option<T>
    where
        Asking: Future<Output = T>,
    {
        let turn = self.quick.turn(host).await;
        let mut asked = pin!(request());
        if let Ok(outcome) = timeout(QUICK, &mut asked).await {
            return Some(outcome);
        }
        self.note_slow(who);
        let _turn = self.slow.turn_at_once(host)?;
        drop(turn);
        Some(asked.await)
    }

    fn note_slow(&self, who: u64) {
        let mut known = self.known_slow();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(who);
    }

    fn known_slow(&self) -> MutexGuard<'_, HashSet<u64>> {
        lock(&self.known_slow)
    }
}

impl Lane {
    fn new(all: usize, per_host: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            per_host,
            hosts: Mutex::default(),
        }
    }

    /// Waits for a turn: first among those who ask the same host, so that the many who wait for one
    /// host take no turn from the others.
    async fn turn(&self, host: &str) -> Turn {
        let one = self.host(host).acquire_owned().await.ok();
        let two = Arc::clone(&self.all).acquire_owned().await.ok();
        [one, two]
    }

    /// A turn, if there is one and nobody waits for it.
    fn turn_at_once(&self, host: &str) -> Option<Turn> {
        let one = self.host(host).try_acquire_owned().ok()?;
        let two = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some([Some(one), Some(two)])
    }

    fn host(&self, name: &str) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.get(name).and_then(Weak::upgrade) {
            return host;
        }
        hosts.retain(|_, host| host.strong_count() > 0);
        let host = Arc::new(Semaphore::new(self.per_host));
        hosts.insert(name.to_owned(), Arc::downgrade(&host));
        host
    }
}

/// Who is asked for the very same.
fn hash(url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// Who is asked. Two ports of one machine are two servers.
fn host(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// A panic while it was locked leaves a map that can be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
