//! What is to be done next at the forge.
//!
//! | state | first that holds |
//! |---|---|
//! | any | it is not what is made for what it names: nothing |
//! | any | its commit status may say more than the gates: set it to pending, whatever failed or looks |
//! | any | what is left of the rate limit is kept for merges: wait, but say that an open one may be merged, and merge it |
//! | any | the last try failed: wait; an open one is looked at meanwhile. To close it waits for no commit status |
//! | final | delete its branch, once, unless somebody else pushes to it; then nothing |
//! | pending | close · wait while suspended or without an owner · join, if empty · commit, if that is ours · open |
//! | open, to be closed | look, as long as a merge may be under way · close |
//! | open | commit status · title and text · merge · look, once a minute |

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::{MergeSent, PullRequestState};
use sluice_crds::{PullRequest, PullRequestStatus};

use super::owner::is_whole;
use super::telling::{Untold, Withdrawal};
use super::{Joining, Recent, Says, Task, Text, Word, is_followed};
use crate::time::stamp::time;

/// How often an open one is looked at, and how often at most if somebody asks for it.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const AT_MOST: SignedDuration = SignedDuration::from_secs(5);
/// How long one that is to be closed is looked at before: somebody may have merged it just now.
const MAY_BE_MERGED: SignedDuration = SignedDuration::from_secs(10);
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
    if let Some(step) = at.throttled(urgent) {
        return step;
    }
    let retry = at.status.next_attempt_at.as_ref().map(|next| next.0);
    let is_free = at.is_changed_since_failure() || at.is_close_free() || at.joins_first();
    let retry = retry.filter(|next| *next > at.now && !is_free);
    if let Some(waits) = urgent.into_iter().chain(retry).min() {
        let looks = state == PullRequestState::Open && !at.recent.is_look_failing;
        return match at.known() {
            Some((number, ours)) if looks => at.look(number, ours, Some(waits)),
            Some(_) | None => Step {
                wake: at.closes_at().into_iter().chain([waits]).min(),
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

/// What does not wait for the end of a task that is under way, and has changed nothing yet, but ends it: that may
/// wait for its turn for long.
pub(super) fn before(at: &At<'_>, under_way: &Task) -> Option<Step> {
    match at.withdrawal() {
        Withdrawal::Now(task) if !under_way.withdraws() => Some(task.into()),
        Withdrawal::Now(_) | Withdrawal::At(_) | Withdrawal::None => None,
    }
}

/// What the status has to say of a merge before that is sent.
pub(super) fn sent(task: &Task) -> Option<MergeSent> {
    let Task::Merge {
        commit, not_after, ..
    } = task
    else {
        return None;
    };
    Some(MergeSent {
        head_sha: commit.clone(),
        not_after: time(*not_after),
    })
}

/// When nothing can come any more of a merge that may have been sent, if it is open then. It may have been seen a
/// minute ago.
pub(super) fn merge_ends(status: &PullRequestStatus) -> Option<Timestamp> {
    let sent = status.merge_sent.as_ref()?;
    sent.not_after.0.checked_add(MINUTE).ok()
}

impl At<'_> {
    fn throttled_until(&self) -> Option<Timestamp> {
        self.recent.throttled_until.filter(|it| *it > self.now)
    }

    /// What is done while the rate limit of the forge is kept for merges. `urgent`: when something else is to be
    /// done at the latest.
    fn throttled(&self, urgent: Option<Timestamp>) -> Option<Step> {
        let until = self.throttled_until()?;
        let is_open = self.state() == PullRequestState::Open && self.status.attempts.is_none();
        let step = if is_open {
            self.open()
        } else {
            Step::default()
        };
        if step.task.as_ref().is_some_and(Task::is_spared) {
            return Some(step);
        }
        let wakes = [Some(until), urgent, step.wake].into_iter().flatten();
        Some(Step {
            wake: wakes.filter(|at| *at > self.now).min(),
            ..Step::default()
        })
    }

    /// What a person has to change has perhaps been changed: the spec is another one. That it is to be closed stays
    /// new until something fails.
    fn is_changed_since_failure(&self) -> bool {
        let is_new = self.status.observed_generation != self.object.metadata.generation;
        let is_to_be_closed =
            self.recent.close_asked_at.is_some() && !self.recent.failed_since_close;
        self.lasts && (is_new || is_to_be_closed)
    }

    /// Whether it is to be closed, and only its commit status could not be set: that keeps nothing open. What a
    /// forge asks to wait for counts for everything.
    fn is_close_free(&self) -> bool {
        let is_limited = self.status.outcome.as_deref() == Some(Word::RateLimited.as_str());
        let is_asked = self.object.spec.close.is_some() && !self.state().is_final();
        is_asked && self.recent.is_gate_failing && !is_limited
    }

    pub(super) fn state(&self) -> PullRequestState {
        self.status.state.unwrap_or(PullRequestState::Pending)
    }

    /// Our commit. None: there is none yet, or somebody else pushes to its branch.
    fn ours(&self) -> Option<String> {
        let is_ours = !is_followed(self.object);
        self.status.commit_sha.clone().filter(|_| is_ours)
    }

    /// Its number and our commit, once all that is needed is known of both.
    fn known(&self) -> Option<(i64, Option<String>)> {
        let ours = self.ours();
        let is_known = is_followed(self.object) || ours.is_some();
        Some((self.status.id.filter(|_| is_known)?, ours))
    }

    /// Towards one that is open.
    fn begin(&self) -> Step {
        let commit = self.ours();
        Step::from(match is_followed(self.object) || commit.is_some() {
            true => Task::Open { commit },
            false => Task::Commit,
        })
    }

    fn pending(&self) -> Step {
        let spec = &self.object.spec;
        if let Some(reason) = &spec.close {
            return Step::from(Task::Close {
                number: self.status.id,
                commit: self.ours(),
                reason: reason.clone(),
            });
        }
        if spec.suspend || self.owner.is_none() {
            return Step::default();
        }
        let joining = self.joining().filter(|_| self.joins_first());
        joining.map_or_else(|| self.begin(), |joining| Task::Join(joining).into())
    }

    fn open(&self) -> Step {
        let Some((number, commit)) = self.known() else {
            // Somebody has written the status: both are found again.
            return self.begin();
        };
        if let Some(reason) = &self.object.spec.close {
            return match self.closes_at() {
                Some(at) => self.look(number, commit, Some(at)),
                None => Step::from(Task::Close {
                    number: Some(number),
                    commit,
                    reason: reason.clone(),
                }),
            };
        }
        let mut sooner = None;
        if let Some(telling) = self.telling() {
            match self.untold(&telling) {
                Untold::Now => {
                    let gate = telling.gate;
                    return Step {
                        gate: (gate == MergeGate::Success).then_some(gate),
                        ..Task::SetStatus(telling).into()
                    };
                }
                Untold::At(at) => sooner = Some(at),
                Untold::Nothing => {}
            }
        }
        if let Some(edit) = self.edit(number) {
            return edit.into();
        }
        let joining = self.joining();
        let joining = joining.filter(|it| self.status.head_sha.as_ref() == Some(&it.head));
        if let Some(joining) = joining {
            return Task::Join(joining).into();
        }
        let merge_after = self.recent.merge_after.filter(|after| *after > self.now);
        match (self.order(), merge_after) {
            (Some((order, head)), None) => Step::from(Task::Merge {
                number,
                commit: head.to_owned(),
                method: order.method,
                hold_label: self.owner.and_then(|owner| owner.hold_label.clone()),
                not_after: order.not_after.0,
            }),
            (Some(_), after) => self.look(number, commit, sooner.into_iter().chain(after).min()),
            (None, _) => self.look(number, commit, sooner),
        }
    }

    /// When it is closed, if that is asked for and not due yet. Some forges move the branch first, and mark the pull
    /// request as merged a little later: one that is closed in between never says who has merged it. So it is looked
    /// at until nothing can come any more of a merge that was sent, and, if somebody else pushes to its branch, for
    /// some seconds.
    /// An order ends after a minute: what is said to end later was said by a clock that was not right.
    pub(super) fn closes_at(&self) -> Option<Timestamp> {
        let by_others = self.recent.close_asked_at?.checked_add(MAY_BE_MERGED).ok();
        let by_others = by_others.filter(|_| is_followed(self.object));
        let latest = self.now.checked_add(MINUTE.saturating_mul(2)).ok()?;
        let at = merge_ends(self.status).filter(|at| *at <= latest);
        at.max(by_others).filter(|at| *at > self.now)
    }

    /// What has to be joined. One that was done is not done again before the branch was seen.
    fn joining(&self) -> Option<Joining> {
        let joining = self.owner?.join.clone()?;
        let is_new = self.recent.joined.as_ref() != Some(&joining);
        (self.is_owner_current && is_new).then_some(joining)
    }

    /// Whether it can be opened once its branch was joined to the target branch, which has all its commits now,
    /// as after a revert. Some forges open none before that. If the branch has another commit by then, nothing
    /// is pushed.
    fn joins_first(&self) -> bool {
        let is_empty = self.status.outcome.as_deref() == Some(Word::NothingToMerge.as_str());
        is_empty && self.state() == PullRequestState::Pending && self.joining().is_some()
    }

    /// The title and the text of the spec, where the forge has others and these were not written before.
    fn edit(&self, number: i64) -> Option<Task> {
        let (spec, recent) = (&self.object.spec, self.recent);
        let wanted = Text::of(&spec.title, &spec.description);
        let waits = recent.edit_after.is_some_and(|after| after > self.now);
        let is_other = recent.text.is_some_and(|text| text != wanted);
        let is_new = is_followed(self.object) && is_other && recent.edited != Some(wanted);
        // Its title may be what makes it a draft.
        let may = is_new && !waits && !self.status.draft && self.throttled_until().is_none();
        may.then(|| Task::Edit {
            number,
            title: spec.title.clone(),
            description: spec.description.clone(),
        })
    }

    /// It is looked at in its time. `sooner`: when something else is to be done, if nothing changes.
    fn look(&self, number: i64, commit: Option<String>, sooner: Option<Timestamp>) -> Step {
        let Recent {
            seen_at,
            missed_at,
            look_after,
            is_asked_for,
            is_news,
            unsure_since,
            ..
        } = self.recent;
        let is_awaited = *is_asked_for || unsure_since.is_some() || self.closes_at().is_some();
        let is_soon = is_awaited || *is_news;
        let wait = if is_soon { AT_MOST } else { MINUTE };
        let seen = seen_at.and_then(|seen| seen.checked_add(wait).ok());
        let missed = missed_at.and_then(|missed| missed.checked_add(MINUTE).ok());
        let next = seen.max(missed).max(*look_after);
        match next.filter(|at| *at > self.now) {
            None => Step::from(Task::Look {
                number,
                commit,
                alone: is_awaited || self.status.conflict,
            }),
            Some(at) => Step {
                wake: Some(sooner.map_or(at, |sooner| sooner.min(at))),
                ..Step::default()
            },
        }
    }

    fn over(&self) -> Step {
        let attempts = self.status.attempts.unwrap_or_default();
        let is_left = self.status.branch_deleted || is_followed(self.object);
        match is_left || attempts >= MOST_DELETIONS {
            true => Step::default(),
            false => Step::from(Task::DeleteBranch {
                commit: self.status.commit_sha.clone(),
            }),
        }
    }

    /// The order to merge it now, with the commit: of this act, of what is to be merged, and only while the
    /// branch has that.
    fn order(&self) -> Option<(&Order, &str)> {
        let (order, head) = (self.owner?.order.as_ref()?, self.head()?);
        let is_it = self.gate() == MergeGate::Success
            && order.key == self.object.spec.about.key
            && self.object.metadata.name.as_deref() == Some(order.pull_request.as_str())
            && order.head_sha == head
            && self.status.head_sha.as_deref() == Some(head)
            && self.now <= order.not_after.0;
        is_it.then_some((order, head))
    }
}
