//! Another title and another text.

use sluice_core::delivery::pull_request::Outcome;

use super::{Job, Stopped};

impl Job<'_> {
    /// Writes both. They may be written twice.
    pub(super) async fn edit(
        &self,
        number: u64,
        title: &str,
        description: &str,
    ) -> Result<Outcome, Stopped> {
        // TODO: Forge::edit.
        let _ = (number, title, description, self.until()?);
        std::future::ready(()).await;
        Ok(Outcome::Done)
    }
}
