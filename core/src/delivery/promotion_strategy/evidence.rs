//! What is known of a repository, without asking anybody.
//!
//! Objects of Git never change: an answer about commits that are named by their ids is right for ever. Only
//! what a branch points to changes, and what a forge has been told about a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

/// The reference with the notes of hydrators, as the GitOps Promoter names it.
pub const NOTES: &str = "refs/notes/hydrator.metadata";
/// The file of a hydrator, at the top of its branch.
pub const METADATA: &str = "hydrator.metadata";

/// A question about a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// What a commit has: its tree, its parents, its message.
    Commit(String),
    /// What the file [`METADATA`] says at a commit.
    Metadata(String),
    /// What the note on a commit says.
    Note {
        /// The commit that [`NOTES`] points to.
        notes: String,
        /// The commit that the note is on.
        of: String,
    },
    /// Whether one commit is another one, or an ancestor of it.
    Contains {
        /// The later one.
        base: String,
        /// The earlier one.
        commit: String,
    },
    /// What the forge has been told about a commit. The answer changes, and is asked for again.
    Statuses(String),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Commit`].
    Commit(Arc<Commit>),
    /// To [`Question::Metadata`] and [`Question::Note`]: the text, of at most 64 KiB.
    Text(Arc<str>),
    /// To [`Question::Contains`].
    Contains(bool),
    /// To [`Question::Statuses`].
    Statuses(Arc<[ForgeStatus]>),
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: String,
    /// Its parents, in order.
    pub parents: Vec<String>,
    /// When it was made, as it says itself.
    pub at: Timestamp,
    /// Its message.
    pub message: String,
}

/// A status or check that a forge has of a commit: the newest of its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeStatus {
    /// What it is called.
    pub context: String,
    /// What it says.
    pub state: ForgeState,
    /// Why.
    pub description: String,
}

/// What a forge's status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are what forges show")]
pub enum ForgeState {
    Pending,
    Success,
    Failure,
}

/// What is known of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight<T> {
    /// This.
    Known(T),
    /// There is no such thing: no such commit, file or note.
    Absent,
    /// It has not been asked for, or there is no answer yet.
    Pending,
    /// There is no answer, which is tried again: why.
    Failed(String),
}

/// Where the branches of a repository point to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heads {
    /// The newest commit of each branch that somebody needs, by its name. Others are not there.
    pub branches: BTreeMap<String, String>,
    /// What [`NOTES`] points to. [`Sight::Absent`]: there are no notes.
    pub notes: Sight<String>,
}

/// A repository as it is known now.
pub trait Evidence {
    /// Where its branches point to, all as of one instant. [`Sight::Pending`] also while one that is needed
    /// was not listed.
    fn heads(&self) -> Sight<Arc<Heads>>;

    /// The instant of that. None: they were never listed.
    fn listed_at(&self) -> Option<Timestamp>;

    /// The uid of the GitRepositoryAccess by which they were. None: they were never listed.
    fn read_by(&self) -> Option<String>;

    /// Whether the last try to list them has failed.
    fn is_list_failing(&self) -> bool;

    /// What is known about a question.
    fn answer(&self, question: &Question) -> Sight<Answer>;
}
