//! Who may force, and whom a controller believes.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use serde_json::{Value, json};
use sluice_crds::{Gate, State};

use super::{annotate_as, annotation, force, force_as};
use crate::stage::{OFFICE_HOURS, Stage, at, message};

#[tokio::test]
async fn a_force_is_granted_completed_owned_and_runs_out_to_the_millisecond() -> Result<()> {
    let stage = Stage::installed("forced", "2026-11-20T12:00:00.250Z").await?;
    let controller = stage.opens().await?;
    stage.grant("sluice-edit", &["alice", "bob"]).await?;
    stage.grant("sluice-gate-override", &["bob"]).await?;

    force_as(&stage, "bob", "production", &force("closed", "bob")).await?;
    let refused = annotate_as(&stage, "alice", "production", &force("open", "alice")).await?;
    let refused = refused
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(
        refused.contains("needs the verb override on gates.sluice.dev"),
        "{refused}"
    );

    let forced = stage.says("production", State::Closed, "Forced").await?;
    let effective = forced.r#override.clone().unwrap();
    assert_eq!(
        (effective.by.as_str(), effective.reason.as_str()),
        ("bob", "incident 4711")
    );
    assert_eq!(effective.until.0, at("2026-11-20T13:00:00Z"));
    assert_eq!(
        message(&forced),
        "forced closed by bob until Fri 2026-11-20 13:00 UTC: incident 4711"
    );
    stage.settle().await?;
    let gate = stage.gates().get("production").await?;
    assert_eq!(
        annotation(&gate, "sluice.dev/force-until")?,
        "2026-11-20T13:00:00.25Z"
    );
    let seen = annotation(&gate, "sluice.dev/force-seen")?;
    let noted: Value = serde_json::from_str(seen)?;
    ensure!(noted["force"]["at"] == "2026-11-20T12:00:00.25Z", "{seen}");
    let owned = owned_by(&gate, "gate-controller-force");
    for name in [
        "force",
        "force-until",
        "force-reason",
        "force-by",
        "force-seen",
    ] {
        ensure!(
            owned.get(format!("f:sluice.dev/{name}")).is_some(),
            "{name}: {owned}"
        );
    }

    let (version, writes) = (gate.resource_version(), stage.writes(&controller).await?);
    stage.set("2026-11-20T13:00:00.249Z");
    stage.settle().await?;
    assert_eq!(Some(stage.version("production").await?), version);
    stage.set("2026-11-20T13:00:00.250Z");
    let open = stage.in_hours().await?;
    assert_eq!(open.r#override, None);
    assert_eq!(open.since.unwrap().0, at("2026-11-20T13:00:00Z"));
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await?, writes + 1);
    Ok(())
}

/// The annotations that a field manager owns.
fn owned_by(gate: &Gate, manager: &str) -> Value {
    let entries = json!(gate.managed_fields());
    let own = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
    let entry = entries.as_array().and_then(|all| all.iter().find(own));
    entry.map_or(Value::Null, |entry| {
        entry["fieldsV1"]["f:metadata"]["f:annotations"].clone()
    })
}

#[tokio::test]
async fn without_policies_nobody_is_believed_unless_the_operator_says_so() -> Result<()> {
    let stage = Stage::new("unverified", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    stage
        .annotate("production", force("closed", "mallory"))
        .await?;
    let wary = stage.start().await?;
    let open = stage.in_hours().await?;
    assert_eq!(
        message(&open),
        "office-hours: inside window 'office-hours' until Fri 2026-11-20 17:00 UTC. \
         metadata.annotations: the gate is forced by somebody whose identity nobody verified, so \
         the force does not count; install the admission policies of the chart, or run the \
         controller with --trust-unverified-identity"
    );
    stage.settle().await?;
    let untouched = stage.gates().get("production").await?;
    assert!(
        !untouched
            .annotations()
            .contains_key("sluice.dev/force-seen")
    );
    wary.stop().await;

    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _trusting = stage.start_with(settings).await?;
    let forced = stage.says("production", State::Closed, "Forced").await?;
    assert_eq!(forced.r#override.unwrap().by, "mallory");
    Ok(())
}
