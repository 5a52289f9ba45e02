//! The objects of one watch, as they are kept: trimmed to what is read.
//!
//! What comes in: the steps of a watch. What goes out: each object by its name, and a [`Change`] for each
//! that has changed in what is kept of it. Objects are kept as text, which takes a fraction of the memory
//! of values.
//!
//! It uses [`wanted`](crate::wanted) and [`bounds`](crate::bounds).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use parking_lot::{Mutex, MutexGuard};
use sluice_watching::room::{Full, Room, Rooms};
use sluice_watching::shared::{Setback, Sink};
use sluice_watching::{Guard, Step, Unreadable};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::bounds::is_of_namespace;
use crate::wanted::{Change, Cluster, Keep, Kind, Part};

mod object;

pub use object::Object;

/// What an object takes in addition to its text, in bytes.
const BESIDE: usize = 200;
/// How many objects are listed at once. A page is in memory as a whole before it is known what is kept of its objects:
/// 500 Deployments take 20 MiB.
const PAGE: u32 = 50;
/// How soon objects are listed again for which there was no room in their namespace.
const AGAIN: Duration = Duration::from_secs(300);

/// An object, or why it cannot be read. One that cannot be read hides no other.
pub(crate) type Entry = Result<Arc<Object>, Arc<str>>;

/// What is known of an object of a watch.
pub(crate) enum Found {
    Here(Entry),
    /// There is none.
    Nothing,
    /// Its namespace has more than may be held, and it may be among the rest.
    Full(Arc<str>),
}

/// The objects of a namespace, by name. Dropped, they give back their room.
#[derive(Debug)]
struct Names {
    entries: HashMap<String, Entry>,
    room: Arc<Room>,
    bytes: usize,
    /// Why there are objects that are not here.
    full: Option<Arc<str>>,
}

impl Drop for Names {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

fn size(name: &str, entry: &Entry) -> usize {
    let text = match entry {
        Ok(object) => object.size(),
        Err(why) => why.len(),
    };
    text + name.len() + BESIDE
}

fn is_shared(one: &Entry, other: &Entry) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => Arc::ptr_eq(one, other),
        (Err(one), Err(other)) => Arc::ptr_eq(one, other),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

impl Names {
    fn new(room: Arc<Room>) -> Self {
        Self {
            entries: HashMap::new(),
            room,
            bytes: 0,
            full: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.full.is_none()
    }

    /// Puts an object in its place. Where there is no room for it in the namespace, it is left out.
    fn put(&mut self, name: String, entry: Entry) -> Result<(), Full> {
        self.remove(&name);
        let size = size(&name, &entry);
        match self.room.take(size) {
            Ok(()) => {
                self.bytes += size;
                self.entries.insert(name, entry);
                Ok(())
            }
            Err(full) if is_of_namespace(full) => {
                self.full = Some(full.to_string().into());
                Ok(())
            }
            Err(full) => Err(full),
        }
    }

    fn remove(&mut self, name: &str) -> Option<Entry> {
        let entry = self.entries.remove(name)?;
        let size = size(name, &entry);
        self.bytes -= size;
        self.room.give(size);
        Some(entry)
    }

    /// What both have takes room once: from now on here.
    fn inherit(&mut self, before: &mut Names) {
        for (name, entry) in &self.entries {
            let known = before.entries.get(name);
            if known.is_some_and(|known| is_shared(known, entry)) {
                let size = size(name, entry);
                self.bytes += size;
                before.bytes -= size;
            }
        }
    }
}

/// Objects by namespace.
type Entries = HashMap<String, Names>;

fn entry_of<'e>(all: &'e Entries, namespace: &str, name: &str) -> Option<&'e Entry> {
    all.get(namespace)?.entries.get(name)
}

/// What a watch holds.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Mutex<Entries>>);

/// Which objects it holds is told by changes, object by object.
impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Held {
    /// What is known of an object.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Found {
        let all = self.lock();
        let Some(names) = all.get(namespace) else {
            return Found::Nothing;
        };
        match (names.entries.get(name), &names.full) {
            (Some(entry), _) => Found::Here(entry.clone()),
            (None, Some(why)) => Found::Full(Arc::clone(why)),
            (None, None) => Found::Nothing,
        }
    }

    /// All objects of a namespace, by name. Those that cannot be read are left out.
    ///
    /// # Errors
    /// There are more than may be held.
    pub(crate) fn all(&self, namespace: &str) -> Result<Vec<(String, Arc<Object>)>, Arc<str>> {
        let all = self.lock();
        let Some(names) = all.get(namespace) else {
            return Ok(Vec::new());
        };
        if let Some(why) = &names.full {
            return Err(Arc::clone(why));
        }
        let entries = names.entries.iter();
        let readable = entries
            .filter_map(|(name, entry)| Some((name.clone(), Arc::clone(entry.as_ref().ok()?))));
        Ok(readable.collect())
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }
}

/// How a watch is kept: of what, where, and who is told.
pub(crate) struct How {
    pub(crate) cluster: Cluster,
    pub(crate) kind: Kind,
    pub(crate) resource: ApiResource,
    pub(crate) part: Part,
    pub(crate) keep: Keep,
    pub(crate) news: broadcast::Sender<Change>,
    /// Where there is room for objects of the cluster.
    pub(crate) rooms: Arc<Rooms>,
}

/// Keeps what a watch brings.
pub(crate) struct Keeper {
    how: How,
    held: Held,
    /// What the list that is under way has so far. What is the same as before is shared with that, and
    /// takes no room of its own.
    listed: Entries,
    /// When everything is listed again, because there was no room for some of it.
    again: Option<Instant>,
    /// A list was complete: from then on each change is told by itself.
    is_told: bool,
}

impl Keeper {
    pub(crate) fn new(how: How) -> Self {
        Self {
            how,
            held: Held(Arc::default()),
            listed: Entries::default(),
            again: None,
            is_told: false,
        }
    }

    fn entry(&self, object: Guard<DynamicObject>) -> (String, String, Entry) {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        let entry = match object.0 {
            Ok(object) => Ok(Arc::new(Object::new(
                object,
                &self.how.resource,
                (self.how.part, self.how.keep),
            ))),
            Err(Unreadable { why, .. }) => Err(why.into()),
        };
        (namespace, name, entry)
    }

    fn list(&mut self, page: Vec<Guard<DynamicObject>>) -> Result<(), Setback> {
        for object in page {
            let (namespace, name, entry) = self.entry(object);
            let known = entry_of(&self.held.lock(), &namespace, &name).cloned();
            let names = names_of(&mut self.listed, &self.how.rooms, namespace);
            match known.filter(|known| *known == entry) {
                Some(known) => drop(names.entries.insert(name, known)),
                None => names.put(name, entry).map_err(too_much)?,
            }
        }
        Ok(())
    }

    /// What was listed takes the place of what was held.
    fn replace(&mut self) {
        let mut listed = std::mem::take(&mut self.listed);
        let before = {
            let mut held = self.held.lock();
            for (namespace, names) in &mut listed {
                let before = held.get_mut(namespace);
                before.into_iter().for_each(|before| names.inherit(before));
            }
            std::mem::replace(&mut *held, listed)
        };
        let is_full = self.held.lock().values().any(|names| names.full.is_some());
        self.again = is_full.then(|| Instant::now() + AGAIN);
        if self.is_told {
            self.tell_differences(&before);
        }
        self.is_told = true;
    }

    fn tell_differences(&self, before: &Entries) {
        let mut differ = BTreeSet::new();
        let mut filled = BTreeSet::new();
        {
            let now = self.held.lock();
            for (from, other) in [(before, &*now), (&*now, before)] {
                for (namespace, names) in from {
                    let beside = other.get(namespace).and_then(|it| it.full.as_ref());
                    if names.full.is_some() != beside.is_some() {
                        filled.insert(namespace.clone());
                    }
                    for (name, entry) in &names.entries {
                        if entry_of(other, namespace, name) != Some(entry) {
                            differ.insert((namespace.clone(), name.clone()));
                        }
                    }
                }
            }
        }
        for (namespace, name) in differ {
            self.tell(namespace, name);
        }
        for namespace in filled {
            self.tell_all(namespace);
        }
    }

    /// An object has become this. None: it is gone.
    fn change(
        &mut self,
        namespace: String,
        name: String,
        entry: Option<Entry>,
    ) -> Result<(), Setback> {
        let (is_new, is_full) = {
            let mut all = self.held.lock();
            let is_new = entry_of(&all, &namespace, &name) != entry.as_ref();
            let names = names_of(&mut all, &self.how.rooms, namespace.clone());
            let was_full = names.full.is_some();
            match entry {
                Some(entry) if is_new => names.put(name.clone(), entry).map_err(too_much)?,
                Some(_) => {}
                None => drop(names.remove(&name)),
            }
            let is_full = names.full.is_some() && !was_full;
            if names.is_empty() {
                all.remove(&namespace);
            }
            (is_new, is_full)
        };
        if is_full {
            self.again = self.again.or_else(|| Some(Instant::now() + AGAIN));
            self.tell_all(namespace.clone());
        }
        if is_new {
            self.tell(namespace, name);
        }
        Ok(())
    }

    fn tell(&self, namespace: String, name: String) {
        // Nobody listens: nobody waits.
        let _ = self.how.news.send(Change::Object {
            cluster: self.how.cluster.clone(),
            kind: self.how.kind.clone(),
            namespace,
            name,
        });
    }

    fn tell_all(&self, namespace: String) {
        let _ = self.how.news.send(Change::Objects {
            cluster: self.how.cluster.clone(),
            kind: self.how.kind.clone(),
            namespace: Some(namespace),
        });
    }
}

fn names_of<'e>(all: &'e mut Entries, rooms: &Rooms, namespace: String) -> &'e mut Names {
    let new = |namespace: &String| Names::new(rooms.of(namespace));
    all.entry(namespace).or_insert_with_key(new)
}

fn too_much(full: Full) -> Setback {
    Setback::TooMuch(full.to_string())
}

impl Sink for Keeper {
    type Object = DynamicObject;
    type Told = Held;
    const VANISHES: bool = true;

    fn page_size(&self) -> Option<u32> {
        Some(PAGE)
    }

    fn lists_again_at(&self) -> Option<Instant> {
        self.again
    }

    fn take(&mut self, step: Step<Guard<DynamicObject>>) -> Result<Option<Held>, Setback> {
        match step {
            Step::Begun => {
                self.listed.clear();
                self.again = None;
                return Ok(None);
            }
            Step::Page(page) => return self.list(page).map(|()| None),
            Step::Listed(_) => self.replace(),
            Step::Apply(object) => {
                let (namespace, name, entry) = self.entry(object);
                self.change(namespace, name, Some(entry))?;
            }
            Step::Delete(object) => {
                let namespace = object.namespace().unwrap_or_default();
                self.change(namespace, object.name_any(), None)?;
            }
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {
                return Ok(None);
            }
        }
        Ok(Some(self.held.clone()))
    }

    fn clear(&mut self) {
        self.held.lock().clear();
        self.listed.clear();
        self.again = None;
        self.is_told = false;
    }
}

#[cfg(test)]
mod tests;
