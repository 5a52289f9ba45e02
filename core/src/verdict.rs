//! What a gatekeeper says of an instant, and the words for why.
//!
//! Beside it is what else all rooms above ask and answer with: the [`question`], the conditions
//! ([`condition`]), and what the statuses of all kinds share ([`status`]). What comes in: states,
//! reasons and instants. What goes out: the words and fields for them.
//!
//! It uses [`time`](crate::time) and [`revision`](crate::revision).

use std::fmt;

use jiff::Timestamp;
use sluice_crds::gatekeeper::VerdictStatus;
use sluice_crds::{Require, State, Transition};

use crate::time::stamp::time;

pub mod condition;
pub mod question;
pub mod status;

/// Why something is open or closed: the one vocabulary of statuses, events, metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Inside an open window.
    InsideWindow,
    /// No closed window covers the instant, and there are no open ones.
    NoClosedWindow,
    /// Inside a closed window.
    ClosedWindow,
    /// Too late to start in the open window.
    LastStart,
    /// In no open window.
    OutsideWindow,
    /// A switch stands so.
    Manual,
    /// A gate without gatekeepers, in its default state.
    Default,
    /// Somebody forces the gate.
    Forced,
    /// Every gatekeeper admits.
    AllAdmit,
    /// The object is suspended.
    Suspended,
    /// The spec is refused.
    InvalidSpec,
    /// The gatekeeper does not exist.
    Missing,
    /// The gate does not exist.
    GateMissing,
    /// The gatekeeper lives in a namespace that may not be named.
    CrossNamespaceRef,
    /// Evidence has not been observed yet.
    NotObserved,
    /// Evidence has not been observed yet, but the status reports a verdict that still holds.
    Reported,
    /// Several gatekeepers of which one would be enough, and none admits.
    NoneAdmits,
    /// Evidence cannot be had.
    EvidenceUnavailable,
    /// Evidence was had and makes no sense.
    EvidenceBroken,
    /// The verdict has run out.
    Expired,
    /// The clock cannot be relied on.
    ClockSkew,
    /// Changes on the API server are not seen any more.
    NotWatched,
    /// The value is within the range.
    InRange,
    /// The value is outside the range.
    OutOfRange,
    /// The query comes to no value.
    NoData,
    /// The address answers as expected.
    AsExpected,
    /// The address answers with another status than is expected.
    UnexpectedStatus,
    /// The body of the answer is not as expected.
    UnexpectedBody,
    /// It depends on the revision, and none was named.
    DependsOnRevision,
    /// The revision is on a list of what may go out.
    RevisionAllowed,
    /// There are only lists of what may not go out, and the revision is on none.
    RevisionNotDenied,
    /// The revision is on a list of what may not go out.
    RevisionDenied,
    /// The revision is on no list of what may go out.
    RevisionNotListed,
    /// Enough people approve of the revision.
    Approved,
    /// More people have to approve of the revision.
    AwaitingApproval,
    /// Somebody rejects the revision.
    Rejected,
    /// A third party reports so.
    External,
    /// The third party has reported nothing about this spec.
    NotReported,
    /// Nobody verifies who says so.
    UnverifiedIdentity,
    /// All objects are as they should be.
    ObjectsReady,
    /// Some object is not as it should be.
    ObjectsNotReady,
    /// There are no objects to look at.
    NoObjects,
    /// All is as it should be, but not for long enough.
    Soaking,
    /// Other gates decide.
    Nested,
    /// The gate depends on itself.
    Cycle,
}

impl Reason {
    /// The word, as statuses have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::InsideWindow => "InsideWindow",
            Reason::NoClosedWindow => "NoClosedWindow",
            Reason::ClosedWindow => "ClosedWindow",
            Reason::LastStart => "LastStart",
            Reason::OutsideWindow => "OutsideWindow",
            Reason::Manual => "Manual",
            Reason::Default => "Default",
            Reason::Forced => "Forced",
            Reason::AllAdmit => "AllAdmit",
            Reason::Suspended => "Suspended",
            Reason::InvalidSpec => "InvalidSpec",
            Reason::Missing => "GatekeeperMissing",
            Reason::GateMissing => "GateMissing",
            Reason::CrossNamespaceRef => "CrossNamespaceRef",
            Reason::NotObserved => "NotObserved",
            Reason::Reported => "Reported",
            Reason::NoneAdmits => "NoneAdmits",
            Reason::EvidenceUnavailable => "EvidenceUnavailable",
            Reason::EvidenceBroken => "EvidenceBroken",
            Reason::Expired => "Expired",
            Reason::ClockSkew => "ClockSkew",
            Reason::NotWatched => "NotWatched",
            Reason::InRange => "InRange",
            Reason::OutOfRange => "OutOfRange",
            Reason::NoData => "NoData",
            Reason::AsExpected => "AsExpected",
            Reason::UnexpectedStatus => "UnexpectedStatus",
            Reason::UnexpectedBody => "UnexpectedBody",
            Reason::DependsOnRevision => "DependsOnRevision",
            Reason::RevisionAllowed => "RevisionAllowed",
            Reason::RevisionNotDenied => "RevisionNotDenied",
            Reason::RevisionDenied => "RevisionDenied",
            Reason::RevisionNotListed => "RevisionNotListed",
            Reason::Approved => "Approved",
            Reason::AwaitingApproval => "AwaitingApproval",
            Reason::Rejected => "Rejected",
            Reason::External => "ExternalReport",
            Reason::NotReported => "NotReported",
            Reason::UnverifiedIdentity => "UnverifiedIdentity",
            Reason::ObjectsReady => "ObjectsReady",
            Reason::ObjectsNotReady => "ObjectsNotReady",
            Reason::NoObjects => "NoObjects",
            Reason::Soaking => "Soaking",
            Reason::Nested => "NestedGates",
            Reason::Cycle => "CyclicGates",
        }
    }

    /// Whether it is the windows of a schedule that decided.
    pub(crate) fn is_by_window(self) -> bool {
        matches!(
            self,
            Reason::InsideWindow
                | Reason::NoClosedWindow
                | Reason::ClosedWindow
                | Reason::LastStart
                | Reason::OutsideWindow
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a gatekeeper says of an instant, without words: cheap to make, nothing allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// Open: it admits.
    pub state: State,
    /// Why.
    pub reason: Reason,
    /// When state or reason changes, or may: time changes the cause, evidence runs out, or nobody
    /// has looked farther. None: when a spec changes, or what is read.
    pub until: Option<Timestamp>,
    /// When the state changes. None: not by time.
    pub next: Option<Timestamp>,
}

impl Opinion {
    /// What it counts as under `require`. What is open only because its evidence cannot be had
    /// (`onError: open`) never by itself opens a `oneOf`.
    pub(crate) fn counts_as(&self, require: Require) -> State {
        match (require, self.state, self.reason) {
            (Require::OneOf, State::Open, Reason::EvidenceUnavailable) => State::Closed,
            (_, state, _) => state,
        }
    }

    /// Whether it counts as admitting under `require`.
    pub(crate) fn admits(&self, require: Require) -> bool {
        self.counts_as(require) == State::Open
    }

    /// So, until something other than time changes.
    pub(crate) fn of(state: State, reason: Reason) -> Self {
        Self {
            state,
            reason,
            until: None,
            next: None,
        }
    }

    /// Closed until something other than time changes.
    pub(crate) fn closed(reason: Reason) -> Self {
        Self {
            state: State::Closed,
            reason,
            until: None,
            next: None,
        }
    }
}

/// An opinion with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Open: it admits.
    pub state: State,
    /// Why, in one word; from a status of another version perhaps one that is not known here.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Until when this holds. None: until a spec changes.
    pub valid_until: Option<Timestamp>,
}

impl Verdict {
    pub(crate) fn new(opinion: Opinion, message: String) -> Self {
        Self {
            state: opinion.state,
            reason: opinion.reason.as_str().to_owned(),
            message,
            valid_until: opinion.until,
        }
    }

    /// As a status has it.
    pub fn status(&self) -> VerdictStatus {
        VerdictStatus {
            state: self.state,
            reason: self.reason.clone(),
            message: self.message.clone(),
            valid_until: self.valid_until.map(time),
        }
    }
}

impl From<&VerdictStatus> for Verdict {
    fn from(status: &VerdictStatus) -> Self {
        Self {
            state: status.state,
            reason: status.reason.clone(),
            message: status.message.clone(),
            valid_until: status.valid_until.as_ref().map(|until| until.0),
        }
    }
}

/// A change of state, as statuses have it.
pub(crate) fn transition((at, state): (Timestamp, State)) -> Transition {
    Transition {
        at: time(at),
        state,
    }
}
