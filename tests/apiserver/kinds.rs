//! Gates kept by other kinds than windows: what their status shows, and what is decided about one
//! revision.

use anyhow::{Context, Result};
use sluice_core::gate;
use sluice_core::question::Question;
use sluice_core::revision::Revision;
use sluice_crds::State;
use sluice_tests::controller::InProcess;

use crate::stage::Stage;

mod approvals;
mod external;
mod nested;
mod revisions;

/// A commit, in full.
const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

/// Whether a gate lets one revision pass at this instant, and why.
async fn asked(
    stage: &Stage,
    controller: &InProcess,
    gate: &str,
    revision: &str,
) -> Result<(State, String)> {
    let gate = stage.gates().get(gate).await?;
    let revision = Revision::parse(revision).ok().context("no revision")?;
    let world = controller.world();
    let at = stage.now();
    let question = Question {
        now: world.now(at),
        revision: Some(&revision),
    };
    let (answer, _, message) = world.with_view(&gate, at, |view| gate::explain(view, question));
    Ok((answer.state, message))
}
