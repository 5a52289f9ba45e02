//! Why a run is held, waits or fails: who, in one word, and in a sentence.

use crate::verdict::condition::cut;

/// The longest message, in bytes. Names of other objects are in it, which anybody may have written.
const LONGEST: usize = 1 << 10;

/// The spec is refused.
pub(super) const INVALID_SPEC: &str = "InvalidSpec";

/// A message that goes into a status.
pub(super) fn short(message: String) -> String {
    cut(message, LONGEST)
}

/// Why something is held, waits, or is refused: who, in one word, and in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Why {
    pub(super) by: Option<String>,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Why {
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            by: None,
            reason,
            message: short(message.into()),
        }
    }

    /// Somebody stands in the way: an object, or a manager of fields.
    pub(super) fn by(
        reason: &'static str,
        by: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            by: Some(by.into()),
            ..Self::new(reason, message)
        }
    }

    /// Something is not known, and why.
    pub(super) fn unreadable(what: impl std::fmt::Display, why: &str) -> Self {
        Self::new("NotReadable", format!("{what} cannot be read: {why}"))
    }
}
