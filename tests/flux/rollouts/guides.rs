//! The guides about rollouts with Flux.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_tests::workloads::Kind;

use super::{SIZE, Shop, deployment, has_succeeded, template};
use crate::guide::Guide;

/// The partition that no number of pods reaches.
const ARMED: i64 = 2_147_483_647;

/// As the guide has it: each commit is a run of its own, asked about by its revision. The Kustomization brings the
/// Rollout, too, and waits for it: neither waits for the other for ever.
#[tokio::test]
async fn a_stateful_set_is_rolled_out_commit_by_commit() -> Result<()> {
    let shop = Shop::new("ro-set").await?;
    shop.stage
        .keep("office-hours", "manual: {state: open}")
        .await?;
    let _controller = shop.stage.start().await?;
    let text = include_str!("../../../docs/guides/stateful-rollouts.md");
    let guide = Guide::of(shop.stage.cluster(), text)?;
    let block = |place| -> Result<Value> {
        let text = guide.block("With Flux", "yaml", place)?;
        Ok(serde_saphyr::from_str(&text)?)
    };
    let (kustomization, mut rollout) = (block(0)?, block(1)?);
    rollout["metadata"]["name"] = "web".into();
    let set = |version| {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
            "spec": {
                "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": ARMED}},
                "template": template("db", version),
            },
        })
    };
    let spec = &kustomization["spec"];
    let with = json!({"wait": spec["wait"], "ignore": spec["ignore"]});
    let db = shop.workloads.workload(Kind::StatefulSet, "db");
    for version in ["1", "2", "3"] {
        let files = [
            ("db/db.yaml", set(version)),
            ("db/rollout.yaml", rollout.clone()),
        ];
        let revision = shop.push(&files).await?;
        shop.applies("db", "./db", with.clone()).await?;
        let is_out = |status: &RolloutStatus| {
            let run = status.run.as_ref();
            has_succeeded(status) && run.is_some_and(|run| run.revision == revision)
        };
        let status = shop
            .until(&format!("version {version} to be out"), is_out)
            .await?;
        if version != "1" {
            let asked = status.last_decision.context("no decision")?.subject;
            assert_eq!(asked.revision.as_deref(), Some(revision.as_str()));
        }
        db.until_pods("to be of the version", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| pod.version == version && pod.ready)
        })
        .await?;
        shop.stage.applied("db", &revision).await?;
        let object = db.api().get("db").await?;
        let partition = object
            .data
            .pointer("/spec/updateStrategy/rollingUpdate/partition");
        assert_eq!(partition, Some(&json!(ARMED)));
    }
    Ok(())
}

/// The commit of the guide.
const COMMIT: &str = "1111111111111111111111111111111111111111";

/// The guide, from the account to the last batch.
#[tokio::test]
async fn the_guide_is_typed() -> Result<()> {
    let shop = Shop::without_rights("ro-guide").await?;
    let (stage, namespace) = (&shop.stage, shop.stage.namespace());
    let text = include_str!("../../../docs/guides/rollouts-with-flux.md");
    let mut guide = Guide::of(stage.cluster(), text)?;
    guide.says("https://git.example.com/shop/app.git", &shop.git.url());
    guide.says("shop", namespace);
    let here = |mut deployment: Value| {
        deployment["metadata"]["namespace"] = namespace.into();
        deployment.to_string()
    };
    let commit = shop.git.commit(&[
        ("web-v1/web.yaml", here(deployment("web-v1", "1", SIZE))),
        ("web-v2/web.yaml", here(deployment("web-v2", "2", 0))),
    ])?;
    guide.commit(COMMIT, &commit);
    let _controller = stage.start().await?;
    guide.run("Set it up").await?;
    guide.run("What Flux leaves alone").await?;
    guide.run("The last batch").await
}
