//! Calendars that gates are closed by: read, edited, lost, and as bad as calendars can be.

mod addresses;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use sluice_crds::gatekeeper::CalendarStatus;
use sluice_crds::{GateStatus, State};
use sluice_tests::controller::InProcess;
use sluice_tests::rights::rule;
use sluice_tests::{Writes, poll, shared};

use super::stage::{DEADLINE, Stage, at};

/// Whom a controller with few rights acts as.
const USER: &str = "alice";
/// How long a gate may take that has nothing to do with any calendar: far more than it does, far
/// less than a controller that is busy for good.
const PROMPT: Duration = Duration::from_secs(30);

/// One day.
const CHRISTMAS: &str = "BEGIN:VEVENT\nUID:1\nSUMMARY:Christmas\n\
                         DTSTART;VALUE=DATE:20261225\nEND:VEVENT\n";
/// Every day, for ever.
const ALWAYS: &str = "BEGIN:VEVENT\nUID:1\nSUMMARY:Freeze\nDTSTART;VALUE=DATE:20200101\n\
                      RRULE:FREQ=DAILY\nEND:VEVENT\n";
/// Every hour: 900 of it are too much for a day.
const HOURLY: &str = "BEGIN:VEVENT\nUID:1\nDTSTART:20261101T000000Z\nDURATION:PT30M\n\
                      RRULE:FREQ=HOURLY\nEND:VEVENT\n";
/// Long ago.
const PAST: &str = "BEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20200101\nEND:VEVENT\n";

fn calendar(events: &str) -> String {
    format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n{events}END:VCALENDAR\n")
}

/// So many of an event.
fn copies(event: &str, times: usize) -> String {
    (0..times)
        .map(|n| event.replace("UID:1", &format!("UID:{n}")))
        .collect()
}

impl Stage {
    /// A gate `name` that is closed during the events of the key `ics` of the ConfigMap `name`.
    async fn gate(&self, name: &str) -> Result<()> {
        self.apply(&format!(
            "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: {name}}}
spec:
  schedule:
    closed: [{{name: holidays, calendar: {{configMapRef: {{name: {name}, key: ics}}}}}}]
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: {name}}}
spec: {{gatekeepers: [{{name: {name}}}]}}
"
        ))
        .await
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), self.namespace())
    }

    /// Creates or replaces a ConfigMap with one key.
    async fn put(&self, name: &str, key: &str, text: &str) -> Result<()> {
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": name }, "data": { key: text },
        }))?;
        if self.maps().get_opt(name).await?.is_some() {
            self.maps()
                .replace(name, &PostParams::default(), &map)
                .await?;
        } else {
            self.maps().add(&map).await?;
        }
        Ok(())
    }

    /// Waits until the gate is closed, and its gatekeeper's calendar is reported with `words`.
    async fn refuses(&self, name: &str, words: &str) -> Result<()> {
        let what = format!("closed, and the message has `{words}`");
        let said = |status: &GateStatus| {
            status.state == Some(State::Closed)
                && status
                    .message
                    .as_deref()
                    .unwrap_or_default()
                    .contains(words)
        };
        self.until(name, &what, said).await?;
        Ok(())
    }

    /// Waits until the gatekeeper's calendar is reported so. Gates are written before their
    /// gatekeepers: what a gate says already, its gatekeeper may not say yet.
    async fn reports(
        &self,
        name: &str,
        what: &str,
        check: impl Fn(&CalendarStatus) -> bool,
    ) -> Result<CalendarStatus> {
        poll(DEADLINE, what, async || {
            let status = self.gatekeepers().get(name).await?.status;
            let evidence = status
                .context("no status")?
                .evidence
                .context("no evidence")?;
            let calendar = evidence
                .calendars
                .into_iter()
                .next()
                .context("no calendar")?;
            ensure!(check(&calendar), "{calendar:?}");
            Ok(calendar)
        })
        .await
    }

    /// Turns a switch on and off: the controller is there for others.
    async fn is_responsive(&self) -> Result<()> {
        self.apply(
            "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: switch}
spec: {manual: {state: closed}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: switch}
spec: {gatekeepers: [{name: switch}]}
",
        )
        .await?;
        for (setting, state) in [("open", State::Open), ("closed", State::Closed)] {
            let patch = json!({ "spec": { "manual": { "state": setting } } });
            self.gatekeepers().merge("switch", &patch).await?;
            let turned = self.until("switch", setting, |status| status.state == Some(state));
            let turned = tokio::time::timeout(PROMPT, turned).await;
            turned.with_context(|| format!("not {setting} within {PROMPT:?}"))??;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_gate_follows_its_calendar_and_those_who_edit_it() -> Result<()> {
    let stage = Stage::new("calendars", "2026-12-24T12:00:00Z").await?;
    stage.put("uk", "ics", &calendar(CHRISTMAS)).await?;
    stage.gate("uk").await?;
    let _controller = stage.start().await?;
    let open = stage.says("uk", State::Open, "NoClosedWindow").await?;
    assert_eq!(open.upcoming[0].at.0, at("2026-12-25T00:00:00Z"));
    stage.set("2026-12-25T00:00:00Z");
    let closed = stage.says("uk", State::Closed, "ClosedWindow").await?;
    assert!(closed.message.unwrap_or_default().contains("Christmas"));
    let was_read = |calendar: &CalendarStatus| calendar.events == Some(1);
    let read = stage.reports("uk", "one event", was_read).await?;
    assert_eq!(read.error, None);

    stage.put("uk", "ics", &calendar(PAST)).await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    stage.put("uk", "ics", &calendar(ALWAYS)).await?;
    stage.says("uk", State::Closed, "ClosedWindow").await?;
    let other = |calendar: &CalendarStatus| calendar.digest != read.digest;
    stage.reports("uk", "another text", other).await?;
    stage.put("uk", "other", "").await?;
    stage
        .refuses("uk", "has no key `ics`; it has `other`")
        .await?;
    stage.put("uk", "ics", &calendar(PAST)).await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    stage.maps().remove("uk").await?;
    let gone = format!("there is no ConfigMap {}/uk", stage.namespace());
    stage.refuses("uk", &gone).await?;
    stage.put("uk", "ics", &calendar(PAST)).await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    Ok(())
}

/// Each closes its gate and says why, and nobody else has to wait.
#[tokio::test]
async fn a_bad_calendar_closes_its_gate_and_no_other() -> Result<()> {
    let stage = Stage::new("calendars", "2026-11-20T08:00:00Z").await?;
    let every_second = "BEGIN:VEVENT\nUID:1\nDTSTART:20200101T000000Z\nDTEND:20200101T000001Z\n\
                        RRULE:FREQ=SECONDLY\nEND:VEVENT\n";
    let bad = [
        (
            "empty",
            String::new(),
            "does not begin with BEGIN:VCALENDAR",
        ),
        (
            "garbage",
            "garbage ".repeat(115_200),
            "does not begin with BEGIN:VCALENDAR",
        ),
        (
            "cut",
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n".to_owned(),
            "line ",
        ),
        (
            "many",
            calendar(&copies(PAST, 2_001)),
            "more than 2000 events",
        ),
        ("every-second", calendar(every_second), "recurs too often"),
        (
            "crowd",
            calendar(&copies(HOURLY, 900)),
            "recur more than 20000 times",
        ),
    ];
    for (name, text, _) in &bad {
        stage.put(name, "ics", text).await?;
        stage.gate(name).await?;
    }
    let _controller = stage.start().await?;
    stage.is_responsive().await?;
    for (name, _, words) in &bad {
        stage
            .refuses(name, words)
            .await
            .with_context(|| format!("calendar {name}"))?;
    }
    // And once it makes sense, all is well.
    stage.put("garbage", "ics", &calendar(PAST)).await?;
    stage.says("garbage", State::Open, "NoClosedWindow").await?;
    stage.is_responsive().await
}

#[tokio::test]
async fn missing_rights_are_named_by_verb_and_resource() -> Result<()> {
    let stage = Stage::new("calendars", "2026-11-20T08:00:00Z").await?;
    let ours = rule("sluice.dev", &["*"], &["*"]);
    stage.grant_rules("controller", USER, &[ours]).await?;
    stage.put("uk", "ics", &calendar(PAST)).await?;
    stage.gate("uk").await?;
    let client = shared().await?.client_for(USER).await?;
    let _controller = InProcess::start(stage.settings(), client, stage.clock()).await?;
    let words = format!(
        "may not watch configmaps in namespace {}: grant get, list, watch",
        stage.namespace()
    );
    stage.refuses("uk", &words).await?;
    let forbidden =
        |calendar: &CalendarStatus| calendar.error.as_ref().is_some_and(|e| e.contains(&words));
    stage.reports("uk", "missing rights", forbidden).await?;
    stage.is_responsive().await?;
    // Granted later, they are noticed.
    let maps = rule("", &["configmaps"], &["get", "list", "watch"]);
    stage.grant_rules("reader", USER, &[maps]).await?;
    let read = |calendar: &CalendarStatus| calendar.events == Some(1);
    stage.reports("uk", "one event", read).await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    Ok(())
}
