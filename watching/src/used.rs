//! For how long something is kept after its last use.
//!
//! What comes in: whether it is used, at an instant. What goes out: until when it is kept.

use jiff::{SignedDuration, Timestamp};

/// How long a watch outlives its last user, so that an edited spec does not cost a new one.
pub const KEPT: SignedDuration = SignedDuration::from_secs(60);

/// Whether something is used, and since when it is not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Since when it has no known users.
    unused_since: Option<Timestamp>,
}

/// For how long something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is used.
    Used,
    /// It is not used. It is kept until this instant, unless somebody uses it before.
    Until(Timestamp),
    /// It has not been used for [`KEPT`].
    Over,
}

impl Used {
    /// Notes whether it is used at `now`, and says for how long it is kept.
    pub fn judge(&mut self, is_used: bool, now: Timestamp) -> Kept {
        if is_used {
            self.unused_since = None;
            return Kept::Used;
        }
        // A clock that was set back starts the count again.
        let since = self.unused_since.map_or(now, |since| since.min(now));
        self.unused_since = Some(since);
        let end = since.saturating_add(KEPT).unwrap_or(Timestamp::MAX);
        match end <= now {
            true => Kept::Over,
            false => Kept::Until(end),
        }
    }
}
