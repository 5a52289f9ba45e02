//! That Flux runs here as it does elsewhere: what all other tests here stand on.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use sluice_tests::flux::{Bucket, Charts, Flux, Git, Inbox, Programs, Reach};
use sluice_tests::helm::Release;
use sluice_tests::progress::Stderr;
use sluice_tests::stage::Stage as PlainStage;
use sluice_tests::{installation, poll};

use crate::stage::{DEADLINE, NOW, Stage, app, resource};

#[tokio::test]
async fn a_commit_is_fetched_and_applied_and_drift_is_mended() -> Result<()> {
    let stage = Stage::new("git", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    stage.git_repository("app", &git).await?;
    stage.kustomization("app", "GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&one)).await?;
    stage.deployed("app", "one").await?;

    let two = git.commit(&[("app.yaml", &app("app", "two"))])?;
    stage.reconcile("GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&two)).await?;
    stage.deployed("app", "two").await?;

    stage.lose("app").await?;
    stage.reconcile("Kustomization", "app").await?;
    stage.deployed("app", "two").await?;

    let three = git.rewrite(&one, &[("app.yaml", &app("app", "three"))])?;
    stage.reconcile("GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&three)).await?;
    stage.deployed("app", "three").await
}

#[tokio::test]
async fn a_password_can_be_rotated() -> Result<()> {
    let stage = Stage::new("password", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    git.ask_for("flux", "first");
    let secret = |password: &str| {
        let login = json!({"username": "flux", "password": password});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": login,
        });
        secret.to_string()
    };
    stage.apply(&secret("first")).await?;
    let spec = json!({
        "url": git.url(), "interval": "1h",
        "ref": {"branch": "main"}, "secretRef": {"name": "login"},
    });
    stage.put("GitRepository", "app", spec).await?;
    stage
        .fetched("GitRepository", "app", &Git::revision(&one))
        .await?;

    git.ask_for("flux", "second");
    stage.reconcile("GitRepository", "app").await?;
    let failed = stage
        .fails("GitRepository", "app", "GitOperationFailed")
        .await?;
    assert_eq!(
        failed.data["status"]["artifact"]["revision"],
        Git::revision(&one)
    );
    let two = git.commit(&[("app.yaml", &app("app", "two"))])?;
    stage.apply(&secret("second")).await?;
    stage
        .fetched("GitRepository", "app", &Git::revision(&two))
        .await?;
    Ok(())
}

#[tokio::test]
async fn an_artifact_of_a_registry_is_applied() -> Result<()> {
    let stage = Stage::new("oci", NOW).await?;
    let one = stage.push("app", "one").await?;
    stage.oci_repository("app", "stable").await?;
    stage.kustomization("app", "OCIRepository", "app").await?;
    stage.applied("app", &one.revision()).await?;
    stage.deployed("app", "one").await?;

    let two = stage.push("app", "two").await?;
    ensure!(one.digest != two.digest, "{one:?}, {two:?}");
    stage.reconcile("OCIRepository", "app").await?;
    stage.applied("app", &two.revision()).await?;
    stage.deployed("app", "two").await
}

#[tokio::test]
async fn a_bucket_is_applied() -> Result<()> {
    let stage = Stage::new("bucket", NOW).await?;
    let bucket = Bucket::serve().await?;
    bucket.put("folder/app.yaml", &app("app", "one"));
    stage.bucket("app", &bucket).await?;
    stage.kustomization("app", "Bucket", "app").await?;
    stage.deployed("app", "one").await?;
    bucket.put("folder/app.yaml", &app("app", "two"));
    stage.reconcile("Bucket", "app").await?;
    stage.deployed("app", "two").await
}

#[tokio::test]
async fn a_chart_is_installed_and_upgraded() -> Result<()> {
    let stage = Stage::new("chart", NOW).await?;
    let charts = Charts::serve().await?;
    charts.publish("app", "1.0.0", &[("app.yaml", &app("app", "one"))])?;
    stage.helm_chart("app", &charts, "1.x").await?;
    stage.helm_release("app", "app").await?;
    stage.released("app", "1.0.0").await?;
    stage.deployed("app", "one").await?;

    charts.publish("app", "1.1.0", &[("app.yaml", &app("app", "two"))])?;
    stage.reconcile("HelmRepository", "app").await?;
    stage.reconcile("HelmChart", "app").await?;
    stage.released("app", "1.1.0").await?;
    stage.deployed("app", "two").await
}

#[tokio::test]
async fn an_event_is_delivered() -> Result<()> {
    let stage = Stage::new("event", NOW).await?;
    let inbox = Inbox::serve().await?;
    let provider = json!({"type": "generic", "address": inbox.url()});
    stage.put("Provider", "inbox", provider).await?;
    let alert = json!({
        "providerRef": {"name": "inbox"},
        "eventSources": [{"kind": "GitRepository", "name": "*"}],
    });
    stage.put("Alert", "sources", alert).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    stage.git_repository("app", &git).await?;
    let event = inbox
        .receives("the commit", |event| event["reason"] == "NewArtifact")
        .await?;
    assert_eq!(event["involvedObject"]["namespace"], stage.namespace());
    assert_eq!(event["reportingController"], "source-controller");
    assert_eq!(event["metadata"]["revision"], Git::revision(&one));
    Ok(())
}

/// Flux that keeps one namespace, as beside other tests on a cluster of one's own, leaves the others
/// alone.
#[tokio::test]
async fn flux_may_keep_one_namespace() -> Result<()> {
    let programs = Programs::ensure(&Stderr::new())?;
    let (plane, _) = installation::start(&Release::default(), "").await?;
    let kept = PlainStage::on(plane.cluster(), "kept", NOW).await?;
    let other = PlainStage::on(plane.cluster(), "other", NOW).await?;
    let reach = Reach::Namespace(kept.namespace());
    let flux = Flux::start(&programs, plane.cluster(), reach).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    let resource = resource("GitRepository")?;
    let object = json!({
        "apiVersion": resource.api_version, "kind": "GitRepository", "metadata": {"name": "app"},
        "spec": {"url": git.url(), "interval": "1h", "ref": {"branch": "main"}},
    });
    // The other one is there first.
    for stage in [&other, &kept] {
        stage.apply(&object.to_string()).await?;
    }
    let sources = |stage: &PlainStage| {
        Api::<DynamicObject>::namespaced_with(stage.client(), stage.namespace(), &resource)
    };
    poll(DEADLINE, "the commit to be fetched", async || {
        let fetched = sources(&kept).get("app").await?.data;
        let revision = &fetched["status"]["artifact"]["revision"];
        ensure!(*revision == Git::revision(&one), "{fetched}");
        Ok(())
    })
    .await?;
    let untouched = sources(&other).get("app").await?;
    ensure!(untouched.metadata.finalizers.is_none(), "{untouched:?}");
    ensure!(
        untouched.data["status"]["artifact"].is_null(),
        "{untouched:?}"
    );
    drop(flux);
    Ok(())
}
