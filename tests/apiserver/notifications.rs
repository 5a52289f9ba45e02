//! A server in the place of notification-controller is told what becomes an Event.

use anyhow::{Result, ensure};
use serde_json::json;
use sluice_tests::flux::Inbox;
use sluice_tests::stage::{OFFICE_HOURS, Stage};

use crate::told::get;

#[tokio::test]
async fn what_becomes_an_event_is_told_as_flux_tells_it() -> Result<()> {
    let inbox = Inbox::serve().await?;
    let stage = Stage::new("notified", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let team = json!({"event.toolkit.fluxcd.io/team": "platform", "example.com/team": "nobody"});
    stage.annotate("production", team).await?;
    let mut settings = stage.settings();
    settings.events_addr = inbox.url().parse().map_err(anyhow::Error::msg)?;
    let controller = stage.start_with(settings).await?;
    stage.out_of_hours().await?;
    controller.rests().await?;
    stage.set("2026-11-20T09:00:00Z");
    let open = stage.in_hours().await?;
    let opened = inbox.receives("that it opened", |event| event["reason"] == "Opened");
    let opened = opened.await?;
    let gate = stage.gates().get("production").await?;
    let expected = json!({
        "involvedObject": {
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "name": "production",
            "namespace": stage.namespace(), "uid": gate.metadata.uid,
        },
        "severity": "info",
        "timestamp": "2026-11-20T09:00:00Z",
        "reason": "Opened",
        "message": open.message,
        "metadata": {
            "event.toolkit.fluxcd.io/team": "platform",
            "sluice.dev/token": "2026-11-20T09:00:00Z",
        },
        "reportingController": "gate-controller",
        "reportingInstance": "gate-controller",
    });
    assert_eq!(opened, expected);
    let reasons: Vec<_> = inbox
        .events()
        .iter()
        .map(|event| event["reason"].clone())
        .collect();
    assert_eq!(reasons, ["Closed", "Opened"]);

    let (_, page) = get(controller.metrics()?, "/metrics").await?;
    let dropped = "sluice_notifications_total{outcome=\"dropped\"} 0";
    ensure!(page.contains(dropped), "{page}");
    Ok(())
}
