//! The objects of one watch, and what happened to them recently.
//!
//! What comes in: lists, and changes one by one. What goes out: to each reader, which remembers how far
//! it has read, every change since then; or everything, if it has fallen behind. So every reader sees an
//! object that was unready for a moment, even if it looks seldom.
//!
//! Objects are kept as text: it takes a fraction of the memory of values, and the limits count its size.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;
use sluice_watching::room::{Full, Room, Rooms};
use sluice_watching::trimmed;

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects of one kind in one namespace.
    pub objects: usize,
    /// Their text, in bytes.
    pub bytes: usize,
    /// The text of all objects that are watched in one namespace, in bytes; of those in none, too.
    pub namespace_bytes: usize,
    /// The text of all objects that are watched, in bytes.
    pub all_bytes: usize,
    /// Changes that are remembered for those who read later, of one kind in one namespace.
    pub changes: usize,
    /// Their text, in bytes.
    pub changed_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 10_000,
            bytes: 16 << 20,
            namespace_bytes: 32 << 20,
            // A quarter of the memory that the chart gives the controller.
            all_bytes: 64 << 20,
            changes: 1024,
            changed_bytes: 1 << 20,
        }
    }
}

impl Limits {
    /// Whether so many objects, of so many bytes, may be held.
    pub(super) fn check(&self, objects: usize, bytes: usize) -> Result<(), TooMuch> {
        if objects > self.objects {
            let most = self.objects;
            return Err(TooMuch(format!("there are more than {most} of them")));
        }
        if bytes > self.bytes {
            let most = self.bytes;
            return Err(TooMuch(format!("they take more than {most} bytes")));
        }
        Ok(())
    }

    /// Where the text of all objects of each namespace is counted.
    pub(super) fn rooms(&self) -> Rooms {
        let all = "with all others that are watched they";
        let all = Room::new(all, self.all_bytes, None);
        let others = "with all others of their namespace that are watched they";
        Rooms::new(others, self.namespace_bytes, all)
    }
}

/// More than may be held: what, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TooMuch(pub(super) String);

impl From<Full> for TooMuch {
    fn from(full: Full) -> Self {
        Self(full.to_string())
    }
}

/// An object as it was sent, without the fields that are not read here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    version: String,
    text: Box<str>,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: String,
    /// What it has become. None: it is gone.
    pub(super) now: Option<Arc<Stored>>,
    /// There may have been other changes before it that were not seen.
    pub(super) unseen: bool,
}

/// How far somebody has read, and in which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    store: u64,
    read: u64,
}

/// What is new to somebody.
#[derive(Debug)]
pub(super) enum News {
    /// These changes, the oldest first.
    Changes(Vec<Change>),
    /// Too much has happened to remember: everything as it is now, as if it had just come.
    All(Vec<Change>),
}

/// The objects of one watch.
pub(super) struct Store {
    /// No other store has it.
    id: u64,
    limits: Limits,
    objects: BTreeMap<String, Arc<Stored>>,
    bytes: usize,
    room: Arc<Room>,
    changes: VecDeque<Change>,
    changed_bytes: usize,
    /// The number of the change that comes next.
    next: u64,
}

impl Stored {
    /// An object of `resource`, without what nobody reads.
    pub(super) fn new(object: DynamicObject, resource: &ApiResource) -> Self {
        let object = trimmed(object, resource);
        Self {
            name: object.name_any(),
            labels: object.metadata.labels.clone().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            // What was JSON a moment ago is JSON.
            text: serde_json::to_string(&object).unwrap_or_default().into(),
        }
    }

    /// How much room it takes, in bytes of its text.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    /// The object.
    pub(super) fn read(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl Store {
    /// An empty store, whose text counts in `room` too.
    pub(super) fn new(limits: Limits, room: Arc<Room>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            limits,
            objects: BTreeMap::new(),
            bytes: 0,
            room,
            changes: VecDeque::new(),
            changed_bytes: 0,
            next: 0,
        }
    }

    /// An object has come or changed, and nothing before that was missed.
    pub(super) fn apply(&mut self, object: Stored) -> Result<(), TooMuch> {
        self.change(object.name.clone(), Some(object), false)
    }

    /// An object is gone, and nothing before that was missed.
    pub(super) fn delete(&mut self, name: &str) {
        if self.objects.contains_key(name) {
            // What goes takes no room.
            let _ = self.change(name.to_owned(), None, false);
        }
    }

    /// All objects as they are. Changes in between were not seen. Returns whether anything has changed.
    pub(super) fn replace(&mut self, listed: Vec<Stored>) -> Result<bool, TooMuch> {
        let before = self.next;
        let mut gone = self.objects.clone();
        for object in listed {
            let known = gone.remove(&object.name);
            if known.is_none_or(|known| known.version != object.version) {
                self.change(object.name.clone(), Some(object), true)?;
            }
        }
        for name in gone.into_keys() {
            self.change(name, None, true)?;
        }
        Ok(self.next != before)
    }

    /// How many changes there were.
    pub(super) fn changes(&self) -> u64 {
        self.next
    }

    /// Forgets everything, because there is no room.
    pub(super) fn clear(&mut self) {
        self.objects.clear();
        self.room.give(self.bytes);
        self.bytes = 0;
        self.changes.clear();
        self.changed_bytes = 0;
        self.next += 1;
    }

    /// What has changed since `cursor`, and how far that goes. None: nothing was read yet.
    pub(super) fn since(&self, cursor: Option<Cursor>) -> (News, Cursor) {
        let remembered = u64::try_from(self.changes.len()).unwrap_or(u64::MAX);
        let cursor = cursor.filter(|cursor| cursor.store == self.id);
        let unread = cursor.and_then(|cursor| self.next.checked_sub(cursor.read));
        let news = match unread.filter(|unread| *unread <= remembered) {
            Some(unread) => {
                let skipped = usize::try_from(remembered - unread).unwrap_or(usize::MAX);
                News::Changes(self.changes.iter().skip(skipped).cloned().collect())
            }
            None => {
                let come = self.objects.values().map(|object| Change {
                    name: object.name.clone(),
                    now: Some(Arc::clone(object)),
                    unseen: false,
                });
                News::All(come.collect())
            }
        };
        let (store, read) = (self.id, self.next);
        (news, Cursor { store, read })
    }

    fn change(
        &mut self,
        name: String,
        object: Option<Stored>,
        unseen: bool,
    ) -> Result<(), TooMuch> {
        let now = object.map(Arc::new);
        let before = self.objects.remove(&name);
        let (less, more) = (size(before.as_ref()), size(now.as_ref()));
        self.bytes -= less;
        self.room.give(less);
        self.room.take(more)?;
        self.bytes += more;
        if let Some(now) = &now {
            self.objects.insert(name.clone(), Arc::clone(now));
        }
        self.remember(Change { name, now, unseen });
        self.limits.check(self.objects.len(), self.bytes)
    }

    fn remember(&mut self, change: Change) {
        self.next += 1;
        self.changed_bytes += size(change.now.as_ref());
        self.changes.push_back(change);
        while self.changes.len() > self.limits.changes
            || self.changed_bytes > self.limits.changed_bytes
        {
            let Some(oldest) = self.changes.pop_front() else {
                return;
            };
            self.changed_bytes -= size(oldest.now.as_ref());
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

fn size(object: Option<&Arc<Stored>>) -> usize {
    object.map_or(0, |object| object.size())
}
