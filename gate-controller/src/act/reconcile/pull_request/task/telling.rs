//! The commit status of a commit.

use sluice_core::delivery::pull_request::{Outcome, Telling};
use sluice_crds::pipeline::MergeGate;
use sluice_forges::{Status, StatusState};

use super::{Job, Stopped, sha};

impl Job<'_> {
    /// Sets it. It may be set twice.
    pub(super) async fn set_status(&self, telling: &Telling) -> Result<Outcome, Stopped> {
        let Telling {
            commit,
            context,
            gate,
            why,
        } = telling;
        let page = self.object.status.as_ref();
        let page = page.and_then(|status| status.url.as_deref());
        let status = Status {
            context,
            state: match gate {
                MergeGate::Pending => StatusState::Pending,
                MergeGate::Success => StatusState::Success,
            },
            description: why,
            url: page.unwrap_or_else(|| self.desk.at.url()),
        };
        let (forge, commit) = (self.forge(), sha(commit)?);
        forge
            .set_status(&commit, &status, self.desk.may_act)
            .await?;
        Ok(Outcome::Done)
    }
}
