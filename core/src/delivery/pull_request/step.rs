//! What is to be done next at the forge.
//!
//! | state | first that holds |
//! |---|---|
//! | any | it is not what is made for the promotion that it names: nothing |
//! | any | its commit status may say more than the gates: set it to pending, whatever failed or looks |
//! | any | the last try failed: wait; an open one is looked at meanwhile. To close it waits for no commit status |
//! | final | delete its branch, once; then nothing |
//! | pending | close · wait while suspended or without an owner · commit · open |
//! | open | close · commit status · merge · look, once a minute |

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use super::{Recent, Says, Task, Word};
use crate::delivery::pipeline::{is_whole, retry_after};

/// How often an open one is looked at, and how often at most if somebody asks for it.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const AT_MOST: SignedDuration = SignedDuration::from_secs(5);
/// After so many failures the branch of a finished one is left.
const MOST_DELETIONS: u32 = 10;

/// What the next step depends on.
pub(super) struct At<'a> {
    pub(super) object: &'a PullRequest,
    pub(super) status: &'a PullRequestStatus,
    pub(super) owner: Option<&'a Says>,
    pub(super) is_owner_current: bool,
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
    let state = at.state();
    let urgent = match at.withdrawal() {
        Withdrawal::Now(task) => return task.into(),
        Withdrawal::At(again) => Some(again),
        Withdrawal::None => None,
    };
    let retry = at.status.next_attempt_at.as_ref().map(|next| next.0);
    let is_free = at.is_changed_since_failure() || at.is_close_free();
    let retry = retry.filter(|next| *next > at.now && !is_free);
    if let Some(waits) = urgent.into_iter().chain(retry).min() {
        let looks = state == PullRequestState::Open && !at.recent.is_look_failing;
        return match at.status.id.zip(at.status.commit_sha.clone()) {
            Some((number, commit)) if looks => at.look(number, commit, Some(waits)),
            Some(_) | None => Step {
                wake: Some(waits),
                ..Step::default()
            },
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

/// What does not wait for the end of a task that is under way, but ends it.
pub(super) fn before(at: &At<'_>, under_way: &Task) -> Option<Step> {
    match at.withdrawal() {
        Withdrawal::Now(task) if under_way.only_looks() => Some(task.into()),
        Withdrawal::Now(_) | Withdrawal::At(_) | Withdrawal::None => None,
    }
}

/// Whether the commit status has to be set to pending.
enum Withdrawal {
    None,
    /// It failed, and is tried again at this instant.
    At(Timestamp),
    Now(Task),
}

impl At<'_> {
    /// What a person has to change has perhaps been changed: the spec is another one.
    fn is_changed_since_failure(&self) -> bool {
        self.lasts && self.status.observed_generation != self.object.metadata.generation
    }

    /// Whether it is to be closed, and only its commit status could not be set: that keeps nothing open. What a
    /// forge asks to wait for counts for everything.
    fn is_close_free(&self) -> bool {
        let is_limited = self.status.outcome.as_deref() == Some(Word::RateLimited.as_str());
        let is_asked = self.object.spec.close.is_some() && !self.state().is_final();
        is_asked && self.recent.is_gate_failing && !is_limited
    }

    fn state(&self) -> PullRequestState {
        self.status.state.unwrap_or(PullRequestState::Pending)
    }

    /// The gates have closed: that comes first, and waits for nothing else.
    fn withdrawal(&self) -> Withdrawal {
        let may_say_more = self.status.commit_status == Some(MergeGate::Success);
        let commit = self.status.commit_sha.clone().filter(|_| {
            may_say_more
                && self.state() == PullRequestState::Open
                && self.gate() == MergeGate::Pending
        });
        let Some(commit) = commit else {
            return Withdrawal::None;
        };
        let failed = self.recent.unwithdrawn;
        if failed > 0 && self.object.spec.close.is_some() {
            // To close it has the same effect.
            return Withdrawal::None;
        }
        let last = self.recent.unwithdrawn_at.filter(|_| failed > 0);
        let again = last.and_then(|last| last.checked_add(retry_after(failed)).ok());
        match again.filter(|again| *again > self.now) {
            Some(again) => Withdrawal::At(again),
            None => Withdrawal::Now(self.status_of(commit, MergeGate::Pending)),
        }
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
        self.look(number, commit, merge_after.filter(|_| order.is_some()))
    }

    /// It is looked at in its time. `sooner`: when something else is to be done, if nothing changes.
    fn look(&self, number: i64, commit: String, sooner: Option<Timestamp>) -> Step {
        let Recent {
            seen_at,
            missed_at,
            look_after,
            is_asked_for,
            ..
        } = self.recent;
        let wait = if *is_asked_for { AT_MOST } else { MINUTE };
        let seen = seen_at.and_then(|seen| seen.checked_add(wait).ok());
        let missed = missed_at.and_then(|missed| missed.checked_add(MINUTE).ok());
        let next = seen.max(missed).max(*look_after);
        match next.filter(|at| *at > self.now) {
            None => Step::from(Task::Look {
                number,
                commit,
                alone: *is_asked_for,
            }),
            Some(at) => Step {
                wake: Some(sooner.map_or(at, |sooner| sooner.min(at))),
                ..Step::default()
            },
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

    /// What its commit status has to be. A process that begins to lead says pending first, and admits
    /// nothing before it knows more than the leader before it has said.
    fn gate(&self) -> MergeGate {
        let is_known = self.is_owner_current && self.recent.told.is_some();
        let owner = self.owner.filter(|_| is_known);
        owner.map_or(MergeGate::Pending, |owner| owner.gate)
    }

    fn status_of(&self, commit: String, gate: MergeGate) -> Task {
        let why = match self.owner {
            Some(owner) if owner.gate == gate => owner.why.clone(),
            Some(_) => "the gates are asked".to_owned(),
            None => "its pipeline does not ask for this merge".to_owned(),
        };
        Task::SetStatus { commit, gate, why }
    }

    /// The order to merge it now: of this promotion, of our commit, and only while the branch has it.
    fn order(&self, commit: &str) -> Option<&Order> {
        let order = self.owner?.order.as_ref()?;
        let is_it = self.gate() == MergeGate::Success
            && order.key == self.object.spec.about.key
            && self.object.metadata.name.as_deref() == Some(order.pull_request.as_str())
            && order.head_sha == commit
            && self.status.head_sha.as_deref() == Some(commit)
            && self.now <= order.not_after.0;
        is_it.then_some(order)
    }
}
