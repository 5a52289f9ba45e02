//! `calendar`, and what is decided by calendars.

use anyhow::{Result, ensure};
use serde_json::Value;
use sluice_crds::State;
use sluice_tests::poll;

use super::{guarded, run, says};
use crate::chart::CONTROLLER;
use crate::stage::DEADLINE;

const HOLIDAYS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: days}
data:
  all.ics: |
    BEGIN:VCALENDAR
    BEGIN:VEVENT
    UID:1
    SUMMARY:A day off
    DTSTART;VALUE=DATE:20200101
    RRULE:FREQ=DAILY
    END:VEVENT
    END:VCALENDAR
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: holidays}
spec: {schedule: {closed: [{name: holidays, calendar: {configMapRef: {name: days, key: all.ics}}}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: payroll}
spec: {gatekeepers: [{name: holidays}]}
";

/// Not everybody who may see gates may read ConfigMaps: then the controller's report counts, and
/// without one nobody knows.
#[tokio::test]
async fn calendars_are_read_by_those_who_may() -> Result<()> {
    let (stage, controller) = guarded().await?;
    controller.stop().await;
    stage.apply(HOLIDAYS).await?;
    let by_calendar = "closed by window 'holidays' (A day off)";
    says(&stage, "admin", &["check", "payroll"], 1, by_calendar).await?;
    poll(DEADLINE, "the bindings to be in effect", async || {
        says(&stage, "victor", &["check", "payroll"], 1, "(NotObserved)").await
    })
    .await?;
    let unknown = says(&stage, "victor", &["calendar", "payroll"], 0, "not known:").await?;
    ensure!(unknown.out.contains("????"), "{}", unknown.out);

    let acting = stage.cluster().client_for(CONTROLLER).await?;
    let _controller = stage.start_in_real_time(acting).await?;
    stage.says("payroll", State::Closed, "ClosedWindow").await?;
    says(&stage, "victor", &["check", "payroll"], 1, by_calendar).await?;
    let drawn = says(
        &stage,
        "admin",
        &["calendar", "payroll", "--days", "3"],
        0,
        by_calendar,
    )
    .await?;
    ensure!(drawn.out.contains("payroll is Closed"), "{}", drawn.out);
    let told = run(&stage, "admin", &["calendar", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&told.out)?;
    ensure!(
        told.as_array().is_some_and(|gates| gates.len() == 4),
        "{told}"
    );
    Ok(())
}
