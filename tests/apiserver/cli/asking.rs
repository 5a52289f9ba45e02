//! `get`, `why` and `check`.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{GATES, run, says};
use crate::stage::Stage;

/// Nothing here has a status: no controller runs. Decisions are made all the same.
#[tokio::test]
async fn gates_are_decided_here_and_now() -> Result<()> {
    let stage = Stage::new("cli-check", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    says(
        &stage,
        "admin",
        &["check", "open"],
        0,
        "open is Open (Manual): on: switched open",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "gate/closed"],
        1,
        "off: switched closed (database restore)",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "unkept"],
        1,
        "nobody: there is no such gatekeeper",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "open", "closed"],
        1,
        "open is Open",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "open", "gone"],
        2,
        "there is no gate `gone` in the namespace",
    )
    .await?;

    let json = run(&stage, "admin", &["check", "closed", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&json.out)?;
    let gate = format!("{}/closed", stage.namespace());
    ensure!(
        told["allowed"] == false && told["decidedBy"][0] == *gate,
        "{told}"
    );
    let checked = &told["checked"][0];
    ensure!(
        checked["state"] == "Closed" && checked["reason"] == "Manual",
        "{told}"
    );
    let one = ["check", "open", "closed", "--require", "oneOf"];
    says(&stage, "admin", &one, 0, "allowed: let pass by").await?;

    let why = says(
        &stage,
        "admin",
        &["why", "closed"],
        0,
        "no controller has seen it yet",
    )
    .await?;
    for told in [
        "Gate ",
        "2 gatekeepers, all of which must admit",
        "off is Closed (Manual), which decides",
        "not forced",
    ] {
        ensure!(why.out.contains(told), "{told:?}: {}", why.out);
    }
    Ok(())
}

#[tokio::test]
async fn gates_are_listed_as_kubectl_lists_objects() -> Result<()> {
    let stage = Stage::new("cli-get", "2026-11-20T12:00:00Z").await?;
    says(
        &stage,
        "admin",
        &["get"],
        0,
        "There are none in the namespace",
    )
    .await?;
    stage.apply(GATES).await?;
    let table = run(&stage, "admin", &["get"]).await?.out;
    let lines: Vec<&str> = table.lines().collect();
    ensure!(
        lines.len() == 4 && lines[0].starts_with("NAME     STATE    REASON"),
        "{table}"
    );
    ensure!(lines[1].starts_with("closed   Closed   Manual"), "{table}");
    ensure!(!table.contains('\u{1b}'), "{table}");
    let all = says(
        &stage,
        "admin",
        &["get", "-A", "-o", "wide"],
        0,
        "NAMESPACE",
    )
    .await?;
    ensure!(
        all.out.contains(stage.namespace()) && all.out.contains("MESSAGE"),
        "{}",
        all.out
    );
    says(
        &stage,
        "admin",
        &["get", "gk"],
        0,
        "off    Unknown   manual",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["get", "gates", "-o", "name"],
        0,
        "gate.sluice.dev/open\n",
    )
    .await?;
    let one = run(&stage, "admin", &["get", "open", "-o", "json"]).await?;
    let one: Value = serde_json::from_str(&one.out)?;
    ensure!(
        one["kind"] == "Gate" && one["metadata"]["name"] == "open",
        "{one}"
    );
    says(
        &stage,
        "admin",
        &["get", "gatekeepers", "-o", "yaml"],
        0,
        "kind: List",
    )
    .await?;
    // What is printed can be read again.
    let yaml = run(&stage, "admin", &["get", "open", "-o", "yaml"])
        .await?
        .out;
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), yaml)?;
    let path = file.path().to_str().context("no path")?;
    says(&stage, "admin", &["lint", "-f", path], 0, "1 gate").await?;
    Ok(())
}

#[tokio::test]
async fn without_rights_or_a_server_it_says_what_is_missing() -> Result<()> {
    let stage = Stage::new("cli-rights", "2026-11-20T12:00:00Z").await?;
    let refused = says(&stage, "mallory", &["get"], 2, "cannot list gates of ").await?;
    ensure!(
        refused.err.contains(": the API server refuses it: ")
            && refused
                .err
                .contains("\"mallory\" cannot list resource \"gates\""),
        "{}",
        refused.err
    );
    says(
        &stage,
        "admin",
        &["get", "--as", "mallory"],
        2,
        "\"mallory\" cannot list",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "a", "--context", "nowhere"],
        2,
        "nowhere",
    )
    .await?;

    let nobody = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
                  users: [{name: a, user: {token: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]}";
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), nobody)?;
    let path = file.path().to_str().context("no path")?;
    let dead = says(
        &stage,
        "admin",
        &["check", "a", "--kubeconfig", path],
        2,
        "the API server does not answer: ",
    )
    .await?;
    ensure!(dead.err.lines().count() == 1, "{}", dead.err);
    Ok(())
}
