//! The pull request of our commit is opened, once.

use sluice_core::delivery::pull_request::Outcome;
use sluice_forges::{NewPull, Pull, PullState, Sha, surplus};

use super::{Job, Stopped};

impl Job<'_> {
    /// Opens it, unless there was ever one of its branch; of a branch that somebody else pushes to, unless one is
    /// open. Where several were opened at once, the oldest one stays.
    pub(super) async fn open(&self, ours: Option<&Sha>) -> Result<Outcome, Stopped> {
        let opened = match (self.find().await?, ours) {
            (Some(pull), None) => pull,
            (None, None) => self.make_pull().await?,
            (Some(pull), Some(commit)) => match &pull.state {
                PullState::Open { head, .. } if head == commit => pull,
                PullState::Open { .. } => return Err(self.touched()),
                // One that was closed does not come back.
                PullState::Merged { .. } | PullState::Closed => {
                    return self.seen(pull, ours).await;
                }
            },
            (None, Some(commit)) => match self.forge().head(&self.head).await? {
                Some(head) if head == *commit => self.make_pull().await?,
                // It is in the status before it is opened.
                other => return self.commit_on(other).await,
            },
        };
        let listed = match self.listed().await? {
            Some(listed) => listed,
            // Of this branch there is at least the one that was opened.
            None => {
                let oldest = self.find().await?;
                let oldest = oldest.filter(|it| matches!(it.state, PullState::Open { .. }));
                oldest.into_iter().chain([opened.clone()]).collect()
            }
        };
        self.close_surplus(&listed).await?;
        let oldest = self.oldest(listed);
        let kept = oldest.filter(|oldest| oldest.number < opened.number);
        self.seen(kept.unwrap_or(opened), ours).await
    }

    async fn make_pull(&self) -> Result<Pull, Stopped> {
        let spec = &self.object.spec;
        let new = NewPull {
            title: &spec.title,
            body: &spec.description,
            head: &self.head,
            base: &self.base,
        };
        Ok(self.forge().open(&new, self.until()?).await?)
    }

    async fn close_surplus(&self, listed: &[Pull]) -> Result<(), Stopped> {
        for pull in surplus(listed, &self.head, &self.base) {
            let reason = "it was opened twice; the older one stays";
            self.forge().close(pull, reason, self.until()?).await?;
        }
        Ok(())
    }
}
