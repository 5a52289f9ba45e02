//! Two processes share the kinds: the one that does not look at promotions never asks for what opens a
//! repository.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use sluice_crds::GateStatus;
use sluice_tests::proxy::Proxy;
use sluice_tests::status;

use super::branches::{Branches, DEADLINE};
use super::{is_at, waits_for};

const OTHERS: [&str; 5] = [
    "Gate",
    "GatePolicy",
    "GatedSource",
    "Gatekeeper",
    "Pipeline",
];
const PROMOTION: [&str; 5] = [
    "CommitStatus",
    "GitRepositoryAccess",
    "PromotionStrategy",
    "PullRequest",
    "RevertCommit",
];

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_look_at_promotions_never_asks_for_a_secret() -> Result<()> {
    let scene = Branches::open("promotions-kinds", json!({})).await?;
    let (line, forge_line) = (
        Proxy::start(scene.client()).await?,
        Proxy::start(scene.client()).await?,
    );
    let secrets = |line: &Proxy| line.count(&Method::GET, "/secrets/");
    let deciding = scene.start_as(line.client()?, &OTHERS).await?;
    let is_said = |status: &GateStatus| status.state.is_some();
    let what = "the gate to be decided";
    status::until(&scene.gates(), "production", DEADLINE, what, is_said).await?;
    scene.pass();
    deciding.rests().await?;
    let untouched = scene.accesses().get("shop").await?;
    ensure!(untouched.status.is_none(), "{untouched:?}");

    let promoting = scene.start_as(forge_line.client()?, &PROMOTION).await?;
    let dry = scene.hydrate("2").await?;
    for branch in ["env/dev", "env/test"] {
        scene
            .says_soon(branch, "to be merged", |it| is_at(it, &dry))
            .await?;
        scene.healthy(branch).await?;
    }
    // It asks the same gates.
    scene
        .says_soon("env/prod", "to wait for the gate", |it| {
            waits_for(it, "GateClosed")
        })
        .await?;
    scene.turn("open").await?;
    scene
        .says_soon("env/prod", "to be merged", |it| is_at(it, &dry))
        .await?;
    deciding.rests().await?;
    assert_eq!(secrets(&line), 0);
    ensure!(secrets(&forge_line) > 0, "nobody has asked for it");
    promoting.stop().await;
    deciding.stop().await;
    Ok(())
}
