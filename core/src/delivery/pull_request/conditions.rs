//! What the status of a PullRequest says in conditions.

use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use super::{Word, is_followed};
use crate::verdict::condition::{READY, RECONCILING, STALLED, Wanted, find};

/// Whether the last try failed in a way that lasts until a person does something, as its status says.
pub(super) fn lasted(status: &PullRequestStatus) -> bool {
    status.attempts.is_some() && find(&status.conditions, STALLED).is_some()
}

/// Whether it waits for a forge that lets only merges pass.
pub fn is_throttled(status: &PullRequestStatus) -> bool {
    let word = status.outcome.as_deref();
    status.attempts.is_none() && word == Some(Word::ForgeThrottled.as_str())
}

/// All the conditions. `lasts`: the last try failed in a way that lasts until a person does something.
pub(super) fn all(
    object: &PullRequest,
    status: &PullRequestStatus,
    has_owner: bool,
    lasts: bool,
) -> Vec<Wanted> {
    let state = status.state.unwrap_or(PullRequestState::Pending);
    let said = status.message.as_deref();
    if let (Some(message), false, Some(_)) = (said, state.is_final(), status.attempts) {
        let word = status.outcome.as_deref().unwrap_or("Failed");
        let more = if lasts { STALLED } else { RECONCILING };
        return not_ready(Some(more), word, message);
    }
    let is_asked = object.spec.close.is_some();
    match state {
        PullRequestState::Pending if is_asked => {
            not_ready(Some(RECONCILING), "Closing", "it is being closed")
        }
        PullRequestState::Pending if object.spec.suspend => {
            let message = "it is not opened while its gates are closed";
            not_ready(None, "Suspended", message)
        }
        PullRequestState::Pending if !has_owner => {
            let message = "its owner does not ask for it now, so that nothing is done";
            not_ready(None, "NotWanted", message)
        }
        PullRequestState::Pending if is_throttled(status) => not_ready(
            Some(RECONCILING),
            Word::ForgeThrottled.as_str(),
            said.unwrap_or_default(),
        ),
        PullRequestState::Pending if is_followed(object) || status.commit_sha.is_some() => {
            not_ready(Some(RECONCILING), "Opening", "it is being opened")
        }
        PullRequestState::Pending => {
            not_ready(Some(RECONCILING), "Committing", "its commit is being made")
        }
        PullRequestState::Open => ready("Open", said.unwrap_or("it is open")),
        PullRequestState::Merged => ready("Merged", said.unwrap_or("it is merged")),
        PullRequestState::AlreadyInBase => {
            ready("AlreadyInBase", "the target branch has its change already")
        }
        PullRequestState::Closed => match &object.spec.close {
            Some(reason) => ready("Closed", reason),
            None => not_ready(
                Some(STALLED),
                status.outcome.as_deref().unwrap_or("ClosedByOthers"),
                said.unwrap_or("it was closed on the forge without a merge"),
            ),
        },
        PullRequestState::Missing => not_ready(
            Some(STALLED),
            "Missing",
            "it was open, and the forge does not know it any more",
        ),
    }
}

fn ready(reason: &str, message: &str) -> Vec<Wanted> {
    vec![Wanted::new(READY, true, reason, message)]
}

fn not_ready(more: Option<&'static str>, reason: &str, message: &str) -> Vec<Wanted> {
    let say = |type_, holds| Wanted::new(type_, holds, reason, message);
    let more = more.map(|type_| say(type_, true));
    [say(READY, false)].into_iter().chain(more).collect()
}
