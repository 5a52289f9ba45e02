//! What people do: they merge and close pull requests, and they vote.

use std::sync::Arc;

use sluice_crds::approval::{PipelineReference, Vote};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Approval, ApprovalSpec};

use super::World;
use super::setup::NAMES;

impl World {
    /// A person merges an open pull request, or closes it.
    pub(super) fn person(&mut self, place: usize, how: u8) -> Result<(), String> {
        let Some(open) = self.forge.open_of(NAMES[place]) else {
            return Ok(());
        };
        let key = open.about.key.clone();
        match how % 3 {
            0 => open.state = PullRequestState::Closed,
            _ => self.forge.merge(&key)?,
        }
        Ok(())
    }

    /// Somebody approves what waits, or rejects it, or takes votes back.
    pub(super) fn approve(&mut self, how: u8) {
        if how < 16 {
            return self.change(|present| present.votes.clear());
        }
        let status = self.present.object.status.as_ref();
        let prod = status.and_then(|status| status.environments.get("prod"));
        let Some(waits) = prod.and_then(|prod| prod.waiting_approval.clone()) else {
            return;
        };
        let spec = ApprovalSpec {
            gatekeeper_ref: None,
            pipeline_ref: Some(PipelineReference {
                name: "p".to_owned(),
                environment: "prod".to_owned(),
                run: waits.run,
                key: None,
            }),
            revision: waits.revision,
            decision: match how < 40 {
                true => Vote::Reject,
                false => Vote::Approve,
            },
            by: "alice@example.com".to_owned(),
            groups: Vec::new(),
            reason: None,
        };
        let name = format!("vote-{}", self.present.votes.len());
        let vote = Arc::new(Approval::new(&name, spec));
        self.change(|present| present.votes.push(vote));
    }
}
