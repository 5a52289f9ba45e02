//! What is done at a forge for a PullRequest, and what comes of it.

use std::fmt;

use jiff::Timestamp;
use sluice_crds::pipeline::{MergeGate, MergeMethod};

use super::Key;

/// Something to be done at the forge. Each begins by looking at what the forge has, so that all of them can
/// be done twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Make the commit on its branch, unless there was ever a pull request of that branch. Others of its
    /// environment that are open are closed before.
    Commit,
    /// Open it, or go by the one that is open. Where its branch does not have our commit any more, another one
    /// is made first.
    Open {
        /// Our commit. None: somebody else pushes to its branch.
        commit: Option<String>,
    },
    /// See what has become of it.
    Look {
        /// Its number.
        number: i64,
        /// Our commit. None: somebody else pushes to its branch.
        commit: Option<String>,
        /// Whether the forge is asked about it alone. Otherwise a list of all that are open does, which may
        /// be almost a minute old.
        alone: bool,
    },
    /// Set a commit status.
    SetStatus(Telling),
    /// Give it another title and another text.
    Edit {
        /// Its number.
        number: i64,
        /// The title.
        title: String,
        /// The text, in Markdown.
        description: String,
    },
    /// Put a commit on its branch that changes no file, and joins what the target branch has.
    Join(Joining),
    /// Merge it.
    Merge {
        /// Its number.
        number: i64,
        /// The commit of its branch: nothing else is merged.
        commit: String,
        /// How. None: as the repository prefers.
        method: Option<MergeMethod>,
        /// With this label it is not merged, also if that was not seen before.
        hold_label: Option<String>,
        /// After this instant nothing is merged.
        not_after: Timestamp,
    },
    /// Close it, or make sure that it was never opened.
    Close {
        /// Its number, if it is known.
        number: Option<i64>,
        /// Our commit, if it is known.
        commit: Option<String>,
        /// Why.
        reason: String,
    },
    /// Delete its branch, if that has our commit, or one that says by its trailer that it is ours.
    DeleteBranch {
        /// Our commit, if it is known.
        commit: Option<String>,
    },
}

/// A commit that changes no file: the same one each time it is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Joining {
    /// What the branch has: the first parent.
    pub head: String,
    /// What the target branch has: the second parent.
    pub active: String,
    /// The tree of the first parent.
    pub tree: String,
    /// The date of the commit.
    pub at: Timestamp,
}

/// What a commit status says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Telling {
    /// The commit.
    pub commit: String,
    /// What the commit status is called.
    pub context: String,
    /// What it says.
    pub gate: MergeGate,
    /// Why, for people.
    pub why: String,
}

impl Telling {
    /// Whether both are of the same commit, and have the same name.
    pub(super) fn is_at(&self, other: &Self) -> bool {
        self.commit == other.commit && self.context == other.context
    }
}

impl Task {
    /// Whether it changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(self, Self::Look { .. })
    }

    /// Whether it is done with what is left of a rate limit: to merge, and to say that it may be merged.
    pub fn is_spared(&self) -> bool {
        match self {
            Self::SetStatus(it) => it.gate == MergeGate::Success,
            _ => matches!(self, Self::Merge { .. }),
        }
    }

    /// Whether it takes back what a commit status may say more than the gates, if that is a success.
    pub fn withdraws(&self) -> bool {
        matches!(self, Self::SetStatus(it) if it.gate == MergeGate::Pending)
    }
}

/// What has come of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This commit was made just now, on its branch.
    Committed(String),
    /// The target branch has the change, and no pull request is open.
    InBase(Option<Pull>),
    /// The pull request as the forge has it.
    Seen(Pull, Fate),
    /// The forge has no pull request: none of this number, or none was ever opened.
    NoPull,
    /// It was not merged now. Nothing is wrong with the pull request itself.
    Held(Failure),
    /// The commit status was set, the text changed, or the branch deleted.
    Done,
    /// It could not be done.
    Failed(Failure),
    /// The same of a merge that was not sent, so that nothing can come of this try any more.
    Unsent(Failure),
}

/// A pull request of a forge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: i64,
    /// Its page.
    pub url: String,
    /// Its title and its text, see [`Text`].
    pub text: Option<Text>,
    /// Whether it is a draft.
    pub draft: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether it has more, of which one may be that which holds it back.
    pub labels_cut: bool,
    /// Whether it goes together with the branch that it is merged into.
    pub mergeable: Mergeable,
}

/// What stands for a title and a text: the same for what a forge makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(Key);

impl Text {
    /// Forges drop spaces at the ends, and may write line ends in their own way.
    pub fn of(title: &str, description: &str) -> Self {
        let lines = description.replace("\r\n", "\n");
        Self(Key::of(&[title.trim(), lines.trim()]))
    }
}

/// Whether a pull request goes together with the branch that it is merged into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mergeable {
    /// It does.
    Yes,
    /// Both change the same lines.
    Conflict,
    /// The forge has not found out yet.
    #[default]
    Unknown,
    /// The forge does not say: a merge shows it.
    Unsaid,
}

/// What has become of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is open, with this commit as its head.
    Open(String),
    /// It was merged.
    Merged {
        /// The commit that the merge has made, where the forge says it.
        commit: Option<String>,
        /// The first parent of that.
        onto: Option<String>,
        /// Who merged it.
        by: Option<String>,
        /// The commit of its branch that was merged, where that can be seen.
        head: Option<String>,
        /// Whether something else than our commit was merged.
        is_touched: bool,
    },
    /// It was closed without a merge.
    Closed,
    /// It is open, and somebody has changed the branch that it would be merged into.
    OpenElsewhere,
    /// It was merged, into another branch.
    MergedElsewhere,
    /// Somebody else had opened one of our branch before there was a commit of ours. It was closed.
    Foreign,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In one word.
    pub word: Word,
    /// In a sentence.
    pub message: String,
    /// Before that the forge is not asked again.
    pub not_before: Option<Timestamp>,
}

/// Why something was not done, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their words say it")]
pub enum Word {
    /// There is no Secret, or it cannot be used.
    SecretNotUsable,
    /// There is no GitRepositoryAccess, or it does not allow this.
    AccessNotUsable,
    /// The address or a name in the spec is not right.
    InvalidSpec,
    Unauthorized,
    NoRight,
    NoRepository,
    RepositoryMoved,
    RepositoryArchived,
    /// The target branch is not there.
    NoTargetBranch,
    /// The commit is not there.
    NoCommit,
    /// A file is not there, or cannot be changed.
    FileNotEditable,
    /// Somebody has pushed to our branch.
    BranchTouched,
    /// Its branch has no commit that the target branch does not have.
    NothingToMerge,
    /// The forge refuses it for another reason.
    Refused,
    RateLimited,
    /// What is left of the rate limit is kept for merges.
    ForgeThrottled,
    /// There was no proper answer.
    Unanswered,
    /// Something has changed in between.
    Changed,
    Conflict,
    /// The forge does not know yet whether it can be merged, or never will.
    NotYet,
    /// A rule of the repository holds the merge back.
    NotMergeable,
}

impl Word {
    /// The word, as a status has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SecretNotUsable => "SecretNotUsable",
            Self::AccessNotUsable => "AccessNotUsable",
            Self::InvalidSpec => "InvalidSpec",
            Self::Unauthorized => "Unauthorized",
            Self::NoRight => "NoRight",
            Self::NoRepository => "NoRepository",
            Self::RepositoryMoved => "RepositoryMoved",
            Self::RepositoryArchived => "RepositoryArchived",
            Self::NoTargetBranch => "NoTargetBranch",
            Self::NoCommit => "NoCommit",
            Self::FileNotEditable => "FileNotEditable",
            Self::BranchTouched => "BranchTouched",
            Self::NothingToMerge => "NothingToMerge",
            Self::Refused => "Refused",
            Self::RateLimited => "RateLimited",
            Self::ForgeThrottled => "ForgeThrottled",
            Self::Unanswered => "Unanswered",
            Self::Changed => "Changed",
            Self::Conflict => "Conflict",
            Self::NotYet => "NotYet",
            Self::NotMergeable => "NotMergeable",
        }
    }

    /// Whether nothing changes before a person does something.
    pub fn lasts(self) -> bool {
        match self {
            Self::SecretNotUsable
            | Self::AccessNotUsable
            | Self::InvalidSpec
            | Self::Unauthorized
            | Self::NoRight
            | Self::NoRepository
            | Self::RepositoryMoved
            | Self::RepositoryArchived
            | Self::NoTargetBranch
            | Self::NoCommit
            | Self::FileNotEditable
            | Self::BranchTouched
            | Self::NothingToMerge
            | Self::Refused
            | Self::Conflict
            | Self::NotMergeable => true,
            Self::RateLimited
            | Self::ForgeThrottled
            | Self::Unanswered
            | Self::Changed
            | Self::NotYet => false,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Failure {
    /// Without an instant before which the forge is not asked again.
    pub fn new(word: Word, message: impl Into<String>) -> Self {
        Self {
            word,
            message: message.into(),
            not_before: None,
        }
    }
}
