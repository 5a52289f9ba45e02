//! Why a forge was not asked, or has not done what it was asked for, in the words of a status.

use jiff::Timestamp;
use sluice_core::delivery::pull_request::{self, Word};
use sluice_forges::{ForgeError, Missing, NameError, Trouble, Undone, Wait};

/// Why a forge was not asked, or has not done what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) word: Word,
    /// In a sentence.
    pub(crate) why: String,
    wait: Option<Wait>,
}

impl Failure {
    pub(crate) fn new(word: Word, why: impl Into<String>) -> Self {
        Self {
            word,
            why: why.into(),
            wait: None,
        }
    }

    /// When the forge wants to be asked again, if it says so.
    pub(crate) fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        match self.wait? {
            Wait::For(time) => now.checked_add(time).ok(),
            Wait::Until(at) => Some(at),
            Wait::Unsaid => None,
        }
    }

    /// The failure of a task that has ended now.
    pub(crate) fn at(self, now: Timestamp) -> pull_request::Failure {
        pull_request::Failure {
            not_before: self.not_before(now),
            word: self.word,
            message: self.why,
        }
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        Self {
            word: word(&error.trouble),
            why: error.to_string(),
            wait: match error.trouble {
                Trouble::RateLimited(wait) | Trouble::Throttled(wait) => Some(wait),
                _ => None,
            },
        }
    }
}

impl From<Undone> for Failure {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Refused(error) | Undone::NotDone(error) | Undone::Unknown(error) => {
                error.into()
            }
        }
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(Word::InvalidSpec, error.to_string())
    }
}

fn word(trouble: &Trouble) -> Word {
    match trouble {
        Trouble::Unanswered(_) | Trouble::Failed(_) | Trouble::NotUnderstood(_) => Word::Unanswered,
        Trouble::Unauthorized => Word::Unauthorized,
        Trouble::NoRight(_) => Word::NoRight,
        Trouble::NoRepository | Trouble::NotInstalled => Word::NoRepository,
        Trouble::Moved => Word::RepositoryMoved,
        Trouble::RateLimited(_) => Word::RateLimited,
        Trouble::Throttled(_) => Word::ForgeThrottled,
        Trouble::Archived => Word::RepositoryArchived,
        Trouble::Absent(Missing::Branch | Missing::BranchOrFile) => Word::NoTargetBranch,
        Trouble::BranchTooLong(_) | Trouble::TooManyFiles(_) | Trouble::NoCloneUrl => {
            Word::InvalidSpec
        }
        Trouble::NotAFile => Word::FileNotEditable,
        Trouble::Conflict => Word::Conflict,
        Trouble::NotYet => Word::NotYet,
        Trouble::NothingToMerge => Word::NothingToMerge,
        Trouble::NotMergeable(_) | Trouble::NoSuchMethod | Trouble::OnlyRebases => {
            Word::NotMergeable
        }
        Trouble::Refused(..)
        | Trouble::PushRefused(_)
        | Trouble::Sha256
        | Trouble::OldGit
        | Trouble::CommitTooLong(_)
        | Trouble::TooManyParents(_)
        | Trouble::TooManyReferences(_)
        | Trouble::TooManyStatuses(_)
        | Trouble::TooMany(_) => Word::Refused,
        // Each of them is another thing at the next look.
        Trouble::Absent(Missing::Commit | Missing::File | Missing::Pull | Missing::Object)
        | Trouble::BranchExists
        | Trouble::BranchMoved
        | Trouble::FileChanged
        | Trouble::PullExists
        | Trouble::AlreadyMerged
        | Trouble::Closed
        | Trouble::HeadMoved
        | Trouble::HeldBack
        | Trouble::Changed
        | Trouble::Overtaken => Word::Changed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_forge_says_when_it_may_be_asked_again() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let error = |trouble| ForgeError {
            host: "git.example.com".to_owned(),
            operation: "open a pull request",
            trouble,
        };
        let limited = Trouble::RateLimited(Wait::For(Duration::from_secs(90)));
        let failure = Failure::from(error(limited)).at(now);
        assert_eq!(failure.word, Word::RateLimited);
        assert_eq!(
            failure.not_before,
            Some("2026-11-20T12:01:30Z".parse().unwrap())
        );
        let failure = Failure::from(Undone::Unknown(error(Trouble::Failed(500)))).at(now);
        assert_eq!((failure.word, failure.not_before), (Word::Unanswered, None));
        assert_eq!(
            failure.message,
            "git.example.com: cannot open a pull request: it failed (status 500)"
        );
    }
}
