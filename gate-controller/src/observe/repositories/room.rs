//! How much memory answers may take: about one repository, for one who asks, and of all repositories together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cluster::key::Work;

/// The most bytes that the answers about a repository take, about.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// The most of them that the answers take which one asks for, so that there is room for others.
pub(super) const SHARE: usize = MOST_BYTES / 4;
/// The most bytes that the answers about all repositories take together.
pub(super) const MOST_OF_ALL: usize = 64 << 20;
/// With so many, answers that nobody asks for are dropped before others come.
pub(super) const MANY: usize = MOST_OF_ALL / 4 * 3;

/// How many bytes the answers about all repositories take. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Whole(Arc<AtomicUsize>);

impl Whole {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// What the answers about one repository take.
#[derive(Default)]
pub(super) struct Room {
    whole: Whole,
    bytes: usize,
    by: HashMap<Work, usize>,
}

impl Room {
    pub(super) fn of(whole: Whole) -> Self {
        Self {
            whole,
            bytes: 0,
            by: HashMap::new(),
        }
    }

    /// An answer comes in. Of those that somebody asks for it is said who that is.
    pub(super) fn add(&mut self, by: Option<&Work>, bytes: usize) {
        self.bytes += bytes;
        self.whole.0.fetch_add(bytes, Relaxed);
        if let Some(by) = by {
            *self.by.entry(by.clone()).or_default() += bytes;
        }
    }

    /// An answer is dropped.
    pub(super) fn remove(&mut self, by: Option<&Work>, bytes: usize) {
        self.bytes -= bytes;
        self.whole.0.fetch_sub(bytes, Relaxed);
        if let Some(by) = by
            && let Some(share) = self.by.get_mut(by)
        {
            *share = share.saturating_sub(bytes);
            if *share == 0 {
                self.by.remove(by);
            }
        }
    }

    /// Whether the answers take more than they may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES || self.whole.bytes() > MOST_OF_ALL
    }

    /// Whether there is room in the share of one who asks.
    pub(super) fn has_share(&self, by: &Work, bytes: usize) -> bool {
        self.by.get(by).copied().unwrap_or_default() + bytes <= SHARE
    }

    /// Nothing is held any more.
    pub(super) fn clear(&mut self) {
        self.whole.0.fetch_sub(self.bytes, Relaxed);
        self.bytes = 0;
        self.by.clear();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.clear();
    }
}
