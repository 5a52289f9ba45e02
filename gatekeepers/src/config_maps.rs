//! ConfigMaps that evidence is read from, each watched by name.
//!
//! What comes in: the keys that somebody asks for. What goes out: the maps as the API server last
//! told them, and the keys of those that changed. A watch starts on first use, is shared by all
//! who use its map, and ends a while after the last of them has gone: what nobody names is never
//! read, and a cluster full of ConfigMaps costs nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::is_object_name;

mod entry;

/// How long a watch outlives its last user, so that an edited spec does not cost a new one.
pub const KEPT: SignedDuration = SignedDuration::from_secs(60);
/// How long to wait for the API server's first answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How many changes may wait for whoever listens; who falls behind is told so, and looks at all.
const BACKLOG: usize = 1024;

/// The namespace and name of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigMapKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ConfigMapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Why a ConfigMap could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The controller has not the rights.
    #[error("may not watch configmaps in namespace {namespace}: grant get, list, watch")]
    Forbidden {
        /// Where.
        namespace: String,
    },
    /// The API server has not told it in time.
    #[error("the API server has not told ConfigMap {key} within {}s{}", deadline.as_secs(), after(trouble))]
    Unanswered {
        /// Which one.
        key: ConfigMapKey,
        /// How long it was waited for.
        deadline: Duration,
        /// What went wrong meanwhile.
        trouble: Option<String>,
    },
}

fn after(trouble: &Option<String>) -> String {
    trouble
        .as_ref()
        .map(|trouble| format!(": {trouble}"))
        .unwrap_or_default()
}

/// The watched ConfigMaps. Clones share their watches, which end with the last clone.
#[derive(Clone)]
pub struct ConfigMaps(Arc<Inner>);

struct Inner {
    client: Client,
    deadline: Duration,
    watches: Mutex<HashMap<ConfigMapKey, Watch>>,
    changes: broadcast::Sender<ConfigMapKey>,
}

struct Watch {
    sight: watch::Receiver<Sight>,
    task: AbortHandle,
    /// Since when nobody is known to use it.
    unused_since: Option<Timestamp>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is known of a map.
enum Sight {
    /// The API server has not told yet; what went wrong last.
    Nothing(Option<String>),
    /// It will not tell.
    Forbidden,
    /// It is, or is not there.
    Told(Option<Arc<ConfigMap>>),
}

impl ConfigMaps {
    /// The ConfigMaps that `client` may see. Nothing is read yet.
    pub fn new(client: Client) -> Self {
        Self::with_deadline(client, DEADLINE)
    }

    /// The same, with another limit to the wait for the API server's first answer.
    pub fn with_deadline(client: Client, deadline: Duration) -> Self {
        let (changes, _) = broadcast::channel(BACKLOG);
        Self(Arc::new(Inner {
            client,
            deadline,
            watches: Mutex::default(),
            changes,
        }))
    }

    /// The map, or None if there is none. From the first call on it is watched; the answer waits
    /// for the API server's first one.
    ///
    /// # Errors
    /// No rights, or no answer in time.
    pub async fn get(&self, key: &ConfigMapKey) -> Result<Option<Arc<ConfigMap>>, ReadError> {
        if !is_object_name(&key.name) {
            return Ok(None);
        }
        let mut sight = self.watch(key);
        let told = sight.wait_for(|sight| !matches!(sight, Sight::Nothing(_)));
        if let Ok(Ok(sight)) = tokio::time::timeout(self.0.deadline, told).await {
            match &*sight {
                Sight::Told(map) => return Ok(map.clone()),
                Sight::Forbidden => {
                    return Err(ReadError::Forbidden {
                        namespace: key.namespace.clone(),
                    });
                }
                Sight::Nothing(_) => {}
            }
        }
        let trouble = match &*sight.borrow() {
            Sight::Nothing(trouble) => trouble.clone(),
            Sight::Forbidden | Sight::Told(_) => None,
        };
        Err(ReadError::Unanswered {
            key: key.clone(),
            deadline: self.0.deadline,
            trouble,
        })
    }

    /// The keys of maps that change from now on, their coming and going included. A map's first
    /// sight is a change too.
    pub fn changes(&self) -> broadcast::Receiver<ConfigMapKey> {
        self.0.changes.subscribe()
    }

    /// Ends the watches that nobody has used for [`KEPT`]. `in_use` is what somebody uses at
    /// `now`. Returns when the next watch ends if it stays unused: the time to call again.
    pub fn keep(&self, in_use: &HashSet<ConfigMapKey>, now: Timestamp) -> Option<Timestamp> {
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

    /// How many maps are watched.
    pub fn watched(&self) -> usize {
        self.lock().len()
    }

    fn watch(&self, key: &ConfigMapKey) -> watch::Receiver<Sight> {
        let mut watches = self.lock();
        if let Some(watch) = watches
            .get_mut(key)
            .filter(|watch| !watch.task.is_finished())
        {
            watch.unused_since = None;
            return watch.sight.clone();
        }
        let (tell, sight) = watch::channel(Sight::Nothing(None));
        let api = Api::namespaced(self.0.client.clone(), &key.namespace);
        let following = follow(api, key.clone(), tell, self.0.changes.clone());
        let task = tokio::spawn(following).abort_handle();
        watches.insert(
            key.clone(),
            Watch {
                sight: sight.clone(),
                task,
                unused_since: None,
            },
        );
        sight
    }

    /// A panic while it was locked leaves the map of watches whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<ConfigMapKey, Watch>> {
        self.0
            .watches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps `tell` at what the API server says about one map.
async fn follow(
    api: Api<ConfigMap>,
    key: ConfigMapKey,
    tell: watch::Sender<Sight>,
    changes: broadcast::Sender<ConfigMapKey>,
) {
    let mut events = pin!(watcher::watch_object(api, &key.name).default_backoff());
    while let Some(event) = events.next().await {
        let news = match event {
            Ok(map) => Sight::Told(map.map(|map| Arc::new(stripped(map)))),
            Err(error) if is_forbidden(&error) => Sight::Forbidden,
            Err(error) => Sight::Nothing(Some(trouble(&error))),
        };
        if tell.send_if_modified(|sight| sight.take_in(news)) {
            // Nobody listens: nobody waits.
            let _ = changes.send(key.clone());
        }
    }
}

impl Sight {
    /// Takes in the news; returns whether they change anything.
    fn take_in(&mut self, news: Sight) -> bool {
        let changes = match (&*self, &news) {
            // What was told stays true until the API server says otherwise, as for any cache.
            (Sight::Told(_) | Sight::Forbidden, Sight::Nothing(_)) => return false,
            (Sight::Nothing(_), Sight::Nothing(_)) | (Sight::Forbidden, Sight::Forbidden) => false,
            (Sight::Told(Some(old)), Sight::Told(Some(new))) => {
                old.data != new.data || old.binary_data != new.binary_data
            }
            (Sight::Told(None), Sight::Told(None)) => false,
            (_, Sight::Told(_) | Sight::Forbidden) => true,
        };
        *self = news;
        changes
    }
}

/// Without what nobody reads.
fn stripped(mut map: ConfigMap) -> ConfigMap {
    map.metadata.managed_fields = None;
    map.metadata.annotations = None;
    map
}

fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            matches!(error, kube::Error::Api(status) if status.is_forbidden())
        }
        watcher::Error::WatchError(status) => status.is_forbidden(),
        watcher::Error::NoResourceVersion => false,
    }
}

/// What went wrong, in words that fit a status.
fn trouble(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => {
            format!("it answers with status {} {}", status.code, status.reason)
        }
        _ => "it cannot be reached".to_owned(),
    }
}

#[cfg(test)]
mod tests;
