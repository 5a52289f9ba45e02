//! The artifact store: copies of other sources' artifacts, verified, kept and served.
//!
//! What comes in: whose artifact, its digest, and the address where it is now. What goes out: its
//! [`State`], which is read without I/O, and the file itself, to everybody who knows its address. Who
//! wants an artifact, and for how long, is decided elsewhere: nothing here knows the objects that it is
//! for. It may use [`lease`](crate::lease), the counters in [`tell`](crate::tell), the clock in
//! [`observe`](crate::observe), and [`cluster`](crate::cluster).
//!
//! ```text
//!  fetch ──▶ download, hashed as it comes ──▶ .incoming/… ──▶ renamed to its place ──▶ index ──▶ served
//!            egress, limits                    on the disk      by key and digest        in memory
//! ```
//!
//! It works only while this replica leads: then [`Store::run`] verifies the files in the folder, one by
//! one, and serves only what it has verified or written itself since then.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use parking_lot::Mutex;
use sluice_egress::Egress;
use sluice_egress::places::Places;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cluster::key::ObjectKey;
use crate::lease::Leadership;
use crate::observe::clock::Clock;
use crate::tell::counters::Counters;

mod digest;
mod fetch;
mod incoming;
mod index;
mod place;
mod server;
mod term;
#[cfg(test)]
mod tests;
mod verify;

pub use digest::{Digest, NoDigest};

use fetch::Wanted;
use index::Index;
use place::Folder;

/// Limits of a fetch, and of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The length of an artifact, in bytes.
    pub length: usize,
    /// How long a fetch may receive nothing.
    pub pause: Duration,
    /// How long a whole fetch may take. Waiting for a turn is not counted.
    pub time: Duration,
    /// Fetches at once.
    pub at_once: usize,
    /// Of these, those for one namespace.
    pub each: usize,
    /// The length of all artifacts of one namespace, in bytes.
    pub quota: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            length: 256 << 20,
            pause: Duration::from_secs(15),
            time: Duration::from_secs(300),
            at_once: 16,
            each: 4,
            quota: 2 << 30,
        }
    }
}

/// The state of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// This replica does not lead, or the folder cannot be used: whether the artifact is there is not
    /// known. [`Store::ready`] says which.
    NotReady,
    /// A file of its name is there, and has not been read yet.
    Verifying,
    /// Nobody has fetched it.
    Absent,
    /// It is being fetched, perhaps after a fetch that failed.
    Fetching(Option<Failure>),
    /// The last fetch failed. Another begins when it is asked for.
    Failed(Failure),
    /// It is there, its digest verified.
    Stored(Stored),
}

/// Why an artifact is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words that fit a status.
    pub why: String,
    /// When it failed.
    pub at: Timestamp,
    /// How often in a row.
    pub failures: u32,
}

/// An artifact that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its path below the server's address: `gatedsource/<namespace>/<name>/<file>`.
    pub path: String,
    /// Its digest.
    pub digest: Digest,
    /// How long it is, in bytes.
    pub size: u64,
    /// When it was stored. A restart does not change it.
    pub at: Timestamp,
}

/// News for the follower of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The names of the files in the folder are known, or it is known that the folder cannot be used.
    Changed,
    /// All of it has been verified.
    Ready,
    /// A fetch for this object has ended, a file of it was verified, or one was lost.
    Of(&'a ObjectKey),
}

/// Held by code that changes what is in the folder.
type Disk = tokio::sync::Mutex<()>;

/// Called with each news.
type Told = dyn Fn(News<'_>) + Send + Sync;

/// Artifacts, on a disk.
pub struct Store {
    folder: Folder,
    /// The host, and perhaps the port, where others reach the server.
    advertised: String,
    limits: Limits,
    egress: Egress,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    turns: Places,
    standing: Mutex<Standing>,
    /// Held while files are put into their places or removed, so that a file that was just put there is
    /// never removed.
    disk: Arc<Disk>,
    /// Notified when a file is not needed any more.
    left: Notify,
    told: OnceLock<Box<Told>>,
}

/// Whether it is known which files are there.
enum Standing {
    /// Not yet, or not on this replica.
    Closed {
        why: String,
    },
    /// Not before somebody has fixed something.
    Unusable {
        why: String,
    },
    Open(Open),
}

/// What is known while this replica leads.
struct Open {
    index: Index,
    /// Since when.
    since: Timestamp,
    /// Cancels what is under way.
    term: CancellationToken,
    leadership: Leadership,
}

impl Store {
    /// A store in the folder `path`, whose server others reach at `advertised`: a host, and a port
    /// unless it is 80. It does nothing before it [runs](Store::run).
    pub fn new(
        path: PathBuf,
        advertised: String,
        limits: Limits,
        egress: Egress,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            folder: Folder::new(path),
            advertised,
            limits,
            egress,
            clock,
            counters,
            turns: Places::new(limits.at_once, limits.each),
            standing: Mutex::new(Standing::Closed {
                why: term::NOT_LEADING.to_owned(),
            }),
            disk: Arc::default(),
            left: Notify::new(),
            told: OnceLock::new(),
        })
    }

    /// Calls `told` with each news. Only one can follow: the first that asks.
    pub fn follow(&self, told: impl Fn(News<'_>) + Send + Sync + 'static) {
        // A second follower is a defect that the first test shows: it is never called.
        let _ = self.told.set(Box::new(told));
    }

    /// The state of an artifact. No I/O.
    pub fn state(&self, key: &ObjectKey, digest: &Digest) -> State {
        self.when_open(|open| open.index.state(key, digest))
            .unwrap_or(State::NotReady)
    }

    /// An artifact, if it is there. No I/O.
    pub fn has(&self, key: &ObjectKey, digest: &Digest) -> Option<Stored> {
        match self.state(key, digest) {
            State::Stored(stored) => Some(stored),
            State::NotReady
            | State::Verifying
            | State::Absent
            | State::Fetching(_)
            | State::Failed(_) => None,
        }
    }

    /// Begins to fetch an artifact from `url`, unless it is there or being fetched, and does not wait for
    /// it. Returns its state at that moment. The [follower](Store::follow) is called when the fetch has
    /// ended, and decides how long to wait after a failure.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn fetch(self: &Arc<Self>, key: &ObjectKey, digest: &Digest, url: &str) -> State {
        let begun = self.when_open(|open| {
            let token = open.term.child_token();
            let begun = open.index.begin(key, digest, token.clone());
            (begun.then_some(token), open.index.state(key, digest))
        });
        let Some((begun, state)) = begun else {
            return State::NotReady;
        };
        if let Some(token) = begun {
            let wanted = Wanted {
                key: key.clone(),
                digest: digest.clone(),
                url: url.to_owned(),
                token,
            };
            tokio::spawn(Arc::clone(self).bring(wanted));
        }
        state
    }

    /// Keeps of `key` only these artifacts. Fetches of others are cancelled, and other files are removed
    /// a minute after they were last needed or served.
    pub fn retain(&self, key: &ObjectKey, keep: &[Digest]) {
        let now = self.clock.now();
        if self.when_open(|open| open.index.retain(key, keep, now)) == Some(true) {
            self.left.notify_one();
        }
    }

    /// Keeps nothing of `key`.
    pub fn forget(&self, key: &ObjectKey) {
        self.retain(key, &[]);
    }

    /// The objects that have any artifact, so that artifacts of objects that are gone can be forgotten.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.when_open(|open| open.index.keys()).unwrap_or_default()
    }

    /// Where others get an artifact: what goes into `status.artifact.url`.
    pub fn url_of(&self, stored: &Stored) -> String {
        format!("http://{}/{}", self.advertised, stored.path)
    }

    /// Whether it is known which files are there.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn ready(&self) -> Result<(), String> {
        match &*self.standing.lock() {
            Standing::Open(open) if open.leadership.left().is_some() => Ok(()),
            Standing::Open(_) => Err(term::NOT_LEADING.to_owned()),
            Standing::Closed { why } | Standing::Unusable { why } => Err(why.clone()),
        }
    }

    /// Why nothing can be stored until somebody has fixed it, if that is so.
    pub fn unusable(&self) -> Option<String> {
        match &*self.standing.lock() {
            Standing::Unusable { why } => Some(why.clone()),
            Standing::Open(_) | Standing::Closed { .. } => None,
        }
    }

    /// Since when anything of `key` has been waiting to be verified, if it has.
    pub fn verifying(&self, key: &ObjectKey) -> Option<Timestamp> {
        let since = |open: &mut Open| open.index.is_verifying(key).then_some(open.since);
        self.when_open(since).flatten()
    }

    /// The server, for everybody who knows an address.
    pub fn router(self: &Arc<Self>) -> Router {
        server::router(Arc::clone(self))
    }

    fn tell(&self, news: News<'_>) {
        if let Some(told) = self.told.get() {
            told(news);
        }
    }

    fn measure(&self) {
        let amount = self.when_open(|open| open.index.amount());
        let (files, bytes) = amount.unwrap_or_default();
        let counters = &self.counters;
        counters.artifacts.set(files.try_into().unwrap_or(i64::MAX));
        counters
            .artifact_bytes
            .set(bytes.try_into().unwrap_or(i64::MAX));
    }

    fn when_open<T>(&self, ask: impl FnOnce(&mut Open) -> T) -> Option<T> {
        match &mut *self.standing.lock() {
            Standing::Open(open) if open.leadership.left().is_some() => Some(ask(open)),
            Standing::Open(_) | Standing::Closed { .. } | Standing::Unusable { .. } => None,
        }
    }
}
