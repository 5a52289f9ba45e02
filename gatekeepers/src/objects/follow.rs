//! One watch: it keeps a [`Store`] at what the API server tells of one kind in one namespace.
//!
//! kube's own watcher keeps bookmarks to itself. They are the only sign of life of objects that do
//! not change, and without one a sight is not to be relied on: so it is done by hand here.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::DefaultBackoff;
use kube::{Api, Error, ResourceExt};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::store::{Held, Limits, Store, Stored, TooMuch};
use crate::source::ObjectsKey;
use crate::watching::Guard;

/// How many objects are listed first, before it is known how large they are, and how many at most.
const FIRST_PAGE: u32 = 10;
const LONGEST_PAGE: usize = 500;
/// How many bytes of them are listed at once, about: a page takes many times as much while it is
/// read.
const PAGE_BYTES: usize = 1 << 20;
/// How long a list may take, and a watch may be silent: the API server sends a bookmark every
/// minute.
pub(super) const SILENCE: Duration = Duration::from_secs(150);
/// How soon to try again where there is too much to hold.
const TOO_MUCH: Duration = Duration::from_secs(300);

/// What is known of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// The API server has not told yet; what went wrong last.
    Nothing(Option<String>),
    /// It will not tell: the verb that is not allowed.
    Refused(&'static str),
    /// It knows the kind no more.
    Vanished,
    /// It tells more than may be held.
    TooMuch(String),
    /// The store has what it told.
    Told,
}

/// Follows one kind in one namespace.
pub(super) struct Follower {
    pub(super) api: Api<Guard<DynamicObject>>,
    pub(super) resource: ApiResource,
    pub(super) key: ObjectsKey,
    pub(super) limits: Limits,
    pub(super) store: Arc<Mutex<Store>>,
    /// How often the API server has said something: an event, a bookmark, a list.
    pub(super) signs: Arc<AtomicU64>,
    pub(super) tell: watch::Sender<Sight>,
    pub(super) changes: broadcast::Sender<ObjectsKey>,
}

/// Why a list or a watch has ended.
enum Trouble {
    /// What was read last is too old to go on from, or nothing can be made of what came after.
    Lost,
    /// This verb is not allowed.
    Refused(&'static str),
    /// There is no such kind.
    Vanished,
    /// There is more than may be held.
    TooMuch(String),
    /// It may pass.
    Passing(String),
}

impl Follower {
    /// Lists, watches, and again, until the kind vanishes.
    pub(super) async fn run(self) {
        let mut backoff = DefaultBackoff::default();
        let mut version = None;
        loop {
            let ended = match &mut version {
                None => self.list().await.map(|listed| version = Some(listed)),
                Some(version) => self.watch(version).await,
            };
            let Err(trouble) = ended else {
                backoff.reset();
                continue;
            };
            // Only after what passes is there a place to go on from.
            if !matches!(trouble, Trouble::Passing(_)) {
                version = None;
            }
            let mut wait = backoff.next().unwrap_or(SILENCE);
            match trouble {
                Trouble::Vanished => return self.tell(Sight::Vanished),
                Trouble::Lost => {}
                Trouble::Passing(why) => self.tell(Sight::Nothing(Some(why))),
                Trouble::Refused(verb) => self.tell(Sight::Refused(verb)),
                Trouble::TooMuch(why) => {
                    self.tell(Sight::TooMuch(why));
                    // After it was told: nobody is to take it for a place with nothing in it.
                    self.store().clear();
                    wait = TOO_MUCH;
                }
            }
            pause(wait).await;
        }
    }

    /// Puts everything into the store. Returns the version from which to watch.
    async fn list(&self) -> Result<String, Trouble> {
        let mut params = ListParams::default().limit(FIRST_PAGE);
        let (mut listed, mut bytes) = (vec![], 0);
        let version = loop {
            let page = timeout(SILENCE, self.api.list(&params)).await;
            let page = page
                .map_err(|_| silent())?
                .map_err(|error| of_error(&error, "list"))?;
            self.signs.fetch_add(1, Ordering::Relaxed);
            for object in page.items {
                let object = Stored::new(readable(object)?, &self.resource);
                bytes += object.size();
                listed.push(object);
                self.limits.check(listed.len(), bytes, Held::default())?;
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                break page.metadata.resource_version.unwrap_or_default();
            }
            params.limit = Some(next_page(listed.len(), bytes));
        };
        let changed = self.store().replace(listed)?;
        let first = *self.tell.borrow() != Sight::Told;
        self.tell(Sight::Told);
        if changed && !first {
            self.changed();
        }
        Ok(version)
    }

    /// Puts changes into the store, until the API server ends that. `version` goes along.
    async fn watch(&self, version: &mut String) -> Result<(), Trouble> {
        let params = WatchParams::default();
        let events = timeout(SILENCE, self.api.watch(&params, version)).await;
        let events = events
            .map_err(|_| silent())?
            .map_err(|error| of_error(&error, "watch"))?;
        let (mut events, mut spoke) = (pin!(events), false);
        loop {
            match timeout(SILENCE, events.next()).await {
                // Perhaps it sends no bookmarks: a list is a sign of life, too.
                Err(_) => return Err(Trouble::Lost),
                Ok(None) if spoke => return Ok(()),
                Ok(None) => return Err(Trouble::Passing("it ends the watch at once".to_owned())),
                Ok(Some(Err(error))) => return Err(of_error(&error, "watch")),
                Ok(Some(Ok(event))) => self.take_in(event, version)?,
            }
            self.signs.fetch_add(1, Ordering::Relaxed);
            spoke = true;
        }
    }

    fn take_in(
        &self,
        event: WatchEvent<Guard<DynamicObject>>,
        version: &mut String,
    ) -> Result<(), Trouble> {
        let reached = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let object = readable(object)?;
                let reached = object.resource_version();
                self.store().apply(Stored::new(object, &self.resource))?;
                self.changed();
                reached
            }
            WatchEvent::Deleted(object) => {
                self.store().delete(&object.name_any());
                self.changed();
                object.resource_version()
            }
            WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version),
            WatchEvent::Error(status) => return Err(of_status(&status, "watch")),
        };
        if let Some(reached) = reached {
            *version = reached;
        }
        Ok(())
    }

    /// Tells what is known now, and whoever listens, if that is anything else than before.
    fn tell(&self, news: Sight) {
        let told = self.tell.send_if_modified(|sight| {
            // What was told stays true until the API server says otherwise, as for any cache.
            let adds_nothing = match (&*sight, &news) {
                (before, Sight::Nothing(_)) => !matches!(before, Sight::Nothing(_)),
                (before, news) => before == news,
            };
            if adds_nothing {
                return false;
            }
            let heard = !matches!(news, Sight::Nothing(_));
            *sight = news;
            heard
        });
        if told {
            self.changed();
        }
    }

    fn changed(&self) {
        // Nobody listens: nobody waits.
        let _ = self.changes.send(self.key.clone());
    }

    /// A panic while it was locked leaves the store whole.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<TooMuch> for Trouble {
    fn from(TooMuch(why): TooMuch) -> Self {
        Trouble::TooMuch(why)
    }
}

/// Without one of the objects nobody can say whether all are as they should be.
fn readable(object: Guard<DynamicObject>) -> Result<DynamicObject, Trouble> {
    object.0.map_err(|_| Trouble::Lost)
}

fn silent() -> Trouble {
    Trouble::Passing(format!("it says nothing within {}s", SILENCE.as_secs()))
}

fn of_error(error: &Error, verb: &'static str) -> Trouble {
    match error {
        Error::Api(status) => of_status(status, verb),
        // The next try would come upon the same.
        Error::SerdeError(_) | Error::FromUtf8(_) => Trouble::Lost,
        _ => Trouble::Passing("it cannot be reached".to_owned()),
    }
}

fn of_status(status: &Status, verb: &'static str) -> Trouble {
    match status.code {
        403 => Trouble::Refused(verb),
        404 => Trouble::Vanished,
        410 => Trouble::Lost,
        code => Trouble::Passing(format!("it answers with status {code} {}", status.reason)),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "nothing tells when the API server will answer again"
)]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// How many objects are listed next, after so many that took so many bytes.
fn next_page(objects: usize, bytes: usize) -> u32 {
    let each = bytes.div_ceil(objects.max(1)).max(1);
    let page = (PAGE_BYTES / each).clamp(1, LONGEST_PAGE);
    u32::try_from(page).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(0, 0, 500)]
    #[case::small(10, 10 << 10, 500)]
    #[case::usual(10, 80 << 10, 128)]
    #[case::large(10, 10 << 20, 1)]
    #[case::larger_than_a_page(1, 3 << 20, 1)]
    fn a_page_has_as_many_objects_as_fit(
        #[case] objects: usize,
        #[case] bytes: usize,
        #[case] page: u32,
    ) {
        assert_eq!(next_page(objects, bytes), page);
    }
}
