//! The audit log: what happens on the real API server is recorded once, in the form that is
//! documented.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use gate_controller::Settings;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_crds::audit::{Change, Event, Record};
use sluice_tests::{Writes, poll};
use tempfile::TempDir;

use super::forces::force;
use super::stage::{DEADLINE, LAST, OFFICE_HOURS, Stage};
use super::told;

/// A file that records go into.
pub struct Log {
    path: PathBuf,
    _folder: TempDir,
}

impl Log {
    /// An empty one.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("audit.log");
        Ok(Self {
            path,
            _folder: folder,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings of a controller that writes it.
    pub fn settings(&self, stage: &Stage) -> Result<Settings> {
        settings(stage, &self.path)
    }

    /// The records. Each line has to be all that it says and nothing that its form does not know.
    pub fn records(&self) -> Result<Vec<Record>> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let read = |line: &str| {
            let record: Record = serde_json::from_str(line).with_context(|| line.to_owned())?;
            ensure!(record.event != Event::Unknown, "{line}");
            let written: Value = serde_json::from_str(line)?;
            ensure!(serde_json::to_value(&record)? == written, "{line}");
            Ok(record)
        };
        text.lines().map(read).collect()
    }

    /// What they say, in a line each, without those of gatekeepers that are new.
    fn told(&self) -> Result<Vec<String>> {
        let told = |record: Record| match record.event {
            Event::Transition(it) => Some(format!(
                "{}→{} {} {:?}",
                it.from.map_or_else(String::new, |from| from.to_string()),
                it.to,
                it.reason,
                it.decided_by
            )),
            Event::Override(it) => Some(format!("{:?} {}", it.step, it.message)),
            Event::Definition(it) if it.object.name == LAST => None,
            Event::Definition(it) if it.object.kind == "Gate" => {
                let field = it.differences.first().map(|it| it.field.clone());
                let by: Vec<_> = it.changed_by.iter().map(|it| it.manager.clone()).collect();
                let field = field.unwrap_or_default();
                Some(format!("{:?} {field} {by:?}", it.change))
            }
            Event::Definition(it) if it.change != Change::Created => {
                Some(format!("{} {:?}", it.object.kind, it.change))
            }
            Event::Definition(_) => None,
            other => Some(format!("{other:?}")),
        };
        Ok(self.records()?.into_iter().filter_map(told).collect())
    }

    /// Waits for the last of them.
    async fn until(&self, word: &str) -> Result<()> {
        poll(DEADLINE, word, async || {
            let told = self.told()?;
            ensure!(
                told.last().is_some_and(|last| last.contains(word)),
                "{told:#?}"
            );
            Ok(())
        })
        .await
    }
}

/// The settings of a controller that writes its log there.
pub fn settings(stage: &Stage, path: &Path) -> Result<Settings> {
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let path = path.to_str().context("no text")?;
    settings.audit_log = Some(path.parse().map_err(anyhow::Error::msg)?);
    Ok(settings)
}

#[tokio::test]
async fn what_becomes_of_a_gate_is_recorded_once() -> Result<()> {
    let stage = Stage::new("audit", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let log = Log::new()?;
    let controller = stage.start_with(log.settings(&stage)?).await?;
    log.until("→Closed").await?;
    stage.set("2026-11-20T09:00:00Z");
    log.until("Closed→Open").await?;
    let mut annotations = force("closed", "alice");
    annotations["sluice.dev/force-until"] = json!("2026-11-20T10:00:00Z");
    stage.annotate("production", annotations).await?;
    log.until("Closed Forced").await?;
    stage.set("2026-11-20T10:00:00Z");
    log.until("Closed→Open").await?;
    let nonsense = json!({"sluice.dev/force": "ajar", "sluice.dev/force-until": null});
    stage.annotate("production", nonsense).await?;
    log.until("Refused").await?;
    let gates = stage.gates();
    let as_alice = PatchParams {
        field_manager: Some("alices-editor".to_owned()),
        ..PatchParams::default()
    };
    let one_of = Patch::Merge(json!({"spec": {"require": "oneOf"}}));
    gates.patch("production", &as_alice, &one_of).await?;
    log.until("Changed").await?;
    stage.settle().await?;
    controller.stop().await;

    // While nobody watches; and nothing is told again.
    let longer = Patch::Merge(json!({"spec": {"maxOverride": "48h"}}));
    gates.patch("production", &as_alice, &longer).await?;
    let controller = stage.start_with(log.settings(&stage)?).await?;
    log.until("Changed").await?;
    stage.settle().await?;
    let left = Patch::Merge(
        json!({"spec": {"manual": {"state": "closed", "reason": "r"}, "schedule": null}}),
    );
    stage
        .gatekeepers()
        .patch("office-hours", &as_alice, &left)
        .await?;
    stage.says("production", State::Closed, "Manual").await?;
    gates.remove("production").await?;
    log.until("Deleted").await?;
    controller.stop().await;

    let mut told = log.told()?;
    assert_eq!(
        told.iter()
            .filter(|told| *told == "Gatekeeper Changed")
            .count(),
        1
    );
    // It may come before what it does to the gate, or after.
    told.retain(|told| !told.contains("Default") && told != "Gatekeeper Changed");
    let until = "2026-11-20T10:00:00Z";
    let forced = format!("forced closed by alice until {until}: incident 4711");
    let (began, ended) = (
        format!("Began {forced}"),
        format!("Ended no longer {forced}"),
    );
    let expected = [
        "Created  [\"sluice-apply\"]",
        "→Closed OutsideWindow [\"office-hours\"]",
        "Closed→Open InsideWindow [\"office-hours\"]",
        &began,
        "Open→Closed Forced []",
        &ended,
        "Closed→Open InsideWindow [\"office-hours\"]",
        "Refused",
        "Changed spec.require [\"alices-editor\"]",
        "Changed  [",
        "Open→Closed Manual [\"office-hours\"]",
        "Deleted  []",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{expected}: {told:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_full_disk_is_reported_and_gates_go_on() -> Result<()> {
    let stage = Stage::new("audit-full", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let controller = stage
        .start_with(settings(&stage, Path::new("/dev/full"))?)
        .await?;
    stage.out_of_hours().await?;
    stage.set("2026-11-20T09:00:00Z");
    stage.in_hours().await?;
    let metrics = controller.metrics()?;
    poll(DEADLINE, "the metric", async || {
        let (_, page) = told::get(metrics, "/metrics").await?;
        ensure!(page.contains("sluice_audit_failing 1"), "{page}");
        ensure!(!page.contains("sluice_audit_dropped_total 0\n"), "{page}");
        Ok(())
    })
    .await?;
    assert_eq!(told::get(controller.health()?, "/readyz").await?.0, 200);

    // Where everything has to be recorded, nobody is sent here.
    let mut required = settings(&stage, Path::new("/dev/null/audit.log"))?;
    required.audit_required = true;
    required.standby = true;
    let standby = stage.start_with(required).await?;
    let health = standby.health()?;
    poll(DEADLINE, "readiness", async || {
        let (code, body) = told::get(health, "/readyz").await?;
        ensure!(code == 503 && body.contains("audit log"), "{code}: {body}");
        Ok(())
    })
    .await?;
    controller.stop().await;
    standby.stop().await;
    Ok(())
}

/// Anyone who is told what a gate is, and changed: people too.
#[tokio::test]
async fn a_change_of_what_a_gate_is_is_an_event_on_it() -> Result<()> {
    let stage = Stage::new("defined", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let _controller = stage.start().await?;
    stage.out_of_hours().await?;
    let other = Patch::Merge(json!({"spec": {"gatekeepers": [{"name": "approval"}]}}));
    let by = PatchParams {
        field_manager: Some("alices-editor".to_owned()),
        ..PatchParams::default()
    };
    stage.gates().patch("production", &by, &other).await?;
    let events: kube::Api<k8s_openapi::api::events::v1::Event> =
        kube::Api::namespaced(stage.client(), stage.namespace());
    poll(DEADLINE, "the event", async || {
        let all = events.list(&Default::default()).await?.items;
        let of = |event: &&_| {
            let event: &k8s_openapi::api::events::v1::Event = event;
            event.reason.as_deref() == Some("DefinitionChanged")
        };
        let notes: Vec<_> = all
            .iter()
            .filter(of)
            .filter_map(|it| it.note.clone())
            .collect();
        let expected = "changed by alices-editor: spec.gatekeepers[office-hours]: removed; \
                        spec.gatekeepers[approval]: added";
        ensure!(notes == [expected], "{notes:?}");
        Ok(())
    })
    .await
}
