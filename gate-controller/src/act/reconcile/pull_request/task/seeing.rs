//! What has become of a pull request.

use std::collections::HashMap;

use sluice_core::delivery::pull_request::{Fate, Outcome, Pull as Seen};
use sluice_forges::{Pull, PullState, Sha, Trouble};

use super::{Job, Stopped};
use crate::act::reconcile::pull_request::lists::{Key, Open};

impl Job<'_> {
    /// By the list of all open ones of this repository and branch, which others use as well. One that is
    /// not in it is asked about alone.
    pub(super) async fn look(&self, number: u64, commit: &Sha) -> Result<Outcome, Stopped> {
        let (key, now) = (Key::of(self.object), self.desk.clock.now());
        let list = async {
            let listed = self.listed().await?.unwrap_or_default();
            Ok::<_, Stopped>(
                listed
                    .into_iter()
                    .filter_map(open)
                    .collect::<HashMap<_, _>>(),
            )
        };
        match self.desk.lists.find(&key, now, number, list).await? {
            Some(found) => Ok(found.into_outcome(number)),
            None => self.look_at(number, commit).await,
        }
    }

    /// All open ones into the target branch. None: there are more than can be listed, so that each is asked
    /// about alone.
    pub(super) async fn listed(&self) -> Result<Option<Vec<Pull>>, Stopped> {
        match self.forge().open_pulls(&self.base).await {
            Err(error) if matches!(error.trouble, Trouble::TooMany(_)) => Ok(None),
            listed => Ok(Some(listed?)),
        }
    }

    /// Asked about alone. One that is open and has nothing left to merge is closed.
    pub(super) async fn look_alone(&self, number: u64, commit: &Sha) -> Result<Outcome, Stopped> {
        let Some(pull) = self.forge().pull(number).await? else {
            return Ok(Outcome::NoPull);
        };
        match &pull.state {
            PullState::Open { head, .. } if head == commit && pull.base == self.base.as_str() => {}
            PullState::Open { .. } | PullState::Merged { .. } | PullState::Closed => {
                return self.seen(pull, Some(commit)).await;
            }
        }
        match self.is_in_base(commit).await? {
            true => self.close_merged_otherwise(pull, commit).await,
            false => self.seen(pull, Some(commit)).await,
        }
    }

    pub(super) async fn look_at(&self, number: u64, commit: &Sha) -> Result<Outcome, Stopped> {
        match self.forge().pull(number).await? {
            Some(pull) => self.seen(pull, Some(commit)).await,
            None => Ok(Outcome::NoPull),
        }
    }

    /// Whether the target branch has the commit.
    pub(super) async fn is_in_base(&self, commit: &Sha) -> Result<bool, Stopped> {
        match self.forge().head(&self.base).await? {
            Some(base) => Ok(self.forge().contains(&base, commit).await?),
            None => Ok(false),
        }
    }

    /// The target branch has its commit, and the forge has not noticed.
    pub(super) async fn close_merged_otherwise(
        &self,
        pull: Pull,
        commit: &Sha,
    ) -> Result<Outcome, Stopped> {
        let reason = format!("the branch {} has its commit already", self.base);
        match self.close_open(pull, Some(commit), &reason).await? {
            Outcome::Seen(pull, Fate::Closed) => Ok(Outcome::InBase(Some(pull))),
            // Somebody has merged it meanwhile.
            seen => Ok(seen),
        }
    }
}

impl Open {
    pub(in super::super) fn into_outcome(self, number: u64) -> Outcome {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let Self { url, head } = self;
        Outcome::Seen(Seen { number, url }, Fate::Open(head))
    }
}

fn open(pull: Pull) -> Option<(u64, Open)> {
    let (url, own) = (pull.url, pull.own);
    match pull.state {
        PullState::Open { head, .. } if own => {
            let head = head.to_string();
            Some((pull.number, Open { url, head }))
        }
        PullState::Open { .. } | PullState::Merged { .. } | PullState::Closed => None,
    }
}
