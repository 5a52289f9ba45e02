//! What the store holds, in memory: read without I/O, changed at an instant that is given.
//!
//! A file that is not needed any more stays for [`GRACE`], counted from when it was last needed or
//! served: a client that has just read its address still gets it.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use jiff::{SignedDuration, Timestamp};
use sluice_core::time::span::later;
use tokio_util::sync::CancellationToken;

use super::digest::Digest;
use super::verify::Verified;
use super::{Failure, State, Stored, place};
use crate::cluster::key::ObjectKey;

/// How long a file stays when it is not needed any more: as long as source-controller keeps its own.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Everything that is stored, being fetched, or could not be.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<ObjectKey, BTreeMap<Digest, Entry>>);

#[derive(Debug)]
enum Entry {
    /// It lay there at the start, and has not been read yet.
    Unverified(Found),
    /// Until its token is cancelled, after this failure.
    Fetching(CancellationToken, Option<Failure>),
    Failed(Failure),
    Stored(Kept),
}

impl Entry {
    fn kept(&self) -> Option<&Kept> {
        match self {
            Entry::Stored(kept) => Some(kept),
            Entry::Unverified(_) | Entry::Fetching(..) | Entry::Failed(_) => None,
        }
    }

    /// How many bytes it takes on the disk, as far as is known.
    fn bytes(&self) -> u64 {
        match self {
            Entry::Stored(kept) => kept.size,
            Entry::Unverified(found) => found.size,
            Entry::Fetching(..) | Entry::Failed(_) => 0,
        }
    }
}

#[derive(Debug)]
struct Found {
    /// As the disk says.
    size: u64,
    /// Since when it is not needed any more.
    left: Option<Timestamp>,
}

#[derive(Debug)]
struct Kept {
    size: u64,
    at: Timestamp,
    /// When it was last served.
    served: Option<Timestamp>,
    /// Since when it is not needed any more.
    left: Option<Timestamp>,
}

impl Kept {
    /// When it may go.
    fn due(&self) -> Option<Timestamp> {
        let since = self.left.max(self.served.filter(|_| self.left.is_some()))?;
        Some(later(since, GRACE))
    }
}

/// The result of fetching.
pub(super) type Fetched = Result<(u64, Timestamp), (String, Timestamp)>;

impl Index {
    /// A file of `size` bytes that has still to be read.
    pub(super) fn found(&mut self, key: ObjectKey, digest: Digest, size: u64) {
        let entries = self.0.entry(key).or_default();
        entries.insert(digest, Entry::Unverified(Found { size, left: None }));
    }

    /// Notes the result of verifying such a file. Says whether it may be removed some day.
    pub(super) fn verified(&mut self, key: &ObjectKey, digest: &Digest, is: Verified) -> bool {
        let Some(entries) = self.0.get_mut(key) else {
            return false;
        };
        let Some(Entry::Unverified(found)) = entries.get(digest) else {
            return false;
        };
        let left = found.left;
        match is {
            Verified::Whole(size, at) => {
                let kept = Kept {
                    size,
                    at,
                    served: None,
                    left,
                };
                entries.insert(digest.clone(), Entry::Stored(kept));
            }
            Verified::Broken | Verified::Unreadable => {
                entries.remove(digest);
            }
        }
        self.tidy(key);
        left.is_some()
    }

    /// Whether anything of `key` has still to be read.
    pub(super) fn is_verifying(&self, key: &ObjectKey) -> bool {
        let entries = self.0.get(key).into_iter().flat_map(BTreeMap::values);
        entries
            .into_iter()
            .any(|entry| matches!(entry, Entry::Unverified(_)))
    }

    pub(super) fn state(&self, key: &ObjectKey, digest: &Digest) -> State {
        let entry = self.0.get(key).and_then(|entries| entries.get(digest));
        match entry {
            None => State::Absent,
            Some(Entry::Unverified(_)) => State::Verifying,
            Some(Entry::Fetching(_, before)) => State::Fetching(before.clone()),
            Some(Entry::Failed(failure)) => State::Failed(failure.clone()),
            Some(Entry::Stored(kept)) => State::Stored(Stored {
                path: place::path(key, digest),
                digest: digest.clone(),
                size: kept.size,
                at: kept.at,
            }),
        }
    }

    /// Notes that an artifact is being fetched until `token` is cancelled. False: it is stored, being
    /// verified, or being fetched already.
    pub(super) fn begin(
        &mut self,
        key: &ObjectKey,
        digest: &Digest,
        token: CancellationToken,
    ) -> bool {
        let entries = self.0.entry(key.clone()).or_default();
        let before = match entries.get(digest) {
            Some(Entry::Stored(_) | Entry::Unverified(_) | Entry::Fetching(..)) => return false,
            Some(Entry::Failed(failure)) => Some(failure.clone()),
            None => None,
        };
        entries.insert(digest.clone(), Entry::Fetching(token, before));
        true
    }

    /// Notes the result of fetching, if it is still wanted.
    pub(super) fn settle(&mut self, key: &ObjectKey, digest: &Digest, fetched: Fetched) {
        let entry = self.0.get_mut(key).and_then(|it| it.get_mut(digest));
        let Some(entry @ Entry::Fetching(..)) = entry else {
            return;
        };
        let before = match entry {
            Entry::Fetching(_, Some(before)) => before.failures,
            Entry::Fetching(_, None)
            | Entry::Failed(_)
            | Entry::Stored(_)
            | Entry::Unverified(_) => 0,
        };
        *entry = match fetched {
            Ok((size, at)) => Entry::Stored(Kept {
                size,
                at,
                served: None,
                left: None,
            }),
            Err((why, at)) => Entry::Failed(Failure {
                why,
                at,
                failures: before.saturating_add(1),
            }),
        };
    }

    /// What `key` has other than `keep` is not needed any more: what is being fetched is cancelled, what
    /// failed is forgotten, what is stored may be removed after [`GRACE`]. Says whether something may be
    /// removed now that might not before.
    pub(super) fn retain(&mut self, key: &ObjectKey, keep: &[Digest], now: Timestamp) -> bool {
        let mut any = false;
        let Some(entries) = self.0.get_mut(key) else {
            return any;
        };
        entries.retain(|digest, entry| match (keep.contains(digest), entry) {
            (true, Entry::Stored(kept)) => {
                kept.left = None;
                true
            }
            (false, Entry::Stored(kept)) => {
                any |= kept.left.is_none();
                kept.left = kept.left.or(Some(now));
                true
            }
            (keep, Entry::Unverified(Found { left, .. })) => {
                *left = if keep { None } else { left.or(Some(now)) };
                true
            }
            (true, Entry::Fetching(..) | Entry::Failed(_)) => true,
            (false, Entry::Fetching(token, _)) => {
                token.cancel();
                false
            }
            (false, Entry::Failed(_)) => false,
        });
        self.tidy(key);
        any
    }

    /// Takes out what may be removed at `now`.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<(ObjectKey, Digest)> {
        let mut due = Vec::new();
        self.0.retain(|key, entries| {
            entries.retain(|digest, entry| {
                let is_due =
                    matches!(entry, Entry::Stored(kept) if kept.due().is_some_and(|at| at <= now));
                if is_due {
                    due.push((key.clone(), digest.clone()));
                }
                !is_due
            });
            !entries.is_empty()
        });
        due
    }

    /// When the next file may be removed.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.stored().filter_map(Kept::due).min()
    }

    /// Notes that a file is served at `now`, and says how long it is.
    pub(super) fn serve(
        &mut self,
        key: &ObjectKey,
        digest: &Digest,
        now: Timestamp,
    ) -> Option<u64> {
        match self.0.get_mut(key)?.get_mut(digest)? {
            Entry::Stored(kept) => {
                kept.served = Some(now);
                Some(kept.size)
            }
            Entry::Unverified(_) | Entry::Fetching(..) | Entry::Failed(_) => None,
        }
    }

    /// A file is gone from the disk, or is not what it was.
    pub(super) fn lose(&mut self, key: &ObjectKey, digest: &Digest) {
        if let Some(entries) = self.0.get_mut(key)
            && matches!(entries.get(digest), Some(Entry::Stored(_)))
        {
            entries.remove(digest);
        }
        self.tidy(key);
    }

    /// Whose artifacts there are.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.0.keys().cloned().collect()
    }

    /// How many files there are, and how many bytes.
    pub(super) fn amount(&self) -> (usize, u64) {
        let sizes = self.stored().map(|kept| kept.size);
        sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
    }

    /// How many bytes a namespace has. What has still to be read takes room as well.
    pub(super) fn bytes_of(&self, namespace: &str) -> u64 {
        let own = self.0.iter();
        let own = own.filter(|(key, _)| &*key.namespace == namespace);
        let entries = own.flat_map(|(_, entries)| entries.values());
        entries.map(Entry::bytes).sum()
    }

    fn stored(&self) -> impl Iterator<Item = &Kept> {
        let entries = self.0.values().flat_map(BTreeMap::values);
        entries.filter_map(Entry::kept)
    }

    fn tidy(&mut self, key: &ObjectKey) {
        if self.0.get(key).is_some_and(BTreeMap::is_empty) {
            self.0.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
