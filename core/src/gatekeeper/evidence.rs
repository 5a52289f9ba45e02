//! What gatekeepers are judged from, besides spec and clock.

use std::sync::{Arc, LazyLock};

use super::approval::Votes;
use super::schedule::Reading;
use super::{http, metric, objects, revisions};
use crate::gate::nested::Nested;
use jiff::Timestamp;

/// What a gatekeeper was judged from, besides its spec and the clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Evidence {
    /// Nothing: there is nothing to look at, or nobody has looked yet.
    #[default]
    Nothing,
    /// What came of reading a schedule's calendars, in the order of
    /// [`Schedule::calendars`](super::schedule::Schedule::calendars).
    Calendars(Vec<Reading>),
    /// What came of reading lists of revisions, in the order of
    /// [`Revisions::sources`](super::revisions::Revisions::sources).
    Lists(Vec<revisions::Reading>),
    /// What the query of a metric came to.
    Metric(metric::Observed),
    /// What objects there are, and how they are.
    Objects(objects::Observed),
    /// What an address answered.
    Http(http::Observed),
    /// Votes.
    Votes(Votes),
    /// Whether somebody verifies who writes reports.
    Reporters {
        /// Somebody does.
        verified: bool,
    },
    /// The gates that a gate is nested in, with everything that they name.
    Gates(Arc<[Nested]>),
}

impl Evidence {
    /// The readings of calendars.
    pub fn calendars(&self) -> &[Reading] {
        match self {
            Evidence::Calendars(readings) => readings,
            _ => &[],
        }
    }

    /// The value that a metric had when it was last asked for, while that counts at `at`; in the
    /// unit of its query.
    pub fn measured(&self, at: Timestamp) -> Option<f64> {
        self.metric()?.value(at)
    }

    pub(super) fn lists(&self) -> &[revisions::Reading] {
        match self {
            Evidence::Lists(readings) => readings,
            _ => &[],
        }
    }

    pub(super) fn metric(&self) -> Option<&metric::Observed> {
        match self {
            Evidence::Metric(observed) => Some(observed),
            _ => None,
        }
    }

    pub(super) fn objects(&self) -> Option<&objects::Observed> {
        match self {
            Evidence::Objects(observed) => Some(observed),
            _ => None,
        }
    }

    pub(super) fn http(&self) -> Option<&http::Observed> {
        match self {
            Evidence::Http(observed) => Some(observed),
            _ => None,
        }
    }

    pub(super) fn votes(&self) -> &Votes {
        static NONE: LazyLock<Votes> = LazyLock::new(Votes::default);
        match self {
            Evidence::Votes(votes) => votes,
            _ => &NONE,
        }
    }

    pub(super) fn verified(&self) -> bool {
        matches!(self, Evidence::Reporters { verified: true })
    }

    /// Whether the words of anything waver behind the gates that a gate is nested in.
    pub(crate) fn nested_wavers(&self) -> bool {
        self.gates().iter().any(Nested::wavers)
    }

    /// The gates that a gatekeeper names.
    pub(crate) fn gates(&self) -> &[Nested] {
        match self {
            Evidence::Gates(gates) => gates,
            _ => &[],
        }
    }
}
