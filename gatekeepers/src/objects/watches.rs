//! The kinds that somebody looks at, each watched once in each namespace.
//!
//! A watch starts on first use, is shared by all who use it, and ends a while after the last of
//! them has gone.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use kube::{Api, Client};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::AbortHandle;

use super::DEADLINE;
use super::follow::{Follower, SILENCE, Sight};
use super::kinds::{Kind, Kinds};
use super::rights::Rights;
use super::store::{Cursor, Limits, News, Room, Store};
use crate::config_maps::KEPT;
use crate::source::ObjectsKey;
use crate::watching::Guard;

/// For how long objects may be relied on of which nothing was heard: twice what a watch may be
/// silent.
const STALE: SignedDuration = SignedDuration::from_secs(2 * SILENCE.as_secs() as i64);
/// How many changes may wait for whoever listens; who falls behind is told so, and looks at all.
const BACKLOG: usize = 1024;
/// How many gatekeepers judge their objects at once.
const AT_ONCE: usize = 2;

/// The watched objects. Clones share their watches, which end with the last clone.
#[derive(Clone)]
pub struct ObjectWatches(Arc<Inner>);

struct Inner {
    client: Client,
    deadline: Duration,
    limits: Limits,
    /// Where all text is counted, by namespace.
    rooms: Mutex<HashMap<Option<String>, Room>>,
    room: Room,
    watches: Mutex<HashMap<ObjectsKey, Watch>>,
    next_id: AtomicU64,
    changes: broadcast::Sender<ObjectsKey>,
    kinds: Kinds,
    rights: Rights,
    turns: Semaphore,
}

struct Watch {
    id: u64,
    sight: watch::Receiver<Sight>,
    store: Arc<Mutex<Store>>,
    signs: Arc<AtomicU64>,
    /// How many signs of life there had been at the last look that found more of them than the one
    /// before it, and when that was.
    alive: (u64, Timestamp),
    task: AbortHandle,
    /// Since when nobody is known to use it.
    unused_since: Option<Timestamp>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How far somebody has read, and of which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    watch: u64,
    cursor: Cursor,
}

/// Why objects cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// The API server knows the kind no more.
    Vanished,
    /// Anything else, in words.
    Because(String),
}

impl ObjectWatches {
    /// The objects that `client` may see. Nothing is read yet.
    pub fn new(client: Client) -> Self {
        Self::with(client, Limits::default(), DEADLINE)
    }

    /// The same, with other limits, and another one to the wait for the API server's first answer.
    pub fn with(client: Client, limits: Limits, deadline: Duration) -> Self {
        let (changes, _) = broadcast::channel(BACKLOG);
        Self(Arc::new(Inner {
            kinds: Kinds::new(client.clone()),
            rights: Rights::new(client.clone()),
            client,
            deadline,
            limits,
            rooms: Mutex::default(),
            room: Room::default(),
            watches: Mutex::default(),
            next_id: AtomicU64::new(0),
            changes,
            turns: Semaphore::new(AT_ONCE),
        }))
    }

    /// What is watched and changes from now on. Its first sight is a change too.
    pub fn changes(&self) -> broadcast::Receiver<ObjectsKey> {
        self.0.changes.subscribe()
    }

    /// Ends the watches that nobody has used for [`KEPT`]. `in_use` is what somebody uses at
    /// `now`. Returns when the next watch ends if it stays unused: the time to call again.
    pub fn keep(&self, in_use: &HashSet<ObjectsKey>, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        self.lock().retain(|key, watch| {
            if in_use.contains(key) {
                watch.unused_since = None;
                return true;
            }
            // A clock that was set back starts the count anew.
            let since = watch.unused_since.map_or(now, |since| since.min(now));
            watch.unused_since = Some(since);
            let end = since.saturating_add(KEPT).unwrap_or(Timestamp::MAX);
            if end <= now {
                return false;
            }
            next = Some(next.map_or(end, |next: Timestamp| next.min(end)));
            true
        });
        next
    }

    /// How many kinds and namespaces are watched.
    pub fn watched(&self) -> usize {
        self.lock().len()
    }

    /// How many signs of life there were of all that is watched.
    #[cfg(test)]
    pub(super) fn signs(&self) -> u64 {
        let watches = self.lock();
        let signs = watches
            .values()
            .map(|watch| watch.signs.load(Ordering::Relaxed));
        signs.sum()
    }

    pub(super) fn kinds(&self) -> &Kinds {
        &self.0.kinds
    }

    pub(super) fn rights(&self) -> &Rights {
        &self.0.rights
    }

    pub(super) fn turns(&self) -> &Semaphore {
        &self.0.turns
    }

    /// What is new of the objects of `key` to somebody who has read as far as `place`. From the
    /// first call on they are watched; the answer waits for the API server's first one.
    pub(super) async fn read(
        &self,
        key: &ObjectsKey,
        kind: &Kind,
        place: Option<Place>,
        now: Timestamp,
    ) -> Result<(News, Place), Unseen> {
        let mut sight = self.watch(key, kind, now);
        let told = sight.wait_for(|sight| !matches!(sight, Sight::Nothing(_)));
        // Elapsed, or the watch has ended: the last sight tells.
        let _ = tokio::time::timeout(self.0.deadline, told).await.is_ok();
        let what = Named { key, kind };
        let sight = sight.borrow().clone();
        match sight {
            Sight::Told => self.news(key, place, now).ok_or_else(|| stale(&what)),
            Sight::Vanished => {
                // Whoever looks for it later starts another watch; perhaps somebody has.
                let mut watches = self.lock();
                if watches
                    .get(key)
                    .is_some_and(|watch| watch.task.is_finished())
                {
                    watches.remove(key);
                }
                Err(Unseen::Vanished)
            }
            Sight::Refused(verb) => Err(Unseen::Because(format!(
                "may not {verb} {what}: grant gate-controller get, list, watch"
            ))),
            Sight::TooMuch(why) => Err(Unseen::Because(format!("cannot watch {what}: {why}"))),
            Sight::Nothing(trouble) => {
                let trouble = trouble.map(|trouble| format!(": {trouble}"));
                Err(Unseen::Because(format!(
                    "the API server has not told the {what} within {}s{}",
                    self.0.deadline.as_secs(),
                    trouble.unwrap_or_default(),
                )))
            }
        }
    }

    /// None: nothing was heard for too long, or nobody watches.
    fn news(
        &self,
        key: &ObjectsKey,
        place: Option<Place>,
        now: Timestamp,
    ) -> Option<(News, Place)> {
        let mut watches = self.lock();
        let watch = watches.get_mut(key)?;
        let signs = watch.signs.load(Ordering::Relaxed);
        let (before, since) = watch.alive;
        if signs != before || now < since {
            watch.alive = (signs, now);
        } else if now.duration_since(since) >= STALE {
            return None;
        }
        let cursor = place.filter(|place| place.watch == watch.id);
        let store = watch.store.lock().unwrap_or_else(PoisonError::into_inner);
        let (news, cursor) = store.since(cursor.map(|place| place.cursor));
        let place = Place {
            watch: watch.id,
            cursor,
        };
        Some((news, place))
    }

    fn watch(&self, key: &ObjectsKey, kind: &Kind, now: Timestamp) -> watch::Receiver<Sight> {
        let mut watches = self.lock();
        if let Some(watch) = watches
            .get_mut(key)
            .filter(|watch| !watch.task.is_finished())
        {
            watch.unused_since = None;
            return watch.sight.clone();
        }
        let (tell, sight) = watch::channel(Sight::Nothing(None));
        let store = Store::new(self.0.limits, self.room(key.namespace.as_deref()));
        let (store, signs) = (Arc::new(Mutex::new(store)), Arc::default());
        let follower = Follower {
            api: self.api(key, kind),
            resource: kind.resource.clone(),
            key: key.clone(),
            limits: self.0.limits,
            store: Arc::clone(&store),
            signs: Arc::clone(&signs),
            tell,
            changes: self.0.changes.clone(),
        };
        let watch = Watch {
            id: self.0.next_id.fetch_add(1, Ordering::Relaxed),
            sight: sight.clone(),
            store,
            signs,
            alive: (0, now),
            task: tokio::spawn(follower.run()).abort_handle(),
            unused_since: None,
        };
        watches.insert(key.clone(), watch);
        sight
    }

    /// Where the text of the objects of a namespace is counted.
    fn room(&self, namespace: Option<&str>) -> Room {
        // A panic while it was locked leaves the map whole.
        let mut rooms = self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.retain(|_, room| !room.is_alone());
        let room = rooms.entry(namespace.map(str::to_owned));
        room.or_insert_with(|| self.0.room.beside()).clone()
    }

    fn api(&self, key: &ObjectsKey, kind: &Kind) -> Api<Guard<DynamicObject>> {
        let client = self.0.client.clone();
        match &key.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind.resource),
            None => Api::all_with(client, &kind.resource),
        }
    }

    /// A panic while it was locked leaves the map of watches whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectsKey, Watch>> {
        self.0
            .watches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects as the API server's rules of access call them.
struct Named<'a> {
    key: &'a ObjectsKey,
    kind: &'a Kind,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = &self.kind.resource;
        f.write_str(&resource.plural)?;
        if !resource.group.is_empty() {
            write!(f, ".{}", resource.group)?;
        }
        match &self.key.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

fn stale(what: &Named<'_>) -> Unseen {
    Unseen::Because(format!(
        "nothing was heard of the {what} for {}s",
        STALE.as_secs()
    ))
}
