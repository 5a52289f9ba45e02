//! Gates kept by other kinds than windows: what their status shows, and what is decided about one
//! revision.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_core::gate;
use sluice_core::revision::Revision;
use sluice_core::verdict::question::Question;
use sluice_crds::State;
use sluice_tests::controller::InProcess;
use sluice_tests::poll;

use crate::stage::{DEADLINE, Stage};

mod approvals;
mod external;
mod http;
mod metric;
mod nested;
mod objects;
mod pipeline;
mod revisions;

/// A gatekeeper with this spec, and a gate of its name that it keeps.
pub fn kept(name: &str, spec: &Value) -> String {
    let object = |kind: &str, spec: &Value| {
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let gate = object("Gate", &json!({"gatekeepers": [{"name": name}]}));
    format!("{}\n---\n{gate}\n---\n", object("Gatekeeper", spec))
}

/// A Secret with these keys.
pub fn secret(name: &str, keys: &Value) -> String {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "annotations": {"sluice.dev/allowed-hosts": "127.0.0.1"}},
        "stringData": keys,
    });
    format!("{secret}\n---\n")
}

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
    let question = Question::new(world.now(at), Some(&revision));
    let (answer, _, message) = world.with_view(&gate, at, |view| gate::explain(view, question));
    Ok((answer.state, message))
}

/// The gate `production`, which depends on the revision, lets this one pass. So does a controller that
/// starts again: at once, without writing anything about the gate or its gatekeeper.
async fn still_passes(stage: &Stage, gatekeeper: &str, revision: &str) -> Result<()> {
    let first = stage.start().await?;
    let depends = "DependsOnRevision";
    stage
        .says("production", State::Conditional, depends)
        .await?;
    stage.settle().await?;
    first.stop().await;
    let versions = async || {
        let keeper = stage.gatekeepers().get(gatekeeper).await?;
        let version = stage.version("production").await?;
        Ok::<_, anyhow::Error>((keeper.metadata.resource_version, version))
    };
    let before = versions().await?;

    let second = stage.start().await?;
    poll(DEADLINE, "the controller to be ready", async || {
        ensure!(second.world().is_ready());
        Ok(())
    })
    .await?;
    // At once.
    let (state, why) = asked(stage, &second, "production", revision).await?;
    assert_eq!(state, State::Open, "{why}");
    stage.settle().await?;
    assert_eq!(versions().await?, before);
    Ok(())
}
