//! What the API server holds of one kind, kept up to date by a watch.
//!
//! kube's own shared stores can wedge and do not tell which objects a re-list no longer has; and
//! one object that this version cannot read would hide all the others. So: kube's watcher, and a
//! map.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures::StreamExt;
use hashbrown::HashMap;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher::Config};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::definitions::managers_of_spec;
use crate::failure;
use crate::key::{KeyRef, ObjectKey};

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as it was seen.
#[derive(Debug)]
pub enum Seen<K> {
    /// Here it is.
    Object(Arc<K>),
    /// The API server holds something that this version cannot read: why.
    Unreadable(Arc<str>),
}

impl<K> Clone for Seen<K> {
    fn clone(&self) -> Self {
        match self {
            Seen::Object(object) => Seen::Object(Arc::clone(object)),
            Seen::Unreadable(why) => Seen::Unreadable(Arc::clone(why)),
        }
    }
}

impl<K> Seen<K> {
    /// The object, if this version can read it.
    pub fn object(&self) -> Option<&Arc<K>> {
        match self {
            Seen::Object(object) => Some(object),
            Seen::Unreadable(_) => None,
        }
    }
}

/// An object that has come, changed or gone.
#[derive(Debug)]
pub struct Change<'a, K> {
    /// Its name.
    pub key: &'a ObjectKey,
    /// What it was. None: it was not there.
    pub before: Option<&'a Seen<K>>,
    /// What it is. None: it is gone.
    pub now: Option<&'a Seen<K>>,
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Cache<K> {
    objects: RwLock<HashMap<ObjectKey, Seen<K>>>,
    progress: watch::Sender<Progress>,
}

/// How far the first listing has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The API server has not answered.
    Unanswered,
    /// It has answered, with a refusal.
    Refused,
    /// Everything has been listed once.
    Synced,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            progress: watch::Sender::new(Progress::Unanswered),
        }
    }
}

impl<K> Cache<K> {
    /// The object of that name.
    pub fn get(&self, key: KeyRef<'_>) -> Option<Seen<K>> {
        self.read().get(&key).cloned()
    }

    /// The names of all objects.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.read().keys().cloned().collect()
    }

    /// All objects with their names, those that cannot be read among them.
    pub fn all(&self) -> Vec<(ObjectKey, Seen<K>)> {
        let all = self.read();
        let all = all.iter();
        all.map(|(key, seen)| (key.clone(), seen.clone())).collect()
    }

    /// All objects that can be read.
    pub fn objects(&self) -> Vec<Arc<K>> {
        let all = self.read();
        all.values().filter_map(Seen::object).cloned().collect()
    }

    /// Whether everything has been listed once.
    pub fn is_synced(&self) -> bool {
        *self.progress.borrow() == Progress::Synced
    }

    /// Waits until everything has been listed once.
    pub async fn synced(&self) {
        self.reached(|progress| progress == Progress::Synced).await;
    }

    /// Waits until everything has been listed once, or the API server has refused to.
    pub async fn answered(&self) {
        self.reached(|progress| progress != Progress::Unanswered)
            .await;
    }

    async fn reached(&self, far_enough: impl Fn(Progress) -> bool) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| far_enough(*progress)).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<ObjectKey, Seen<K>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ObjectKey, Seen<K>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Keeps the cache up to date for as long as it is polled, and tells of every object that has
    /// come, changed or gone.
    pub async fn follow(
        &self,
        api: Api<DeserializeGuard<K>>,
        config: Config,
        changed: impl Fn(Change<'_, K>),
    ) {
        let mut events = Box::pin(watcher::watcher(api, config).default_backoff());
        let mut listed: Vec<(ObjectKey, Seen<K>)> = Vec::new();
        let mut troubled = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if std::mem::take(&mut troubled) {
                        tracing::info!(kind = %K::kind(&()), "watching again");
                    }
                    self.take_in(event, &mut listed, &changed);
                }
                Err(error) => {
                    // The watcher tries again by itself, with a growing delay.
                    let why =
                        failure::of_watch(&error, K::plural(&()).as_ref(), K::group(&()).as_ref());
                    if failure::is_expired(&error) {
                        tracing::info!(kind = %K::kind(&()), "{why}; listing anew");
                    } else {
                        tracing::error!(kind = %K::kind(&()), "{why}");
                    }
                    troubled = true;
                    if failure::is_refused(&error) {
                        self.refused();
                    }
                }
            }
        }
    }

    fn refused(&self) {
        self.progress.send_if_modified(|progress| {
            let first = *progress == Progress::Unanswered;
            if first {
                *progress = Progress::Refused;
            }
            first
        });
    }

    fn take_in(
        &self,
        event: Event<DeserializeGuard<K>>,
        listed: &mut Vec<(ObjectKey, Seen<K>)>,
        changed: &impl Fn(Change<'_, K>),
    ) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.push(seen(object)),
            Event::InitDone => {
                let fresh: HashMap<_, _> = std::mem::take(listed).into_iter().collect();
                let all: Vec<_> = fresh.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                let mut before = std::mem::replace(&mut *self.write(), fresh);
                for (key, now) in &all {
                    let before = before.remove(key);
                    changed(Change {
                        key,
                        before: before.as_ref(),
                        now: Some(now),
                    });
                }
                for (key, gone) in &before {
                    changed(Change {
                        key,
                        before: Some(gone),
                        now: None,
                    });
                }
                // After whoever keeps an index has heard of everything.
                self.progress.send_replace(Progress::Synced);
            }
            Event::Apply(object) => {
                let (key, object) = seen(object);
                let before = self.write().insert(key.clone(), object.clone());
                changed(Change {
                    key: &key,
                    before: before.as_ref(),
                    now: Some(&object),
                });
            }
            Event::Delete(object) => {
                let (key, _) = seen(object);
                let before = self.write().remove(&key);
                changed(Change {
                    key: &key,
                    before: before.as_ref(),
                    now: None,
                });
            }
        }
    }
}

/// An object without what nobody here reads and much of its memory is.
fn seen<K: Resource<DynamicType = ()>>(object: DeserializeGuard<K>) -> (ObjectKey, Seen<K>) {
    let key = ObjectKey::of(&object);
    let seen = match object.0 {
        Ok(mut object) => {
            let managers = object.meta_mut().managed_fields.take();
            object.meta_mut().managed_fields = managers.map(managers_of_spec);
            object.annotations_mut().remove(LAST_APPLIED);
            Seen::Object(Arc::new(object))
        }
        Err(invalid) => {
            let kind = K::kind(&());
            tracing::error!(
                kind = %kind,
                namespace = %key.namespace,
                name = %key.name,
                "this version cannot read the object, which counts as closed: {}",
                invalid.error
            );
            Seen::Unreadable(invalid.error.into())
        }
    };
    (key, seen)
}
