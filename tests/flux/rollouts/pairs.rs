//! A pair of Deployments that one Kustomization applies.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_tests::workloads::Readiness;

use super::{PAIR, SIZE, Shop, deployment, ignore, pair, rollout, up_to};

#[tokio::test]
async fn flux_brings_a_pair_with_its_rollout_and_undoes_nothing() -> Result<()> {
    let shop = Shop::new("ro-pair").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&up_to(0))?).await?;
    let with = json!({"ignore": ignore()});
    shop.applies("shop", "./shop", with).await?;
    shop.stage.applied("shop", &first).await?;
    shop.is_held("LastBatch").await?;
    shop.has(2, 2).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (2, 2))
        .await?;
    // The last batch is let out in Git.
    let second = shop.push(&pair(&up_to(1))?).await?;
    shop.stage.applied("shop", &second).await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (0, SIZE))
        .await
}

/// What the message says is written as it stands there, until nothing is missing any more.
#[tokio::test]
async fn what_flux_would_undo_does_not_begin_and_says_what_to_write() -> Result<()> {
    let shop = Shop::new("ro-lines").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&json!({}))?).await?;
    shop.applies("shop", "./shop", json!({})).await?;
    shop.stage.applied("shop", &first).await?;
    let mut rules = Vec::new();
    for name in ["web-v2", "web-v1"] {
        let about = format!("/spec/replicas of Deployment {name} again");
        let is_told = |status: &RolloutStatus| {
            let held = status.held.as_ref();
            held.is_some_and(|it| it.reason == "AppliedAgain" && it.message.contains(&about))
        };
        let status = shop.until(&about, is_told).await?;
        let held = status.held.context("not held")?;
        let by = format!("Kustomization {}/shop", shop.stage.namespace());
        assert_eq!(held.by, Some(by));
        shop.has(SIZE, 0).await?;
        let (_, lines) = held.message.split_once(":\n").context("no lines")?;
        let lines: Value = serde_saphyr::from_str(lines)?;
        rules.extend(lines["ignore"].as_array().context("no rules")?.clone());
        shop.applies("shop", "./shop", json!({"ignore": rules}))
            .await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (0, SIZE))
        .await
}

#[tokio::test]
async fn rules_that_are_taken_away_midway_hold_the_run_and_nobody_fights() -> Result<()> {
    let shop = Shop::new("ro-midway").await?;
    let _controller = shop.stage.start().await?;
    let first = shop.push(&pair(&up_to(0))?).await?;
    let ignoring = json!({"ignore": ignore()});
    shop.applies("shop", "./shop", ignoring.clone()).await?;
    shop.stage.applied("shop", &first).await?;
    shop.is_held("LastBatch").await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (2, 2))
        .await?;
    // What the run has written is not said to be Flux's any more, however often that has looked.
    let object = shop.deployment("web-v2").api().get("web-v2").await?;
    let flux = object.metadata.managed_fields.into_iter().flatten();
    let flux = flux.filter(|it| it.manager.as_deref() == Some("kustomize-controller"));
    let mut owned = flux.filter_map(|it| it.fields_v1);
    ensure!(owned.all(|it| it.0.pointer("/f:spec/f:replicas").is_none()));
    // Flux writes what Git says: the new pods are lost, and the run does not write them again.
    shop.applies("shop", "./shop", json!({})).await?;
    let held = shop.is_held("FieldOverwritten").await?;
    assert_eq!(held.by.as_deref(), Some("kustomize-controller"));
    shop.has(SIZE, 0).await?;
    shop.stage.settle().await?;
    shop.has(SIZE, 0).await?;
    // A person decides.
    shop.applies("shop", "./shop", ignoring).await?;
    shop.stage.reconcile("Kustomization", "shop").await?;
    shop.retry().await?;
    shop.is_held("LastBatch").await?;
    shop.has(2, 2).await?;
    shop.let_out().await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await
}

/// A Kustomization that is suspended carries to its end what it has begun, by the spec that it had then.
#[tokio::test]
async fn a_suspended_kustomization_is_waited_for_while_it_is_at_work() -> Result<()> {
    let shop = Shop::new("ro-rest").await?;
    let _controller = shop.stage.start().await?;
    let mut slow = deployment("slow", "1", 1);
    slow["spec"]["template"]["metadata"]["annotations"] = json!({"tests/ready": "never"});
    let files = [
        ("shop/web-v1.yaml", deployment("web-v1", "1", SIZE)),
        ("shop/web-v2.yaml", deployment("web-v2", "2", 0)),
        ("shop/slow.yaml", slow),
    ];
    shop.push(&files).await?;
    let waits = json!({"wait": true, "timeout": "5m"});
    shop.applies("shop", "./shop", waits).await?;
    shop.stage.apply(&rollout(&json!({}))?.to_string()).await?;
    shop.is_held("AppliedAgain").await?;
    // Flux still waits for the pod that does not start.
    let rests = json!({"wait": true, "timeout": "5m", "suspend": true, "ignore": ignore()});
    shop.applies("shop", "./shop", rests).await?;
    let held = shop.is_held("NotApplied").await?;
    let by = format!("Kustomization {}/shop", shop.stage.namespace());
    assert_eq!(held.by, Some(by));
    shop.has(SIZE, 0).await?;
    let slow = shop.deployment("slow");
    let pods = slow.until_pods("one", |pods| pods.len() == 1).await?;
    shop.workloads.turn(&pods[0].name, Readiness::Ready).await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await
}

/// Flux asks Git whether it leaves an object alone that is there, whatever the object says.
#[tokio::test]
async fn an_annotation_that_git_does_not_have_is_not_believed() -> Result<()> {
    let shop = Shop::new("ro-mark").await?;
    let _controller = shop.stage.start().await?;
    let files = pair(&json!({}))?;
    let revision = shop.push(&files[..2]).await?;
    shop.applies("shop", "./shop", json!({})).await?;
    shop.stage.applied("shop", &revision).await?;
    for name in PAIR {
        shop.mark(name, "IfNotPresent").await?;
    }
    shop.deployment("web-v1").scale(1).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (SIZE, 0))
        .await?;
    shop.stage.apply(&files[2].1.to_string()).await?;
    shop.is_held("AppliedAgain").await?;
    shop.has(SIZE, 0).await
}
