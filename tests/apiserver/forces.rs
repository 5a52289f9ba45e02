//! People force gates: with the right to, under their own name, for a while.

mod acceptance;
mod dialects;
mod nonsense;
mod rights;
mod terms;

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::Gate;
use sluice_tests::poll;

use super::stage::{DEADLINE, Stage};

/// A force by `by`, as people write it.
pub fn force(state: &str, by: &str) -> Value {
    json!({
        "sluice.dev/force": state,
        "sluice.dev/force-by": by,
        "sluice.dev/force-reason": "incident 4711",
    })
}

/// Annotates a gate as `user`, as `kubectl annotate` does.
pub async fn annotate_as(
    stage: &Stage,
    user: &str,
    gate: &str,
    annotations: &Value,
) -> Result<kube::Result<Gate>> {
    let client = stage.cluster().client_for(user).await?;
    let gates: Api<Gate> = Api::namespaced(client, stage.namespace());
    let manager = PatchParams {
        field_manager: Some("kubectl-annotate".to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    Ok(gates.patch(gate, &manager, &patch).await)
}

/// The same, as soon as `user` has the right to: a binding takes a moment.
pub async fn force_as(stage: &Stage, user: &str, gate: &str, annotations: &Value) -> Result<Gate> {
    poll(DEADLINE, "the right to be in effect", async || {
        let forced = annotate_as(stage, user, gate, annotations).await?;
        forced.map_err(anyhow::Error::from)
    })
    .await
}

/// The value of an annotation.
pub fn annotation<'a>(gate: &'a Gate, name: &str) -> Result<&'a str> {
    let value = gate.annotations().get(name);
    Ok(value.with_context(|| format!("no {name}"))?)
}
