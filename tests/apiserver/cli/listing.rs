//! `get` of everything there is, `get -l` and `get -w`; `why` for programs.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_tests::Writes;

use super::{GATES, Going, run, says};
use crate::stage::Stage;

/// A gate of London, by its labels.
const LONDON: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office}
spec: {schedule: {timeZone: Europe/London, open: [{name: office, cron: 0 9 * * *, duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: eyes}
spec: {approval: {required: 2, validFor: 2h}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: london, labels: {site: london}}
spec: {gatekeepers: [{name: office}]}
";

fn vote(name: &str, decision: &str) -> String {
    format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: Approval, metadata: {{name: {name}}}, spec: \
         {{gatekeeperRef: {{name: eyes}}, revision: 'main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3', \
         decision: {decision}, by: {name}, reason: looked at it}}}}"
    )
}

#[tokio::test]
async fn labels_choose_and_instants_are_in_the_zone_of_the_windows() -> Result<()> {
    let stage = Stage::new("cli-labels", "2026-11-20T12:00:00Z").await?;
    stage.apply(&format!("{GATES}---{LONDON}")).await?;
    let one = run(&stage, "admin", &["get", "-l", "site=london"]).await?;
    ensure!(one.out.lines().count() == 2, "{one:?}");
    ensure!(one.out.contains("UNTIL (Europe/London)"), "{one:?}");
    ensure!(
        one.out.contains("09:00") || one.out.contains("17:00"),
        "{one:?}"
    );
    let none = ["get", "gk", "-l", "site=paris"];
    says(&stage, "admin", &none, 0, "There are none in the namespace").await?;
    Ok(())
}

#[tokio::test]
async fn approvals_and_policies_are_listed_too() -> Result<()> {
    let stage = Stage::new("cli-kinds", "2026-11-20T12:00:00Z").await?;
    let own = stage.namespace();
    let policy = format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: GatePolicy, metadata: {{name: {own}}}, spec: {{kinds: [Never], \
         namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {own}}}}}, \
         gates: {{refs: [{{name: closed, namespace: {own}}}]}}}}}}"
    );
    let (yes, no) = (vote("alice", "approve"), vote("bob", "reject"));
    stage
        .apply(&format!(
            "{GATES}---{LONDON}---\n{yes}\n---\n{no}\n---\n{policy}\n"
        ))
        .await?;
    let votes = run(&stage, "admin", &["get", "approvals"]).await?;
    let line = |name: &str| votes.out.lines().find(|line| line.starts_with(name));
    let alice = line("alice").context("no line")?;
    ensure!(
        alice.contains("Approves") && alice.contains("main@4f2a9c1e0b7d"),
        "{votes:?}"
    );
    ensure!(
        line("bob").is_some_and(|line| line.contains("Rejects")),
        "{votes:?}"
    );
    let wide = ["get", "apv", "-o", "wide"];
    says(&stage, "admin", &wide, 0, "looked at it").await?;

    let policies = run(&stage, "admin", &["get", "policies", own]).await?;
    let row = policies.out.lines().nth(1).context("no row")?;
    let gate = format!("{own}/closed");
    for cell in ["Closed", &gate, "Never", "kubernetes.io/metadata.name="] {
        ensure!(row.contains(cell), "{cell}: {policies:?}");
    }
    let name = ["get", "gatepolicy", own, "-o", "name"];
    says(
        &stage,
        "admin",
        &name,
        0,
        &format!("gatepolicy.sluice.dev/{own}"),
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn what_changes_is_listed_again() -> Result<()> {
    let stage = Stage::new("cli-watch", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let mut going = Going::start(&stage, "admin", &["get", "-w"])?;
    ensure!(going.line().await?.starts_with("NAME "), "no head");
    for name in ["closed", "open", "unkept"] {
        let line = going.line().await?;
        ensure!(line.starts_with(name), "{line}");
    }
    // A gate is decided from its gatekeepers, and these have changed.
    let open = json!({"spec": {"manual": {"state": "open"}}});
    stage.gatekeepers().merge("off", &open).await?;
    let line = going.line().await?;
    ensure!(line.starts_with("closed   Open "), "{line}");
    stage.gates().remove("unkept").await?;
    let line = going.line().await?;
    ensure!(line.starts_with("unkept   deleted"), "{line}");
    Ok(())
}

#[tokio::test]
async fn why_is_told_to_programs() -> Result<()> {
    let stage = Stage::new("cli-why-json", "2026-11-20T12:00:00Z").await?;
    stage.apply(&format!("{GATES}---{LONDON}")).await?;
    let names = ["why", "closed", "london", "Deployment/shop", "-o", "json"];
    let told = run(&stage, "admin", &names).await?;
    let told: Value = serde_json::from_str(&told.out)?;
    let entry = |n: usize| &told[n];
    ensure!(
        entry(0)["kind"] == "Gate" && entry(0)["state"] == "Closed",
        "{told}"
    );
    ensure!(entry(0)["verdicts"][1]["reason"] == "Manual", "{told}");
    ensure!(
        entry(0)["notes"][0]
            .as_str()
            .is_some_and(|it| it.contains("no status")),
        "{told}"
    );
    let changes = entry(1)["verdicts"][0]["changesAt"].as_str();
    ensure!(
        changes == entry(1)["next"]["at"].as_str() && changes.is_some(),
        "{told}"
    );
    ensure!(entry(2)["kind"] == "Consumer", "{told}");
    ensure!(
        entry(2)["decision"]["subject"]["kind"] == "Deployment",
        "{told}"
    );
    Ok(())
}
