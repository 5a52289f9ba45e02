//! What gates and gatekeepers are asked.

use jiff::Timestamp;

use crate::revision::Revision;
use crate::time::clock::Now;

/// May this change go out now?
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The instant.
    pub now: Now,
    /// The change. None: any change; a gatekeeper whose answer depends on the change says so.
    pub revision: Option<&'a Revision>,
    /// Since when it is asked, where `now` lies ahead of that: evidence that was good then is taken
    /// to be renewed before it runs out. None: it is asked at `now`.
    asked_at: Option<Timestamp>,
}

impl<'a> Question<'a> {
    /// Whether this change may go out at `now`.
    pub fn new(now: Now, revision: Option<&'a Revision>) -> Self {
        Self {
            now,
            revision,
            asked_at: None,
        }
    }

    /// The same, to be moved to times to come.
    pub(crate) fn ahead(self) -> Self {
        Self {
            asked_at: Some(self.asked_at.unwrap_or(self.now.at)),
            ..self
        }
    }

    /// Whether it is about a time to come.
    pub(crate) fn is_ahead(&self) -> bool {
        self.asked_at.is_some()
    }

    /// The instant at which evidence has to be good.
    pub(crate) fn evidence_at(&self) -> Now {
        self.now.moved_to(self.asked_at.unwrap_or(self.now.at))
    }
    /// The same question at another instant, by the same clock.
    #[must_use]
    pub fn moved_to(self, at: Timestamp) -> Self {
        Self {
            now: self.now.moved_to(at),
            ..self
        }
    }
}

impl From<Now> for Question<'_> {
    fn from(now: Now) -> Self {
        Self::new(now, None)
    }
}
