//! What is stored and served here, for sources that cannot be pinned.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use gate_controller::Settings;
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::{Bucket, Git};
use sluice_tests::{Writes, poll};
use tempfile::TempDir;

use crate::delivery::{APP, CLOSED, GATE, OPEN, UPSTREAM};
use crate::stage::{DEADLINE, Stage, app};

const NOW: &str = "2026-11-19T12:00:00Z";

/// The settings of a controller that keeps artifacts in a folder.
pub fn storing(stage: &Stage<'_>, folder: &TempDir) -> Result<Settings> {
    let mut settings = stage.settings();
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    settings.storage_path = Some(folder.path().to_owned());
    settings.storage_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
    Ok(settings)
}

/// Gates a source behind an open gate, for a Kustomization that applies the copy. Returns a controller
/// that keeps copies in a folder.
pub async fn copied(stage: &Stage<'_>, source: Value, folder: &TempDir) -> Result<InProcess> {
    stage.keep(GATE, OPEN).await?;
    let mut source = source;
    source["strategy"] = json!("artifact");
    stage.gate_source(APP, source).await?;
    stage.kustomization(APP, "ExternalArtifact", APP).await?;
    stage.start_with(storing(stage, folder)?).await
}

/// What is in a bucket waits like a commit: a copy of what was admitted is kept and served here.
#[tokio::test]
async fn what_a_bucket_held_when_the_gate_closed_is_served_until_it_opens() -> Result<()> {
    let stage = Stage::new("served-bucket", NOW).await?;
    let bucket = Bucket::serve().await?;
    let put = async |word: &str, before: &str| -> Result<String> {
        bucket.put("app.yaml", &app(APP, word));
        stage.reconcile("Bucket", UPSTREAM).await?;
        let brings = |object: &Value| {
            let revision = object["status"]["artifact"]["revision"].as_str();
            revision.is_some_and(|revision| revision != before)
        };
        let upstream = stage
            .object("Bucket", UPSTREAM, &format!("to bring {word}"), brings)
            .await?;
        let revision = upstream.data["status"]["artifact"]["revision"].as_str();
        Ok(revision.context("no revision")?.to_owned())
    };
    stage.bucket(UPSTREAM, &bucket).await?;
    let one = put("one", "").await?;
    let source = json!({"sourceRef": {"kind": "Bucket", "name": UPSTREAM}});
    let folder = tempfile::tempdir()?;
    let _controller = copied(&stage, source, &folder).await?;
    stage.serves(APP, &one).await?;
    stage.applied(APP, &one).await?;
    stage.deployed(APP, "one").await?;
    stage.keep(GATE, CLOSED).await?;
    let two = put("two", &one).await?;
    let waits = stage.pends(APP, &two).await?;
    let admitted = waits.admitted.context("nothing is out")?;
    ensure!(admitted.revision == one, "{admitted:?}");
    stage.lose(APP).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.deployed(APP, "one").await?;
    stage.applied(APP, &one).await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &two).await?;
    stage.applied(APP, &two).await?;
    stage.deployed(APP, "two").await
}

/// Three revisions go out one after another: of the first two nothing is kept for longer than somebody
/// may still fetch them, and of the last nothing once nobody serves it.
#[tokio::test]
async fn only_what_is_out_or_waits_is_kept() -> Result<()> {
    let stage = Stage::new("kept", NOW).await?;
    let git = Git::serve().await?;
    let push = async |word: &str| -> Result<String> {
        let commit = git.commit(&[("app.yaml", &app(APP, word))])?;
        stage.reconcile("GitRepository", UPSTREAM).await?;
        Ok(Git::revision(&commit))
    };
    git.commit(&[("app.yaml", &app(APP, "none"))])?;
    stage.git_repository(UPSTREAM, &git).await?;
    let folder = tempfile::tempdir()?;
    let controller = copied(&stage, json!({}), &folder).await?;
    for word in ["one", "two"] {
        let revision = push(word).await?;
        stage.serves(APP, &revision).await?;
        stage.applied(APP, &revision).await?;
    }
    // What waits is kept beside what is out.
    stage.keep(GATE, CLOSED).await?;
    let three = push("three").await?;
    stage.pends(APP, &three).await?;
    stage.set("2026-11-19T12:02:00Z");
    keeps(&controller, &folder, 2).await?;
    stage.keep(GATE, OPEN).await?;
    stage.serves(APP, &three).await?;
    stage.applied(APP, &three).await?;
    stage.set("2026-11-19T12:04:00Z");
    keeps(&controller, &folder, 1).await?;
    stage.deployed(APP, "three").await?;

    // Left behind, the child goes on being served; when it goes, its copy goes.
    stage.gated().remove(APP).await?;
    stage.settle().await?;
    stage.set("2026-11-19T12:06:00Z");
    stage.settle().await?;
    keeps(&controller, &folder, 1).await?;
    stage.lose(APP).await?;
    stage.reconcile("Kustomization", APP).await?;
    stage.deployed(APP, "three").await?;
    stage.api("ExternalArtifact")?.remove(APP).await?;
    // What is not needed any more is noticed at some instant, and goes a minute after.
    let mut minute = stage.now();
    poll(DEADLINE, "the last copy to go", async || {
        minute = minute.saturating_add(jiff::SignedDuration::from_secs(61))?;
        stage.set(&minute.to_string());
        counts(&controller, &folder, 0).await
    })
    .await
}

/// With its child goes the copy, where that is what somebody asked for.
#[tokio::test]
async fn a_copy_goes_with_its_gated_source_where_the_policy_says_so() -> Result<()> {
    let stage = Stage::new("gone", NOW).await?;
    let git = Git::serve().await?;
    let one = git.commit(&[("app.yaml", &app(APP, "one"))])?;
    stage.git_repository(UPSTREAM, &git).await?;
    stage.keep(GATE, OPEN).await?;
    let with = json!({"strategy": "artifact", "deletionPolicy": "Delete"});
    stage.gate_source(APP, with).await?;
    let folder = tempfile::tempdir()?;
    let controller = stage.start_with(storing(&stage, &folder)?).await?;
    stage.serves(APP, &Git::revision(&one)).await?;
    keeps(&controller, &folder, 1).await?;
    stage.gated().remove(APP).await?;
    let children = stage.api("ExternalArtifact")?;
    poll(DEADLINE, "both to be gone", async || {
        let left = (
            children.get_opt(APP).await?,
            stage.gated().get_opt(APP).await?,
        );
        ensure!(left.0.is_none() && left.1.is_none(), "{left:?}");
        Ok(())
    })
    .await?;
    stage.settle().await?;
    stage.set("2026-11-19T12:02:00Z");
    keeps(&controller, &folder, 0).await?;
    // The source is somebody else's.
    stage.reconcile("GitRepository", UPSTREAM).await?;
    Ok(())
}

/// Waits until so many artifacts are stored.
async fn keeps(controller: &InProcess, folder: &TempDir, count: usize) -> Result<()> {
    let what = format!("{count} artifacts to be stored");
    poll(DEADLINE, &what, async || {
        counts(controller, folder, count).await
    })
    .await
}

/// So many artifacts are on the disk, and the metric says so.
async fn counts(controller: &InProcess, folder: &TempDir, count: usize) -> Result<()> {
    let config = Config::new(format!("http://{}", controller.metrics()?).parse()?);
    let request = Request::get("/metrics").body(Body::empty())?;
    let answer = Client::try_from(config)?.send(request).await?;
    let page = answer.into_body().collect_bytes().await?;
    let page = String::from_utf8(page.to_vec())?;
    let said = page
        .lines()
        .find(|line| line.starts_with("sluice_artifacts "));
    let expected = format!("sluice_artifacts {count}");
    ensure!(said == Some(&expected), "{said:?}");
    let stored = files(folder.path())?;
    ensure!(stored.len() == count, "{stored:?}");
    Ok(())
}

/// The artifacts below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|end| end == "gz") {
            found.push(path);
        }
    }
    Ok(found)
}
