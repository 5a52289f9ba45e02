//! What a status says once an errand is over.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::MergeGate;
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use super::step::merge_ends;
use super::{Failure, Fate, Outcome, Pull, Recent, Task, Text, Told, Word, is_followed, shown};
use crate::delivery::pipeline::retry_after;
use crate::delivery::promotion_strategy::KIND;
use crate::text::words::clean;
use crate::time::stamp::time;

/// The most characters of a message.
const LONGEST: usize = 1024;

/// The wait before a merge is tried again for which the forge was not ready, and for which a person has to
/// do something.
const NOT_READY: SignedDuration = SignedDuration::from_secs(5);
const NOT_ALLOWED: SignedDuration = SignedDuration::from_mins(1);
/// The wait before a text is tried to be changed again that the forge did not take.
const NOT_EDITED: SignedDuration = SignedDuration::from_mins(10);

/// What an outcome is taken into.
pub(super) struct Taking<'a> {
    pub(super) object: &'a PullRequest,
    /// The label that holds it back.
    pub(super) hold_label: Option<&'a str>,
    pub(super) status: &'a mut PullRequestStatus,
    pub(super) recent: &'a mut Recent,
    pub(super) now: Timestamp,
}

impl Taking<'_> {
    /// Takes the outcome of an errand into the status. `lasts`: whether the last try before had failed in a way
    /// that lasts until a person does something. Returns the same of this one.
    pub(super) fn take(&mut self, task: &Task, outcome: &Outcome, lasts: bool) -> bool {
        // Of one that has failed it is not known whether it was sent, whatever the failure is called.
        let is_unsent = matches!(outcome, Outcome::Unsent(_) | Outcome::Held(_));
        if is_unsent && matches!(task, Task::Merge { .. }) && !self.recent.sent_before {
            self.status.merge_sent = None;
        }
        if matches!(outcome, Outcome::Failed(_) | Outcome::Unsent(_)) {
            self.recent.failed_since_close = self.recent.close_asked_at.is_some();
        }
        let only_looks = task.only_looks();
        if task.withdraws() {
            (self.recent.unwithdrawn, self.recent.unwithdrawn_at) = match outcome {
                Outcome::Failed(_) | Outcome::Unsent(_) => {
                    (self.recent.unwithdrawn.saturating_add(1), Some(self.now))
                }
                _ => (0, None),
            };
        }
        // What has failed to be changed still waits, whatever a look has found.
        let waits = only_looks && self.status.attempts.is_some() && !self.recent.is_look_failing;
        match outcome {
            Outcome::Failed(failure) | Outcome::Unsent(failure)
                if failure.word == Word::ForgeThrottled =>
            {
                self.throttled(task, failure);
                lasts
            }
            Outcome::Failed(failure) if waits => {
                let recent = &mut *self.recent;
                (recent.missed_at, recent.look_after) = (Some(self.now), failure.not_before);
                lasts
            }
            Outcome::Failed(failure) if matches!(task, Task::Edit { .. }) => {
                // Nothing depends on its text.
                let again = self.now.checked_add(NOT_EDITED).ok();
                self.recent.edit_after = again.max(failure.not_before);
                lasts
            }
            Outcome::Failed(failure) | Outcome::Unsent(failure) => {
                self.failed(task, failure);
                failure.word.lasts()
            }
            Outcome::Held(failure) => {
                self.held(failure);
                false
            }
            Outcome::Committed(_)
            | Outcome::InBase(_)
            | Outcome::Seen(..)
            | Outcome::NoPull
            | Outcome::Done => {
                let waits = waits && is_open(outcome);
                self.went(task, outcome, waits);
                waits && lasts
            }
        }
    }

    /// It was not tried.
    fn throttled(&mut self, task: &Task, failure: &Failure) {
        let again = self.now.checked_add(NOT_READY).ok().max(failure.not_before);
        self.recent.throttled_until = again;
        if self.status.attempts.is_none() && !is_end(task) {
            self.status.next_attempt_at = again.map(time);
            said(self.status, Some((failure.word.as_str(), &failure.message)));
        }
    }

    fn failed(&mut self, task: &Task, failure: &Failure) {
        let is_gate = matches!(task, Task::SetStatus(_));
        let (status, recent) = (&mut *self.status, &mut *self.recent);
        if recent.is_gate_failing && !is_gate {
            // Its own tries are counted.
            status.attempts = None;
        }
        (recent.is_look_failing, recent.is_gate_failing) = (task.only_looks(), is_gate);
        failed(status, failure, self.now);
        if !is_end(task) {
            said(status, Some((failure.word.as_str(), &failure.message)));
        }
    }

    /// It was not merged.
    fn held(&mut self, failure: &Failure) {
        let wait = match failure.word.lasts() {
            true => NOT_ALLOWED,
            false => NOT_READY,
        };
        let (status, recent) = (&mut *self.status, &mut *self.recent);
        (status.attempts, status.next_attempt_at) = (None, None);
        if failure.word.lasts() && self.object.spec.about.kind == KIND {
            let refusals = status.refusals.unwrap_or_default().saturating_add(1);
            let again = self.now.checked_add(refused_for(refusals)).ok();
            let again = again.max(failure.not_before);
            (status.refusals, status.next_merge_at) = (Some(refusals), again.map(time));
        }
        recent.merge_after = self.now.checked_add(wait).ok().max(failure.not_before);
        if is_followed(self.object) && matches!(failure.word, Word::NotYet | Word::Conflict) {
            // Whether that is a conflict shows when it is asked about alone.
            recent.unsure_since.get_or_insert(self.now);
        }
        said(status, Some((failure.word.as_str(), &failure.message)));
    }

    /// It was done. `waits`: something else has failed before, and still waits.
    fn went(&mut self, task: &Task, outcome: &Outcome, waits: bool) {
        let (status, recent) = (&mut *self.status, &mut *self.recent);
        (recent.missed_at, recent.look_after) = (None, None);
        if !waits {
            (recent.is_look_failing, recent.is_gate_failing) = (false, false);
            let had_failed = status.attempts.is_some();
            (status.attempts, status.next_attempt_at) = (None, None);
            // That something else was done says nothing of what was seen before, nor of how it has ended.
            let says_more = had_failed || *outcome != Outcome::Done;
            let is_held = !had_failed && is_held(status, task);
            if says_more && !is_end(task) && !is_held {
                said(status, None);
            }
        }
        match outcome {
            Outcome::Committed(commit) => status.commit_sha = Some(commit.clone()),
            Outcome::InBase(pull) => {
                status.state = Some(PullRequestState::AlreadyInBase);
                with(status, pull.as_ref());
            }
            Outcome::Seen(pull, fate) => self.seen(task, pull, fate, waits),
            Outcome::NoPull => {
                recent.seen_at = Some(self.now);
                let state = match status.state {
                    Some(PullRequestState::Open) => PullRequestState::Missing,
                    _ => PullRequestState::Closed,
                };
                status.state = Some(state);
            }
            Outcome::Done => self.done(task),
            Outcome::Failed(_) | Outcome::Unsent(_) | Outcome::Held(_) => {}
        }
        let is_closed = matches!(outcome, Outcome::Seen(_, Fate::Closed) | Outcome::NoPull)
            && self.status.state == Some(PullRequestState::Closed);
        if is_closed && self.object.spec.close.is_none() {
            let message = "it was closed on the forge without a merge";
            said(self.status, Some(("ClosedByOthers", message)));
        }
    }

    fn seen(&mut self, task: &Task, pull: &Pull, fate: &Fate, waits: bool) {
        let is_followed = is_followed(self.object);
        let (status, recent) = (&mut *self.status, &mut *self.recent);
        recent.seen_at = Some(self.now);
        let is_alone = !matches!(task, Task::Look { alone: false, .. });
        // A list may be older than the question.
        recent.is_asked_for &= !is_alone;
        recent.is_news = false;
        let is_open = matches!(fate, Fate::Open(_) | Fate::OpenElsewhere);
        if matches!(task, Task::Merge { .. }) && is_open {
            // The forge has not noticed yet what it has done, or does it now.
            recent.merge_after = self.now.checked_add(NOT_READY).ok();
        }
        let is_long_over = merge_ends(status).is_some_and(|end| self.now > end);
        if is_open && is_long_over || *fate == Fate::Closed {
            status.merge_sent = None;
        }
        if status.head_sha != head(fate) {
            (status.refusals, status.next_merge_at) = (None, None);
        }
        with(status, Some(pull));
        if is_followed && is_open {
            let seen = shown::Seen {
                pull,
                is_alone,
                is_moved: status.head_sha != head(fate),
                hold_label: self.hold_label,
                now: self.now,
            };
            shown::take(&seen, status, recent);
        }
        match waits {
            true => status.head_sha = head(fate),
            false => seen(status, fate, is_followed),
        }
        if status.state == Some(PullRequestState::Merged) {
            status.merged_at.get_or_insert_with(|| time(self.now));
        }
    }

    fn done(&mut self, task: &Task) {
        match task {
            Task::SetStatus(telling) => {
                self.recent.told = Some(Told {
                    telling: telling.clone(),
                    at: self.now,
                });
                // That it is pending is known only now; that it may be a success was written before.
                if telling.gate == MergeGate::Pending {
                    self.status.commit_status = Some(telling.gate);
                }
            }
            Task::Edit {
                title, description, ..
            } => self.recent.edited = Some(Text::of(title, description)),
            Task::Join(joining) => {
                self.recent.joined = Some(joining.clone());
                // Its branch has another commit now.
                self.recent.is_asked_for = true;
            }
            Task::DeleteBranch { .. } => self.status.branch_deleted = true,
            Task::Commit
            | Task::Open { .. }
            | Task::Look { .. }
            | Task::Merge { .. }
            | Task::Close { .. } => {}
        }
    }
}

/// How long no merge is ordered after so many refusals in a row: 80 s, later up to 15 min. An order takes a
/// minute.
fn refused_for(refusals: u32) -> SignedDuration {
    retry_after(refusals.saturating_add(3))
}

fn is_open(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Seen(_, Fate::Open(_) | Fate::OpenElsewhere)
    )
}

fn head(fate: &Fate) -> Option<String> {
    match fate {
        Fate::Open(head) => Some(head.clone()),
        Fate::Merged { .. }
        | Fate::Closed
        | Fate::OpenElsewhere
        | Fate::MergedElsewhere
        | Fate::Foreign => None,
    }
}

/// What holds a merge back is not said any longer than somebody asks for the merge.
pub(super) fn tell_no_hold(status: &mut PullRequestStatus, is_ordered: bool) {
    if !is_ordered && status.attempts.is_none() && says_hold(status) {
        said(status, None);
    }
}

fn seen(status: &mut PullRequestStatus, fate: &Fate, is_followed: bool) {
    match fate {
        Fate::Open(head) => {
            status.state = Some(PullRequestState::Open);
            status.head_sha = Some(head.clone());
            if !is_followed && status.commit_sha.as_ref() != Some(head) {
                touched(
                    status,
                    "somebody has pushed to its branch, so that the controller does not merge it; merge \
                     or close it",
                );
            }
        }
        Fate::Merged {
            commit,
            onto,
            by,
            head,
            is_touched,
        } => {
            status.state = Some(PullRequestState::Merged);
            status.conflict = false;
            if let Some(head) = head.as_ref().filter(|_| is_followed) {
                // It may have moved since it was last seen.
                status.head_sha = Some(head.clone());
            }
            status.merged_sha.clone_from(commit);
            status.merged_onto.clone_from(onto);
            status.merged_by.clone_from(by);
            if *is_touched {
                touched(
                    status,
                    "somebody had pushed to its branch, so that more was merged than the commit of the \
                     controller",
                );
            }
        }
        Fate::Closed => status.state = Some(PullRequestState::Closed),
        Fate::OpenElsewhere => {
            status.state = Some(PullRequestState::Open);
            // Without it no order is carried out.
            status.head_sha = None;
            touched(
                status,
                "somebody has changed the branch that it is merged into, so that the controller does not \
                 merge it; change that back, or close it",
            );
        }
        Fate::MergedElsewhere => {
            status.state = Some(PullRequestState::Closed);
            touched(
                status,
                "somebody had changed the branch that it is merged into: it was merged into another one, \
                 and nothing was promoted; the annotation sluice.dev/retry of a Pipeline begins another run",
            );
        }
        Fate::Foreign => {
            status.state = Some(PullRequestState::Closed);
            touched(
                status,
                "somebody else had opened a pull request of its branch, which was closed; the annotation \
                 sluice.dev/retry of a Pipeline begins another run with another branch",
            );
        }
    }
}

fn touched(status: &mut PullRequestStatus, message: &str) {
    said(status, Some((Word::BranchTouched.as_str(), message)));
}

/// What holds a merge back is said until the merge was tried again, or nothing is left to merge.
fn is_held(status: &PullRequestStatus, task: &Task) -> bool {
    says_hold(status) && matches!(task, Task::Look { .. })
}

fn says_hold(status: &PullRequestStatus) -> bool {
    let holds = [
        Word::NotYet,
        Word::Conflict,
        Word::NotMergeable,
        Word::NoRight,
        Word::Changed,
    ];
    let said = status.outcome.as_deref();
    status.state == Some(PullRequestState::Open)
        && holds.iter().any(|word| Some(word.as_str()) == said)
}

fn with(status: &mut PullRequestStatus, pull: Option<&Pull>) {
    if let Some(pull) = pull {
        status.id = Some(pull.number);
        status.url = Some(pull.url.clone());
    }
}

fn failed(status: &mut PullRequestStatus, failure: &Failure, now: Timestamp) {
    let attempts = status.attempts.unwrap_or_default().saturating_add(1);
    let next = now.saturating_add(retry_after(attempts)).unwrap_or(now);
    let next = failure.not_before.map_or(next, |end| end.max(next));
    status.attempts = Some(attempts);
    status.next_attempt_at = Some(time(next));
}

/// Whether nothing is left but its branch. How it has ended stays in the status.
fn is_end(task: &Task) -> bool {
    matches!(task, Task::DeleteBranch { .. })
}

fn said(status: &mut PullRequestStatus, what: Option<(&str, &str)>) {
    status.outcome = what.map(|(word, _)| word.to_owned());
    status.message = what.map(|(_, message)| clean(message, LONGEST));
}
