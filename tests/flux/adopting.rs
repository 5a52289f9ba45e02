//! `kubectl gate adopt`: apps that Flux runs go behind gates, and nothing happens to them.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::{Charts, Git};
use sluice_tests::installation::CONTROLLER;
use sluice_tests::{Writes, poll};

use crate::plugin::{Ran, says};
use crate::stage::{DEADLINE, Stage, app};

/// Nobody looks at it: the plugin goes by the clock of the machine, and so does the controller here.
const NOW: &str = "2026-11-20T12:00:00Z";
const GUIDE: &str = include_str!("../../docs/guides/gate-an-existing-flux-app.md");

/// The command of the guide that begins so, without its namespace: the test has one of its own.
fn command(beginning: &str) -> Result<String> {
    let lines = GUIDE
        .lines()
        .filter_map(|line| line.strip_prefix("$ kubectl gate "));
    let mut found = lines.filter(|line| line.starts_with(beginning));
    let line = found.next();
    let line = line.with_context(|| format!("the guide has no {beginning}"))?;
    Ok(line.replace("--namespace apps", ""))
}

async fn controller(stage: &Stage<'_>) -> Result<InProcess> {
    let acting = stage.cluster().client_for(CONTROLLER).await?;
    stage.start_in_real_time(acting).await
}

/// A gate that stays closed until somebody opens it.
async fn closed(stage: &Stage<'_>) -> Result<()> {
    let yaml = GUIDE
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split_once("```"));
    let (yaml, _) = yaml.context("the guide has no gate")?;
    stage
        .apply(&yaml.replace(
            "namespace: apps",
            &format!("namespace: {}", stage.namespace()),
        ))
        .await
}

async fn open(stage: &Stage<'_>) -> Result<()> {
    let open = json!({"spec": {"default": "open"}});
    stage.gates().merge("production", &open).await?;
    Ok(())
}

/// The ConfigMap of the app: who deletes it and makes it again makes another.
async fn uid(stage: &Stage<'_>, name: &str) -> Result<Option<String>> {
    let maps: Api<ConfigMap> = Api::namespaced(stage.client(), stage.namespace());
    Ok(maps.get(name).await?.uid())
}

async fn spec(stage: &Stage<'_>, kind: &str, name: &str) -> Result<Value> {
    Ok(stage.api(kind)?.get(name).await?.data["spec"].take())
}

#[tokio::test]
async fn the_guide_moves_an_app_behind_a_gate() -> Result<()> {
    let stage = Stage::new("adopt", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    stage.git_repository("app", &git).await?;
    stage.kustomization("app", "GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&one)).await?;
    let before = uid(&stage, "app").await?;
    closed(&stage).await?;
    let _controller = controller(&stage).await?;

    let adopt = command("adopt")?;
    let printed = says(&stage, &adopt, 0, "kind: GatedSource").await?;
    let shown = printed.out.replace(stage.namespace(), "apps");
    ensure!(
        GUIDE.contains(&format!("```text\n{shown}```")),
        "the guide prints:\n{shown}"
    );
    ensure!(
        stage.api("GatedSource")?.get_opt("app").await?.is_none(),
        "{printed:?}"
    );

    let write = format!("{adopt} --write --timeout 60s");
    ensure!(
        GUIDE.contains("--gate production --write\n"),
        "the guide writes nothing"
    );
    says(&stage, &write, 0, "uses GitRepository app-gated now").await?;
    let source = spec(&stage, "Kustomization", "app").await?["sourceRef"].clone();
    ensure!(
        source == json!({"kind": "GitRepository", "name": "app-gated"}),
        "{source}"
    );
    stage.reconcile("Kustomization", "app").await?;
    stage.applied("app", &Git::revision(&one)).await?;
    ensure!(
        uid(&stage, "app").await? == before,
        "the app was taken away"
    );
    says(
        &stage,
        &write,
        0,
        "is behind gates already: GatedSource app",
    )
    .await?;

    let two = git.commit(&[("app.yaml", &app("app", "two"))])?;
    stage.reconcile("GitRepository", "app").await?;
    poll(DEADLINE, "the commit to be listed", async || {
        says(
            &stage,
            &command("pending")?,
            0,
            &format!("main@{}", &two[..12]),
        )
        .await
    })
    .await?;
    let why = says(&stage, &command("why")?, 0, "is not allowed: held back by").await?;
    ensure!(
        why.out
            .contains(&format!("main@{} is out since", &one[..12])),
        "{why:?}"
    );
    ensure!(
        why.out.contains("GitRepository app-gated serves main@"),
        "{why:?}"
    );
    says(
        &stage,
        &command("calendar")?,
        0,
        "Gate production is Closed",
    )
    .await?;
    stage.lose("app").await?;
    stage.reconcile("Kustomization", "app").await?;
    stage.deployed("app", "one").await?;

    open(&stage).await?;
    stage.applied("app", &Git::revision(&two)).await?;
    stage.deployed("app", "two").await?;
    back(&stage, &git).await
}

/// What the guide says of the way back: nothing happens to the app on it either.
async fn back(stage: &Stage<'_>, git: &Git) -> Result<()> {
    let before = uid(stage, "app").await?;
    let old = json!({"spec": {"sourceRef": {"name": "app"}}});
    let kustomizations = stage.api("Kustomization")?;
    kustomizations.merge("app", &old).await?;
    stage.api("GatedSource")?.remove("app").await?;
    let children = stage.api("GitRepository")?;
    stage.settle().await?;
    children.get("app-gated").await?;
    children.remove("app-gated").await?;
    let three = git.commit(&[("app.yaml", &app("app", "three"))])?;
    stage.reconcile("GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&three)).await?;
    stage.deployed("app", "three").await?;
    ensure!(uid(stage, "app").await? == before, "the app was taken away");
    ensure!(
        children.get_opt("app-gated").await?.is_none(),
        "the child came back"
    );
    Ok(())
}

#[tokio::test]
async fn anyone_who_uses_the_same_source_is_named_and_joins() -> Result<()> {
    let stage = Stage::new("adopt-all", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    stage.git_repository("repo", &git).await?;
    for name in ["app", "web", "db"] {
        stage.kustomization(name, "GitRepository", "repo").await?;
        stage.applied(name, &Git::revision(&one)).await?;
    }
    closed(&stage).await?;
    let _controller = controller(&stage).await?;
    let adopt = "adopt ks/app --gate production --write --timeout 60s";
    let said = says(&stage, adopt, 0, "--all-consumers moves them, too").await?;
    let here = stage.namespace();
    let others = format!("Kustomization {here}/db, Kustomization {here}/web");
    ensure!(said.err.contains(&others), "{said:?}");
    let all = "adopt ks/web --gate production --write --all-consumers";
    let said = says(&stage, all, 0, "GatedSource app is there already").await?;
    for name in ["web", "db"] {
        ensure!(
            said.out
                .contains(&format!("{here}/{name} uses GitRepository app-gated now")),
            "{said:?}"
        );
        let source = spec(&stage, "Kustomization", name).await?["sourceRef"].clone();
        ensure!(source["name"] == "app-gated", "{source}");
        stage.reconcile("Kustomization", name).await?;
        stage.applied(name, &Git::revision(&one)).await?;
    }
    says(&stage, all, 0, "is behind gates already: GatedSource app").await?;
    Ok(())
}

/// Waits until `kubectl gate pending` lists this.
async fn pends(stage: &Stage<'_>, what: &str) -> Result<Ran> {
    poll(DEADLINE, "it to be listed", async || {
        says(stage, "pending", 0, what).await
    })
    .await
}

/// The release was never upgraded.
async fn installed_once(stage: &Stage<'_>) -> Result<()> {
    let release = stage.api("HelmRelease")?.get("app").await?;
    let history = &release.data["status"]["history"];
    let once = history[0]["version"] == 1 && history[1].is_null();
    ensure!(once, "{history}");
    Ok(())
}

/// Version 1.1.0 of the chart waits for the gate, and is installed once that is open.
async fn upgraded_once_open(stage: &Stage<'_>) -> Result<()> {
    pends(stage, "1.1.0").await?;
    stage.deployed("app", "one").await?;
    open(stage).await?;
    stage.released("app", "1.1.0").await?;
    stage.deployed("app", "two").await
}

#[tokio::test]
async fn a_release_goes_over_without_an_upgrade() -> Result<()> {
    let stage = Stage::new("adopt-helm", NOW).await?;
    let charts = Charts::serve().await?;
    charts.publish("app", "1.0.0", &[("app.yaml", &app("app", "one"))])?;
    let repository = json!({"url": charts.url(), "interval": "1h"});
    stage.put("HelmRepository", "charts", repository).await?;
    let reference = json!({"kind": "HelmRepository", "name": "charts"});
    let chart = json!({"spec": {"chart": "app", "version": ">=1", "sourceRef": reference}});
    let release = json!({"interval": "1h", "chart": chart});
    stage.put("HelmRelease", "app", release).await?;
    stage.released("app", "1.0.0").await?;
    closed(&stage).await?;
    let _controller = controller(&stage).await?;
    let adopt = "adopt helmrelease/app --gate production --write";
    says(&stage, adopt, 0, "uses HelmChart app-gated now").await?;
    let spec = spec(&stage, "HelmRelease", "app").await?;
    ensure!(
        spec["chart"].is_null() && spec["chartRef"]["name"] == "app-gated",
        "{spec}"
    );
    stage.reconcile("HelmRelease", "app").await?;
    installed_once(&stage).await?;

    charts.publish("app", "1.1.0", &[("app.yaml", &app("app", "two"))])?;
    stage.reconcile("HelmRepository", "charts").await?;
    upgraded_once_open(&stage).await
}

/// What a registry holds goes over at the digest that runs.
#[tokio::test]
async fn an_artifact_of_a_registry_goes_over_at_its_digest() -> Result<()> {
    let stage = Stage::new("adopt-oci", NOW).await?;
    let one = stage.push("app", "one").await?;
    stage.oci_repository("app", "stable").await?;
    stage.kustomization("app", "OCIRepository", "app").await?;
    stage.applied("app", &one.revision()).await?;
    let before = uid(&stage, "app").await?;
    closed(&stage).await?;
    let _controller = controller(&stage).await?;
    let adopt = "adopt ks/app --gate production --write";
    says(&stage, adopt, 0, "uses OCIRepository app-gated now").await?;
    let source = spec(&stage, "Kustomization", "app").await?["sourceRef"].clone();
    ensure!(
        source == json!({"kind": "OCIRepository", "name": "app-gated"}),
        "{source}"
    );
    let pin = spec(&stage, "OCIRepository", "app-gated").await?["ref"].clone();
    ensure!(pin == json!({"digest": one.digest}), "{pin}");
    stage.reconcile("Kustomization", "app").await?;
    stage.applied("app", &one.digest).await?;
    ensure!(
        uid(&stage, "app").await? == before,
        "the app was taken away"
    );

    let two = stage.push("app", "two").await?;
    stage.reconcile("OCIRepository", "app").await?;
    pends(&stage, &two.digest["sha256:".len()..][..12]).await?;
    stage.lose("app").await?;
    stage.reconcile("Kustomization", "app").await?;
    stage.deployed("app", "one").await?;
    open(&stage).await?;
    stage.deployed("app", "two").await
}

/// A release that names a HelmChart names its child from now on, and is not upgraded by that.
#[tokio::test]
async fn a_release_with_a_chart_of_its_own_goes_over_without_an_upgrade() -> Result<()> {
    let stage = Stage::new("adopt-chart", NOW).await?;
    let charts = Charts::serve().await?;
    charts.publish("app", "1.0.0", &[("app.yaml", &app("app", "one"))])?;
    stage.helm_chart("app", &charts, ">=1").await?;
    stage.helm_release("app", "app").await?;
    stage.released("app", "1.0.0").await?;
    closed(&stage).await?;
    let _controller = controller(&stage).await?;
    let adopt = "adopt helmrelease/app --gate production --write";
    says(&stage, adopt, 0, "uses HelmChart app-gated now").await?;
    let reference = spec(&stage, "HelmRelease", "app").await?["chartRef"].clone();
    ensure!(
        reference["kind"] == "HelmChart" && reference["name"] == "app-gated",
        "{reference}"
    );
    let child = spec(&stage, "HelmChart", "app-gated").await?;
    ensure!(child["version"] == "1.0.0", "{child}");
    stage.reconcile("HelmRelease", "app").await?;
    installed_once(&stage).await?;

    charts.publish("app", "1.1.0", &[("app.yaml", &app("app", "two"))])?;
    stage.reconcile("HelmRepository", "app").await?;
    stage.reconcile("HelmChart", "app").await?;
    upgraded_once_open(&stage).await
}

#[tokio::test]
async fn what_would_be_lost_or_reverted_is_not_written() -> Result<()> {
    let stage = Stage::new("adopt-not", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app("app", "one"))])?;
    stage.git_repository("app", &git).await?;
    stage.kustomization("app", "GitRepository", "app").await?;
    stage.applied("app", &Git::revision(&one)).await?;
    closed(&stage).await?;
    // No controller: nobody makes the child.
    let plan = "adopt ks/app --gate production";
    let adopt = &format!("{plan} --write --timeout 2s");
    let late = says(&stage, adopt, 1, "the child is not ready").await?;
    ensure!(
        late.err.contains("is as it was; run this again"),
        "{late:?}"
    );
    let source = spec(&stage, "Kustomization", "app").await?["sourceRef"].clone();
    ensure!(source["name"] == "app", "{source}");

    let labels = json!({
        "kustomize.toolkit.fluxcd.io/name": "infra",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
    });
    let patch = json!({"metadata": {"labels": labels}});
    stage.api("Kustomization")?.merge("app", &patch).await?;
    let by = "applied by Kustomization flux-system/infra, which would revert the change";
    says(&stage, adopt, 2, by).await?;
    says(&stage, plan, 0, "change it where that is written").await?;

    stage.git_repository("app-gated", &git).await?;
    says(&stage, plan, 2, "is no child of GatedSource app").await?;
    says(
        &stage,
        "adopt ks/none --gate a",
        2,
        "there is no Kustomization `none`",
    )
    .await?;
    Ok(())
}
