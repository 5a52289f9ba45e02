//! Gates whose gatekeepers are missing, suspended, broken, elsewhere or somebody else's; and
//! clocks that are wrong.

use anyhow::Result;
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::SignedDuration;
use serde_json::json;
use sluice_crds::{GateStatus, State};
use sluice_tests::{Namespace, Writes};

use super::stage::{OFFICE_HOURS, Stage, message};

/// In office hours.
const NOON: &str = "2026-11-20T12:00:00Z";

#[tokio::test]
async fn a_missing_gatekeeper_closes_the_gate_until_it_appears() -> Result<()> {
    let stage = Stage::new("missing", NOON).await?;
    let (gatekeeper, gate) = OFFICE_HOURS.split_once("---").unwrap();
    stage.apply(gate).await?;
    let _controller = stage.start().await?;
    let closed = stage
        .says("production", State::Closed, "GatekeeperMissing")
        .await?;
    assert_eq!(
        message(&closed),
        "office-hours: there is no such gatekeeper"
    );
    assert_eq!(ready(&closed), ("False", "GatekeeperMissing"));

    stage.apply(gatekeeper).await?;
    let open = stage.in_hours().await?;
    assert_eq!(ready(&open), ("True", "InsideWindow"));

    stage.gatekeepers().remove("office-hours").await?;
    stage
        .says("production", State::Closed, "GatekeeperMissing")
        .await?;
    Ok(())
}

#[tokio::test]
async fn what_is_suspended_admits_nothing() -> Result<()> {
    let (stage, _controller) = Stage::open("suspended", NOON).await?;

    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let gatekeepers = stage.gatekeepers();
    gatekeepers.merge("office-hours", suspend(true)).await?;
    let closed = stage.says("production", State::Closed, "Suspended").await?;
    assert_eq!(message(&closed), "office-hours: it is suspended");
    assert_eq!(ready(&closed), ("False", "Suspended"));
    gatekeepers.merge("office-hours", suspend(false)).await?;
    stage.in_hours().await?;

    stage.gates().merge("production", suspend(true)).await?;
    let closed = stage.says("production", State::Closed, "Suspended").await?;
    assert_eq!(message(&closed), "the gate is suspended");
    stage.gates().merge("production", suspend(false)).await?;
    stage.in_hours().await?;
    Ok(())
}

#[tokio::test]
async fn a_broken_gatekeeper_is_mended_by_its_spec_alone() -> Result<()> {
    let stage = Stage::new("broken", NOON).await?;
    stage
        .apply(&OFFICE_HOURS.replace("0 9 * * MON-FRI", "0 9 * * FRI-MON-TUE"))
        .await?;
    let _controller = stage.start().await?;
    stage
        .says("production", State::Closed, "InvalidSpec")
        .await?;
    stage.apply(OFFICE_HOURS).await?;
    stage.in_hours().await?;
    Ok(())
}

#[tokio::test]
async fn a_gatekeeper_that_no_gate_names_is_fine() -> Result<()> {
    let stage = Stage::new("unused", NOON).await?;
    stage
        .apply(OFFICE_HOURS.split_once("---").unwrap().0)
        .await?;
    let _controller = stage.start().await?;
    stage.settle().await?;
    let status = stage
        .gatekeepers()
        .get("office-hours")
        .await?
        .status
        .unwrap();
    let verdict = status.verdict.unwrap();
    assert_eq!(
        (verdict.state, verdict.reason.as_str()),
        (State::Open, "InsideWindow")
    );
    assert_eq!(status.conditions[0].type_, "Ready");
    assert_eq!(status.conditions[0].status, "True");
    Ok(())
}

#[tokio::test]
async fn requests_are_answered_by_one_write() -> Result<()> {
    let (stage, controller) = Stage::open("requested", NOON).await?;
    let writes = stage.writes(&controller).await?;
    for token in ["2026-11-20T12:00:00Z", "again"] {
        let request = json!({"reconcile.fluxcd.io/requestedAt": token});
        stage.annotate("production", request).await?;
        let handled =
            |status: &GateStatus| status.last_handled_reconcile_at.as_deref() == Some(token);
        stage
            .until("production", "the request to be answered", handled)
            .await?;
    }
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await?, writes + 2);
    Ok(())
}

/// Two controllers share a namespace: each writes to its own objects, and reads all of them.
#[tokio::test]
async fn a_shard_leaves_the_other_objects_alone() -> Result<()> {
    let stage = Stage::new("shards", NOON).await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut ours = stage.gates().get("production").await?;
    ours.metadata = kube::api::ObjectMeta {
        name: Some("ours".to_owned()),
        labels: Some([("sharding.fluxcd.io/key".to_owned(), "shard1".to_owned())].into()),
        ..Default::default()
    };
    stage.gates().add(&ours).await?;

    let mut settings = stage.settings();
    settings.watch_label_selector = Some("sharding.fluxcd.io/key=shard1".to_owned());
    let shard = stage.start_with(settings.clone()).await?;
    // Decided from a gatekeeper that is not this shard's.
    stage.says("ours", State::Open, "InsideWindow").await?;
    stage.settle().await?;
    assert_eq!(stage.gates().get("production").await?.status, None);
    assert_eq!(stage.gatekeepers().get("office-hours").await?.status, None);

    shard.stop().await;

    let mut rest = settings.clone();
    rest.watch_label_selector = Some("sharding.fluxcd.io/key!=shard1".to_owned());
    let _rest = stage.start_with(rest).await?;
    stage.in_hours().await?;
    // Now both have something to report, and there is nobody for the one whose name comes first.
    stage.set("2026-11-20T17:00:00Z");
    stage.out_of_hours().await?;
    stage.says("ours", State::Open, "InsideWindow").await?;
    let _shard = stage.start_with(settings).await?;
    stage.says("ours", State::Closed, "OutsideWindow").await?;
    Ok(())
}

/// The controllers watch the whole server, and write to this test's objects alone.
#[tokio::test]
async fn gatekeepers_may_live_elsewhere_unless_that_is_forbidden() -> Result<()> {
    let stage = Stage::new("here", NOON).await?;
    let elsewhere = Namespace::create(stage.cluster(), "there").await?;
    let (gatekeeper, _) = OFFICE_HOURS.split_once("---").unwrap();
    let applier = sluice_tests::Applier::new(stage.client());
    applier
        .in_namespace(elsewhere.name())
        .text(gatekeeper)
        .await?;
    let label = format!("sluice.dev/only: {}", stage.namespace());
    let gate = format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {{name: far, labels: {{{label}}}}}, \
         spec: {{gatekeepers: [{{name: office-hours, namespace: {}}}]}}}}",
        elsewhere.name()
    );
    stage.apply(&gate).await?;

    let mut settings = stage.settings();
    settings.watch_all_namespaces = true;
    settings.watch_label_selector = Some(label.replace(": ", "="));
    let allowed = stage.start_with(settings.clone()).await?;
    let open = stage.says("far", State::Open, "InsideWindow").await?;
    let name = format!("{}/office-hours", elsewhere.name());
    assert_eq!(open.verdicts[0].gatekeeper, name);
    allowed.stop().await;

    settings.no_cross_namespace_refs = true;
    let _forbidden = stage.start_with(settings).await?;
    let closed = stage
        .says("far", State::Closed, "CrossNamespaceRef")
        .await?;
    let expected = format!(
        "{name}: it is in another namespace, which --no-cross-namespace-refs or \
         --watch-all-namespaces=false forbids"
    );
    assert_eq!(message(&closed), expected);
    Ok(())
}

/// Open all the time, by a window and by a default.
const ALWAYS: &str = r#"
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: always}
spec: {schedule: {open: [{cron: "* * * * *"}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: by-time}
spec: {gatekeepers: [{name: always}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: by-default}
spec: {default: open}
"#;

#[tokio::test]
async fn a_clock_that_is_wrong_opens_nothing_by_time() -> Result<()> {
    let stage = Stage::new("skewed", "2026-11-20T12:00:00Z").await?;
    stage.apply(ALWAYS).await?;
    let mut settings = stage.settings();
    settings.compare_clocks = true;
    let now = SystemClock.now();
    stage.set(&now.to_string());
    let right = stage.start_with(settings.clone()).await?;
    stage.says("by-time", State::Open, "InsideWindow").await?;
    right.stop().await;

    let ahead = now + SignedDuration::from_secs(40 * 60);
    stage.set(&ahead.to_string());
    let wrong = stage.start_with(settings.clone()).await?;
    let closed = stage.says("by-time", State::Closed, "ClockSkew").await?;
    let told = message(&closed);
    assert!(
        told.contains("s from the API server's, so nothing is open by time alone"),
        "{told}"
    );
    assert_eq!(ready(&closed), ("False", "ClockSkew"));
    stage.says("by-default", State::Open, "Default").await?;
    wrong.stop().await;

    stage.set(&SystemClock.now().to_string());
    let _right = stage.start_with(settings).await?;
    stage.says("by-time", State::Open, "InsideWindow").await?;
    Ok(())
}

/// It is not waited until the clocks would be compared anyway.
#[tokio::test]
async fn a_clock_that_jumps_is_compared_at_once() -> Result<()> {
    let stage = Stage::new("jumped", "2026-11-20T12:00:00Z").await?;
    stage.apply(ALWAYS).await?;
    let mut settings = stage.settings();
    settings.compare_clocks = true;
    let now = SystemClock.now();
    stage.set(&now.to_string());
    let _controller = stage.start_with(settings).await?;
    stage.says("by-time", State::Open, "InsideWindow").await?;

    let ahead = now + SignedDuration::from_secs(40 * 60);
    stage.clock().step(ahead);
    let closed = stage.says("by-time", State::Closed, "ClockSkew").await?;
    assert_eq!(ready(&closed), ("False", "ClockSkew"));
    // Everything is listed again, and what the clock has no part in is as it was.
    stage.says("by-default", State::Open, "Default").await?;

    stage.clock().step(SystemClock.now());
    stage.says("by-time", State::Open, "InsideWindow").await?;
    Ok(())
}

/// Status and reason of the condition `Ready`.
fn ready(status: &GateStatus) -> (&str, &str) {
    let ready = status
        .conditions
        .iter()
        .find(|found| found.type_ == "Ready");
    ready.map_or(("", ""), |ready| (&ready.status, &ready.reason))
}
