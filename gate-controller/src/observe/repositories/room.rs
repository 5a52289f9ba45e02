//! How much memory answers may take: for one who asks about a repository, for a namespace, and all of them together.
//!
//! What a namespace may have is bounded twice: by a part of the whole, and by what is left for all others. So
//! however many ask for much, there is always room for anyone who has little.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::cluster::key::Work;

/// The most bytes that the answers about a repository take which nobody asks for, about.
pub(super) const MOST_KEPT: usize = 16 << 20;
/// The most bytes of the answers about a repository that one asks for.
const SHARE: usize = 4 << 20;
/// The most bytes that the answers about all repositories take together.
const MOST_OF_ALL: usize = 64 << 20;
/// The most of them that a namespace asks for.
const OF_NAMESPACE: usize = MOST_OF_ALL / 4;
/// With so many, answers that nobody asks for are dropped before others come.
const MANY: usize = MOST_OF_ALL / 4 * 3;

/// How many bytes the answers about all repositories take. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Whole(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    bytes: usize,
    /// Of those that somebody asks for.
    asked: usize,
    /// The same for the namespaces of those who ask.
    by: HashMap<Arc<str>, usize>,
}

impl Whole {
    pub(super) fn bytes(&self) -> usize {
        self.counts().bytes
    }

    /// Whether answers that nobody asks for have to give way.
    pub(super) fn is_tight(&self) -> bool {
        self.bytes() > MANY
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock()
    }
}

impl Counts {
    fn add(&mut self, namespace: Option<&Arc<str>>, bytes: usize) {
        self.bytes += bytes;
        if let Some(namespace) = namespace {
            self.asked += bytes;
            *self.by.entry(Arc::clone(namespace)).or_default() += bytes;
        }
    }

    fn remove(&mut self, namespace: Option<&Arc<str>>, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(namespace) = namespace {
            self.asked = self.asked.saturating_sub(bytes);
            subtract(&mut self.by, namespace, bytes);
        }
    }

    fn has_share(&self, namespace: &Arc<str>, bytes: usize) -> bool {
        let own = self.by.get(namespace).copied().unwrap_or_default() + bytes;
        let left = MOST_OF_ALL.saturating_sub(self.asked + bytes);
        own <= OF_NAMESPACE.min(left)
    }
}

/// What the answers about one repository take.
#[derive(Default)]
pub(super) struct Room {
    whole: Whole,
    /// Those that nobody asks for.
    kept: usize,
    by: HashMap<Work, usize>,
}

impl Room {
    pub(super) fn of(whole: Whole) -> Self {
        Self {
            whole,
            kept: 0,
            by: HashMap::new(),
        }
    }

    /// An answer comes in. Of those that somebody asks for it is said who that is.
    pub(super) fn add(&mut self, by: Option<&Work>, bytes: usize) {
        self.whole.counts().add(by.map(namespace), bytes);
        match by {
            Some(by) => *self.by.entry(by.clone()).or_default() += bytes,
            None => self.kept += bytes,
        }
    }

    /// An answer is dropped.
    pub(super) fn remove(&mut self, by: Option<&Work>, bytes: usize) {
        self.whole.counts().remove(by.map(namespace), bytes);
        match by {
            Some(by) => subtract(&mut self.by, by, bytes),
            None => self.kept = self.kept.saturating_sub(bytes),
        }
    }

    /// Whether answers that nobody asks for have to give way, of whichever repository.
    pub(super) fn is_tight(&self) -> bool {
        self.whole.is_tight()
    }

    /// How much those take that nobody asks for.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Whether there is room for an answer that one asks for.
    ///
    /// # Errors
    /// There is none: why.
    pub(super) fn has_share(&self, by: &Work, bytes: usize) -> Result<(), String> {
        if self.by.get(by).copied().unwrap_or_default() + bytes > SHARE {
            let most = SHARE >> 20;
            return Err(format!(
                "its answers about this repository take more than {most} MiB"
            ));
        }
        match self.whole.counts().has_share(namespace(by), bytes) {
            true => Ok(()),
            false => Err(format!(
                "the answers about all repositories that its namespace asks for take more than {} MiB, or more \
                 than what all others leave of {} MiB",
                OF_NAMESPACE >> 20,
                MOST_OF_ALL >> 20
            )),
        }
    }

    /// Nothing is held any more.
    pub(super) fn clear(&mut self) {
        let mut counts = self.whole.counts();
        counts.remove(None, std::mem::take(&mut self.kept));
        for (by, bytes) in self.by.drain() {
            counts.remove(Some(namespace(&by)), bytes);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.clear();
    }
}

fn namespace(by: &Work) -> &Arc<str> {
    &by.key.namespace
}

/// One that has nothing left is not counted any more.
fn subtract<K: Eq + Hash>(counts: &mut HashMap<K, usize>, of: &K, bytes: usize) {
    if let Some(count) = counts.get_mut(of) {
        *count = count.saturating_sub(bytes);
        if *count == 0 {
            counts.remove(of);
        }
    }
}
