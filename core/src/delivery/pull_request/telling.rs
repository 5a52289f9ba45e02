//! The commit status of a pull request: on which commit it is, what it says, and when it is set.
//!
//! A success stands on one commit at most. It goes back to pending before anything else is done, where the
//! gates hold the merge back, and where it stands on a commit that is not to be merged any more.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::MergeGate;
use sluice_crds::pull_request::PullRequestState;

use super::step::At;
use super::{Task, Telling, is_followed, owner};
use crate::delivery::pipeline::retry_after;

/// The description alone is rewritten at most so often.
const REWRITES: SignedDuration = SignedDuration::from_mins(1);

/// Whether a success has to be taken back.
pub(super) enum Withdrawal {
    None,
    /// It failed, and is tried again at this instant.
    At(Timestamp),
    Now(Task),
}

/// Whether it has to be set.
pub(super) enum Untold {
    Nothing,
    /// Its description is another one, and is rewritten at this instant.
    At(Timestamp),
    Now,
}

impl At<'_> {
    /// The commit that is to be merged: ours, or the newest one of a branch that somebody else pushes to.
    pub(super) fn head(&self) -> Option<&str> {
        match is_followed(self.object) {
            true => self.status.head_sha.as_deref(),
            false => self.status.commit_sha.as_deref(),
        }
    }

    /// What its commit status has to be. A process that begins to lead says pending first, and admits
    /// nothing before it knows more than the leader before it has said. What the owner says of one commit
    /// counts for no other.
    pub(super) fn gate(&self) -> MergeGate {
        let is_known = self.is_owner_current && self.recent.told.is_some();
        let owner = self.owner.filter(|_| is_known && !self.is_of_another());
        owner.map_or(MergeGate::Pending, |owner| owner.gate)
    }

    /// Whether the owner speaks of another commit than the branch has.
    fn is_of_another(&self) -> bool {
        let spoken = self.owner.and_then(|owner| owner.head.as_deref());
        spoken.is_some() && spoken != self.head()
    }

    /// What its commit status has to say. None: there is no commit that is to be merged.
    pub(super) fn telling(&self) -> Option<Telling> {
        let commit = self.head()?.to_owned();
        let gate = self.gate();
        let why = match self.owner {
            Some(owner) if owner.gate == gate => owner.why.clone(),
            Some(_) if self.is_of_another() => "its branch has another commit by now".to_owned(),
            Some(_) => "the gates are asked".to_owned(),
            None => "its owner does not ask for this merge".to_owned(),
        };
        let told = self.recent.told.as_ref();
        let context = match (self.owner, told) {
            (Some(owner), _) => owner.context.clone(),
            (None, Some(told)) => told.telling.context.clone(),
            (None, None) => owner::context(self.object),
        };
        Some(Telling {
            commit,
            context,
            gate,
            why,
        })
    }

    /// Whether it says something else by now.
    pub(super) fn untold(&self, wanted: &Telling) -> Untold {
        let Some(told) = &self.recent.told else {
            return Untold::Now;
        };
        let is_right = told.telling.is_at(wanted)
            && told.telling.gate == wanted.gate
            && self.status.commit_status == Some(wanted.gate);
        if is_right && told.telling.why == wanted.why {
            return Untold::Nothing;
        }
        let again = told.at.checked_add(REWRITES).ok();
        match again.filter(|again| is_right && *again > self.now) {
            Some(again) => Untold::At(again),
            None => Untold::Now,
        }
    }

    /// A success that does not hold any more: that comes first, and waits for nothing else.
    pub(super) fn withdrawal(&self) -> Withdrawal {
        let is_shown = self.status.commit_status == Some(MergeGate::Success)
            && self.state() == PullRequestState::Open;
        let wanted = self.telling();
        let told = self.recent.told.as_ref().map(|told| &told.telling);
        let told = told.filter(|told| told.gate == MergeGate::Success);
        let Some(shown) = told.or(wanted.as_ref()).filter(|_| is_shown) else {
            return Withdrawal::None;
        };
        let wanted = wanted.as_ref().filter(|wanted| wanted.is_at(shown));
        if wanted.is_some_and(|wanted| wanted.gate == MergeGate::Success) {
            return Withdrawal::None;
        }
        let failed = self.recent.unwithdrawn;
        if failed > 0 && self.object.spec.close.is_some() && self.closes_at().is_none() {
            // To close it has the same effect.
            return Withdrawal::None;
        }
        let last = self.recent.unwithdrawn_at.filter(|_| failed > 0);
        let again = last.and_then(|last| last.checked_add(retry_after(failed)).ok());
        if let Some(again) = again.filter(|again| *again > self.now) {
            return Withdrawal::At(again);
        }
        let moved = || "its branch has another commit by now".to_owned();
        Withdrawal::Now(Task::SetStatus(Telling {
            gate: MergeGate::Pending,
            why: wanted.map_or_else(moved, |wanted| wanted.why.clone()),
            ..shown.clone()
        }))
    }
}
