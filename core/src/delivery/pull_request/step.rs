//! What is to be done next at the forge.
//!
//! | state | first that holds |
//! |---|---|
//! | any | it is not what is made for the promotion that it names: nothing |
//! | any | its commit status may say more than the gates: set it to pending, whatever failed before |
//! | any | the last try failed: wait |
//! | final | delete its branch, once; then nothing |
//! | pending | close · wait while suspended or without an owner · commit · open |
//! | open | close · commit status · merge · look, once a minute |

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use super::{Recent, Says, Task};
use crate::delivery::pipeline::is_whole;

/// How often an open one is looked at, and how often at most if somebody asks for it.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const AT_MOST: SignedDuration = SignedDuration::from_secs(5);
/// The wait before a commit status is set to pending again.
const URGENT: SignedDuration = SignedDuration::from_secs(10);
/// After so many failures the branch of a finished one is left.
const MOST_DELETIONS: u32 = 10;

/// What the next step depends on.
pub(super) struct At<'a> {
    pub(super) object: &'a PullRequest,
    pub(super) status: &'a PullRequestStatus,
    pub(super) owner: Option<&'a Says>,
    pub(super) recent: &'a Recent,
    /// Whether the last try failed in a way that lasts until a person does something.
    pub(super) lasts: bool,
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Step {
    pub(super) task: Option<Task>,
    /// What the status has to say of the commit status before the task.
    pub(super) gate: Option<MergeGate>,
    /// When to look again, if nothing is to be done now.
    pub(super) wake: Option<Timestamp>,
}

impl From<Task> for Step {
    fn from(task: Task) -> Self {
        Self {
            task: Some(task),
            ..Self::default()
        }
    }
}

pub(super) fn next(at: &At<'_>) -> Step {
    if !is_whole(at.object) {
        // Somebody else has made it: at the forge it stands for nothing.
        return Step::default();
    }
    let state = at.status.state.unwrap_or(PullRequestState::Pending);
    let retry = at.status.next_attempt_at.as_ref().map(|next| next.0);
    let retry = retry.filter(|next| *next > at.now && !at.is_changed_since_failure());
    if let Some(step) = at.withdrawn(state, retry) {
        return step;
    }
    if let Some(retry) = retry {
        return Step {
            wake: Some(retry),
            ..Step::default()
        };
    }
    match state {
        PullRequestState::Pending => at.pending(),
        PullRequestState::Open => at.open(),
        PullRequestState::Merged
        | PullRequestState::Closed
        | PullRequestState::AlreadyInBase
        | PullRequestState::Missing => at.over(),
    }
}

impl At<'_> {
    /// What a person has to change has perhaps been changed: the spec is another one.
    fn is_changed_since_failure(&self) -> bool {
        self.lasts && self.status.observed_generation != self.object.metadata.generation
    }

    /// The gates have closed: that comes first, and waits for nothing else.
    fn withdrawn(&self, state: PullRequestState, retry: Option<Timestamp>) -> Option<Step> {
        let commit = self.status.commit_sha.clone()?;
        let may_say_more = self.status.commit_status == Some(MergeGate::Success);
        if state != PullRequestState::Open || !may_say_more || self.gate() != MergeGate::Pending {
            return None;
        }
        let last = self.recent.tried_at.filter(|_| retry.is_some());
        let again = last.and_then(|last| last.checked_add(URGENT).ok());
        Some(match again.filter(|again| *again > self.now) {
            Some(again) => Step {
                wake: Some(again),
                ..Step::default()
            },
            None => self.status_of(commit, MergeGate::Pending).into(),
        })
    }

    fn pending(&self) -> Step {
        let spec = &self.object.spec;
        let commit = &self.status.commit_sha;
        if let Some(reason) = &spec.close {
            return Step::from(Task::Close {
                number: self.status.id,
                commit: commit.clone(),
                reason: reason.clone(),
            });
        }
        if spec.suspend || self.owner.is_none() {
            return Step::default();
        }
        Step::from(match commit {
            None => Task::Commit,
            Some(commit) => Task::Open {
                commit: commit.clone(),
            },
        })
    }

    fn open(&self) -> Step {
        let (number, commit) = match (self.status.id, self.status.commit_sha.clone()) {
            (Some(number), Some(commit)) => (number, commit),
            // Somebody has written the status: both are found again.
            (None, Some(commit)) => return Step::from(Task::Open { commit }),
            (_, None) => return Step::from(Task::Commit),
        };
        if let Some(reason) = &self.object.spec.close {
            return Step::from(Task::Close {
                number: Some(number),
                commit: Some(commit),
                reason: reason.clone(),
            });
        }
        let gate = self.gate();
        if self.recent.told != Some(gate) || self.status.commit_status != Some(gate) {
            return Step {
                gate: (gate == MergeGate::Success).then_some(gate),
                ..self.status_of(commit, gate).into()
            };
        }
        let order = self.order(&commit);
        let merge_after = self.recent.merge_after.filter(|after| *after > self.now);
        if let Some(order) = order.filter(|_| merge_after.is_none()) {
            return Step::from(Task::Merge {
                number,
                commit,
                method: order.method,
                not_after: order.not_after.0,
            });
        }
        let again = |after: SignedDuration| {
            let seen = self.recent.seen_at?;
            seen.checked_add(after).ok().filter(|at| *at > self.now)
        };
        let is_asked_for = self.recent.is_asked_for;
        let wait = if is_asked_for { AT_MOST } else { MINUTE };
        match again(wait) {
            None => Step::from(Task::Look {
                number,
                commit,
                alone: is_asked_for,
            }),
            Some(at) => {
                let merge = merge_after.filter(|_| order.is_some());
                Step {
                    wake: Some(merge.map_or(at, |merge| merge.min(at))),
                    ..Step::default()
                }
            }
        }
    }

    fn over(&self) -> Step {
        let attempts = self.status.attempts.unwrap_or_default();
        match self.status.branch_deleted || attempts >= MOST_DELETIONS {
            true => Step::default(),
            false => Step::from(Task::DeleteBranch {
                commit: self.status.commit_sha.clone(),
            }),
        }
    }

    /// What its commit status has to be.
    fn gate(&self) -> MergeGate {
        self.owner.map_or(MergeGate::Pending, |owner| owner.gate)
    }

    fn status_of(&self, commit: String, gate: MergeGate) -> Task {
        let why = match self.owner {
            Some(owner) => owner.why.clone(),
            None => "its pipeline does not ask for this merge".to_owned(),
        };
        Task::SetStatus { commit, gate, why }
    }

    /// The order to merge it now: of this promotion, of our commit, and only while the branch has it.
    fn order(&self, commit: &str) -> Option<&Order> {
        let order = self.owner?.order.as_ref()?;
        let is_it = order.key == self.object.spec.about.key
            && self.object.metadata.name.as_deref() == Some(order.pull_request.as_str())
            && order.head_sha == commit
            && self.status.head_sha.as_deref() == Some(commit)
            && self.now <= order.not_after.0;
        is_it.then_some(order)
    }
}
