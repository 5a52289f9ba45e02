//! Pull requests of the same environment that are not ours: closed before ours is opened.

use sluice_core::delivery::pull_request::{Fate, Outcome};
use sluice_forges::{Pull, PullState, Trouble, Undone};

use super::{Job, Stopped};

impl Job<'_> {
    /// Somebody else has opened one of our branch: it is closed, and nothing is made in its place.
    pub(super) async fn close_foreign(&self, pull: Pull) -> Result<Outcome, Stopped> {
        let reason = "it was not opened by the controller, which keeps this branch for itself";
        match self.close_open(pull, None, reason).await? {
            Outcome::Seen(pull, Fate::Closed) => Ok(Outcome::Seen(pull, Fate::Foreign)),
            seen => Ok(seen),
        }
    }

    /// Closes every other one of the environment that is open: those of other promotions, which nobody on the
    /// cluster may know of any more. So there are never two.
    pub(super) async fn close_others(&self) -> Result<(), Stopped> {
        let head = self.head.as_str();
        let Some(prefix) = head.strip_suffix(&self.object.spec.about.key) else {
            return Ok(());
        };
        for pull in self.listed_or_newest(prefix).await? {
            let is_open = matches!(pull.state, PullState::Open { .. });
            let is_other = pull.own && pull.head != head && pull.head.starts_with(prefix);
            if !is_open || !is_other {
                continue;
            }
            let reason = "another promotion takes its place";
            match self.forge().close(&pull, reason, self.until()?).await {
                Err(Undone::Refused(error)) if error.trouble == Trouble::AlreadyMerged => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// All open ones; where there are too many, the newest of the environment.
    async fn listed_or_newest(&self, prefix: &str) -> Result<Vec<Pull>, Stopped> {
        match self.listed().await? {
            Some(listed) => Ok(listed),
            None => {
                let newest = self.forge().newest(prefix, &self.base).await?;
                Ok(newest.into_iter().collect())
            }
        }
    }
}
