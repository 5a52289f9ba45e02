//! `pending`: what has asked over HTTP and was told no.

use anyhow::{Result, ensure};
use http::StatusCode;
use serde_json::json;
use sluice_tests::{Writes, poll};

use super::{run, says};
use crate::check::Desk;
use crate::stage::{DEADLINE, Stage, soon};

const CLOSED: &str = "{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: production}, \
                      spec: {default: closed}}";

#[tokio::test]
async fn anyone_who_is_told_no_waits_until_it_is_told_yes() -> Result<()> {
    let stage = Stage::new("cli-pending", &soon(0)?.to_string()).await?;
    stage.apply(CLOSED).await?;
    let client = stage.client();
    let desk = Desk::on(stage, client, |_| {}).await?;
    desk.deployer().await?;
    let credentials = format!("Bearer {}", desk.token("deployer", &[]).await?);
    let asked = json!({
        "gates": {"refs": [{"name": "production"}]},
        "consumer": {"kind": "Deployment", "name": "shop"},
        "namespace": desk.stage.namespace(),
        "revision": "v1.2.3",
    });
    let ask = async |allowed: bool| {
        poll(DEADLINE, "the answer", async || {
            let answer = desk.post("/v1/check", &credentials, &asked).await?;
            ensure!(answer.status == StatusCode::OK, "{}", answer.body);
            ensure!(answer.body["allowed"] == allowed, "{}", answer.body);
            Ok::<_, anyhow::Error>(())
        })
        .await
    };
    // Built where it has to be, before anything is waited for.
    says(&desk.stage, "admin", &["version"], 0, "kubectl-gate").await?;
    ask(false).await?;
    let waits = poll(DEADLINE, "it to be listed", async || {
        says(&desk.stage, "admin", &["pending"], 0, "Deployment/shop").await
    })
    .await?;
    for part in ["v1.2.3 ", " production ", "closed by default"] {
        ensure!(waits.out.contains(part), "{part}: {waits:?}");
    }

    let open = json!({"spec": {"default": "open"}});
    desk.stage.gates().merge("production", &open).await?;
    desk.stage.set(&soon(1)?.to_string());
    ask(true).await?;
    poll(DEADLINE, "it to be listed no more", async || {
        let ran = run(&desk.stage, "admin", &["pending", "-o", "json"]).await?;
        ensure!(ran.out.trim() == "[]", "{ran:?}");
        Ok(())
    })
    .await
}
