//! The votes for one gatekeeper, found by what they are about: however many there are, a question
//! about one revision looks at those on that revision.

use std::collections::HashMap;
use std::sync::Arc;

use sluice_crds::Approval;
use sluice_crds::approval::Vote;

use crate::revision::Revision;

/// The most approvals of one gatekeeper. They are small, and whoever may approve may write them.
pub const MOST_VOTES: usize = 10_000;

/// The approvals for one gatekeeper, each read once.
#[derive(Clone, Debug, Default)]
pub struct Ballot {
    /// By what [`key`] says of their revisions; those whose revision nobody can read under none.
    votes: HashMap<Option<Box<str>>, Vec<Cast>>,
    count: usize,
}

/// A vote that was read.
#[derive(Clone, Debug)]
struct Cast {
    approval: Arc<Approval>,
    /// None: it makes no sense.
    revision: Option<Revision>,
}

impl Ballot {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there are more than may be counted.
    pub fn is_too_large(&self) -> bool {
        self.count > MOST_VOTES
    }

    /// Adds an approval.
    pub fn insert(&mut self, approval: Arc<Approval>) {
        let revision = Revision::parse(&approval.spec.revision).ok();
        let place = revision.as_ref().map(key);
        let cast = Cast { approval, revision };
        self.votes.entry(place).or_default().push(cast);
        self.count += 1;
    }

    /// Takes an approval out that was added before.
    pub fn remove(&mut self, approval: &Approval) {
        let place = Revision::parse(&approval.spec.revision).ok();
        let place = place.as_ref().map(key);
        let Some(votes) = self.votes.get_mut(&place) else {
            return;
        };
        let name = &approval.metadata.name;
        let before = votes.len();
        votes.retain(|cast| cast.approval.metadata.name != *name);
        self.count -= before - votes.len();
        if votes.is_empty() {
            self.votes.remove(&place);
        }
    }

    /// All of them, with their revisions.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<Approval>, Option<&Revision>)> {
        let all = self.votes.values().flatten();
        all.map(|cast| (&cast.approval, cast.revision.as_ref()))
    }

    /// Those that are about `revision`. What is named too vaguely is nothing that anybody approves
    /// of; but a rejection of it counts: of a name without its digest for whatever bears that name,
    /// and of what nobody can read for everything.
    pub(super) fn about(&self, revision: &Revision) -> impl Iterator<Item = &Arc<Approval>> {
        let by_name = revision.digest().and(revision.name()).map(named);
        let places = [Some(Some(key(revision))), by_name.map(Some), Some(None)];
        let found = places.into_iter().flatten();
        let found = found.filter_map(|place| self.votes.get(&place)).flatten();
        let found = found.filter(|cast| cast.is_about(revision));
        found.map(|cast| &cast.approval)
    }
}

impl FromIterator<Arc<Approval>> for Ballot {
    fn from_iter<I: IntoIterator<Item = Arc<Approval>>>(approvals: I) -> Self {
        let mut ballot = Self::default();
        for approval in approvals {
            ballot.insert(approval);
        }
        ballot
    }
}

impl Cast {
    fn is_about(&self, revision: &Revision) -> bool {
        let rejects = self.approval.spec.decision == Vote::Reject;
        match &self.revision {
            Some(named) if named.is(revision) => true,
            Some(named) => rejects && named.digest().is_none() && named.name() == revision.name(),
            None => rejects,
        }
    }
}

/// The same for all revisions that are the same: see [`Revision::is`].
fn key(revision: &Revision) -> Box<str> {
    match (revision.digest(), revision.name()) {
        (Some(digest), _) => digest.into(),
        (None, name) => named(name.unwrap_or_default()),
    }
}

/// Of a revision that is only a name. No name has a space, nor has a digest.
fn named(name: &str) -> Box<str> {
    let version = Revision::parse(name).ok();
    match version.as_ref().and_then(Revision::version) {
        Some(version) => {
            let build = semver::BuildMetadata::EMPTY;
            let plain = semver::Version {
                build,
                ..version.clone()
            };
            format!("version {plain}").into()
        }
        None => format!("name {name}").into(),
    }
}
