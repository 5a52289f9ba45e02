//! What CI does: a call to a Receiver of Flux moves dev, and a run of the pipeline begins. And what
//! `kubectl gate pipeline objects` shows of that.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::Git;
use sluice_tests::{Writes, poll, status};
use tokio::process::Command;

use crate::plugin::says;
use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
const TOKEN: &str = "5f2c1d9ab0c3e4f78899aabb";

const PIPELINE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {kind: Kustomization, name: app}
  environments:
    - {name: dev, targets: [{namespace: DEV}]}
";

/// A Receiver that has the repository fetched: where it is called.
async fn receiver(stage: &Stage<'_>) -> Result<String> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "receiver-token"},
        "stringData": {"token": TOKEN},
    });
    stage.apply(&secret.to_string()).await?;
    let spec = json!({
        "type": "generic-hmac", "secretRef": {"name": "receiver-token"},
        "resources": [{"kind": "GitRepository", "name": APP}],
    });
    stage.put("Receiver", APP, spec).await?;
    let has_path = |object: &Value| object["status"]["webhookPath"].is_string();
    let what = "to say where it is called";
    let object = stage.object("Receiver", APP, what, has_path).await?;
    let path = object.data["status"]["webhookPath"].as_str();
    let path = path.context("no path")?.to_owned();
    Ok(format!("{}{path}", stage.world().flux.receiver_url()))
}

/// Waits until the newest run is of this revision.
async fn runs(stage: &Stage<'_>, revision: &str) -> Result<()> {
    let api: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let is = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.revision == revision)
    };
    status::until(&api, "shop", DEADLINE, "a run to begin", is).await?;
    Ok(())
}

/// With the commands of the guide. Sources are fetched once an hour otherwise.
#[tokio::test]
async fn a_call_to_a_receiver_moves_dev_and_begins_a_run() -> Result<()> {
    let stage = Stage::new("ci", NOW).await?;
    let git = Git::serve().await?;
    let first = git.commit(&[("app.yaml", &app(APP, "one"))])?;
    stage.git_repository(APP, &git).await?;
    stage.kustomization(APP, "GitRepository", APP).await?;
    stage.applied(APP, &Git::revision(&first)).await?;
    stage
        .apply(&PIPELINE.replace("DEV", stage.namespace()))
        .await?;
    let _controller = stage.start().await?;
    runs(&stage, &Git::revision(&first)).await?;

    let url = receiver(&stage).await?;
    let second = git.commit(&[("app.yaml", &app(APP, "two"))])?;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/call-receiver.sh");
    poll(DEADLINE, "the Receiver to take the call", async || {
        let called = Command::new("sh")
            .arg(&example)
            .arg(&url)
            .env("TOKEN", TOKEN)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let called = called.await?;
        let said = String::from_utf8_lossy(&called.stderr);
        ensure!(
            called.status.success(),
            "the example needs curl and openssl: {said}"
        );
        Ok(())
    })
    .await?;
    runs(&stage, &Git::revision(&second)).await?;
    objects_are_shown(&stage).await
}

/// What is behind the pipeline, what moves it, and annotations that name no pipeline.
async fn objects_are_shown(stage: &Stage<'_>) -> Result<()> {
    let words = "pipeline objects shop";
    let shown = says(stage, words, 0, "GitRepository").await?;
    let receiver = format!(
        "is looked at when Receiver {}/{APP} is called",
        stage.namespace()
    );
    for line in [&receiver, "is looked at every 1h", " runs main@"] {
        ensure!(shown.out.contains(line), "{line:?} is not in {shown:?}");
    }
    let mark = json!({"metadata": {"annotations": {
        "pipelines.weave.works/pipeline": "none", "pipelines.weave.works/environment": "prod",
    }}});
    let kustomizations = stage.api("Kustomization")?;
    kustomizations.merge(APP, &mark).await?;
    let told = says(stage, words, 1, "which does not exist").await?;
    ensure!(
        told.out
            .contains("pipelines.weave.works/environment names prod; write dev"),
        "{told:?}"
    );
    Ok(())
}
