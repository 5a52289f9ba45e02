//! The votes for one gatekeeper, found by what they are about: however many there are, a question
//! about one revision looks at those on that revision.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use sluice_crds::Approval;
use sluice_crds::approval::Vote;

use crate::revision::{Revision, loose};

/// The algorithms of commits and digests, each with how many hexadecimal digits it has.
const ALGORITHMS: [(&str, usize); 4] = [
    ("sha1", 40),
    ("sha256", 64),
    ("sha384", 96),
    ("sha512", 128),
];

/// The most approvals of one gatekeeper. They are small, and everybody who may approve may write them.
pub const MOST_VOTES: usize = 10_000;

/// The approvals for one gatekeeper, each read once.
#[derive(Clone, Debug, Default)]
pub struct Ballot {
    /// By the digests of their revisions, in order: names may be the beginning of some.
    by_digest: BTreeMap<Box<str>, Vec<Cast>>,
    /// Those of revisions without a digest, by what [`named`] makes of their names.
    by_name: BTreeMap<Box<str>, Vec<Cast>>,
    /// Those whose revision cannot be read.
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

    /// Those that are about `revision`. An approval that names a revision too vaguely approves nothing.
    /// But such a rejection counts: a name without its digest rejects everything with that name, a commit
    /// rejects what is tagged with it, and text that cannot be read rejects everything.
    pub(super) fn about(&self, revision: &Revision) -> impl Iterator<Item = &Arc<Approval>> {
        let by_digest = revision.digest().and_then(|it| self.by_digest.get(it));
        // Hardly ever is there any, and a name takes longer to read than a digest to find.
        let name = revision.name().filter(|_| !self.by_name.is_empty());
        let by_name = name.and_then(|name| self.by_name.get(&named(name)));
        let found = by_digest.into_iter().chain(by_name);
        let found = found.chain(self.of_commits_called(revision));
        let found = found.chain(self.of_commits_cut_short(revision));
        let found = found.chain(self.of_any_name(revision));
        let found = found.flatten().chain(&self.vague);
        let found = found.filter(|cast| cast.is_about(revision));
        found.map(|cast| &cast.approval)
    }

    /// Whether all that rejects `revision` may mean another one, because its name is not known.
    pub(super) fn may_reject_another(&self, revision: &Revision) -> bool {
        let own = revision.digest().and_then(|it| self.by_digest.get(it));
        let mut own = own.into_iter().flatten().chain(&self.vague);
        let rejects = |cast: &Cast| {
            let approval = &cast.approval;
            let is_there = approval.metadata.deletion_timestamp.is_none();
            is_there && approval.spec.decision == Vote::Reject
        };
        revision.has_unknown_name() && !own.any(rejects)
    }

    /// The votes on commits and digests that the name of `revision` may mean.
    fn of_commits_called(&self, revision: &Revision) -> Vec<&Vec<Cast>> {
        let is_digit = |c: &char| c.is_ascii_hexdigit();
        let name = revision.name().unwrap_or_default();
        let digits: String = name.chars().take_while(is_digit).collect();
        if digits.len() < loose::FEWEST_DIGITS {
            return Vec::new();
        }
        let digits = digits.to_ascii_lowercase();
        let mut found = Vec::new();
        for (algorithm, length) in ALGORITHMS {
            let all = digits.get(..length).unwrap_or(&digits);
            let first = format!("{algorithm}:{all}");
            let from = (Bound::Included(first.as_str()), Bound::Unbounded);
            let votes = self.by_digest.range::<str, _>(from);
            let votes = votes.take_while(|(digest, _)| digest.starts_with(&first));
            found.extend(votes.map(|(_, votes)| votes));
        }
        found
    }

    /// The votes on every name that a revision without a known name may have: on any name, and, if it is
    /// no commit itself, on any commit.
    fn of_any_name(&self, revision: &Revision) -> Vec<&Vec<Cast>> {
        if !revision.has_unknown_name() {
            return Vec::new();
        }
        let commits = self.by_digest.iter();
        let commits = commits.filter(|(digest, _)| may_be_its_tag(digest, revision));
        let commits = commits.map(|(_, votes)| votes);
        self.by_name.values().chain(commits).collect()
    }

    /// The votes on names that may be the beginning of the commit or digest of `revision`.
    fn of_commits_cut_short(&self, revision: &Revision) -> Vec<&Vec<Cast>> {
        let has_none = self.by_name.is_empty() || revision.has_unknown_name();
        let digest = revision.digest().filter(|_| !has_none);
        let Some((_, digits)) = digest.and_then(|digest| digest.split_once(':')) else {
            return Vec::new();
        };
        let cut = (loose::FEWEST_DIGITS..digits.len()).filter_map(|end| digits.get(..end));
        cut.filter_map(|name| self.by_name.get(&named(name)))
            .collect()
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
            Some(named) => rejects && may_mean(named, revision),
            None => rejects,
        }
    }
}

/// Whether what is named may be `revision`, though it is not written as that one.
fn may_mean(named: &Revision, revision: &Revision) -> bool {
    let digits = |of: &Revision| {
        let (_, digits) = of.digest()?.split_once(':')?;
        Some(digits.to_owned())
    };
    if revision.has_unknown_name() {
        return (named.digest()).is_none_or(|digest| may_be_its_tag(digest, revision));
    }
    match digits(named) {
        Some(commit) => revision
            .name()
            .is_some_and(|name| loose::names_commit(name, &commit)),
        None => {
            let is_cut_short = |commit: String, name: &str| {
                loose::is_commit_cut_short(name) && loose::names_commit(name, &commit)
            };
            let cut_short = digits(revision).zip(named.name());
            is_called(named, revision)
                || cut_short.is_some_and(|(commit, name)| is_cut_short(commit, name))
        }
    }
}

/// Whether something that is not a commit, and whose name is not known, may be tagged with this commit.
fn may_be_its_tag(digest: &str, revision: &Revision) -> bool {
    let is_commit = |digest: &str| digest.starts_with("sha1:");
    is_commit(digest) && !revision.digest().is_some_and(is_commit)
}

/// Whether two have the same name: versions with or without a `v`, missing parts and build metadata
/// are one.
fn is_called(named: &Revision, revision: &Revision) -> bool {
    match (named.loose_version(), revision.loose_version()) {
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
    votes: &mut BTreeMap<Box<str>, Vec<Cast>>,
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

/// What a name without a digest is found by: versions without their build metadata, commits in small
/// letters.
fn named(name: &str) -> Box<str> {
    let version = Revision::parse(name).ok();
    match version.as_ref().and_then(Revision::loose_version) {
        Some(version) => {
            let build = semver::BuildMetadata::EMPTY;
            let plain = semver::Version {
                build,
                ..version.clone()
            };
            format!("version {plain}").into()
        }
        None if loose::is_commit_cut_short(name) => {
            format!("name {}", name.to_ascii_lowercase()).into()
        }
        None => format!("name {name}").into(),
    }
}
