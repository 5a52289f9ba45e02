//! Lists, then watches: what the API server holds of one kind, step by step.
//!
//! What comes in: an [`Api`] and a [`Pulse`]. What goes out: each [`Step`], for ever, with a pause after
//! each that failed; the pulse says when the watch was last heard of. Everything is listed again when the
//! clock has jumped, and when nothing was heard for too long. [`shared`] has watches that many use, as
//! long as somebody does. No other crate of ours is used.
//!
//! It works as kube's watcher, with two differences. It reports each sign of life, including bookmarks
//! and watches that last, so that a watch on which nothing happens can be distinguished from one that
//! nobody answers. And it lists again each time that the API server has forgotten the version from which
//! to continue, also if the API server says so before the watch begins.

use std::fmt::Debug;
use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{ListParams, ObjectList, WatchEvent, WatchParams};
use kube::core::Request;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{Config, DefaultBackoff, Error};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

mod failure;
mod guard;
pub mod one;
pub mod pages;
#[cfg(test)]
mod played;
mod pulse;
pub mod room;
pub mod shared;
#[cfg(test)]
mod tests;
mod trimmed;
mod used;

pub use failure::passes;
pub use guard::{Guard, Unreadable};
pub use pulse::{Jumps, Pulse, SILENCE};
pub use trimmed::{LAST_APPLIED, trim, trimmed, typed};

/// How long the API server may keep a watch open, in seconds. A new start is a sign of life, also where
/// no bookmarks are sent.
const LONGEST: u32 = 120;
/// How long a watch of what was listed before waits at most between two tries.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a watch has to last before that is a sign of life. Its start alone is not a sign: a proxy may
/// accept every watch, and end it at once.
const LASTS: Duration = Duration::from_secs(5);
/// How long to wait for a watch on which nothing comes, not even its end.
const PATIENCE: Duration = Duration::from_secs(150);

/// What came next.
pub enum Step<K> {
    /// A list is asked for.
    Begun,
    /// Some of it.
    Page(Vec<K>),
    /// That was all of it, as of this version. None: the version is no number.
    Listed(Option<u64>),
    /// An object was created or changed.
    Apply(K),
    /// An object was deleted.
    Delete(K),
    /// A watch has begun, which says nothing yet.
    Opened,
    /// Nothing has happened, but a change would be reported.
    Alive,
    /// The watch has ended, and has to be started again.
    Ended,
    /// The API server has refused a list or a watch, or cannot be reached. It is retried after a pause.
    Failed(Error),
    /// Nothing was heard for too long: what was read does not count any more. Everything is listed again.
    Silent,
}

/// A list and then a watch of one kind.
pub struct Watching<K> {
    api: Api<K>,
    config: Config,
    /// Only the metadata of the objects are asked for.
    is_of_metadata: bool,
    state: State<K>,
    pulse: Arc<Pulse>,
    delays: DefaultBackoff,
    /// The pause before the next try.
    pause: Duration,
    /// How many times the clock had jumped when the last list was begun.
    jumps: u64,
    /// How many lists were begun since the last complete one.
    lists: u32,
    /// A list is complete, and the reader has not taken it in yet.
    is_complete: bool,
    /// It was reported that nothing is heard.
    is_silent: bool,
}

type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

enum State<K> {
    Unlisted,
    /// The next page is to be asked for.
    Paging(Option<String>),
    /// The last page is here.
    Paged(String),
    /// It is to be watched from this version on.
    Listed(String),
    /// It is watched from there on.
    Open(String, Events<K>, Proof),
}

/// Whether a watch has shown that it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// It has only begun.
    None,
    /// It has lasted, and nothing has come on it.
    Lasts,
    /// Something has come on it.
    Speaks,
}

impl<K> Watching<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Nothing has been asked for yet. `pulse` says when it was last heard of.
    pub fn new(api: Api<K>, config: Config, pulse: Arc<Pulse>) -> Self {
        Self {
            api,
            config,
            is_of_metadata: false,
            state: State::Unlisted,
            jumps: pulse.jumps(),
            pulse,
            delays: DefaultBackoff::default(),
            pause: Duration::ZERO,
            lists: 0,
            is_complete: false,
            is_silent: false,
        }
    }

    /// Asks the API server for nothing but the metadata of the objects: the rest of them is never sent.
    /// `K` has to be readable from that.
    pub fn of_metadata(&mut self) {
        self.is_of_metadata = true;
    }

    /// How many objects are listed at once from now on.
    pub fn page_size(&mut self, objects: u32) {
        self.config.page_size = Some(objects);
    }

    /// Lists everything again: at once, or when the pause after a failure is over.
    pub fn list_again(&mut self) {
        self.state = State::Unlisted;
        self.is_complete = false;
    }

    /// Lists everything again after a pause. None: as long as after a failure.
    pub fn list_later(&mut self, pause: Option<Duration>) {
        self.list_again();
        self.pause = pause.unwrap_or_else(|| self.delay());
    }

    /// After a failure: waits for no longer than [`LONGEST_PAUSE`], so that everything is seen again soon
    /// after the API server is back.
    pub fn hurry(&mut self) {
        self.pause = self.pause.min(LONGEST_PAUSE);
    }

    /// After [`Step::Silent`]: what was read still counts until then.
    pub fn excuse(&mut self, until: Instant) {
        self.pulse.excuse(until);
        self.is_silent = false;
    }

    /// The next step. If the caller gives up waiting, everything is listed again.
    pub async fn next(&mut self) -> Step<K> {
        if mem::take(&mut self.is_complete) {
            // Only now: what was listed has been taken in.
            self.pulse.listed(Instant::now(), self.jumps);
            (self.lists, self.is_silent) = (0, false);
        }
        let pulse = Arc::clone(&self.pulse);
        loop {
            let until = pulse.until().filter(|_| !self.is_silent);
            let step = tokio::select! {
                biased;
                () = pulse.beyond(self.jumps) => {
                    self.jumps = pulse.jumps();
                    self.pause = Duration::ZERO;
                    self.list_again();
                    if pulse.jumped(Instant::now()) {
                        continue;
                    }
                    self.is_silent = true;
                    return Step::Silent;
                }
                () = pass(until) => {
                    self.is_silent = true;
                    self.pause = Duration::ZERO;
                    self.list_again();
                    return Step::Silent;
                }
                step = self.step() => step,
            };
            self.note(&step);
            return step;
        }
    }

    /// Notes what a step says of the watch.
    fn note(&mut self, step: &Step<K>) {
        match step {
            Step::Begun => {
                self.jumps = self.pulse.jumps();
                self.lists = self.lists.saturating_add(1);
            }
            // Only the pages of the first list since one was complete: lists that never complete must not
            // count for ever.
            Step::Page(_) if self.lists == 1 => self.pulse.heard(Instant::now()),
            Step::Listed(_) => self.is_complete = true,
            Step::Alive | Step::Apply(_) | Step::Delete(_) => {
                self.delays.reset();
                self.pulse.heard(Instant::now());
            }
            Step::Page(_) | Step::Opened | Step::Ended | Step::Failed(_) | Step::Silent => {}
        }
    }

    fn delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(LONGEST_PAUSE)
    }

    async fn step(&mut self) -> Step<K> {
        let pause = mem::take(&mut self.pause);
        if !pause.is_zero() {
            let _ = timeout(pause, pending::<()>()).await;
        }
        match self.advance().await {
            Ok(step) => step,
            Err(error) => {
                self.pause = self.delay();
                Step::Failed(error)
            }
        }
    }

    async fn advance(&mut self) -> Result<Step<K>, Error> {
        match mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => {
                self.state = State::Paging(None);
                Ok(Step::Begun)
            }
            State::Paging(token) => self.page(token).await,
            State::Paged(version) => {
                let step = Step::Listed(version.parse().ok());
                self.state = State::Listed(version);
                Ok(step)
            }
            State::Listed(version) => self.open(version).await,
            State::Open(version, events, proof) => self.watch(version, events, proof).await,
        }
    }

    async fn page(&mut self, token: Option<String>) -> Result<Step<K>, Error> {
        let params = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: self.config.page_size,
            continue_token: token,
            ..ListParams::default()
        };
        let list = match self.list(&params).await {
            Ok(list) => list,
            Err(error) => {
                // If the API server is busy, only this page is asked for again, and not all before it.
                if passes(&error) && params.continue_token.is_some() {
                    self.state = State::Paging(params.continue_token);
                }
                return Err(Error::InitialListFailed(error));
            }
        };
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        let version = list.metadata.resource_version.filter(|it| !it.is_empty());
        self.state = match (next, version) {
            (Some(token), _) => State::Paging(Some(token)),
            (None, Some(version)) => State::Paged(version),
            (None, None) => return Err(Error::NoResourceVersion),
        };
        Ok(Step::Page(list.items))
    }

    async fn list(&mut self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        if !self.is_of_metadata {
            return self.api.list(params).await;
        }
        let request = Request::new(self.api.resource_url()).list_metadata(params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.api.clone().into_client().request(request).await
    }

    async fn events(&mut self, params: &WatchParams, version: &str) -> kube::Result<Events<K>> {
        if !self.is_of_metadata {
            return Ok(self.api.watch(params, version).await?.boxed());
        }
        let request = Request::new(self.api.resource_url()).watch_metadata(params, version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.api.clone().into_client();
        Ok(client.request_events(request).await?.boxed())
    }

    async fn open(&mut self, version: String) -> Result<Step<K>, Error> {
        let params = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: Some(self.config.timeout.unwrap_or(LONGEST)),
            bookmarks: true,
            ..WatchParams::default()
        };
        match self.events(&params, &version).await {
            Ok(events) => {
                self.state = State::Open(version, events, Proof::None);
                Ok(Step::Opened)
            }
            Err(error) => {
                let is_forgotten = matches!(&error, kube::Error::Api(status) if status.code == 410);
                if !is_forgotten {
                    self.state = State::Listed(version);
                }
                Err(Error::WatchStartFailed(error))
            }
        }
    }

    async fn watch(
        &mut self,
        version: String,
        mut events: Events<K>,
        proof: Proof,
    ) -> Result<Step<K>, Error> {
        let patience = match proof {
            Proof::None => LASTS,
            Proof::Lasts | Proof::Speaks => PATIENCE,
        };
        let event = match (timeout(patience, events.next()).await, proof) {
            (Ok(Some(Ok(event))), _) => event,
            (Err(_), Proof::None) => {
                self.state = State::Open(version, events, Proof::Lasts);
                return Ok(Step::Alive);
            }
            (Err(_) | Ok(None), Proof::Speaks) => {
                self.state = State::Listed(version);
                return Ok(Step::Ended);
            }
            // Not even a bookmark: perhaps a server or a proxy holds back what happens. A list shows it.
            (Err(_) | Ok(None), Proof::Lasts) => return Ok(Step::Ended),
            (Ok(Some(Err(error))), _) => {
                self.state = State::Listed(version);
                return Err(Error::WatchFailed(error));
            }
            (Ok(None), Proof::None) => {
                self.state = State::Listed(version);
                let at_once = kube::Error::Service("it ends the watch at once".into());
                return Err(Error::WatchFailed(at_once));
            }
        };
        let (version, step) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                (version_of(&object)?, Step::Apply(object))
            }
            WatchEvent::Deleted(object) => (version_of(&object)?, Step::Delete(object)),
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, Step::Alive),
            WatchEvent::Error(status) => {
                if status.code != 410 {
                    self.state = State::Listed(version);
                }
                return Err(Error::WatchError(status));
            }
        };
        self.state = State::Open(version, events, Proof::Speaks);
        Ok(step)
    }
}

/// Waits until `until` has passed. None: for ever.
async fn pass(until: Option<Instant>) {
    match until {
        // Up to then it counts.
        Some(until) => drop(timeout_at(until + Duration::from_millis(1), pending::<()>()).await),
        None => pending().await,
    }
}

fn version_of<K: Resource>(object: &K) -> Result<String, Error> {
    let version = object.meta().resource_version.clone();
    let version = version.filter(|version| !version.is_empty());
    version.ok_or(Error::NoResourceVersion)
}
