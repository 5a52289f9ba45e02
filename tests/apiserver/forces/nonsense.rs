//! Annotations that make no sense, where no policy refuses them: reported, and nothing else.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use serde_json::{Value, json};
use sluice_crds::State;

use super::force;
use crate::stage::{OFFICE_HOURS, Stage, message};

/// Annotations, and what the gate says about them.
#[rustfmt::skip]
fn nonsense() -> Vec<(Value, &'static str)> {
    let but = |name: &str, value: Value| {
        let mut annotations = force("closed", "admin");
        annotations[format!("sluice.dev/{name}")] = value;
        annotations
    };
    vec![
        (but("force", json!("ajar")), "[sluice.dev/force]: `ajar` is not a state; write open or closed"),
        (but("force", json!("")), "[sluice.dev/force]: `` is not a state; write open or closed"),
        (but("force-until", json!("tomorrow")), "[sluice.dev/force-until]: `tomorrow` is not an instant; write RFC 3339"),
        (but("force-until", json!("2026-11-20 13:00")), "[sluice.dev/force-until]: `2026-11-20 13:00` is not an instant; write RFC 3339"),
        (but("force-until", json!("2026-11-20T11:59:59Z")), "[sluice.dev/force-until]: the end Fri 2026-11-20 11:59:59 UTC has passed; write a later end"),
        (but("force-until", json!("2026-11-21T12:01:01Z")), "[sluice.dev/force-until]: the force would last 24h1m1s; write an end at most 24h"),
        (but("force-until", json!("9999-12-01T00:00:00Z")), "[sluice.dev/force-until]: the force would last"),
        (but("force-reason", json!(" ")), "[sluice.dev/force-reason]: it is missing, so the force does not count; say why"),
        (but("force-by", json!(null)), "[sluice.dev/force-by]: it is missing, so the force does not count; write the user name"),
        (json!({"sluice.dev/force-until": "2026-11-20T13:00:00Z"}), "[sluice.dev/force-until]: it does nothing without sluice.dev/force"),
        (json!({"open.gate.fluxcd.io/requestedAt": "now"}), "[open.gate.fluxcd.io/requestedAt]: `now` is not an instant; write RFC 3339"),
        (json!({"close.gate.fluxcd.io/requestedAt": "1763640000"}), "[close.gate.fluxcd.io/requestedAt]: `1763640000` is not an instant"),
    ]
}

#[tokio::test]
async fn nonsense_is_reported_and_changes_nothing() -> Result<()> {
    let stage = Stage::new("nonsense", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let controller = stage.start_with(settings).await?;
    let before = stage.in_hours().await?;
    for (annotations, words) in nonsense() {
        stage.annotate("production", annotations.clone()).await?;
        let told = |status: &sluice_crds::GateStatus| message(status).contains(words);
        let gate = stage.until("production", words, told).await?;
        let status = gate.status.clone().unwrap();
        ensure!(
            message(&status).starts_with(message(&before)),
            "{}",
            message(&status)
        );
        ensure!(status.state == Some(State::Open) && status.r#override.is_none());
        assert_eq!(status.since, before.since);
        // Reported once, and then it is quiet.
        stage.settle().await?;
        let writes = stage.writes(&controller).await?;
        stage.settle().await?;
        assert_eq!(stage.writes(&controller).await?, writes, "{annotations}");

        let names = gate.annotations().keys();
        let remove = names.map(|name| (name.clone(), Value::Null)).collect();
        stage.annotate("production", Value::Object(remove)).await?;
        stage.settle().await?;
    }
    let after = stage.in_hours().await?;
    assert_eq!(after.message, before.message);
    Ok(())
}
