//! The guides, run as people run them: what they have one type is typed, with a real kubectl, and
//! answers what they say.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_crds::GatedSourceStatus;
use sluice_crds::gated_source::Origin;
use sluice_tests::flux::{Git, World};
use sluice_tests::poll;
use sluice_tests::stage::at;

use crate::delivery::says;
use crate::guide::Guide;
use crate::stage::{DEADLINE, Stage, app};

/// Before the freeze of the example, within it, and after it.
const BEFORE: &str = "2026-12-10T12:00:00Z";
const FREEZE: &str = "2026-12-21T12:00:00Z";
const AFTER: &str = "2027-01-04T00:00:00Z";

/// The commits of the guides.
const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";

/// Where the app of the examples is.
const URL: &str = "https://git.example.com/shop/app.git";
/// What the upstream of the examples and everything else are called.
const UPSTREAM: &str = "app-upstream";
const APP: &str = "app";

/// A commit whose objects say where they go, as the examples want it.
fn commit(git: &Git, namespace: &str, word: &str) -> Result<String> {
    let mut map: serde_json::Value = serde_json::from_str(&app(APP, word))?;
    map["metadata"]["namespace"] = json!(namespace);
    git.commit(&[("app.yaml", &map.to_string())])
}

/// The guide of the freeze, from the first command to the end of the freeze.
#[tokio::test]
async fn a_freeze_with_drift_correction() -> Result<()> {
    let stage = Stage::new("guide-freeze", BEFORE).await?;
    let git = Git::serve().await?;
    let mut guide = Guide::of(
        stage.cluster(),
        include_str!("../../docs/guides/freeze-with-drift-correction.md"),
    )?;
    guide.says("apps", stage.namespace());
    guide.says(URL, &git.url());
    let one = commit(&git, stage.namespace(), "one")?;
    guide.commit(ONE, &one);
    let controller = stage.start_with_egress().await?;
    guide.run("Set it up").await?;
    stage.deployed(APP, "one").await?;

    stage.set(FREEZE);
    let two = commit(&git, stage.namespace(), "two")?;
    guide.commit(TWO, &two);
    stage.reconcile("GitRepository", UPSTREAM).await?;
    guide.run("In the freeze").await?;
    stage.deployed(APP, "one").await?;

    commit(&git, stage.namespace(), "three")?;
    stage.reconcile("GitRepository", UPSTREAM).await?;
    let exception = guide.block("One commit that cannot wait", "yaml", 0)?;
    guide.write("exception.yaml", &exception)?;
    guide.run("One commit that cannot wait").await?;
    stage.deployed(APP, "two").await?;

    let spread = guide.block("When the freeze is over", "yaml", 0)?;
    stage.apply(&spread).await?;
    stage.set(AFTER);
    let takes_its_turn = |status: &GatedSourceStatus| {
        let at = status.pending.as_ref().and_then(|it| it.admit_at.as_ref());
        at.is_some() && says(status, "Blocked") == Some(("True", "Spread"))
    };
    let status = stage
        .source(APP, "to wait for its turn", takes_its_turn)
        .await?;
    let turn = status.pending.and_then(|it| it.admit_at).context("none")?;
    ensure!(turn.0 <= at("2027-01-04T00:10:00Z"), "{turn:?}");
    stage.set(&turn.0.to_string());
    stage.deployed(APP, "three").await?;
    drop(controller);
    Ok(())
}

/// The guide of the wiped store, in a world of its own: all others in it would lose artifacts.
#[tokio::test]
async fn recover_after_a_wiped_store() -> Result<()> {
    let world = World::start().await?;
    let stage = Stage::within(&world, "guide-wiped", BEFORE).await?;
    let git = Git::serve().await?;
    let text = include_str!("../../docs/guides/recover-after-a-wiped-store.md");
    let mut guide = Guide::of(stage.cluster(), text)?;
    guide.says("apps", stage.namespace());
    guide.says(URL, &git.url());
    let one = commit(&git, stage.namespace(), "one")?;
    guide.commit(ONE, &one);
    let _controller = stage.start_with_egress().await?;
    stage
        .apply(&guide.file("examples/gated-source.yaml")?)
        .await?;
    stage.applied(APP, &Git::revision(&one)).await?;
    stage.set(FREEZE);
    let two = commit(&git, stage.namespace(), "two")?;
    guide.commit(TWO, &two);
    stage.reconcile("GitRepository", UPSTREAM).await?;
    guide.run("Recover after a wiped store").await?;

    world.flux.replace_source().await?;
    guide.run("The pod is replaced").await?;
    comes_back(&stage).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.applied(APP, &Git::revision(&one)).await?;

    world.flux.wipe()?;
    stage.reconcile("Kustomization", APP).await?;
    guide.run("The disk is lost, but not the pod").await?;

    guide.run("The GatedSource is lost").await?;
    stage.pends(APP, &Git::revision(&two)).await?;

    // The branch has another history, and then everything is lost.
    let other = git.commit_to("other", &[("other.yaml", &app("other", "x"))])?;
    git.reset(&other)?;
    world.flux.replace_source().await?;
    guide.run("The upstream no longer has the revision").await?;
    git.reset(&two)?;
    stage.reconcile("GatedSource", APP).await?;
    stage
        .fetched("GitRepository", APP, &Git::revision(&one))
        .await?;
    stage.holds(APP, "Recoverable", "True", "Pinned").await?;
    Ok(())
}

/// The same guide, where the whole cluster is lost in a freeze: without a word of what was out nothing is
/// deployed, and with the baseline of the page what was out is.
#[tokio::test]
async fn recover_after_a_lost_cluster() -> Result<()> {
    let stage = Stage::new("guide-lost", FREEZE).await?;
    let git = Git::serve().await?;
    let text = include_str!("../../docs/guides/recover-after-a-wiped-store.md");
    let mut guide = Guide::of(stage.cluster(), text)?;
    guide.says("apps", stage.namespace());
    guide.says(URL, &git.url());
    let one = commit(&git, stage.namespace(), "one")?;
    guide.commit(ONE, &one);
    let two = commit(&git, stage.namespace(), "two")?;
    let _controller = stage.start_with_egress().await?;
    let example = guide.file("examples/gated-source.yaml")?;
    stage.apply(&example).await?;
    let status = stage.pends(APP, &Git::revision(&two)).await?;
    ensure!(status.admitted.is_none(), "{:?}", status.admitted);
    stage.holds(APP, "Ready", "True", "NothingAdmitted").await?;
    ensure!(stage.says_now(APP).await?.is_none(), "it is deployed");

    let heading = "The cluster is lost";
    stage.apply(&guide.block(heading, "yaml", 0)?).await?;
    stage.applied(APP, &Git::revision(&one)).await?;
    stage.deployed(APP, "one").await?;
    let status = stage.pends(APP, &Git::revision(&two)).await?;
    let admitted = status.admitted.context("nothing is out")?;
    ensure!(admitted.origin == Origin::Baseline, "{admitted:?}");
    guide.sh(&guide.block(heading, "sh", 0)?).await?;

    // It may stay where it is: what goes out later is not taken back.
    stage.set(AFTER);
    stage.deployed(APP, "two").await?;
    stage.reconcile("GatedSource", APP).await?;
    stage.serves(APP, &Git::revision(&two)).await?;
    Ok(())
}

/// Waits until the file of the child is in the store: its status may be that of before.
async fn comes_back(stage: &Stage<'_>) -> Result<()> {
    poll(DEADLINE, "the child's file to be back", async || {
        let child = stage.api("GitRepository")?.get(APP).await?.data;
        let path = child["status"]["artifact"]["path"].as_str();
        let file = stage
            .world()
            .flux
            .store()
            .join(path.context("no artifact")?);
        ensure!(file.exists(), "{} is not there", file.display());
        Ok(())
    })
    .await
}

/// The guide of the tenants, in a world of its own: its gates and namespaces have the guide's names.
#[tokio::test]
async fn multi_tenancy() -> Result<()> {
    let world = World::start().await?;
    let stage = Stage::within(&world, "guide-tenants", BEFORE).await?;
    let git = Git::serve().await?;
    let text = include_str!("../../docs/guides/multi-tenancy.md");
    let mut guide = Guide::of(stage.cluster(), text)?;
    guide.says(URL, &git.url());
    guide.commit(ONE, &commit(&git, "shop", "one")?);
    let mut settings = stage.settings();
    settings.watch_all_namespaces = true;
    let _controller = stage.start_with(settings).await?;
    let blocks = [
        ("The team's role", 0),
        ("The platform's part", 0),
        ("The platform's part", 1),
    ];
    for (heading, place) in blocks {
        guide.write("block.yaml", &guide.block(heading, "yaml", place)?)?;
        guide.sh("kubectl apply --filename block.yaml").await?;
    }
    guide.run("Try it").await?;
    Ok(())
}

/// The API server takes every example.
#[tokio::test]
async fn the_api_server_takes_the_examples() -> Result<()> {
    let stage = Stage::new("guide-examples", BEFORE).await?;
    let guide = Guide::of(stage.cluster(), "")?;
    let namespace = stage.namespace();
    for kind in ["", "-artifact", "-chart", "-suspend", "-together"] {
        let file = format!("examples/gated-source{kind}.yaml");
        let take =
            format!("kubectl apply --dry-run=server --namespace {namespace} --filename {file}");
        guide.sh(&take).await.with_context(|| file)?;
    }
    Ok(())
}
