//! What came of a question or an act, in words that fit a status.
//!
//! What comes in: replies, and requests without one. What goes out: a [`Trouble`], and for an act whether
//! the forge has done anything ([`Undone`]). A message names the host, never the path of the address nor a
//! secret, and quotes a forge only escaped and cut. No other room is used.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use sluice_egress::EgressError;

/// The outcome of an act.
pub type Act<T> = Result<T, Undone>;

/// An act that has no confirmed result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.error())]
pub enum Undone {
    /// The forge refuses it, and has done nothing. The same request is refused again until something else
    /// has changed.
    Refused(ForgeError),
    /// Nothing was done, because the request was not sent or the forge was not ready for it. It may be
    /// sent again later.
    NotDone(ForgeError),
    /// It is not known whether the forge has done it, or will still do it. Look at what it has before
    /// sending anything again.
    Unknown(ForgeError),
}

/// What went wrong, where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: cannot {operation}: {trouble}")]
pub struct ForgeError {
    /// The host of the forge, with its port if that is unusual.
    pub host: String,
    /// What was to be done, as a verb with its object.
    pub operation: &'static str,
    /// Why it was not.
    pub trouble: Trouble,
}

/// Why a forge did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There is no reply.
    #[error("{0}")]
    Unanswered(EgressError),
    /// The token is not known to the forge, or no longer.
    #[error("the token is not accepted; write a valid one into the Secret")]
    Unauthorized,
    /// The token is known, and may not do this.
    #[error("the token has no right to do this{0}; give it the scope or the role that it needs")]
    NoRight(Words),
    /// The forge shows no such repository.
    #[error(
        "there is no such repository, or the token may not see it; check the URL, and what the token may read"
    )]
    NoRepository,
    /// The repository was renamed, or belongs to another owner now.
    #[error(
        "the repository has another address now; write that address into the URL (a GitRepositoryAccess is created again with it)"
    )]
    Moved,
    /// Too many requests were sent with this token.
    #[error("its rate limit is reached{0}")]
    RateLimited(Wait),
    /// Less than a tenth of the requests that the forge allows is left, which is kept for merges.
    #[error("what is left of its rate limit is kept for merges{0}")]
    Throttled(Wait),
    /// The repository is read-only.
    #[error("the repository is archived, so that nothing in it can be changed")]
    Archived,
    /// Something in the repository is not there.
    #[error("there is no {0}")]
    Absent(Missing),
    /// The branch is there already.
    #[error("there is a branch of this name already")]
    BranchExists,
    /// The name of the branch is too long for this forge, which takes so many characters.
    #[error("the name of the branch has more than {0} characters")]
    BranchTooLong(usize),
    /// A file is not the one that was read.
    #[error("a file has changed since it was read")]
    FileChanged,
    /// What is there is no file: a folder, a link, another repository.
    #[error("it is no file, but a folder, a link or another repository")]
    NotAFile,
    /// The forge changes one file in a commit.
    #[error(
        "it changes one file in a commit, and here are {0}; mark one file for each environment"
    )]
    TooManyFiles(usize),
    /// An open pull request of the same head and base is there already.
    #[error("there is an open pull request of these branches already")]
    PullExists,
    /// The head has no commit that the base does not have.
    #[error("there is nothing to merge: the branch has no commit that its target does not have")]
    NothingToMerge,
    /// The pull request is merged already.
    #[error("the pull request is merged already")]
    AlreadyMerged,
    /// The pull request was closed.
    #[error("the pull request is closed")]
    Closed,
    /// The head of the pull request is another commit than the one to be merged, or its base another branch.
    #[error("the pull request has another head or base than is to be merged")]
    HeadMoved,
    /// Something that people have written on it says that it is not to be merged now.
    #[error("the pull request is a draft, or has a label that holds it back")]
    HeldBack,
    /// Head and base change the same lines.
    #[error("the pull request has conflicts with its base; resolve them")]
    Conflict,
    /// The forge is still checking whether it can be merged. Gitea says so for ever if there is a conflict.
    #[error("the forge still checks whether the pull request can be merged")]
    NotYet,
    /// The pull request, or its base, has changed while the act was under way.
    #[error("the pull request or its base has changed in this moment; look at it again")]
    Changed,
    /// What it was to be sent for has ended, or is wanted no more.
    #[error("it was not sent, because it is not wanted any more or there was no time left")]
    Overtaken,
    /// A rule of the forge holds the merge: checks, approvals, a draft, the method.
    #[error("the forge does not merge it now{0}")]
    NotMergeable(Words),
    /// The forge has no such method for a single pull request.
    #[error(
        "the forge does not let a single pull request choose this method; leave the method out"
    )]
    NoSuchMethod,
    /// The repository allows rebases alone, and none may be made.
    #[error(
        "the repository merges by rebases alone, which lose how histories were joined; write mergeMethod: rebase \
         into the environment, or let the repository merge by another method"
    )]
    OnlyRebases,
    /// Another refusal, with its status.
    #[error("it refuses (status {0}){1}")]
    Refused(u16, Words),
    /// The forge failed, with this status.
    #[error("it failed (status {0})")]
    Failed(u16),
    /// The forge has not taken a push: a rule for the branch, a hook, or a lack of room.
    #[error("it has not taken the push{0}")]
    PushRefused(Words),
    /// The branch is at another commit than the one that it was to be moved from, is there although it was
    /// to be new, or is not there any more.
    #[error("the branch is not where it was seen; look at it again")]
    BranchMoved,
    /// The GitHub App may do nothing in the repository.
    #[error("the GitHub App is not installed on this repository; install it there")]
    NotInstalled,
    /// The address has no path that Git knows the repository by.
    #[error(
        "the URL names the project by its number, which Git does not know; write its path into the URL"
    )]
    NoCloneUrl,
    /// The objects of the repository have ids of another kind.
    #[error("the repository names its objects by SHA-256; only SHA-1 is supported")]
    Sha256,
    /// The forge speaks Git's protocol as it was before 2018.
    #[error("it does not speak version 2 of Git's protocol")]
    OldGit,
    /// There are more references than this under the names that were asked for.
    #[error("there are more than {0} branches and other references of these names; delete some")]
    TooManyReferences(usize),
    /// A commit takes more than so many KiB, most of them in its message.
    #[error("the commit is longer than {0} KiB")]
    CommitTooLong(usize),
    /// A commit has more parents than this.
    #[error("the commit has more than {0} parents")]
    TooManyParents(usize),
    /// A commit has statuses of more than so many contexts.
    #[error("the commit has more than {0} statuses of different names")]
    TooManyStatuses(usize),
    /// There are more pull requests than this, or longer ones, than can be listed.
    #[error("there are more than {0} open pull requests; close some")]
    TooMany(usize),
    /// The reply is not what the forge's documentation says.
    #[error("its reply is not understood, at `{}`", .0.escape_debug())]
    NotUnderstood(String),
}

/// What is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their words say it")]
pub enum Missing {
    Branch,
    Commit,
    File,
    BranchOrFile,
    Pull,
    Object,
}

/// When a forge with a rate limit answers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// After so much time.
    For(Duration),
    /// At this instant, by the clock of the forge.
    Until(Timestamp),
    /// It does not say.
    Unsaid,
}

/// What a forge says, escaped and cut. It may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub(crate) Option<String>);

/// What follows for an act from a reply with this trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Nothing was done, and nothing will be.
    Permanent,
    /// Nothing was done yet.
    Later,
    /// It does not follow whether anything was done.
    Unclear,
}

impl Words {
    /// It says nothing.
    pub(crate) const NONE: Self = Self(None);
}

impl Undone {
    /// The error, whichever the outcome.
    pub fn error(&self) -> &ForgeError {
        match self {
            Self::Refused(error) | Self::NotDone(error) | Self::Unknown(error) => error,
        }
    }

    /// The outcome of an act that got this reply.
    pub(crate) fn after(error: ForgeError) -> Self {
        match error.trouble.class() {
            Class::Permanent => Self::Refused(error),
            Class::Later => Self::NotDone(error),
            Class::Unclear => Self::Unknown(error),
        }
    }
}

/// The outcome of an act before which something was asked in vain: nothing of it was sent.
impl From<ForgeError> for Undone {
    fn from(error: ForgeError) -> Self {
        match error.trouble.class() {
            Class::Permanent => Self::Refused(error),
            Class::Later | Class::Unclear => Self::NotDone(error),
        }
    }
}

impl Trouble {
    fn class(&self) -> Class {
        match self {
            Self::RateLimited(_)
            | Self::Throttled(_)
            | Self::NotYet
            | Self::Changed
            | Self::Overtaken => Class::Later,
            Self::Unanswered(_) | Self::Failed(_) | Self::NotUnderstood(_) => Class::Unclear,
            Self::Unauthorized
            | Self::NoRight(_)
            | Self::NoRepository
            | Self::Moved
            | Self::Archived
            | Self::Absent(_)
            | Self::BranchExists
            | Self::BranchTooLong(_)
            | Self::FileChanged
            | Self::NotAFile
            | Self::TooManyFiles(_)
            | Self::PullExists
            | Self::NothingToMerge
            | Self::AlreadyMerged
            | Self::Closed
            | Self::HeadMoved
            | Self::HeldBack
            | Self::Conflict
            | Self::NotMergeable(_)
            | Self::NoSuchMethod
            | Self::OnlyRebases
            | Self::Refused(..)
            | Self::PushRefused(_)
            | Self::BranchMoved
            | Self::NotInstalled
            | Self::NoCloneUrl
            | Self::Sha256
            | Self::OldGit
            | Self::CommitTooLong(_)
            | Self::TooManyParents(_)
            | Self::TooManyReferences(_)
            | Self::TooManyStatuses(_)
            | Self::TooMany(_) => Class::Permanent,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Branch => "such branch",
            Self::Commit => "such commit",
            Self::File => "such file",
            Self::BranchOrFile => "such base branch, or one of the files is not in it",
            Self::Pull => "such pull request",
            Self::Object => "such tree, or no such parent",
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(time) => write!(f, "; it asks to wait for {}s", time.as_secs()),
            Self::Until(instant) => write!(f, "; it asks to wait until {instant}"),
            Self::Unsaid => Ok(()),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(words) => write!(f, "; it says \"{words}\""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(trouble: Trouble) -> ForgeError {
        let (host, operation) = ("git.example.com".to_owned(), "open the pull request");
        ForgeError {
            host,
            operation,
            trouble,
        }
    }

    #[test]
    fn a_message_says_where_what_and_why() {
        let words = Words(Some("needs write:issue".to_owned()));
        assert_eq!(
            Undone::Refused(error(Trouble::NoRight(words))).to_string(),
            "git.example.com: cannot open the pull request: the token has no right to do this; it \
             says \"needs write:issue\"; give it the scope or the role that it needs"
        );
        assert_eq!(
            error(Trouble::RateLimited(Wait::For(Duration::from_secs(60)))).to_string(),
            "git.example.com: cannot open the pull request: its rate limit is reached; it asks to \
             wait for 60s"
        );
    }

    #[test]
    fn an_act_that_may_have_been_done_is_never_called_refused() {
        for trouble in [
            Trouble::Unanswered(EgressError::Broken),
            Trouble::Failed(500),
            Trouble::NotUnderstood(".sha".to_owned()),
        ] {
            let undone = Undone::after(error(trouble.clone()));
            assert!(matches!(undone, Undone::Unknown(_)), "{undone:?}");
            let before = Undone::from(error(trouble));
            assert!(matches!(before, Undone::NotDone(_)), "{before:?}");
        }
        for trouble in [
            Trouble::NotYet,
            Trouble::Changed,
            Trouble::RateLimited(Wait::Unsaid),
        ] {
            let undone = Undone::after(error(trouble));
            assert!(matches!(undone, Undone::NotDone(_)), "{undone:?}");
        }
        let undone = Undone::after(error(Trouble::HeadMoved));
        assert!(matches!(undone, Undone::Refused(_)), "{undone:?}");
    }
}
