//! How a request has ended, as it is counted.
//!
//! What comes in: a reply. What goes out: one of five words, the last of which is for requests without one.
//! What a reply means for the one who has asked is decided elsewhere.

use std::sync::Arc;

use sluice_egress::Reply;

use super::said::wait;

/// Hears of each request: its host, and how it has ended.
pub type Told = Arc<dyn Fn(&str, Ended) + Send + Sync>;

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The forge answers, also where it says that something is not there or cannot be done now.
    Answered,
    /// It does not accept the token for this.
    Denied,
    /// Too many requests were sent.
    Limited,
    /// It failed.
    Failed,
    /// There was no reply in time, or the request could not be sent.
    Unanswered,
}

impl Ended {
    /// Every one of them.
    pub const ALL: [Ended; 5] = [
        Ended::Answered,
        Ended::Denied,
        Ended::Limited,
        Ended::Failed,
        Ended::Unanswered,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Answered => "answered",
            Ended::Denied => "denied",
            Ended::Limited => "limited",
            Ended::Failed => "failed",
            Ended::Unanswered => "unanswered",
        }
    }

    pub(super) fn with(reply: &Reply) -> Self {
        match (reply.status, wait(reply)) {
            (429, _) | (403, Some(_)) => Ended::Limited,
            (401 | 403, _) => Ended::Denied,
            (500..=599, _) => Ended::Failed,
            _ => Ended::Answered,
        }
    }
}
