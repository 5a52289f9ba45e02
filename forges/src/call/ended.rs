//! How a request has ended, as it is counted.
//!
//! What comes in: a reply. What goes out: one of five words, the last of which is for requests without one; by
//! which protocol; and how many requests the forge still allows. What a reply means for the one who has asked is
//! decided elsewhere.

use std::sync::Arc;

use sluice_egress::Reply;

use super::pace::remaining;
use super::said::wait;

/// Hears of each request: its host, and how it has ended.
pub type Told = Arc<dyn Fn(&str, Heard) + Send + Sync>;

/// What is heard of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What was spoken.
    pub protocol: Protocol,
    /// How it has ended.
    pub ended: Ended,
    /// How many requests the forge still allows with this credential, if it says that.
    pub remaining: Option<u64>,
}

/// What is spoken with a forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Its API.
    Api,
    /// Git's own.
    Git,
}

impl Protocol {
    /// Both of them.
    pub const ALL: [Protocol; 2] = [Protocol::Api, Protocol::Git];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Api => "api",
            Protocol::Git => "git",
        }
    }
}

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

impl Heard {
    /// Of a request that has this reply, or none.
    pub(super) fn of(protocol: Protocol, reply: Option<&Reply>) -> Self {
        Self {
            protocol,
            ended: reply.map_or(Ended::Unanswered, Ended::with),
            remaining: reply.and_then(remaining),
        }
    }
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

    fn with(reply: &Reply) -> Self {
        match (reply.status, wait(reply)) {
            (429, _) | (403, Some(_)) => Ended::Limited,
            (401 | 403, _) => Ended::Denied,
            (500..=599, _) => Ended::Failed,
            _ => Ended::Answered,
        }
    }
}
