//! Whose turn it is: how many requests there are at once, so that those who are slow or dead delay
//! nobody else.
//!
//! What comes in: requests, each with its host and the namespace that it is made for. What goes out:
//! their results, and the turn, which is kept as long as the reply: there are never more bodies in memory
//! than turns.
//!
//! There are two lanes, each with a limit for all, one for each namespace, and one for each host that a
//! namespace asks. A request begins in the quick lane, and leaves it after [`QUICK`] at the latest: for
//! the slow lane if that has room; otherwise it is given up, and begins again once the slow lane has
//! room. A request to an address that was slow the last time begins in the slow lane. So no request holds
//! a quick turn for longer than [`QUICK`], and requests to addresses that are known to be slow hold none:
//! quick requests wait only for other quick requests.
//!
//! A request that is sent once cannot be given up to begin again. Such requests have a separate lane, and
//! keep their turn there until they end: no request that reads waits for one that changes something, and
//! none that changes something waits for one that reads.
//!
//! That is true of requests. A reply keeps the turn until it is read, so that requests whose bodies wait
//! to be read have separate turns: other [`Turns`], with fewer places. They wait for each other, and a
//! reply that is read at once waits for none of them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use reqwest::Url;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::places::{Place, Places, Shares};

/// A request that is answered within this is quick.
const QUICK: Duration = Duration::from_secs(1);
/// How many slow addresses are remembered. If there are more, all are forgotten, until they are slow
/// again.
const MOST_KNOWN: usize = 16_384;

/// The limits of one request, and how many requests there may be whose replies are read at once. Those
/// whose bodies wait to be read are a third as many in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first look-up of the name to the last byte of the body.
    pub time: Duration,
    /// The length of the body, in bytes.
    pub body: usize,
    /// Requests at once that were not slow before.
    pub in_flight: usize,
    /// Slow requests at once.
    pub slow: usize,
    /// In each of these lanes, requests at once for one namespace.
    pub per_namespace: usize,
    /// Of those, requests at once to one host.
    pub per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            body: 1 << 20,
            // As many bodies may be in memory, and a third as many more.
            in_flight: 18,
            slow: 12,
            per_namespace: 6,
            per_host: 4,
        }
    }
}

impl Limits {
    /// For those whose bodies wait to be read.
    pub(crate) fn of_waiting_bodies(self) -> Self {
        Self {
            in_flight: self.in_flight.div_ceil(3),
            slow: self.slow.div_ceil(3),
            per_namespace: self.per_namespace.div_ceil(3),
            per_host: self.per_host.div_ceil(3),
            ..self
        }
    }
}

/// The turns of everybody.
pub(crate) struct Turns {
    quick: Lane,
    slow: Lane,
    known_slow: Mutex<HashSet<u64>>,
}

/// A number of turns, a smaller one for each namespace, and one for each host that it asks.
pub(crate) struct Lane {
    places: Places,
    hosts: Shares,
}

/// Who asks whom.
pub(crate) struct Pair<'a> {
    namespace: &'a str,
    /// The two as one text.
    both: String,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(namespace: &'a str, url: &Url) -> Self {
        // No namespace has a space in it.
        let both = format!("{namespace} {}", host(url));
        Self { namespace, both }
    }
}

/// What is held while a request is under way, and while its reply is.
#[derive(Debug)]
pub(crate) struct Turn {
    _host: Option<OwnedSemaphorePermit>,
    _place: Place,
}

impl Turns {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            quick: Lane::new(limits.in_flight, limits),
            slow: Lane::new(limits.slow, limits),
            known_slow: Mutex::default(),
        }
    }

    /// Makes a request to `url` for a namespace when it is its turn. It may be started twice.
    pub(crate) async fn take<T, Asking>(
        &self,
        namespace: &str,
        url: &Url,
        request: impl Fn() -> Asking,
    ) -> (T, Turn)
    where
        Asking: Future<Output = T>,
    {
        let who = hash(url);
        let pair = &Pair::new(namespace, url);
        let is_slow = self.known_slow().contains(&who);
        if !is_slow && let Some(outcome) = self.quickly(who, pair, &request).await {
            return outcome;
        }
        let turn = self.slow.turn(pair).await;
        let mut asked = pin!(request());
        let outcome = match timeout(QUICK, &mut asked).await {
            Ok(outcome) => {
                self.known_slow().remove(&who);
                outcome
            }
            Err(_) => asked.await,
        };
        (outcome, turn)
    }

    /// In the quick lane first. None: it has to start again in the slow lane, which is full.
    async fn quickly<T, Asking>(
        &self,
        who: u64,
        pair: &Pair<'_>,
        request: impl Fn() -> Asking,
    ) -> Option<(T, Turn)>
    where
        Asking: Future<Output = T>,
    {
        let quick = self.quick.turn(pair).await;
        let mut asked = pin!(request());
        if let Ok(outcome) = timeout(QUICK, &mut asked).await {
            return Some((outcome, quick));
        }
        self.note_slow(who);
        let slow = self.slow.turn_at_once(pair)?;
        drop(quick);
        Some((asked.await, slow))
    }

    fn note_slow(&self, who: u64) {
        let mut known = self.known_slow();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(who);
    }

    fn known_slow(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.known_slow.lock()
    }
}

impl Lane {
    pub(crate) fn new(all: usize, limits: Limits) -> Self {
        Self {
            places: Places::new(all, limits.per_namespace),
            hosts: Shares::new(limits.per_host),
        }
    }

    /// Waits for a turn: first among the requests of the namespace to the same host, so that the many
    /// that wait for one host take no turn from the others.
    pub(crate) async fn turn(&self, pair: &Pair<'_>) -> Turn {
        let host = self.hosts.of(&pair.both).acquire_owned().await.ok();
        Turn {
            _host: host,
            _place: self.places.take(pair.namespace).await,
        }
    }

    /// A turn, if one is free and nobody waits for it.
    fn turn_at_once(&self, pair: &Pair<'_>) -> Option<Turn> {
        let host = self.hosts.of(&pair.both).try_acquire_owned().ok()?;
        Some(Turn {
            _host: Some(host),
            _place: self.places.take_at_once(pair.namespace)?,
        })
    }
}

/// A hash of the whole address.
fn hash(url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// The host and port. Two ports of one machine are two servers.
fn host(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests;
