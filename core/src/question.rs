//! What gates and gatekeepers are asked.

use crate::clock::Now;
use crate::revision::Revision;

/// May this change go out now?
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The instant.
    pub now: Now,
    /// The change. None: any; whoever answers differently for each says so.
    pub revision: Option<&'a Revision>,
}

impl Question<'_> {
    /// The same question at another instant, by the same clock.
    #[must_use]
    pub fn moved_to(self, at: jiff::Timestamp) -> Self {
        Self {
            now: self.now.moved_to(at),
            ..self
        }
    }
}

impl From<Now> for Question<'_> {
    fn from(now: Now) -> Self {
        Self {
            now,
            revision: None,
        }
    }
}
