//! `pipeline`, and what other commands know of pipelines: the picture, steering, votes, and objects of Flux.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::{Approval, Pipeline};
use sluice_tests::Writes;

use super::{may_list, objects_of, run, says};
use crate::chart::CONTROLLER;
use crate::stage::Stage;

const NOW: &str = "2026-11-20T12:00:00Z";

/// A pipeline, and the gate of its last environment.
const SHOP: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours}
spec: {schedule: {open: [{cron: '0 9 * * MON-FRI', duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: office-hours}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {kind: HelmRelease, name: shop}
  promotion: {manual: true, strategy: {admission: {}}}
  environments:
    - {name: dev, targets: [{namespace: shop-dev}]}
    - {name: prod, targets: [{namespace: shop}], gates: {refs: [{name: production}]}}
";

/// What a controller would have written: the promotion to prod waits for a person.
fn waiting() -> Value {
    let target = |namespace: &str, revision: &str| json!({"namespace": namespace, "ready": true, "revision": revision, "versions": {"image": "v2"}});
    let said = "6.1.6 waits for a person to approve it for prod";
    json!({
        "observedGeneration": 1,
        "run": {"id": 7, "revision": "6.1.6", "short": "6.1.6", "since": NOW, "environment": "prod",
            "state": "Unapproved", "message": said},
        "environments": {
            "dev": {"state": "Passed", "targets": [target("shop-dev", "6.1.6")]},
            "prod": {"state": "Unapproved", "message": said, "targets": [target("shop", "6.1.0")],
                "waitingApproval": {"revision": "6.1.6", "run": 7, "since": NOW}},
        },
    })
}

/// A server with the policies; alice operates and approves, victor sees.
async fn shop() -> Result<Stage> {
    let stage = Stage::installed("cli-pipelines", NOW).await?;
    stage.apply(SHOP).await?;
    // No controller runs: nothing of this changes while it is looked at.
    stage.judge_no_statuses();
    let pipelines: Api<Pipeline> = objects_of(&stage, CONTROLLER).await?;
    let status = json!({"status": waiting()});
    pipelines.merge_status("shop", status).await?;
    stage.grant("sluice-view", &["alice", "victor"]).await?;
    for role in ["sluice-pipeline-operate", "sluice-pipeline-approve"] {
        stage.grant(role, &["alice"]).await?;
    }
    may_list::<Approval>(&stage, "alice").await?;
    Ok(stage)
}

#[tokio::test]
async fn pipelines_are_listed_drawn_and_compared() -> Result<()> {
    let stage = shop().await?;
    let list = says(&stage, "victor", &["pipeline"], 0, "Unapproved").await?;
    ensure!(
        list.out.contains("6.1.6") && list.out.contains("prod"),
        "{list:?}"
    );
    says(&stage, "victor", &["get", "pipelines"], 0, "Unapproved").await?;
    let drawn = says(&stage, "victor", &["pipeline", "shop"], 0, "prod ◆ 6.1.0").await?;
    ensure!(drawn.out.contains("dev ✔ 6.1.6"), "{drawn:?}");
    ensure!(!drawn.out.contains('\u{1b}'), "{drawn:?}");
    let json = run(&stage, "victor", &["pipeline", "shop", "-o", "json"]).await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(
        json["needs"] == "person" && json["environments"][1]["name"] == "prod",
        "{json}"
    );
    says(&stage, "victor", &["pipeline", "versions"], 0, "v2").await?;
    says(
        &stage,
        "victor",
        &["pipeline", "none"],
        2,
        "there is no pipeline `none`",
    )
    .await?;
    let pending = says(&stage, "victor", &["pending"], 0, "Pipeline/shop (prod)").await?;
    ensure!(pending.out.contains("approve"), "{pending:?}");
    let why = says(
        &stage,
        "victor",
        &["why", "pipeline/shop"],
        0,
        "a promotion to prod is",
    )
    .await?;
    ensure!(why.out.contains("office-hours"), "{why:?}");
    let days = ["calendar", "pipeline/shop/prod", "--days", "2"];
    says(&stage, "victor", &days, 0, "to prod is ").await?;
    says(
        &stage,
        "victor",
        &["calendar", "pipeline/shop"],
        2,
        "pipeline/shop/prod",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn those_who_may_pause_resume_and_retry() -> Result<()> {
    let stage = shop().await?;
    let pipelines: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let denied = ["pipeline", "pause", "shop"];
    says(
        &stage,
        "victor",
        &denied,
        2,
        "cannot pause the pipeline shop: the API server refuses it",
    )
    .await?;
    says(&stage, "alice", &denied, 0, "is paused").await?;
    ensure!(pipelines.get("shop").await?.spec.suspend);
    says(&stage, "alice", &denied, 0, "is paused already").await?;
    says(
        &stage,
        "alice",
        &["pipeline", "retry", "shop"],
        0,
        "begins when it is resumed",
    )
    .await?;
    says(
        &stage,
        "alice",
        &["pipeline", "resume", "shop"],
        0,
        "is resumed",
    )
    .await?;
    let object = pipelines.get("shop").await?;
    let annotations = object.metadata.annotations.unwrap_or_default();
    ensure!(!object.spec.suspend && annotations.contains_key("sluice.dev/retry"));
    Ok(())
}

#[tokio::test]
async fn a_person_votes_on_the_promotion_that_waits() -> Result<()> {
    let stage = shop().await?;
    let approve = ["approve", "--pipeline", "shop", "--reason", "tried"];
    says(
        &stage,
        "victor",
        &approve,
        2,
        "cannot create resource \"approvals\"",
    )
    .await?;
    let other = ["approve", "--pipeline", "shop", "-r", "6.1.7"];
    says(
        &stage,
        "alice",
        &other,
        2,
        "waits with 6.1.6, and not with 6.1.7",
    )
    .await?;
    says(
        &stage,
        "alice",
        &approve,
        0,
        "it is about 6.1.6 for prod, in run 7",
    )
    .await?;
    says(&stage, "alice", &approve, 0, "you have said so already").await?;
    let votes: Api<Approval> = Api::namespaced(stage.client(), stage.namespace());
    let found = votes.list(&Default::default()).await?.items;
    let [vote] = found.as_slice() else {
        anyhow::bail!("{found:#?}")
    };
    let about = vote
        .spec
        .pipeline_ref
        .as_ref()
        .context("it is about no pipeline")?;
    ensure!(
        (about.environment.as_str(), about.run) == ("prod", 7),
        "{about:?}"
    );
    ensure!(vote.spec.by == "alice" && vote.spec.revision == "6.1.6");
    says(
        &stage,
        "alice",
        &["pipeline", "shop"],
        0,
        "approved by alice",
    )
    .await?;
    Ok(())
}
