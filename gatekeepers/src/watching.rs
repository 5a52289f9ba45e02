//! Lists, then watches: what the API server holds of one kind, step by step.
//!
//! As kube's watcher, with two differences. It tells of each sign of life, bookmarks and watches that
//! last among them, so that a watch on which nothing happens is told from one that nobody answers.
//! And it lists again whenever the API server has forgotten the version from which to go on, also
//! where that is said before the watch begins.

use std::fmt::Debug;
use std::mem;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{Config, Error};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

mod guard;

pub use guard::Guard;

/// How long the API server may keep a watch open, in seconds. That it begins again is a sign of life,
/// also where no bookmarks are sent.
const LONGEST: u32 = 120;
/// How long nothing may be heard of a watch before what it told counts no more. The API server sends a
/// bookmark about every minute, the client gives a silent connection up after two and a half, and a
/// watch is begun again after two.
pub const SILENCE: Duration = Duration::from_secs(180);
/// How long a watch waits at most between two tries, of what was listed before.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a watch has to last before that is a sign of life. That it begins is none: a proxy may
/// accept every watch, and end it at once.
const LASTS: Duration = Duration::from_secs(5);
/// How long a watch is waited for on which nothing comes, not even its end.
const PATIENCE: Duration = Duration::from_secs(150);

/// What came next.
pub enum Step<K> {
    /// A list is asked for.
    Begun,
    /// Some of it.
    Page(Vec<K>),
    /// That was all of it.
    Listed,
    /// Something has come or changed.
    Apply(K),
    /// Something is gone.
    Delete(K),
    /// A watch has begun, which says nothing yet.
    Opened,
    /// Nothing has happened, but it would be told.
    Alive,
    /// The watch has ended, and is to be begun again.
    Ended,
}

/// A list and then a watch of one kind.
pub struct Watching<K> {
    api: Api<K>,
    config: Config,
    state: State<K>,
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
    /// Something has come on it, or it has lasted.
    Lives,
}

impl<K> Watching<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Nothing is asked for yet.
    pub fn new(api: Api<K>, config: Config) -> Self {
        Self {
            api,
            config,
            state: State::Unlisted,
        }
    }

    /// Whether everything is listed, and changes of it are waited for.
    pub fn is_listed(&self) -> bool {
        matches!(self.state, State::Listed(_) | State::Open(..))
    }

    /// Has everything listed again.
    pub fn list_again(&mut self) {
        self.state = State::Unlisted;
    }

    /// The next step. Where it is given up, everything is listed again.
    ///
    /// # Errors
    /// What the API server refused. The next call tries that again.
    pub async fn next(&mut self) -> Result<Step<K>, Error> {
        match mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => {
                self.state = State::Paging(None);
                Ok(Step::Begun)
            }
            State::Paging(token) => self.page(token).await,
            State::Paged(version) => {
                self.state = State::Listed(version);
                Ok(Step::Listed)
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
        let list = match self.api.list(&params).await {
            Ok(list) => list,
            Err(error) => {
                // A busy API server is asked for this page again, and not for all before it.
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

    async fn open(&mut self, version: String) -> Result<Step<K>, Error> {
        let params = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: Some(self.config.timeout.unwrap_or(LONGEST)),
            bookmarks: true,
            ..WatchParams::default()
        };
        match self.api.watch(&params, &version).await {
            Ok(events) => {
                self.state = State::Open(version, events.boxed(), Proof::None);
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
            Proof::Lives => PATIENCE,
        };
        let event = match (timeout(patience, events.next()).await, proof) {
            (Ok(Some(Ok(event))), _) => event,
            (Err(_), Proof::None) => {
                self.state = State::Open(version, events, Proof::Lives);
                return Ok(Step::Alive);
            }
            (Err(_) | Ok(None), Proof::Lives) => {
                self.state = State::Listed(version);
                return Ok(Step::Ended);
            }
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
        self.state = State::Open(version, events, Proof::Lives);
        Ok(step)
    }
}

/// Whether the failure passes by itself: the API server is away, or has too much to do. A refusal
/// stays one until somebody changes something.
pub fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500..),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

fn version_of<K: Resource>(object: &K) -> Result<String, Error> {
    let version = object.meta().resource_version.clone();
    let version = version.filter(|version| !version.is_empty());
    version.ok_or(Error::NoResourceVersion)
}

#[cfg(test)]
mod played;
#[cfg(test)]
mod tests;
