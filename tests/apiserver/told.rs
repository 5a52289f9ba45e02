//! What the controller tells: metrics, health, the log.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_tests::controller::Process;
use sluice_tests::{Writes, poll};

use super::forces::force;
use super::stage::{DEADLINE, OFFICE_HOURS, Stage, at, soon};

/// A client of what a controller serves. Those who ask it poll: it would ask again by itself as late as the
/// controller has others do, five seconds later.
pub fn client(address: SocketAddr) -> Result<Client> {
    let mut config = Config::new(format!("http://{address}").parse()?);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// The status code and the text that an address answers.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let client = client(address)?;
    let answer = client.send(Request::get(path).body(Body::empty())?).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await?;
    Ok((code, String::from_utf8(bytes.to_vec())?))
}

#[tokio::test]
async fn metrics_say_what_gates_are_and_will_be() -> Result<()> {
    let stage = Stage::new("metrics", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let controller = stage.start_with(settings).await?;
    stage.out_of_hours().await?;
    stage.set("2026-11-20T09:00:00Z");
    stage.in_hours().await?;
    let mut annotations = force("closed", "alice");
    annotations["sluice.dev/force-until"] = json!("2026-11-20T10:00:00Z");
    stage.annotate("production", annotations).await?;
    stage.says("production", State::Closed, "Forced").await?;
    stage.settle().await?;

    let of = format!("namespace=\"{}\",name=\"production\"", stage.namespace());
    let until = at("2026-11-20T10:00:00Z").as_second();
    let expected = [
        format!("sluice_gate_state{{{of},state=\"Open\"}} 0.0"),
        format!("sluice_gate_state{{{of},state=\"Closed\"}} 1.0"),
        format!("sluice_gate_next_transition_timestamp_seconds{{{of}}} {until}.0"),
        format!("sluice_gate_override{{{of},state=\"closed\"}} {until}.0"),
        "sluice_transitions_total{kind=\"Gate\",state=\"Open\"} 1".to_owned(),
        "sluice_transition_delay_seconds_count{kind=\"Gate\"} 1".to_owned(),
        "sluice_identity_verified 0.0".to_owned(),
        "sluice_queue_backlog 0.0".to_owned(),
        "sluice_clock_skew_seconds 0.0".to_owned(),
        "# EOF".to_owned(),
    ];
    poll(DEADLINE, "the metrics", async || {
        let (code, text) = get(controller.metrics()?, "/metrics").await?;
        for line in &expected {
            let found = text.lines().any(|found| found == line);
            ensure!(code == 200 && found, "no {line:?} in:\n{text}");
        }
        let durations = format!(
            "gotk_reconcile_duration_seconds_count{{kind=\"Gate\",name=\"production\",\
             namespace=\"{}\"}}",
            stage.namespace()
        );
        ensure!(text.contains(&durations), "no {durations:?} in:\n{text}");
        Ok(())
    })
    .await?;

    stage.gates().remove("production").await?;
    poll(DEADLINE, "the gate to be forgotten", async || {
        let (_, text) = get(controller.metrics()?, "/metrics").await?;
        ensure!(!text.contains("name=\"production\""), "{text}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn decisions_are_lines_of_json() -> Result<()> {
    let stage = Stage::new("log", "2026-11-20T12:00:00Z").await?;
    let until = soon(3600)?;
    stage
        .apply(&format!(
            "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: incident}}
spec: {{manual: {{state: closed, reason: Restoring, until: {until}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: checkout}}
spec: {{gatekeepers: [{{name: incident}}]}}
"
        ))
        .await?;
    let kubeconfig = stage.cluster().kubeconfig();
    let process = Process::start(kubeconfig, stage.namespace(), "c-0", &[]).await?;
    let decided = |line: &Value| line["target"] == "decision" && line["was"].is_null();
    let line = process.logged("a decision", decided).await?;
    let written = line["timestamp"].as_str().unwrap_or_default();
    ensure!(written.parse::<Timestamp>().is_ok(), "{written}");
    assert_eq!(
        line,
        json!({
            "timestamp": written,
            "level": "INFO",
            "target": "decision",
            "kind": "Gate",
            "namespace": stage.namespace(),
            "name": "checkout",
            "state": "Closed",
            "reason": "Manual",
            "decided_by": "incident",
            "next": until,
            "message": stage.gates().get("checkout").await?.status.unwrap().message,
        })
    );
    let open = json!({"spec": {"manual": {"state": "open", "until": null}}});
    let gatekeepers = stage.gatekeepers();
    gatekeepers.merge("incident", &open).await?;
    let decided = |line: &Value| line["target"] == "decision" && line["was"] == "Closed";
    let line = process.logged("another decision", decided).await?;
    assert_eq!(line["state"], "Open");
    assert_eq!(line.get("next"), None);
    let (code, text) = get(process.address("metrics").await?, "/metrics").await?;
    ensure!(
        code == 200 && text.contains("sluice_gate_state{"),
        "{code}: {text}"
    );
    // Whatever it logs is JSON.
    process.log()?;
    process.terminate().await
}
