//! Does at a forge what was decided for a PullRequest.
//!
//! What comes in: the forge, the PullRequest as it is, one [`Task`], and until when a change may be sent.
//! What goes out: its [`Outcome`]. Nothing is decided here but how to carry it out. Each task begins by
//! looking at what the forge has, so that one which was killed at any place, or whose reply was lost, is done
//! again without doing anything twice. Whether this process may still act is asked before each request that
//! changes something.

use sluice_core::delivery::pull_request::trailers::Trailers;
use sluice_core::delivery::pull_request::{Fate, Outcome, Pull as Seen, Task, Word};
use sluice_crds::PullRequest;
use sluice_forges::{Branch, Commit, Forge, Pull, PullState, Sha};
use tokio::time::Instant;

use super::lists::Lists;
use crate::act::forges::Failure as Stopped;
use crate::observe::clock::Clock;

mod closing;
mod committing;
mod merging;
mod opening;
mod others;
mod seeing;
mod telling;

/// What it is done with.
pub struct Desk<'a> {
    /// The forge.
    pub forge: &'a Forge,
    /// The lists of open pull requests that are shared with others.
    pub lists: &'a Lists,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Until when a request that changes something may be sent, if it may be sent now.
    pub may_act: &'a (dyn Fn() -> Option<Instant> + Send + Sync),
}

/// One task for one PullRequest.
struct Job<'a> {
    desk: &'a Desk<'a>,
    object: &'a PullRequest,
    head: Branch,
    base: Branch,
}

/// Does a task.
pub async fn perform(desk: &Desk<'_>, object: &PullRequest, task: &Task) -> Outcome {
    match attempt(desk, object, task).await {
        Ok(outcome) => outcome,
        Err(stopped) => Outcome::Failed(stopped.at(desk.clock.now())),
    }
}

async fn attempt(desk: &Desk<'_>, object: &PullRequest, task: &Task) -> Result<Outcome, Stopped> {
    let spec = &object.spec;
    let job = Job {
        desk,
        object,
        head: Branch::parse(&spec.source_branch)?,
        base: Branch::parse(&spec.target_branch)?,
    };
    match task {
        Task::Commit => job.commit().await,
        Task::Open { commit } => job.open(&sha(commit)?).await,
        Task::Look {
            number,
            commit,
            alone,
        } => {
            let (number, commit) = (unsigned(*number)?, sha(commit)?);
            match alone {
                true => job.look_alone(number, &commit).await,
                false => job.look(number, &commit).await,
            }
        }
        Task::SetStatus { commit, gate, why } => job.set_status(&sha(commit)?, *gate, why).await,
        Task::Merge {
            number,
            commit,
            method,
            not_after,
        } => {
            let (number, commit) = (unsigned(*number)?, sha(commit)?);
            job.merge(number, &commit, *method, *not_after).await
        }
        Task::Close {
            number,
            commit,
            reason,
        } => {
            let number = number.map(unsigned).transpose()?;
            let commit = commit.as_deref().map(sha).transpose()?;
            job.close(number, commit.as_ref(), reason).await
        }
        Task::DeleteBranch { commit } => {
            let commit = commit.as_deref().map(sha).transpose()?;
            job.delete_branch(commit.as_ref()).await
        }
    }
}

impl Job<'_> {
    fn forge(&self) -> &Forge {
        self.desk.forge
    }

    /// Until when the next change may be sent.
    fn until(&self) -> Result<Instant, Stopped> {
        (self.desk.may_act)().ok_or_else(|| {
            Stopped::new(
                Word::Changed,
                "there was no time left to change something at the forge, or it is not wanted any more",
            )
        })
    }

    /// Whether a branch with this newest commit may be deleted: it is ours, or it says that it is, of a try
    /// that was forgotten. Everybody can write that, so nothing else follows from it.
    async fn may_delete(&self, found: &Sha, ours: Option<&Sha>) -> Result<bool, Stopped> {
        if ours == Some(found) {
            return Ok(true);
        }
        let read = self.forge().read_commit(found).await?;
        Ok(read.is_some_and(|commit| self.has_our_key(&commit)))
    }

    fn has_our_key(&self, commit: &Commit) -> bool {
        let trailers = Trailers::read(&commit.message);
        trailers.is_some_and(|it| it.key == self.object.spec.about.key)
    }

    /// The branch is somebody else's.
    fn touched(&self) -> Stopped {
        let message = format!(
            "the branch {} is there, and its newest commit was not made by the controller; delete the \
             branch, or begin another run, which has another branch, by the annotation sluice.dev/retry",
            self.head
        );
        Stopped::new(Word::BranchTouched, message)
    }

    /// What has become of a pull request. Of a merge its first parent is read, and whether it was of our
    /// commit alone.
    async fn seen(&self, pull: Pull, ours: Option<&Sha>) -> Result<Outcome, Stopped> {
        let is_elsewhere = pull.base != self.base.as_str();
        let fate = match pull.state {
            PullState::Open { .. } if is_elsewhere => Fate::OpenElsewhere,
            PullState::Merged { .. } if is_elsewhere => Fate::MergedElsewhere,
            PullState::Open { head, .. } => Fate::Open(head.to_string()),
            PullState::Closed => Fate::Closed,
            PullState::Merged { commit, by } => {
                let made = match &commit {
                    Some(commit) => self.forge().read_commit(commit).await?,
                    None => None,
                };
                let onto = made.and_then(|made| made.parents.into_iter().next());
                let merged = self.forge().commits(pull.number).await?;
                Fate::Merged {
                    commit: commit.map(|commit| commit.to_string()),
                    onto: onto.map(|onto| onto.to_string()),
                    by,
                    is_touched: merged.iter().any(|it| !self.is_it(it, ours)),
                }
            }
        };
        let number = i64::try_from(pull.number).unwrap_or(i64::MAX);
        let url = pull.url;
        Ok(Outcome::Seen(Seen { number, url }, fate))
    }

    fn is_it(&self, found: &Commit, ours: Option<&Sha>) -> bool {
        match ours {
            Some(ours) => found.sha == *ours,
            None => self.has_our_key(found),
        }
    }
}

fn sha(text: &str) -> Result<Sha, Stopped> {
    let wrong = || {
        Stopped::new(
            Word::InvalidSpec,
            "status.commitSHA: it is no id of a commit",
        )
    };
    Sha::parse(text).ok_or_else(wrong)
}

fn unsigned(number: i64) -> Result<u64, Stopped> {
    let wrong = |_| {
        Stopped::new(
            Word::InvalidSpec,
            "status.id: it is no number of a pull request",
        )
    };
    u64::try_from(number).map_err(wrong)
}
