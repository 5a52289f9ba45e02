//! ConfigMaps that evidence is read from, each watched by name.
//!
//! What comes in: the keys that somebody asks for. What goes out: the maps as the API server last
//! told them, and the keys of those that changed. Where nothing was heard for five minutes, what was
//! told counts no more. A watch starts on first use, is shared by all who use its map, and ends a
//! while after the last of them has gone: what nobody names is never read, and a cluster full of
//! ConfigMaps costs nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use sluice_egress::secrets::is_object_name;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

mod entry;
mod follow;

use follow::Follower;

/// How long a watch outlives its last user, so that an edited spec does not cost a new one.
pub const KEPT: SignedDuration = SignedDuration::from_secs(60);
/// How long to wait for the API server's first answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How many changes may wait for those who listen; one that falls behind is told so, and looks at all.
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
    /// Tells those who watch that everything is to be listed again.
    again: watch::Sender<()>,
    /// When the API server was known to be away last.
    away: watch::Sender<Option<Instant>>,
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
            again: watch::Sender::default(),
            away: watch::Sender::default(),
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
            // A clock that was set back starts the count again.
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

    /// Has every map listed again, since nothing that was told before is to be relied on: the machine
    /// slept. What was told counts for a moment, until the lists come.
    pub fn list_again(&self) {
        self.0.again.send_replace(());
    }

    /// The API server is away, for everybody and not only for these watches. What was told counts until
    /// a moment after this was said last: those who decide take nothing from it meanwhile, and evidence that comes
    /// and goes with each outage would be told twice.
    pub fn away(&self) {
        self.0.away.send_replace(Some(Instant::now()));
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
        let follower = Follower {
            api: Api::namespaced(self.0.client.clone(), &key.namespace),
            key: key.clone(),
            tell,
            changes: self.0.changes.clone(),
            again: self.0.again.subscribe(),
            away: self.0.away.subscribe(),
        };
        let task = tokio::spawn(follower.run()).abort_handle();
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

impl Sight {
    /// Takes in the news; returns whether they change anything.
    fn take_in(&mut self, news: Sight) -> bool {
        let changes = match (&*self, &news) {
            // What was told stays true until the API server says otherwise, or too little is heard of it.
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

#[cfg(test)]
mod tests;
