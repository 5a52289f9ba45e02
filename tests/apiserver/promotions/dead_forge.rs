//! A forge that accepts connections and never answers, beside one that lives. What is shown has to come while
//! the requests to the dead forge have no end.

use anyhow::{Result, ensure};
use jiff::{Timestamp, ToSpan};
use kube::api::ListParams;
use serde_json::json;
use sluice_crds::{GateStatus, State};
use sluice_tests::gitea::OWNER;
use sluice_tests::line::Line;
use sluice_tests::{poll, status};

use super::branches::{Branches, DEADLINE};
use super::is_at;

/// More than there are workers, and places for errands.
const DEAD: usize = 20;
/// How many errands ask one host at the same time.
const AT_A_HOST: usize = 4;

/// A gate whose window opens at an instant.
async fn gate(scene: &Branches, opens: Timestamp) -> Result<()> {
    let wall = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let window = json!({"from": wall(opens), "until": wall(opens + 1.hour())});
    for (kind, spec) in [
        ("Gatekeeper", json!({"schedule": {"open": [window]}})),
        ("Gate", json!({"gatekeepers": [{"name": "window"}]})),
    ] {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": "window"},
            "spec": spec,
        });
        scene.apply(&object).await?;
    }
    Ok(())
}

async fn gate_is(scene: &Branches, state: State) -> Result<()> {
    let is = |status: &GateStatus| status.state == Some(state);
    let what = format!("the gate to be {state}");
    status::until(&scene.gates(), "window", DEADLINE, &what, is).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_never_answers_delays_neither_gates_nor_another_repository() -> Result<()> {
    let scene = Branches::open("promotions-dead-forge", json!({})).await?;
    let line = Line::open(&scene.forge()).await?;
    line.hold();
    for number in 0..DEAD {
        let name = format!("dead-{number}");
        let url = format!("{}/{OWNER}/{name}", line.server());
        scene.grant_access(&name, &url).await?;
        let strategy = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"name": name},
            "spec": {"repoRef": {"name": name}, "environments": [{"branch": "env/dev"}]},
        });
        scene.apply(&strategy).await?;
    }
    // One worker looks at everything.
    let controller = scene.start().await?;
    poll(DEADLINE, "the dead forge to be asked", async || {
        let asked = line.connections();
        ensure!(asked >= AT_A_HOST, "{asked} have asked");
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    gate(&scene, scene.now() + 5.minutes()).await?;
    gate_is(&scene, State::Closed).await?;
    let dry = scene.hydrate("2").await?;
    scene
        .says("env/dev", "to be merged", |it| is_at(it, &dry))
        .await?;
    // Five minutes and more.
    (0..30).for_each(|_| scene.pass());
    gate_is(&scene, State::Open).await?;

    // Nothing has come back to any of the others.
    for access in scene.accesses().list(&ListParams::default()).await? {
        let is_dead = access
            .metadata
            .name
            .as_deref()
            .is_some_and(|it| it.starts_with("dead-"));
        let ready = access.status.into_iter().flat_map(|it| it.conditions);
        let mut ready = ready.filter(|it| it.type_ == "Ready" && it.status == "True");
        ensure!(!is_dead || ready.all(|it| it.reason == "NotNeeded"));
    }
    controller.stop().await;
    Ok(())
}
