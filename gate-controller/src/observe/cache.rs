//! What the API server holds of one kind, kept up to date by a watch.
//!
//! kube's own shared stores can get stuck, and do not say which objects a new list no longer has; and one
//! object that this version cannot read would hide all the others. So this is a list, a watch and a map.
//! What this controller has written also goes into the map at once ([`Cache::put`]), so that a second
//! look does not write the same again.

use std::sync::Arc;

use hashbrown::HashMap;
use kube::Resource;
use parking_lot::RwLock;
use sluice_watching::Pulse;
use tokio::sync::watch;

use crate::cluster::key::{KeyRef, ObjectKey};

mod follow;
#[cfg(test)]
#[path = "../../../watching/src/played.rs"]
mod played;
#[cfg(test)]
mod tests;

pub use follow::{Following, Presence};

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

impl<K: Resource> Change<'_, K> {
    /// Whether this is another object, or has another spec.
    pub fn is_respecified(&self) -> bool {
        self.differs(|object| (object.meta().uid.clone(), object.meta().generation))
    }

    /// Whether the watch has brought what the cache had already, for example from this controller's own
    /// write.
    pub fn is_known(&self) -> bool {
        !self.differs(|object| object.meta().resource_version.clone())
    }

    /// Whether this part of the two differs, or one of them cannot be read or is not there.
    pub fn differs<T: PartialEq>(&self, part: impl Fn(&K) -> T) -> bool {
        let part = |seen: Option<&Seen<K>>| Some(part(seen?.object()?));
        let (before, now) = (part(self.before), part(self.now));
        before.is_none() || before != now
    }
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Cache<K> {
    objects: RwLock<Objects<K>>,
    progress: watch::Sender<Progress>,
    pulse: Arc<Pulse>,
}

#[derive(Debug)]
struct Objects<K> {
    by_key: HashMap<ObjectKey, Seen<K>>,
    /// The latest version that the watch has brought: everything up to it is known, deletions too.
    latest: u64,
    /// Whether a list is under way.
    is_listing: bool,
    /// What was written since the list began: the list may have been made before that.
    written: HashMap<ObjectKey, Arc<K>>,
}

/// How far listing has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The API server has not answered.
    Unanswered,
    /// There is no such kind on it.
    NotInstalled,
    /// It has answered with another refusal: mostly because a right is missing.
    Refused,
    /// Everything has been listed once.
    Synced,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::new(Objects {
                by_key: HashMap::new(),
                latest: 0,
                is_listing: false,
                written: HashMap::new(),
            }),
            progress: watch::Sender::new(Progress::Unanswered),
            pulse: Arc::default(),
        }
    }
}

impl<K> Cache<K> {
    /// The object of that name.
    pub fn get(&self, key: KeyRef<'_>) -> Option<Seen<K>> {
        self.objects.read().by_key.get(&key).cloned()
    }

    /// The names of all objects.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.objects.read().by_key.keys().cloned().collect()
    }

    /// All objects with their names, those that cannot be read among them.
    pub fn all(&self) -> Vec<(ObjectKey, Seen<K>)> {
        let all = self.objects.read();
        let all = all.by_key.iter();
        all.map(|(key, seen)| (key.clone(), seen.clone())).collect()
    }

    /// All objects that can be read.
    pub fn objects(&self) -> Vec<Arc<K>> {
        let all = self.objects.read();
        let all = all.by_key.values();
        all.filter_map(Seen::object).cloned().collect()
    }

    /// Those that can be read and are wanted.
    pub fn select(&self, is_wanted: impl Fn(&ObjectKey, &K) -> bool) -> Vec<(ObjectKey, Arc<K>)> {
        let all = self.objects.read();
        let all = all.by_key.iter();
        let readable = all.filter_map(|(key, seen)| Some((key, seen.object()?)));
        let wanted = readable.filter(|(key, object)| is_wanted(key, object));
        let wanted = wanted.map(|(key, object)| (key.clone(), Arc::clone(object)));
        wanted.collect()
    }

    /// Whether its watch is alive.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Whether everything has been listed once.
    pub fn is_synced(&self) -> bool {
        self.progress() == Progress::Synced
    }

    /// How far the listing has come.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Notifies of each step of it.
    pub fn progressing(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
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

    /// Everything has been listed once, as tests have it.
    #[cfg(test)]
    pub(crate) fn sync(&self) {
        self.progress.send_replace(Progress::Synced);
    }

    /// Has it hold this, as if a watch had brought it.
    #[cfg(test)]
    pub(crate) fn hold(&self, key: &ObjectKey, object: Option<Seen<K>>) {
        let mut all = self.objects.write();
        match object {
            Some(object) => drop(all.by_key.insert(key.clone(), object)),
            None => drop(all.by_key.remove(key)),
        }
    }

    async fn reached(&self, far_enough: impl Fn(Progress) -> bool) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| far_enough(*progress)).await;
    }
}

impl<K: Resource> Cache<K> {
    /// Takes in what the watch has brought, and returns what was there before. None: the cache has a
    /// newer version already.
    fn brought(
        &self,
        key: &ObjectKey,
        of: Option<u64>,
        now: Option<&Seen<K>>,
    ) -> Option<Option<Seen<K>>> {
        let mut all = self.objects.write();
        all.latest = all.latest.max(of.unwrap_or(0));
        let known = all.by_key.get(key).and_then(version);
        if let (Some(known), Some(of)) = (known, of)
            && of < known
        {
            return None;
        }
        Some(match now {
            Some(now) => all.by_key.insert(key.clone(), now.clone()),
            None => all.by_key.remove(key),
        })
    }

    /// Takes in an object as the API server has answered a write of it, ahead of the watch, unless the
    /// watch has got as far already. Returns what was there before; None if it was not taken in.
    ///
    /// Versions of one kind are numbers that grow, as Kubernetes has it (KEP 5504); where they are
    /// not, the watch alone is believed, and the price is a second write.
    pub fn put(&self, object: Arc<K>) -> Option<Option<Seen<K>>> {
        self.put_into(&mut self.objects.write(), object)
    }

    /// The same for an object that was there when it was written to. If it is gone now, it stays gone. If it
    /// cannot be read now, nobody knows which version that is.
    pub fn renew(&self, object: Arc<K>) -> Option<Seen<K>> {
        let mut all = self.objects.write();
        match all.by_key.get(&KeyRef::of(object.as_ref())) {
            Some(Seen::Object(_)) => self.put_into(&mut all, object)?,
            Some(Seen::Unreadable(_)) | None => None,
        }
    }

    fn put_into(&self, all: &mut Objects<K>, object: Arc<K>) -> Option<Option<Seen<K>>> {
        let key = ObjectKey::of(object.as_ref());
        let of = version_of(object.as_ref())?;
        let known = all.by_key.get(&key).and_then(version);
        if of <= all.latest || known.is_some_and(|known| of <= known) {
            return None;
        }
        if all.is_listing {
            all.written.insert(key.clone(), Arc::clone(&object));
        }
        Some(all.by_key.insert(key, Seen::Object(object)))
    }

    /// A list begins, which includes everything that was written until now.
    fn begin_list(&self) {
        let mut all = self.objects.write();
        all.is_listing = true;
        all.written.clear();
    }

    /// Takes in a whole list, as of its `latest` version, and returns what was there before.
    ///
    /// The list replaces what was known before: after a backup was restored, versions have gone back. But
    /// an object that was written while the list was under way is kept as it was written, if the list has
    /// an earlier version of it: then the list was made before the write, and the watch brings everything
    /// that came after. What the list lacks is gone, or comes with the watch.
    fn listed(
        &self,
        mut fresh: HashMap<ObjectKey, Seen<K>>,
        latest: u64,
    ) -> HashMap<ObjectKey, Seen<K>> {
        let mut all = self.objects.write();
        for (key, own) in std::mem::take(&mut all.written) {
            if let Some(listed) = fresh.get_mut(&key)
                && let Some((before, after)) = version(listed).zip(version_of(own.as_ref()))
                && before < after
            {
                *listed = Seen::Object(own);
            }
        }
        let fresh = Objects {
            by_key: fresh,
            latest,
            is_listing: false,
            written: HashMap::new(),
        };
        std::mem::replace(&mut *all, fresh).by_key
    }
}

/// The version of an object that can be read.
fn version<K: Resource>(seen: &Seen<K>) -> Option<u64> {
    version_of(seen.object()?.as_ref())
}

fn version_of<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
