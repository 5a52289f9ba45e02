//! What a forge has made of a merge: whether the branch has it, and why it was not made.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::{PullRequest, PullRequestStatus};

use super::evidence::Sight;
use super::tips::{Asker, Env, Tip};
use super::{Given, is_requested};
use crate::delivery::pull_request::is_throttled;
use crate::text::words::instant_utc;

/// How long after a merge was seen the branch is listed that has to have it: a forge may be late.
const LATE: SignedDuration = SignedDuration::from_mins(1);

/// Whether a branch was not seen to have a merge that is made, and may get it. Otherwise the same is proposed
/// once more: as after a revert, or after somebody has taken it away by a push by force.
pub(super) fn is_awaited(asker: &Asker<'_>, env: &Env<'_>, status: &PullRequestStatus) -> bool {
    let active = env.active.as_ref();
    let has_it = active.is_some_and(|active| has(asker, active, status));
    // It was listed long enough after the merge was seen.
    let is_lost = settles_at(status).is_some_and(|at| asker.listed_after(at));
    !has_it && !is_lost
}

/// Whether a branch that points there has what a pull request was merged as. It does not as long as it points to
/// what that was merged onto.
pub(super) fn has(asker: &Asker<'_>, active: &Tip, status: &PullRequestStatus) -> bool {
    status.merged_onto.as_ref() != Some(&active.sha)
        && (status.merged_sha.as_ref())
            .is_some_and(|merged| asker.contains(&active.sha, merged) == Sight::Known(true))
}

fn settles_at(status: &PullRequestStatus) -> Option<Timestamp> {
    status.merged_at.as_ref()?.0.checked_add(LATE).ok()
}

/// When it is looked again whether a branch has the merge: as soon as it can be known, and later as often as
/// that takes.
pub(super) fn again_at(status: &PullRequestStatus, now: Timestamp) -> Option<Timestamp> {
    let settles = settles_at(status)?;
    let late = now.duration_since(settles).as_secs();
    let rounds = late.max(-LATE.as_secs()).div_euclid(LATE.as_secs()) + 1;
    let rounds = i32::try_from(rounds).ok()?;
    settles.checked_add(LATE.checked_mul(rounds)?).ok()
}

/// What keeps the forge from merging an open one that it was asked to merge.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// Why.
    pub(super) why: String,
    /// Until then nothing is ordered again. None: as soon as the last order has ended.
    pub(super) until: Option<Timestamp>,
}

/// What keeps the forge from merging it. A request for a fresh look has it tried again now.
pub(super) fn refused(given: &Given, object: &PullRequest) -> Option<Refusal> {
    let status = object.status.as_ref()?;
    let word = status
        .outcome
        .as_ref()
        .filter(|_| status.attempts.is_none() && !is_throttled(status))?;
    let why = status.message.as_deref().unwrap_or_default();
    let why = format!("the forge does not merge it: {word}: {why}");
    let until = status.next_merge_at.as_ref().map(|at| at.0);
    let until = until.filter(|at| *at > given.now.at && !is_requested(&given.object));
    Some(match until {
        Some(at) => Refusal {
            why: format!("{why}; it is tried again at {}", instant_utc(at)),
            until,
        },
        None => Refusal { why, until },
    })
}
