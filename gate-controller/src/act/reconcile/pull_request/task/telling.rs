//! The commit status of our commit.

use sluice_core::delivery::pull_request::Outcome;
use sluice_crds::pipeline::MergeGate;
use sluice_forges::{Sha, Status, StatusState};

use super::{Job, Stopped};

impl Job<'_> {
    /// Sets it. It may be set twice.
    pub(super) async fn set_status(
        &self,
        commit: &Sha,
        gate: MergeGate,
        why: &str,
    ) -> Result<Outcome, Stopped> {
        let about = &self.object.spec.about;
        let namespace = self.object.metadata.namespace.as_deref();
        let context = format!(
            "sluice/gate/{}/{}/{}",
            namespace.unwrap_or_default(),
            about.name,
            about.environment
        );
        let page = self.object.status.as_ref();
        let page = page.and_then(|status| status.url.as_deref());
        let status = Status {
            context: &context,
            state: match gate {
                MergeGate::Pending => StatusState::Pending,
                MergeGate::Success => StatusState::Success,
            },
            description: why,
            url: page
                .or(self.object.spec.repository.url.as_deref())
                .unwrap_or_default(),
        };
        let forge = self.forge();
        forge.set_status(commit, &status, self.until()?).await?;
        Ok(Outcome::Done)
    }
}
