//! What has become of a pull request.

use std::collections::HashMap;

use sluice_core::delivery::pull_request::{Fate, Outcome};
use sluice_forges::{Pull, PullState, Sha, Trouble};

use super::{Job, Stopped, shown};
use crate::act::reconcile::pull_request::lists::{Key, Open};

impl Job<'_> {
    /// By the list of all open ones of this repository and branch, which others use as well. One that is
    /// not in it is asked about alone.
    pub(super) async fn look(&self, number: u64, ours: Option<&Sha>) -> Result<Outcome, Stopped> {
        let (key, now) = (Key::of(self.object, self.desk.at), self.desk.clock.now());
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
            Some(found) => Ok(found.into_outcome()),
            None => self.look_at(number, ours).await,
        }
    }

    /// The pull request of our branches. Of a branch that somebody else pushes to there may have been many: the
    /// oldest one that is open.
    pub(super) async fn find(&self) -> Result<Option<Pull>, Stopped> {
        match self.is_followed() {
            true => Ok(self.oldest(self.forge().open_pulls(&self.base).await?)),
            false => Ok(self.forge().find(&self.head, &self.base).await?),
        }
    }

    /// Of those that are listed the oldest open one of our branches.
    pub(super) fn oldest(&self, listed: Vec<Pull>) -> Option<Pull> {
        let is_ours = |pull: &Pull| {
            pull.own
                && pull.head == self.head.as_str()
                && pull.base == self.base.as_str()
                && matches!(pull.state, PullState::Open { .. })
        };
        let ours = listed.into_iter().filter(is_ours);
        ours.min_by_key(|pull| pull.number)
    }

    /// All open ones into the target branch. None: there are more than can be listed, so that each is asked
    /// about alone.
    pub(super) async fn listed(&self) -> Result<Option<Vec<Pull>>, Stopped> {
        match self.forge().open_pulls(&self.base).await {
            Err(error) if matches!(error.trouble, Trouble::TooMany(_)) => Ok(None),
            listed => Ok(Some(listed?)),
        }
    }

    /// Asked about alone. One of our commit that is open and has nothing left to merge is closed. One of a
    /// branch that somebody else pushes to stays: it may get something to merge.
    pub(super) async fn look_alone(
        &self,
        number: u64,
        ours: Option<&Sha>,
    ) -> Result<Outcome, Stopped> {
        let Some(pull) = self.forge().pull(number).await? else {
            return Ok(Outcome::NoPull);
        };
        let is_here = pull.base == self.base.as_str();
        match (&pull.state, ours) {
            (PullState::Open { head, .. }, Some(commit))
                if is_here && head == commit && self.is_in_base(commit).await? =>
            {
                self.close_merged_otherwise(pull, commit).await
            }
            _ => self.seen(pull, ours).await,
        }
    }

    pub(super) async fn look_at(
        &self,
        number: u64,
        ours: Option<&Sha>,
    ) -> Result<Outcome, Stopped> {
        match self.forge().pull(number).await? {
            Some(pull) => self.seen(pull, ours).await,
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
    pub(in super::super) fn into_outcome(self) -> Outcome {
        let Self { pull, head } = self;
        Outcome::Seen(pull, Fate::Open(head))
    }
}

fn open(pull: Pull) -> Option<(u64, Open)> {
    let (number, head) = match &pull.state {
        PullState::Open { head, .. } if pull.own => (pull.number, head.to_string()),
        PullState::Open { .. } | PullState::Merged { .. } | PullState::Closed => return None,
    };
    let pull = shown(pull);
    Some((number, Open { pull, head }))
}
