//! What has become of a pull request.

use std::collections::HashMap;

use sluice_core::delivery::pull_request::{Fate, Outcome};
use sluice_forges::{Branch, ForgeError, Pull, PullState, Sha, Trouble};

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
        let (head, base) = (&self.head, &self.base);
        let alone = self.forge().find(head, base);
        match self.is_followed() {
            true => {
                let listed = self.forge().open_pulls(base).await;
                let newest = self.forge().newest(head.as_str(), base);
                Ok(open_one((head, base), listed, alone, newest).await?)
            }
            false => Ok(alone.await?),
        }
    }

    /// Of those that are listed the oldest open one of our branches.
    pub(super) fn oldest(&self, listed: Vec<Pull>) -> Option<Pull> {
        oldest((&self.head, &self.base), listed)
    }

    /// All open ones into the target branch. None: there are more than can be listed, so that each is asked
    /// about alone.
    pub(super) async fn listed(&self) -> Result<Option<Vec<Pull>>, Stopped> {
        Ok(unless_too_many(self.forge().open_pulls(&self.base).await)?)
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

/// The oldest open one of these branches: among all that are listed; where there are too many, as others may
/// have opened them, the one that the forge finds by its branches, or the newest.
async fn open_one(
    of: (&Branch, &Branch),
    listed: Result<Vec<Pull>, ForgeError>,
    alone: impl Future<Output = Result<Option<Pull>, ForgeError>>,
    newest: impl Future<Output = Result<Option<Pull>, ForgeError>>,
) -> Result<Option<Pull>, ForgeError> {
    if let Some(listed) = unless_too_many(listed)? {
        return Ok(oldest(of, listed));
    }
    let found = oldest(of, alone.await?.into_iter().collect());
    match found {
        Some(found) => Ok(Some(found)),
        // Gitea finds the oldest of all, which may be closed.
        None => Ok(oldest(of, newest.await?.into_iter().collect())),
    }
}

fn oldest((head, base): (&Branch, &Branch), listed: Vec<Pull>) -> Option<Pull> {
    let is_ours = |pull: &Pull| {
        pull.own
            && pull.head == head.as_str()
            && pull.base == base.as_str()
            && matches!(pull.state, PullState::Open { .. })
    };
    let ours = listed.into_iter().filter(is_ours);
    ours.min_by_key(|pull| pull.number)
}

/// None: there are more than can be listed.
fn unless_too_many(listed: Result<Vec<Pull>, ForgeError>) -> Result<Option<Vec<Pull>>, ForgeError> {
    match listed {
        Err(error) if matches!(error.trouble, Trouble::TooMany(_)) => Ok(None),
        listed => listed.map(Some),
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

#[cfg(test)]
mod tests {
    use sluice_forges::Mergeable;

    use super::*;

    fn branches() -> (Branch, Branch) {
        let branch = |name| Branch::parse(name).unwrap();
        (branch("env/prod-next"), branch("env/prod"))
    }

    fn pull(number: u64, is_open: bool) -> Pull {
        let (head, base) = branches();
        let open = PullState::Open {
            head: Sha::parse(&"a".repeat(40)).unwrap(),
            mergeable: Mergeable::Unknown,
        };
        Pull {
            number,
            url: String::new(),
            title: String::new(),
            body: String::new(),
            head: head.as_str().to_owned(),
            base: base.as_str().to_owned(),
            own: true,
            draft: false,
            labels: Vec::new(),
            labels_cut: false,
            state: if is_open { open } else { PullState::Closed },
        }
    }

    fn error(trouble: Trouble) -> ForgeError {
        ForgeError {
            host: "git.example.com".to_owned(),
            operation: "list the open pull requests",
            trouble,
        }
    }

    /// The number of the one that is found.
    async fn found(
        listed: Result<Vec<Pull>, Trouble>,
        alone: Option<Pull>,
        newest: Option<Pull>,
    ) -> Result<Option<u64>, ForgeError> {
        let (head, base) = branches();
        let listed = listed.map_err(error);
        let found = open_one((&head, &base), listed, async { Ok(alone) }, async {
            Ok(newest)
        });
        Ok(found.await?.map(|pull| pull.number))
    }

    #[tokio::test]
    async fn where_others_have_opened_too_many_it_is_found_alone() {
        let listed = Ok(vec![pull(9, true), pull(7, true), pull(6, false)]);
        assert_eq!(found(listed, None, None).await, Ok(Some(7)));
        let many = || Err(Trouble::TooMany(2_000));
        assert_eq!(found(many(), Some(pull(7, true)), None).await, Ok(Some(7)));
        let (old, new) = (Some(pull(7, false)), Some(pull(9, true)));
        assert_eq!(found(many(), old.clone(), new).await, Ok(Some(9)));
        let mut other = pull(9, true);
        other.head.push_str("-2");
        assert_eq!(found(many(), old, Some(other)).await, Ok(None));
        let failed = found(Err(Trouble::Failed(500)), None, None).await;
        assert_eq!(failed, Err(error(Trouble::Failed(500))));
    }
}
