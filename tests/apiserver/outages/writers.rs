//! Others write into what is the controller's alone.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_tests::Writes;

use crate::stage::Stage;

#[rstest]
#[case::a_lie(json!({"state": "Closed", "reason": "Because", "message": "I say so"}))]
#[case::another_reason(json!({"reason": "Because"}))]
#[case::a_force(json!({"override": {
    "state": "open", "by": "mallory", "reason": "mine",
    "since": "2026-11-20T12:00:00Z", "until": "2036-11-20T12:00:00Z",
}}))]
#[case::a_condition(json!({"conditions": [{
    "type": "Mine", "status": "True", "reason": "Because", "message": "I say so",
    "lastTransitionTime": "2026-11-20T12:00:00Z",
}]}))]
#[case::verdicts(json!({"verdicts": [
    {"gatekeeper": "mine", "state": "Open", "reason": "Because", "message": "I say so"},
]}))]
#[case::a_prophecy(json!({"upcoming": [{"at": "2036-01-01T00:00:00Z", "state": "Closed"}]}))]
#[case::a_further_one(json!({"upcoming": [
    {"at": "2026-11-20T17:00:00Z", "state": "Closed"},
    {"at": "2036-01-01T00:00:00Z", "state": "Open"},
]}))]
#[case::the_next_change(json!({"upcoming": null}))]
#[case::nothing_left(json!({
    "state": null, "reason": null, "message": null, "verdicts": null, "upcoming": null,
    "conditions": null, "observedGeneration": null,
}))]
#[tokio::test]
async fn what_others_write_into_a_status_is_taken_out(#[case] lie: Value) -> Result<()> {
    let (stage, controller) = Stage::open("writers", "2026-11-20T12:00:00Z").await?;
    stage.judge_no_statuses();
    let before = stage.gates().get("production").await?.status.unwrap();
    let writes = stage.writes(&controller).await?;

    for server_side in [false, true] {
        lie_about(&stage, &lie, server_side).await?;
        stage.settle().await?;
        let after = stage.gates().get("production").await?.status.unwrap();
        assert_eq!(json!(after), json!(before), "server-side: {server_side}");
    }
    // And then it is quiet: nobody fights.
    let spent = stage.writes(&controller).await? - writes;
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await? - writes, spent);
    ensure!((1..=4).contains(&spent), "{spent} writes");
    Ok(())
}

/// Writes into the status as somebody else: by merging, or by an apply that owns what it writes.
async fn lie_about(stage: &Stage, lie: &Value, server_side: bool) -> Result<()> {
    let gates = stage.gates();
    if server_side {
        // An apply removes nothing that is not its own.
        let mut lie = lie.clone();
        if let Some(fields) = lie.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production"}, "status": lie,
        });
        let mallory = PatchParams::apply("mallory").force();
        gates
            .patch_status("production", &mallory, &Patch::Apply(object))
            .await?;
    } else {
        let patch = json!({"status": lie});
        gates.merge_status("production", &patch).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_status_of_a_gatekeeper_is_the_controllers_too() -> Result<()> {
    let (stage, _controller) = Stage::open("writers", "2026-11-20T12:00:00Z").await?;
    let gatekeepers = stage.gatekeepers();
    let before = gatekeepers.get("office-hours").await?.status.unwrap();
    let lie = json!({"status": {
        "state": "Closed", "reason": "Because",
        "evidence": {"calendars": [{"window": "mine"}]},
    }});
    gatekeepers.merge_status("office-hours", lie).await?;
    stage.settle().await?;
    let after = gatekeepers.get("office-hours").await?.status.unwrap();
    assert_eq!(json!(after), json!(before));
    // No decision was made from it meanwhile.
    let gate = stage.in_hours().await?;
    assert_eq!(
        gate.since.unwrap().0,
        crate::stage::at("2026-11-20T12:00:00Z")
    );
    Ok(())
}
