//! The process that acts for PullRequests.

use std::sync::Arc;

use sluice_core::delivery::pull_request::Says;
use sluice_crds::PullRequest;
use sluice_crds::pipeline::PromotionRecord;
use sluice_crds::pull_request::{PullRequestState, PullRequestStatus};

use super::{Discipline, World};

impl World {
    /// The process that acts for PullRequests. `crash`: it is killed between the forge and the status.
    pub(super) fn act_for_pull_request(&mut self, pick: usize, crash: u8) -> Result<(), String> {
        let all = &self.present.pull_requests;
        let Some(object) = all.get(pick % all.len().max(1)).cloned() else {
            return Ok(());
        };
        let before = object.status.clone().unwrap_or_default();
        if before.state.is_some_and(PullRequestState::is_final) {
            return Ok(());
        }
        let about = &object.spec.about;
        let environment = about.environment.as_str();
        let is_closed = object.spec.close.is_some();
        let known = self.forge.find(&about.key).map(|it| it.state);
        let state = match (known, is_closed) {
            (Some(PullRequestState::Open), true) => {
                self.forge.find(&about.key).unwrap().state = PullRequestState::Closed;
                PullRequestState::Closed
            }
            (Some(PullRequestState::Open), false) => match self.may_merge(&object) {
                true => {
                    self.is_ours(&about.key)?;
                    self.forge.merge(&about.key)?;
                    PullRequestState::Merged
                }
                false => PullRequestState::Open,
            },
            (Some(state), _) => state,
            (None, true) => PullRequestState::Closed,
            (None, false) if object.spec.suspend || !self.is_wanted(&object) => return Ok(()),
            (None, false) if self.forge.base.get(environment) == about.revision.as_ref() => {
                PullRequestState::AlreadyInBase
            }
            (None, false) => {
                let weak = self.setup.wipes;
                let by = self.present.object.metadata.uid.clone();
                self.forge.open(about, by, weak)?;
                PullRequestState::Open
            }
        };
        if crash < 24 {
            return Ok(());
        }
        let commit = Some("c".repeat(40));
        let status = PullRequestStatus {
            state: Some(state),
            commit_sha: commit.clone(),
            head_sha: commit,
            ..before
        };
        let mut object = (*object).clone();
        object.status = Some(status);
        self.change(|present| {
            let mut all = present.pull_requests.iter_mut();
            let found = all.find(|it| it.metadata.name == object.metadata.name);
            *found.unwrap() = Arc::new(object);
        });
        Ok(())
    }

    /// Whether the Pipeline asks for it, as its accepted status says.
    fn is_wanted(&self, object: &PullRequest) -> bool {
        match self.discipline {
            Discipline::StatusFirst => Says::of(object, self.present.object.as_ref()).is_some(),
            Discipline::ActsFirst => true,
        }
    }

    /// What was opened for a Pipeline that is gone is never merged for the next one of its name: people and
    /// gates have not admitted that.
    fn is_ours(&mut self, key: &str) -> Result<(), String> {
        let by = self.forge.find(key).and_then(|it| it.by.clone());
        match by == self.present.object.metadata.uid {
            true => Ok(()),
            false => Err(format!("{key} is merged, which {by:?} has opened")),
        }
    }

    /// Whether the status of the Pipeline orders the merge.
    fn may_merge(&self, object: &PullRequest) -> bool {
        let about = &object.spec.about;
        let order = self
            .record(&about.environment)
            .and_then(|it| it.order.as_ref());
        order.is_some_and(|order| {
            order.key == about.key
                && Some(&order.pull_request) == object.metadata.name.as_ref()
                && order.not_after.0 >= self.now
        })
    }

    fn record(&self, environment: &str) -> Option<&PromotionRecord> {
        let status = self.present.object.status.as_ref()?;
        status.environments.get(environment)?.promotion.as_ref()
    }
}
