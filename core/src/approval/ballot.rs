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
    /// By the digests of their revisions.
    by_digest: HashMap<Box<str>, Vec<Cast>>,
    /// Those of revisions without a digest, by what [`named`] makes of their names.
    by_name: HashMap<Box<str>, Vec<Cast>>,
    /// Those whose revision nobody can read.
    vague: Vec<Cast>,
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
        let cast = Cast { approval, revision };
        match place(cast.revision.as_ref()) {
            Place::Digest(digest) => self.by_digest.entry(digest).or_default().push(cast),
            Place::Name(name) => self.by_name.entry(name).or_default().push(cast),
            Place::Vague => self.vague.push(cast),
        }
        self.count += 1;
    }

    /// Takes an approval out that was added before.
    pub fn remove(&mut self, approval: &Approval) {
        let name = &approval.metadata.name;
        let others = |cast: &Cast| cast.approval.metadata.name != *name;
        let revision = Revision::parse(&approval.spec.revision).ok();
        self.count -= match place(revision.as_ref()) {
            Place::Digest(digest) => retain(&mut self.by_digest, &digest, others),
            Place::Name(name) => retain(&mut self.by_name, &name, others),
            Place::Vague => {
                let before = self.vague.len();
                self.vague.retain(others);
                before - self.vague.len()
            }
        };
    }

    /// All of them, with their revisions.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<Approval>, Option<&Revision>)> {
        let all = self.by_digest.values().chain(self.by_name.values());
        let all = all.flatten().chain(&self.vague);
        all.map(|cast| (&cast.approval, cast.revision.as_ref()))
    }

    /// Those that are about `revision`. What is named too vaguely is nothing that anybody approves
    /// of; but a rejection of it counts: of a name without its digest for whatever bears that name,
    /// and of what nobody can read for everything.
    pub(super) fn about(&self, revision: &Revision) -> impl Iterator<Item = &Arc<Approval>> {
        let by_digest = revision.digest().and_then(|it| self.by_digest.get(it));
        // Hardly ever is there any, and a name takes longer to read than a digest to find.
        let name = revision.name().filter(|_| !self.by_name.is_empty());
        let by_name = name.and_then(|name| self.by_name.get(&named(name)));
        let found = by_digest.into_iter().chain(by_name).flatten();
        let found = found.chain(&self.vague);
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
            Some(named) => rejects && named.digest().is_none() && is_called(named, revision),
            None => rejects,
        }
    }
}

/// Whether two have the same name: versions with or without a `v` and build metadata are one.
fn is_called(named: &Revision, revision: &Revision) -> bool {
    match (named.version(), revision.version()) {
        (Some(one), Some(other)) => one.cmp_precedence(other).is_eq(),
        _ => named.name() == revision.name(),
    }
}

/// Where the votes on a revision are kept: in the same place for all that are the same (see
/// [`Revision::is`]).
enum Place {
    Digest(Box<str>),
    Name(Box<str>),
    Vague,
}

fn place(revision: Option<&Revision>) -> Place {
    match revision.map(|revision| (revision.digest(), revision.name())) {
        Some((Some(digest), _)) => Place::Digest(digest.into()),
        Some((None, name)) => Place::Name(named(name.unwrap_or_default())),
        None => Place::Vague,
    }
}

/// Keeps some of the votes in a place. Returns how many it did not.
fn retain(
    votes: &mut HashMap<Box<str>, Vec<Cast>>,
    place: &str,
    keep: impl FnMut(&Cast) -> bool,
) -> usize {
    let Some(casts) = votes.get_mut(place) else {
        return 0;
    };
    let before = casts.len();
    casts.retain(keep);
    let gone = before - casts.len();
    if casts.is_empty() {
        votes.remove(place);
    }
    gone
}

/// What a name without a digest is found by: versions without their build metadata.
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
