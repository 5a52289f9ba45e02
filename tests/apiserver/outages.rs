//! The API server is away, refuses, breaks off, forgets, and holds what it should not.

mod compaction;
mod faults;
mod late;
mod restart;
mod rights;
mod writers;

use anyhow::{Result, ensure};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;

use super::stage::DEADLINE;

/// Waits until these are all the gates that the controller knows.
async fn knows(controller: &InProcess, gates: &[&str]) -> Result<()> {
    poll(DEADLINE, "the gates to be known", async || {
        let keys = controller.world().gates.keys().into_iter();
        let mut names: Vec<_> = keys.map(|key| key.name).collect();
        names.sort();
        let same = names.iter().map(|name| &**name).eq(gates.iter().copied());
        ensure!(same, "{names:?}");
        Ok(())
    })
    .await
}
