//! Gates open and close: at the instant, by one write, and told to those who read events.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use sluice_crds::{Gate, State};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;

use super::stage::{DEADLINE, OFFICE_HOURS, Stage, at};

#[tokio::test]
async fn a_gate_opens_and_closes_to_the_millisecond() -> Result<()> {
    let stage = Stage::new("transitions", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let controller = stage.start().await?;
    let closed = stage.out_of_hours().await?;
    assert_eq!(closed.since.unwrap().0, at("2026-11-20T08:00:00Z"));
    assert_eq!(closed.observed_generation, Some(1));
    let told: Vec<_> = closed
        .upcoming
        .iter()
        .map(|change| (change.at.0, change.state))
        .collect();
    // A Friday: the next one opens on Monday.
    assert_eq!(
        told[..3],
        [
            (at("2026-11-20T09:00:00Z"), State::Open),
            (at("2026-11-20T17:00:00Z"), State::Closed),
            (at("2026-11-23T09:00:00Z"), State::Open),
        ]
    );
    assert_eq!(told.len(), 8);

    for (before, instant, state, reason) in [
        ("08:59:59.999", "09:00:00", State::Open, "InsideWindow"),
        ("16:59:59.999", "17:00:00", State::Closed, "OutsideWindow"),
    ] {
        stage.settle().await?;
        let writes = (
            stage.writes(&controller).await?,
            stage.version("production").await?,
        );
        stage.set(&format!("2026-11-20T{before}Z"));
        stage.settle().await?;
        let after = (
            stage.writes(&controller).await?,
            stage.version("production").await?,
        );
        assert_eq!(after, writes, "{before}");

        stage.set(&format!("2026-11-20T{instant}Z"));
        let status = stage.says("production", state, reason).await?;
        assert_eq!(
            status.since.unwrap().0,
            at(&format!("2026-11-20T{instant}Z"))
        );
        stage.settle().await?;
        assert_eq!(stage.writes(&controller).await?, writes.0 + 1, "{instant}");
    }
    controller.stop().await;
    Ok(())
}

#[tokio::test]
async fn nothing_is_written_while_nothing_changes() -> Result<()> {
    let (stage, controller) = Stage::open("idle", "2026-11-19T09:00:00Z").await?;
    let versions = async || {
        let gatekeeper = stage.gatekeepers().get("office-hours").await?;
        Ok::<_, anyhow::Error>((
            stage.version("production").await?,
            gatekeeper.resource_version(),
        ))
    };
    let (writes, before) = (stage.writes(&controller).await?, versions().await?);
    for now in ["09:00:00.001", "10:30:00", "12:00:00", "16:59:59.999"] {
        stage.set(&format!("2026-11-19T{now}Z"));
        stage.settle().await?;
        assert_eq!(versions().await?, before, "{now}");
    }
    assert_eq!(stage.writes(&controller).await?, writes);
    Ok(())
}

/// A clock that jumps over several changes, and one that is set back.
#[tokio::test]
async fn the_clock_may_be_set() -> Result<()> {
    let (stage, controller) = Stage::open("stepped", "2026-11-19T12:00:00Z").await?;
    let writes = stage.writes(&controller).await?;

    // Over Thursday's end, Friday's window and the weekend.
    stage.set("2026-11-23T08:00:00Z");
    let closed = stage.out_of_hours().await?;
    assert_eq!(closed.since.unwrap().0, at("2026-11-20T17:00:00Z"));
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await?, writes + 1);

    stage.set("2026-11-20T10:00:00Z");
    stage.in_hours().await?;
    Ok(())
}

#[tokio::test]
async fn transitions_are_events_of_the_gate() -> Result<()> {
    let stage = Stage::new("events", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let controller = stage.start().await?;
    stage.out_of_hours().await?;
    // An event has the instant at which it is told.
    controller.rests().await?;
    stage.set("2026-11-20T09:00:00Z");
    let open = stage.in_hours().await?;

    let events: Api<Event> = Api::namespaced(stage.client(), stage.namespace());
    let told = poll(DEADLINE, "two events", async || {
        let mut events = events.list(&ListParams::default()).await?.items;
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        ensure!(events.len() == 2, "{} events", events.len());
        Ok(events)
    })
    .await?;
    let reasons: Vec<_> = told
        .iter()
        .filter_map(|event| event.reason.as_deref())
        .collect();
    assert_eq!(reasons, ["Closed", "Opened"]);
    let last = &told[1];
    assert_eq!(last.note, open.message);
    assert_eq!(last.type_.as_deref(), Some("Normal"));
    assert_eq!(
        last.reporting_controller.as_deref(),
        Some("gate-controller")
    );
    let about = last.regarding.as_ref().context("about nothing")?;
    let gate = stage.gates().get("production").await?;
    assert_eq!(about.kind.as_deref(), Some("Gate"));
    assert_eq!(about.uid, gate.uid());
    Ok(())
}

/// With the clock of the machine, and all the workers. How punctual that is the benchmark says;
/// here it is enough that the wake-up is set to the instant: a controller that only reads the
/// clock again now and then is later than this.
#[tokio::test]
async fn a_transition_is_written_when_the_clock_of_the_machine_has_come_to_it() -> Result<()> {
    let stage = Stage::new("punctual", "2026-11-20T08:00:00Z").await?;
    let mut settings = stage.settings();
    settings.concurrent = 16;
    let clock = Arc::new(SystemClock);
    let _controller = InProcess::start(settings, stage.client(), clock).await?;
    let start = stage.due_soon("due").await?;
    let delay = opened(&stage, "due").await?.duration_since(start);
    let bounds = SignedDuration::ZERO..=SignedDuration::from_secs(60);
    assert!(bounds.contains(&delay), "{delay:?}");
    Ok(())
}

/// When a watch first brings the gate open.
async fn opened(stage: &Stage, name: &str) -> Result<Timestamp> {
    let which = WatchParams::default().fields(&format!("metadata.name={name}"));
    let gates = stage.gates();
    let mut changes = Box::pin(gates.watch(&which, "0").await?);
    let open = async {
        while let Some(change) = changes.try_next().await? {
            if let WatchEvent::Added(gate) | WatchEvent::Modified(gate) = change
                && is_open(&gate)
            {
                return Ok(SystemClock.now());
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(DEADLINE, open).await?
}

fn is_open(gate: &Gate) -> bool {
    let status = gate.status.as_ref();
    status.and_then(|status| status.state) == Some(State::Open)
}
