//! The words for how something ended, as metrics have them.

/// What fetches of artifacts come to, as metrics have it.
pub(crate) const OF_FETCHES: [&str; 6] = [
    "stored",
    "unavailable",
    "mismatch",
    "quota",
    "disk",
    "defect",
];

/// What became of an event that was to be told to notification-controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// It was taken.
    Sent,
    /// It had been told lately, says notification-controller.
    Duplicate,
    /// It was refused, could not be sent, or was one too many.
    Dropped,
}

impl Notified {
    /// Every outcome.
    pub const ALL: [Notified; 3] = [Notified::Sent, Notified::Duplicate, Notified::Dropped];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Notified::Sent => "sent",
            Notified::Duplicate => "duplicate",
            Notified::Dropped => "dropped",
        }
    }
}
