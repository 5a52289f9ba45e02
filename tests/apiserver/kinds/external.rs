//! Reports of third parties, one of them by the script in the docs.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::{Gatekeeper, State};
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, apply, kubectl, poll, rights};

use crate::chart::CONTROLLER;
use crate::policies::scene::refused_by;
use crate::stage::{DEADLINE, Stage, message};

const NOON: &str = "2026-11-20T12:00:00Z";

const TESTS: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: load-tests}
spec: {external: {writers: [reporter]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: load-tests}]}
";

/// Two who may write to the subresource, of whom one may report.
async fn stage(word: &str) -> Result<Stage> {
    let stage = Stage::installed(word, NOON).await?;
    stage.apply(TESTS).await?;
    for user in ["reporter", "mallory"] {
        let rules = [
            rights::rule("sluice.dev", &["gatekeepers"], &["get"]),
            rights::rule("sluice.dev", &["gatekeepers/status"], &["patch"]),
        ];
        stage.grant_rules(user, user, &rules).await?;
        let gatekeepers = gatekeepers(&stage, user).await?;
        poll(DEADLINE, "the rights to be there", async || {
            gatekeepers.get("load-tests").await.map(drop)
        })
        .await?;
    }
    Ok(stage)
}

async fn gatekeepers(stage: &Stage, user: &str) -> Result<Api<Gatekeeper>> {
    let client = stage.cluster().client_for(user).await?;
    Ok(Api::namespaced(client, stage.namespace()))
}

async fn write(stage: &Stage, user: &str, status: Value) -> Result<kube::Result<Gatekeeper>> {
    let patch = Patch::Merge(json!({"status": status}));
    let params = PatchParams {
        field_manager: Some("load-tests".to_owned()),
        ..PatchParams::default()
    };
    let gatekeepers = gatekeepers(stage, user).await?;
    Ok(gatekeepers
        .patch_status("load-tests", &params, &patch)
        .await)
}

fn report(by: &str, state: &str) -> Value {
    json!({"report": {
        "state": state, "by": by, "forGeneration": 1,
        "reason": "run 7", "expiresAt": "2026-11-20T13:00:00Z",
    }})
}

#[tokio::test]
async fn a_report_counts_until_it_expires_or_the_spec_changes() -> Result<()> {
    let stage = stage("reports").await?;
    let _controller = stage.start().await?;
    stage
        .says("production", State::Closed, "NotReported")
        .await?;

    write(&stage, "reporter", report("reporter", "open")).await??;
    let status = stage
        .says("production", State::Open, "ExternalReport")
        .await?;
    assert!(message(&status).contains("run 7"), "{status:?}");
    // The controller writes beside it, and leaves it.
    let said = |status: &sluice_crds::GatekeeperStatus| {
        let verdict = status.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.state == State::Open) && status.report.is_some()
    };
    stage
        .until_gatekeeper("load-tests", "its verdict and the report", said)
        .await?;
    write(&stage, "reporter", report("reporter", "closed")).await??;
    stage
        .says("production", State::Closed, "ExternalReport")
        .await?;
    write(&stage, "reporter", report("reporter", "open")).await??;
    stage
        .says("production", State::Open, "ExternalReport")
        .await?;

    stage.set("2026-11-20T13:00:00Z");
    stage.says("production", State::Closed, "Expired").await?;
    let later: Timestamp = stage.now() + SignedDuration::from_hours(1);
    let mut fresh = report("reporter", "open");
    fresh["report"]["expiresAt"] = json!(later.to_string());
    write(&stage, "reporter", fresh).await??;
    stage
        .says("production", State::Open, "ExternalReport")
        .await?;

    // It was about another spec.
    stage
        .apply(&TESTS.replace("[reporter]", "[reporter, other]"))
        .await?;
    stage
        .says("production", State::Closed, "NotReported")
        .await?;
    Ok(())
}

#[tokio::test]
async fn writers_write_their_report_in_their_own_name_and_nothing_else() -> Result<()> {
    let stage = stage("reporters").await?;
    let policy = "sluice-status-writers";
    let answer = write(&stage, "mallory", report("mallory", "open")).await?;
    refused_by(
        policy,
        answer,
        "be named in spec.external.writers to write status.report",
    )?;
    let answer = write(&stage, "reporter", report("mallory", "open")).await?;
    refused_by(
        policy,
        answer,
        "status.report.by: \"mallory\" is not the requesting user",
    )?;
    let verdict = json!({"state": "Open", "reason": "Me", "message": "go"});
    let answer = write(&stage, "reporter", verdict).await?;
    refused_by(
        policy,
        answer,
        "write status.report, and nothing else of it",
    )?;
    for lie in [
        json!({"observedGeneration": 7}),
        json!({"upcoming": [{"at": "2026-11-20T13:00:00Z", "state": "Open"}]}),
    ] {
        let mut both = report("reporter", "open");
        both.as_object_mut()
            .unwrap()
            .extend(lie.as_object().unwrap().clone());
        let answer = write(&stage, "reporter", both).await?;
        refused_by(policy, answer, "nothing else of it")?;
    }
    write(&stage, "reporter", report("reporter", "open")).await??;
    Ok(())
}

/// What the docs have people write, and whom they have report.
const GUIDE: &str = include_str!("../../../docs/guides/reports-from-outside.md");
const REPORTER: &str = "system:serviceaccount:ci:reporter";

/// The blocks of the guide in this language. They name the namespace `apps`, in whose place comes
/// the test's own.
fn blocks(language: &str, namespace: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = GUIDE.split(&fence).skip(1);
    let blocks = parts.filter_map(|part| Some(part.split_once("```")?.0));
    blocks
        .map(|block| {
            block
                .replace("namespace apps", &format!("namespace {namespace}"))
                .replace("namespace: apps", &format!("namespace: {namespace}"))
        })
        .collect()
}

/// Runs the script of the guide as somebody.
async fn run(stage: &Stage, user: &str, words: &[&str]) -> Result<Output> {
    let scripts = blocks("sh", stage.namespace());
    let script = scripts
        .into_iter()
        .find(|text| text.starts_with("#!/bin/sh"));
    let home = tempfile::tempdir()?;
    let file = home.path().join("report.sh");
    std::fs::write(&file, script.context("the guide has no script")?)?;
    let program = kubectl::ensure(&Stderr::new())?;
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
    let kubeconfig = stage.cluster().kubeconfig_for(user)?;
    let mut command = Command::new("sh");
    command
        .arg(&file)
        .args(words)
        .env("PATH", std::env::join_paths(folders)?)
        .env("KUBECONFIG", kubeconfig.as_os_str())
        .env("HOME", home.path());
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

#[tokio::test]
async fn the_script_of_the_guide_reports() -> Result<()> {
    let stage = Stage::installed("report-script", NOON).await?;
    stage
        .apply(include_str!("../../../examples/external.yaml"))
        .await?;
    let yaml = blocks("yaml", stage.namespace());
    let rights = yaml
        .iter()
        .find(|block| block.contains("kind: RoleBinding"));
    let mut rights = apply::parse(rights.context("the guide gives no rights")?, "guide")?;
    // Impersonated: there need be no such account.
    rights.retain(|document| document.object.metadata.namespace.as_deref() != Some("ci"));
    ensure!(
        rights.len() == 2,
        "a Role and its binding, not {}",
        rights.len()
    );
    Applier::new(stage.client()).documents(rights).await?;
    // The script asks the machine for the time.
    let client = stage.cluster().client_for(CONTROLLER).await?;
    let _controller = stage.start_in_real_time(client).await?;
    stage.says("search", State::Closed, "NotReported").await?;

    for (word, why, state) in [
        ("open", "run 7 passed", State::Open),
        ("closed", "run 8 failed", State::Closed),
    ] {
        poll(DEADLINE, "the rights to be there", async || {
            let output = run(&stage, REPORTER, &[word, why]).await?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.success(), "{said}");
            Ok(())
        })
        .await?;
        let status = stage.says("search", state, "ExternalReport").await?;
        let words = format!("smoke-tests: reported {word} by {REPORTER} ({why})");
        assert_eq!(message(&status), words);
    }

    // Anyone else who may write there still may not report.
    let admin = run(&stage, "admin", &["open", "trust me"]).await?;
    let said = String::from_utf8_lossy(&admin.stderr).into_owned();
    assert!(
        !admin.status.success() && said.contains("status: "),
        "{said}"
    );
    stage
        .says("search", State::Closed, "ExternalReport")
        .await?;
    Ok(())
}
