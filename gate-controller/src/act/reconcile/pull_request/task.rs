//! Does at a forge what was decided for a PullRequest.
//!
//! What comes in: the forge, the PullRequest as it is, one [`Task`], and until when a change may be sent.
//! What goes out: its [`Outcome`]. Nothing is decided here but how to carry it out. Each task begins by
//! looking at what the forge has, so that one which was killed at any place, or whose reply was lost, is done
//! again without doing anything twice. Whether this process may still act is asked before each request that
//! changes something.

use jiff::Timestamp;
use sluice_core::delivery::pull_request::trailers::Trailers;
use sluice_core::delivery::pull_request::{
    self, Fate, Outcome, Pull as Seen, Task, Text, Word, is_followed,
};
use sluice_crds::PullRequest;
use sluice_crds::pull_request::Change;
use sluice_forges::{Branch, Commit, Forge, May, Mergeable, Pull, PullState, Sha, Wants};
use tokio::time::Instant;

use super::lists::Lists;
use crate::act::forges::{Failure as Stopped, Located};
use crate::observe::clock::Clock;

mod closing;
mod committing;
mod editing;
mod merging;
mod opening;
mod others;
mod pushing;
mod seeing;
mod telling;

/// What it is done with.
pub struct Desk<'a> {
    /// The forge.
    pub forge: &'a Forge,
    /// Where that is, and by whom it is opened.
    pub at: &'a Located,
    /// The lists of open pull requests that are shared with others.
    pub lists: &'a Lists,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Until when a request that changes something may be sent, if it may be sent now.
    pub may_act: May<'a>,
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

/// What comes of a task of which nothing was sent that changes something.
pub(super) fn unsent(task: &Task, stopped: Stopped, now: Timestamp) -> Outcome {
    match task {
        Task::Merge { .. } => Outcome::Unsent(stopped.at(now)),
        _ => Outcome::Failed(stopped.at(now)),
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
        Task::Open { commit } => job.open(ours(commit.as_deref())?.as_ref()).await,
        Task::Look {
            number,
            commit,
            alone,
        } => {
            let (number, ours) = (unsigned(*number)?, ours(commit.as_deref())?);
            match alone {
                true => job.look_alone(number, ours.as_ref()).await,
                false => job.look(number, ours.as_ref()).await,
            }
        }
        Task::SetStatus(telling) => job.set_status(telling).await,
        Task::Edit {
            number,
            title,
            description,
        } => job.edit(unsigned(*number)?, title, description).await,
        Task::Join(joining) => job.join(joining).await,
        Task::Merge {
            number,
            commit,
            method,
            hold_label,
            not_after,
        } => {
            let (number, commit) = (unsigned(*number)?, sha(commit)?);
            let hold_label = hold_label.as_deref();
            job.merge(number, &commit, *method, hold_label, *not_after)
                .await
        }
        Task::Close {
            number,
            commit,
            reason,
        } => {
            let number = number.map(unsigned).transpose()?;
            let commit = ours(commit.as_deref())?;
            job.close(number, commit.as_ref(), reason).await
        }
        Task::DeleteBranch { commit } => {
            let commit = ours(commit.as_deref())?;
            job.delete_branch(commit.as_ref()).await
        }
    }
}

impl Job<'_> {
    fn forge(&self) -> &Forge {
        self.desk.forge
    }

    /// Whether somebody else pushes to its branch.
    fn is_followed(&self) -> bool {
        is_followed(self.object)
    }

    /// Until when the next change may be sent.
    fn until(&self) -> Result<Instant, Stopped> {
        (self.desk.may_act)(Wants::Sending).ok_or_else(|| {
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
        let more = match self.object.spec.change {
            Some(Change::Tree(_)) | None => "",
            Some(Change::Markers(_)) => {
                ", or begin another run, which has another branch, by the annotation sluice.dev/retry"
            }
        };
        let message = format!(
            "the branch {} is there, and its newest commit was not made by the controller; delete the \
             branch{more}",
            self.head
        );
        Stopped::new(Word::BranchTouched, message)
    }

    /// What has become of a pull request. Of a merge its parents are read, and whether it was of our commit
    /// alone.
    async fn seen(&self, pull: Pull, ours: Option<&Sha>) -> Result<Outcome, Stopped> {
        let is_elsewhere = pull.base != self.base.as_str();
        let fate = match &pull.state {
            PullState::Open { .. } if is_elsewhere => Fate::OpenElsewhere,
            PullState::Merged { .. } if is_elsewhere => Fate::MergedElsewhere,
            PullState::Open { head, .. } => Fate::Open(head.to_string()),
            PullState::Closed => Fate::Closed,
            PullState::Merged { commit, by } => {
                let made = match commit {
                    Some(commit) => self.forge().read_commit(commit).await?,
                    None => None,
                };
                let parents = made.map(|made| made.parents).unwrap_or_default();
                let mut parents = parents.iter().map(Sha::to_string);
                Fate::Merged {
                    commit: commit.as_ref().map(Sha::to_string),
                    onto: parents.next(),
                    head: parents.next(),
                    by: by.clone(),
                    is_touched: self.is_merge_touched(pull.number, ours).await?,
                }
            }
        };
        Ok(Outcome::Seen(shown(pull), fate))
    }

    /// Whether more was merged than our commit.
    async fn is_merge_touched(&self, number: u64, ours: Option<&Sha>) -> Result<bool, Stopped> {
        if self.is_followed() {
            return Ok(false);
        }
        let merged = self.forge().commits(number).await?;
        Ok(merged.iter().any(|it| !self.is_it(it, ours)))
    }

    fn is_it(&self, found: &Commit, ours: Option<&Sha>) -> bool {
        match ours {
            Some(ours) => found.sha == *ours,
            None => self.has_our_key(found),
        }
    }
}

/// What the status keeps of a pull request.
fn shown(pull: Pull) -> Seen {
    let mergeable = match pull.state {
        PullState::Open { mergeable, .. } => match mergeable {
            Mergeable::Yes => pull_request::Mergeable::Yes,
            Mergeable::Conflict => pull_request::Mergeable::Conflict,
            Mergeable::Unknown => pull_request::Mergeable::Unknown,
            Mergeable::Unsaid => pull_request::Mergeable::Unsaid,
        },
        PullState::Merged { .. } | PullState::Closed => pull_request::Mergeable::Unknown,
    };
    Seen {
        number: i64::try_from(pull.number).unwrap_or(i64::MAX),
        text: Some(Text::of(&pull.title, &pull.body)),
        url: pull.url,
        draft: pull.draft,
        labels: pull.labels,
        labels_cut: pull.labels_cut,
        mergeable,
    }
}

fn ours(commit: Option<&str>) -> Result<Option<Sha>, Stopped> {
    commit.map(sha).transpose()
}

fn sha(text: &str) -> Result<Sha, Stopped> {
    let wrong = || {
        Stopped::new(
            Word::InvalidSpec,
            "status: what it has as a commit is no id of one",
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
