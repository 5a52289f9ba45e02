//! Another title and another text.

use sluice_core::delivery::pull_request::Outcome;
use sluice_forges::PullState;

use super::{Job, Stopped};

impl Job<'_> {
    /// Writes both, unless it is a draft: its title may be what makes it one. They may be written twice.
    pub(super) async fn edit(
        &self,
        number: u64,
        title: &str,
        description: &str,
    ) -> Result<Outcome, Stopped> {
        let Some(pull) = self.forge().pull(number).await? else {
            return Ok(Outcome::NoPull);
        };
        if pull.draft || !matches!(pull.state, PullState::Open { .. }) {
            return self.seen(pull, None).await;
        }
        let (forge, may) = (self.forge(), self.desk.may_act);
        forge.edit(number, title, description, may).await?;
        Ok(Outcome::Done)
    }
}
