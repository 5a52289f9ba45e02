//! What one import has found so far.

use std::collections::BTreeSet;

use crate::converted::Notes;

/// The work of one import.
pub(super) struct Work<'w> {
    /// The namespace and the name.
    pub(super) key: (String, String),
    /// The files that pull requests write.
    pub(super) written: &'w [String],
    pub(super) notes: Notes,
    /// Secrets with tokens of forges.
    pub(super) tokens: BTreeSet<String>,
}
