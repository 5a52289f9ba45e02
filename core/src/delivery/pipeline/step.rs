//! Step 3: what comes next in a promotion, by how far it is and what is seen of it.
//!
//! One exhaustive table for each strategy. Who is asked before something begins, and what is written about
//! it, comes later: see `plan`.

use sluice_crds::pipeline::Phase;

use super::child::Child;
use super::reasons::{ADMITTED, ALREADY_IN_BASE, MERGED, REPORTED, SENT};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It begins, or is tried again, if people and gates say yes.
    Begin,
    /// It was decided: what has to be done is done, perhaps once more.
    Act,
    /// It is under way, or waits for its next try.
    Wait,
    /// Its pull request could not be opened, and is tried again. The gates are asked again about that.
    Fails,
    /// It failed just now.
    Failed,
    /// Its pull request is open.
    Opened,
    /// It is done: why, in one word.
    Succeeded(&'static str),
    /// It is given up: why, in one word.
    Abandoned(&'static str),
    /// It was done before, and is not done again.
    Finished,
    /// It was given up before, and is not tried again.
    GivenUp,
}

/// What has come of the present try of an errand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Try {
    NotBegun,
    /// It was decided too long ago, and has not been begun.
    TooOld,
    UnderWay,
    Done,
    Failed,
}

/// Whether something that waits for an instant waits no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Now,
    Later,
}

/// What the gatekeepers say that an admission is reported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reports {
    /// It is reported to none: those on this cluster read the status.
    None,
    /// All of them say the revision.
    All,
    /// Some of them do not.
    Lacking,
}

/// By a pull request. The PullRequest tries again by itself.
pub(super) fn pull_request(phase: Option<Phase>, child: &Child) -> Step {
    use Phase::{Abandoned, Attempting, Created, Failed, Succeeded, Unapproved, Unattempted};
    match (phase, child) {
        (Some(Succeeded), _) => Step::Finished,
        (Some(Abandoned), _) => Step::GivenUp,
        // The object was there before the status: no matter who made it, people and gates are asked.
        (
            None | Some(Unapproved | Unattempted),
            Child::Missing | Child::Waiting | Child::Failing { .. },
        ) => Step::Begin,
        (Some(Attempting | Failed | Created), Child::Missing) => Step::Act,
        (None | Some(Unapproved | Unattempted | Attempting | Failed | Created), child) => {
            match child {
                Child::Missing | Child::Waiting => Step::Wait,
                Child::Failing { .. } => Step::Fails,
                Child::Open => Step::Opened,
                Child::Merged => Step::Succeeded(MERGED),
                Child::AlreadyInBase => Step::Succeeded(ALREADY_IN_BASE),
                Child::Closed => Step::Abandoned("Closed"),
                Child::Vanished => Step::Abandoned("Vanished"),
            }
        }
    }
}

/// By a notification. `retry` is when it is tried again after a failure, `repeat` when it is sent again
/// after it had no effect.
pub(super) fn notification(phase: Option<Phase>, tried: Try, retry: Due, repeat: Due) -> Step {
    match phase {
        None | Some(Phase::Unapproved | Phase::Unattempted) => Step::Begin,
        Some(Phase::Attempting) => match tried {
            Try::NotBegun => Step::Act,
            Try::TooOld => Step::Begin,
            Try::UnderWay => Step::Wait,
            Try::Done => Step::Succeeded(SENT),
            Try::Failed => Step::Failed,
        },
        Some(Phase::Failed) => match retry {
            Due::Now => Step::Begin,
            Due::Later => Step::Wait,
        },
        Some(Phase::Succeeded) => match repeat {
            Due::Now => Step::Begin,
            Due::Later => Step::Finished,
        },
        // There is no pull request to be created.
        Some(Phase::Created) => Step::Finished,
        Some(Phase::Abandoned) => Step::GivenUp,
    }
}

/// By an admission.
pub(super) fn admission(phase: Option<Phase>, reports: Reports, tried: Try, retry: Due) -> Step {
    match phase {
        None | Some(Phase::Unapproved | Phase::Unattempted) => Step::Begin,
        Some(Phase::Attempting) => match (reports, tried) {
            (Reports::None, _) => Step::Succeeded(ADMITTED),
            (Reports::All, _) => Step::Succeeded(REPORTED),
            // It was written, and is not there any more.
            (Reports::Lacking, Try::NotBegun | Try::Done) => Step::Act,
            (Reports::Lacking, Try::TooOld) => Step::Begin,
            (Reports::Lacking, Try::UnderWay) => Step::Wait,
            (Reports::Lacking, Try::Failed) => Step::Failed,
        },
        Some(Phase::Failed) => match (reports, retry) {
            (Reports::None, _) => Step::Succeeded(ADMITTED),
            (Reports::All, _) => Step::Succeeded(REPORTED),
            (Reports::Lacking, Due::Now) => Step::Begin,
            (Reports::Lacking, Due::Later) => Step::Wait,
        },
        // A report that was wiped, or is for an older generation, is written again.
        Some(Phase::Succeeded) => match (reports, tried) {
            (Reports::Lacking, Try::NotBegun | Try::TooOld | Try::Done) => Step::Act,
            (Reports::Lacking, Try::UnderWay | Try::Failed) | (Reports::None | Reports::All, _) => {
                Step::Finished
            }
        },
        // There is no pull request to be created.
        Some(Phase::Created) => Step::Finished,
        Some(Phase::Abandoned) => Step::GivenUp,
    }
}
