//! Why a task was not done, in the words of a status.

use jiff::Timestamp;
use sluice_core::delivery::pull_request::{Failure, Word};
use sluice_forges::{ForgeError, Missing, NameError, Trouble, Undone, Wait};

/// Why a task was not done.
#[derive(Debug)]
pub(super) struct Stopped {
    word: Word,
    message: String,
    wait: Option<Wait>,
}

impl Stopped {
    pub(super) fn new(word: Word, message: impl Into<String>) -> Self {
        Self {
            word,
            message: message.into(),
            wait: None,
        }
    }

    /// The failure of a task that has ended now.
    pub(super) fn at(self, now: Timestamp) -> Failure {
        let not_before = self.wait.and_then(|wait| match wait {
            Wait::For(time) => now.checked_add(time).ok(),
            Wait::Until(at) => Some(at),
            Wait::Unsaid => None,
        });
        Failure {
            word: self.word,
            message: self.message,
            not_before,
        }
    }
}

impl From<ForgeError> for Stopped {
    fn from(error: ForgeError) -> Self {
        Self {
            word: word(&error.trouble),
            message: error.to_string(),
            wait: match error.trouble {
                Trouble::RateLimited(wait) => Some(wait),
                _ => None,
            },
        }
    }
}

impl From<Undone> for Stopped {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Refused(error) | Undone::NotDone(error) | Undone::Unknown(error) => {
                error.into()
            }
        }
    }
}

impl From<NameError> for Stopped {
    fn from(error: NameError) -> Self {
        Self::new(Word::InvalidSpec, error.to_string())
    }
}

fn word(trouble: &Trouble) -> Word {
    match trouble {
        Trouble::Unanswered(_) | Trouble::Failed(_) | Trouble::NotUnderstood(_) => Word::Unanswered,
        Trouble::Unauthorized => Word::Unauthorized,
        Trouble::NoRight(_) => Word::NoRight,
        Trouble::NoRepository => Word::NoRepository,
        Trouble::Moved => Word::RepositoryMoved,
        Trouble::RateLimited(_) => Word::RateLimited,
        Trouble::Archived => Word::RepositoryArchived,
        Trouble::Absent(Missing::Branch | Missing::BranchOrFile) => Word::NoTargetBranch,
        Trouble::BranchTooLong(_) | Trouble::TooManyFiles(_) => Word::InvalidSpec,
        Trouble::NotAFile => Word::FileNotEditable,
        Trouble::Conflict => Word::Conflict,
        Trouble::NotYet => Word::NotYet,
        Trouble::NotMergeable(_) | Trouble::NoSuchMethod => Word::NotMergeable,
        Trouble::Refused(..) | Trouble::TooMany(_) => Word::Refused,
        // Each of them is another thing at the next look.
        Trouble::Absent(Missing::Commit | Missing::File | Missing::Pull)
        | Trouble::BranchExists
        | Trouble::FileChanged
        | Trouble::PullExists
        | Trouble::AlreadyMerged
        | Trouble::Closed
        | Trouble::HeadMoved
        | Trouble::Changed => Word::Changed,
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
        let failure = Stopped::from(error(limited)).at(now);
        assert_eq!(failure.word, Word::RateLimited);
        assert_eq!(
            failure.not_before,
            Some("2026-11-20T12:01:30Z".parse().unwrap())
        );
        let failure = Stopped::from(Undone::Unknown(error(Trouble::Failed(500)))).at(now);
        assert_eq!((failure.word, failure.not_before), (Word::Unanswered, None));
        assert_eq!(
            failure.message,
            "git.example.com: cannot open a pull request: it failed (status 500)"
        );
    }
}
