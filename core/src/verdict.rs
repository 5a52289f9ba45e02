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

/// What a gatekeeper's conditions say where this is the reason of its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The rule can be judged.
    Ready,
    /// It cannot, at the moment.
    NotReady,
    /// It cannot yet: its evidence is awaited.
    Reconciling,
    /// It cannot until somebody changes the spec, or what it names.
    Stalled,
}

/// What reasons have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// The windows of a schedule decided.
    Window,
    /// There should be evidence to judge by, and there is none.
    NoEvidence,
    /// The same, and `onError` decided.
    OnError,
    /// A vote or a report has this reason only where somebody verifies who writes it.
    Verified,
    /// Nothing in particular.
    Other,
}

/// Makes [`Reason`] of its table.
macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident = ($word:literal, $health:ident, $group:ident),)+) => {
        /// Why something is open or closed: the one vocabulary of statuses, events, metrics and
        /// logs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])+ $name,)+
        }

        impl Reason {
            const ALL: &[Self] = &[$(Self::$name,)+];

            const fn facts(self) -> (&'static str, Health, Group) {
                match self {
                    $(Self::$name => ($word, Health::$health, Group::$group),)+
                }
            }
        }
    };
}

// Each with its word, as statuses have it. A word is never changed once it is released.
reasons! {
    /// Inside an open window.
    InsideWindow = ("InsideWindow", Ready, Window),
    /// No closed window covers the instant, and there are no open ones.
    NoClosedWindow = ("NoClosedWindow", Ready, Window),
    /// Inside a closed window.
    ClosedWindow = ("ClosedWindow", Ready, Window),
    /// Too late to start in the open window.
    LastStart = ("LastStart", Ready, Window),
    /// In no open window.
    OutsideWindow = ("OutsideWindow", Ready, Window),
    /// A switch stands so.
    Manual = ("Manual", Ready, Other),
    /// A gate without gatekeepers, in its default state.
    Default = ("Default", Ready, Other),
    /// Somebody forces the gate.
    Forced = ("Forced", Ready, Other),
    /// Every gatekeeper admits.
    AllAdmit = ("AllAdmit", Ready, Other),
    /// The object is suspended.
    Suspended = ("Suspended", Ready, Other),
    /// The spec is refused.
    InvalidSpec = ("InvalidSpec", Stalled, Other),
    /// The gatekeeper does not exist.
    Missing = ("GatekeeperMissing", Ready, Other),
    /// The gate does not exist.
    GateMissing = ("GateMissing", Ready, Other),
    /// The gatekeeper lives in a namespace that may not be named.
    CrossNamespaceRef = ("CrossNamespaceRef", Ready, Other),
    /// Evidence has not been observed yet.
    NotObserved = ("NotObserved", Reconciling, NoEvidence),
    /// Evidence has not been observed yet, but the status reports a verdict that still holds.
    Reported = ("Reported", Ready, Other),
    /// Several gatekeepers of which one would be enough, and none admits.
    NoneAdmits = ("NoneAdmits", Ready, Other),
    /// Evidence is unavailable.
    EvidenceUnavailable = ("EvidenceUnavailable", NotReady, OnError),
    /// Evidence was had and makes no sense.
    EvidenceBroken = ("EvidenceBroken", Stalled, NoEvidence),
    /// The verdict has run out.
    Expired = ("Expired", NotReady, NoEvidence),
    /// The clock cannot be relied on.
    ClockSkew = ("ClockSkew", NotReady, Other),
    /// Changes on the API server are not seen any more.
    NotWatched = ("NotWatched", Ready, Other),
    /// The value is within the range.
    InRange = ("InRange", Ready, Other),
    /// The value is outside the range.
    OutOfRange = ("OutOfRange", Ready, Other),
    /// The query returns no value.
    NoData = ("NoData", Ready, Other),
    /// The address answers as expected.
    AsExpected = ("AsExpected", Ready, Other),
    /// The address answers with another status than is expected.
    UnexpectedStatus = ("UnexpectedStatus", Ready, Other),
    /// The body of the answer is not as expected.
    UnexpectedBody = ("UnexpectedBody", Ready, Other),
    /// It depends on the revision, and none was named.
    DependsOnRevision = ("DependsOnRevision", Ready, Verified),
    /// The revision is on a list of what may go out.
    RevisionAllowed = ("RevisionAllowed", Ready, Other),
    /// There are only lists of what may not go out, and the revision is on none.
    RevisionNotDenied = ("RevisionNotDenied", Ready, Other),
    /// The revision is on a list of what may not go out.
    RevisionDenied = ("RevisionDenied", Ready, Other),
    /// The revision is not on a list of what may go out.
    RevisionNotListed = ("RevisionNotListed", Ready, Verified),
    /// Enough people approve of the revision.
    Approved = ("Approved", Ready, Verified),
    /// More people have to approve of the revision.
    AwaitingApproval = ("AwaitingApproval", Ready, Verified),
    /// Somebody rejects the revision.
    Rejected = ("Rejected", Ready, Verified),
    /// A third party reports so.
    External = ("ExternalReport", Ready, Verified),
    /// The third party has reported nothing about this spec.
    NotReported = ("NotReported", Ready, Other),
    /// Nobody verifies who says so.
    UnverifiedIdentity = ("UnverifiedIdentity", NotReady, Other),
    /// All objects are as they should be.
    ObjectsReady = ("ObjectsReady", Ready, Other),
    /// Some object is not as it should be.
    ObjectsNotReady = ("ObjectsNotReady", Ready, Other),
    /// All objects are as they should be, at another revision.
    OtherRevision = ("OtherRevision", Ready, Other),
    /// There are no objects to look at.
    NoObjects = ("NoObjects", Ready, Other),
    /// All is as it should be, but not for long enough.
    Soaking = ("Soaking", Ready, Other),
    /// There is no Pipeline of that name.
    PipelineMissing = ("PipelineMissing", NotReady, NoEvidence),
    /// The Pipeline has no environment of that name.
    EnvironmentMissing = ("EnvironmentMissing", NotReady, NoEvidence),
    /// The Pipeline has admitted nothing to the environment.
    NothingAdmitted = ("NothingAdmitted", Ready, Other),
    /// The Pipeline has admitted the revision to the environment.
    Admitted = ("Admitted", Ready, Verified),
    /// The Pipeline has admitted other revisions to the environment.
    NotAdmitted = ("NotAdmitted", Ready, Verified),
    /// Other gates decide.
    Nested = ("NestedGates", Ready, Other),
    /// The gate depends on itself.
    Cycle = ("CyclicGates", NotReady, Other),
}

impl Reason {
    /// The reason with this word. None: it is one of another version.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == word)
    }

    /// The word, as statuses have it.
    pub fn as_str(self) -> &'static str {
        self.facts().0
    }

    pub(crate) fn health(self) -> Health {
        self.facts().1
    }

    /// Whether it is the windows of a schedule that decided.
    pub(crate) fn is_by_window(self) -> bool {
        self.facts().2 == Group::Window
    }

    /// Whether there should be evidence to judge by, and there is none.
    pub fn is_without_evidence(self) -> bool {
        matches!(self.facts().2, Group::NoEvidence | Group::OnError)
    }

    /// Whether `onError` decided, because evidence is unavailable.
    pub(crate) fn is_by_on_error(self) -> bool {
        self.facts().2 == Group::OnError
    }

    /// Whether a vote or a report has this reason only where somebody verifies who writes it.
    pub(crate) fn is_verified(self) -> bool {
        self.facts().2 == Group::Verified
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
    /// What it counts as under `require`. What is open only because its evidence is unavailable
    /// (`onError: open`) never by itself opens a `oneOf`.
    pub(crate) fn counts_as(&self, require: Require) -> State {
        match (require, self.state) {
            (Require::OneOf, State::Open) if self.reason.is_by_on_error() => State::Closed,
            (_, state) => state,
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
