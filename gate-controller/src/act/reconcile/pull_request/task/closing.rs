//! A pull request is closed, and the branch of one that is over is deleted.

use sluice_core::delivery::pull_request::Outcome;
use sluice_forges::{Pull, PullState, Sha, Trouble, Undone};

use super::{Job, Stopped};

impl Job<'_> {
    /// Closes it. Without a number it is found by its branch; if there is none, nothing was ever opened.
    pub(super) async fn close(
        &self,
        number: Option<u64>,
        commit: Option<&Sha>,
        reason: &str,
    ) -> Result<Outcome, Stopped> {
        let found = match number {
            Some(number) => self.forge().pull(number).await?,
            None => self.find().await?,
        };
        let Some(pull) = found else {
            return Ok(Outcome::NoPull);
        };
        match &pull.state {
            // Somebody may have pushed to it: nothing else has a branch of this name.
            PullState::Open { .. } => self.close_open(pull, commit, reason).await,
            PullState::Merged { .. } | PullState::Closed => self.seen(pull, commit).await,
        }
    }

    /// Closes an open one, unless it is merged by now.
    pub(super) async fn close_open(
        &self,
        pull: Pull,
        commit: Option<&Sha>,
        reason: &str,
    ) -> Result<Outcome, Stopped> {
        match self.forge().close(&pull, reason, self.until()?).await {
            Ok(()) => {
                let state = PullState::Closed;
                self.seen(Pull { state, ..pull }, commit).await
            }
            Err(Undone::Refused(error)) if error.trouble == Trouble::AlreadyMerged => {
                match self.forge().pull(pull.number).await? {
                    Some(pull) => self.seen(pull, commit).await,
                    None => Ok(Outcome::NoPull),
                }
            }
            Err(undone) => Err(undone.into()),
        }
    }

    /// Deletes the branch if its newest commit is ours, or says so. Another one is somebody's work.
    pub(super) async fn delete_branch(&self, commit: Option<&Sha>) -> Result<Outcome, Stopped> {
        if !self.is_followed()
            && let Some(head) = self.forge().head(&self.head).await?
            && self.may_delete(&head, commit).await?
        {
            let forge = self.forge();
            forge.delete_branch(&self.head, self.until()?).await?;
        }
        Ok(Outcome::Done)
    }
}
