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
            None => self.forge().find(&self.head, &self.base).await?,
        };
        let Some(pull) = found else {
            return Ok(Outcome::NoPull);
        };
        let is_ours = match &pull.state {
            // We have opened the one with this number, whoever has pushed to it.
            PullState::Open { .. } if number.is_some() => true,
            PullState::Open { head, .. } => self.is_ours(head, commit).await?,
            PullState::Merged { .. } | PullState::Closed => {
                return self.seen(pull, commit).await;
            }
        };
        match is_ours {
            true => self.close_open(pull, commit, reason).await,
            // Another person's, of a branch that happens to have this name.
            false => Ok(Outcome::NoPull),
        }
    }

    async fn close_open(
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

    /// Deletes the branch if its newest commit is ours. Another one is somebody's work.
    pub(super) async fn delete_branch(&self, commit: Option<&Sha>) -> Result<Outcome, Stopped> {
        if let Some(head) = self.forge().head(&self.head).await?
            && self.is_ours(&head, commit).await?
        {
            let forge = self.forge();
            forge.delete_branch(&self.head, self.until()?).await?;
        }
        Ok(Outcome::Done)
    }
}
