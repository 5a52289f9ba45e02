//! The words for how something ended, as metrics have them.

/// The outcomes of fetches of artifacts, as metrics name them.
pub(crate) const OF_FETCHES: [&str; 6] = [
    "stored",
    "unavailable",
    "mismatch",
    "quota",
    "disk",
    "defect",
];

/// The outcome of an event for notification-controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// It was taken.
    Sent,
    /// notification-controller says that it had received it shortly before.
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
