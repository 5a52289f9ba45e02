//! A controller that may not do all it has to says what it may not, and does the rest.

use anyhow::Result;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_crds::State;
use sluice_tests::controller::Process;
use sluice_tests::proxy::{Proxy, refusal};
use sluice_tests::rights::rule;

use crate::stage::{OFFICE_HOURS, Stage};

#[tokio::test]
async fn a_missing_right_is_named_and_the_rest_goes_on() -> Result<()> {
    let stage = Stage::new("rights", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let user = format!("controller-of-{}", stage.namespace());
    let read = rule(
        "sluice.dev",
        &["approvals", "gates", "gatekeepers", "pipelines"],
        &["get", "list", "watch"],
    );
    let report = rule("sluice.dev", &["gatekeepers/status"], &["patch"]);
    let known = [read.clone(), report.clone()];
    stage.grant_rules("controller", &user, &known).await?;
    let kubeconfig = stage.cluster().kubeconfig_for(&user)?;
    let flags = ["--min-retry-delay=100ms", "--max-retry-delay=1s"];
    let process = Process::start(&kubeconfig, stage.namespace(), "c-0", &flags).await?;

    let told = |words: &'static [&'static str]| {
        let process = &process;
        async move {
            let holds = |line: &Value| {
                let message = line["message"].as_str().unwrap_or_default();
                line["level"] == "ERROR" && words.iter().all(|word| message.contains(word))
            };
            process.logged(words[0], holds).await
        }
    };
    told(&[
        "grant the verbs list and watch on validatingadmissionpolicies in group \
         `admissionregistration.k8s.io`",
    ])
    .await?;
    let line =
        told(&["grant the verbs patch on gates and gates/status in group `sluice.dev`"]).await?;
    assert_eq!(
        (&line["kind"], &line["name"]),
        (&json!("Gate"), &json!("production"))
    );
    // Gatekeepers go on.
    stage
        .until_gatekeeper("office-hours", "a verdict", |status| {
            status.verdict.is_some()
        })
        .await?;
    assert_eq!(stage.gates().get("production").await?.status, None);

    let gates = rule("sluice.dev", &["gates/status"], &["patch"]);
    let known = [read, report, gates];
    stage.grant_rules("controller", &user, &known).await?;
    let reported = |status: &sluice_crds::GateStatus| status.state.is_some();
    let gate = stage
        .until("production", "to be reported", reported)
        .await?;
    assert!(matches!(
        gate.status.unwrap().state,
        Some(State::Open | State::Closed)
    ));
    told(&[
        "an event was not taken: ",
        "grant the verbs create on events",
    ])
    .await?;
    Ok(())
}

/// As after an upgrade of the controller alone: the kinds of promotion by branches are not there yet.
#[tokio::test]
async fn an_api_server_without_the_kinds_of_promotion_has_its_gates_decided() -> Result<()> {
    let stage = Stage::new("no-promotion", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let proxy = Proxy::start(stage.client()).await?;
    for plural in [
        "gitrepositoryaccesses",
        "promotionstrategies",
        "commitstatuses",
        "revertcommits",
        "rollouts",
    ] {
        let unknown = refusal(StatusCode::NOT_FOUND, "NotFound");
        proxy.order(unknown, Method::GET, &format!("/{plural}?"), 10_000);
    }
    let kubeconfig = proxy.kubeconfig()?;
    let process = Process::start(&kubeconfig, stage.namespace(), "c-0", &[]).await?;
    let synced = |line: &Value| line["message"] == "every cache has synced";
    process.logged("every cache has synced", synced).await?;
    let reported = |status: &sluice_crds::GateStatus| status.state.is_some();
    stage
        .until("production", "to be reported", reported)
        .await?;
    // It says so, and what to do.
    let missing = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        line["kind"] == "PromotionStrategy" && message.contains("promotionstrategies")
    };
    process.logged("that they are missing", missing).await?;
    process.terminate().await
}
