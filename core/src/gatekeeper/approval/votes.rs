//! What the votes on a revision are counted from.

use std::sync::Arc;

use super::{Ballot, Reading};

/// The votes for a gatekeeper, and what they are counted by.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    /// Every Approval that names it.
    pub ballot: Arc<Ballot>,
    /// What is wrong with an Approval that may be for it, and that this version cannot read: it may
    /// be a rejection.
    pub unreadable: Option<Arc<str>>,
    /// Who the authors of revisions are, where that matters. None: not read yet.
    pub authors: Option<Reading>,
    /// Whether it is verified who approves.
    pub verified: bool,
}

/// The same list of votes, not one that says the same: comparing must be cheap.
impl PartialEq for Votes {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ballot, &other.ballot)
            && self.unreadable == other.unreadable
            && self.authors == other.authors
            && self.verified == other.verified
    }
}
