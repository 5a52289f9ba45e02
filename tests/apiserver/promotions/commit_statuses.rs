//! What somebody has found out about a commit is shown at a real Gitea.

use anyhow::{Context, Result};
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::commit_status::Phase;
use sluice_crds::{CommitStatus, CommitStatusStatus};
use sluice_tests::status;

use super::branches::{Branches, DEADLINE, NAME};

/// A name that branch protections of another tool require.
const OLD: &str = "promoter-previous-environment";

/// Somebody writes a CommitStatus of this name.
async fn write(scene: &Branches, name: &str, spec: Value) -> Result<()> {
    let mut whole = json!({"repoRef": {"name": NAME}});
    let fields = whole.as_object_mut().context("no object")?;
    fields.extend(spec.as_object().cloned().unwrap_or_default());
    scene
        .apply(&json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
            "metadata": {"name": name}, "spec": whole,
        }))
        .await
}

async fn until(
    scene: &Branches,
    name: &str,
    what: &str,
    is: impl Fn(&CommitStatusStatus) -> bool,
) -> Result<CommitStatus> {
    let what = format!("{name} {what}");
    status::until(&scene.commit_statuses(), name, DEADLINE, &what, is).await
}

/// Waits until the forge was told a phase.
async fn posted(scene: &Branches, name: &str, phase: Phase) -> Result<CommitStatus> {
    until(scene, name, "to be posted", |it| {
        let posted = it.posted.as_ref();
        posted.is_some_and(|posted| posted.phase == phase) && says(it, "Posted")
    })
    .await
}

/// Whether `Ready` has this reason.
fn says(status: &CommitStatusStatus, reason: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|it| it.type_ == "Ready" && it.reason == reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_found_out_is_shown_at_the_forge_once() -> Result<()> {
    let scene = Branches::open("commit-status", json!({})).await?;
    let controller = scene.start().await?;
    let (sha, name) = (scene.head("env/dev").await?, "ci/load-test");
    let spec = |phase: &str, description: &str| {
        json!({
            "sha": sha, "name": name, "phase": phase, "description": description,
            "url": "https://ci.example.com/7",
        })
    };
    let shown = async || scene.commit_status("env/dev", name).await;
    let pair = |state: &str, why: &str| (state.to_owned(), why.to_owned());

    write(&scene, "load-test", spec("in_progress", "begun")).await?;
    posted(&scene, "load-test", Phase::Pending).await?;
    assert_eq!(shown().await?, pair("pending", "begun"));
    write(&scene, "load-test", spec("success", "p99\n210 ms")).await?;
    posted(&scene, "load-test", Phase::Success).await?;
    assert_eq!(shown().await?, pair("success", "p99 210 ms"));
    write(&scene, "load-test", spec("cancelled", "p99 2 s")).await?;
    let told = posted(&scene, "load-test", Phase::Failure).await?;
    assert_eq!(shown().await?, pair("failure", "p99 2 s"));
    controller.stop().await;

    // Another process looks at it, and tells nothing again.
    let controller = scene.start().await?;
    let end = Timestamp::from_second(SystemClock.now().as_second() + 120)?;
    let mut lasts = spec("success", "for two minutes");
    lasts["name"] = "ci/smoke".into();
    lasts["expiresAt"] = end.to_string().into();
    write(&scene, "smoke", lasts).await?;
    posted(&scene, "smoke", Phase::Success).await?;
    assert_eq!(scene.told(&sha, name).await?, 3);
    let now = scene.commit_statuses().get("load-test").await?;
    assert_eq!(
        now.metadata.resource_version,
        told.metadata.resource_version
    );

    // Time passes.
    for _ in 0..12 {
        scene.pass();
    }
    posted(&scene, "smoke", Phase::Pending).await?;
    let (state, _) = scene.commit_status("env/dev", "ci/smoke").await?;
    assert_eq!(state, "pending");
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_shown_is_reported_and_stops_nothing_else() -> Result<()> {
    let scene = Branches::open("commit-status-bad", json!({"statusName": OLD})).await?;
    let controller = scene.start().await?;
    let sha = scene.head("env/dev").await?;
    let spec = |name: &str, sha: &str| json!({"sha": sha, "name": name, "phase": "success"});

    write(&scene, "wrong", spec("ci/wrong", &"b".repeat(40))).await?;
    write(&scene, "reserved", spec(OLD, &sha)).await?;
    let wrong = until(&scene, "wrong", "to be reported", |it| says(it, "NoCommit")).await?;
    let status = wrong.status.context("no status")?;
    assert!(status.posted.is_none() && status.next_attempt_at.is_some());
    let reserved = until(&scene, "reserved", "to be refused", |it| {
        says(it, "ReservedName")
    })
    .await?;
    let conditions = reserved.status.context("no status")?.conditions;
    assert!(conditions.iter().any(|it| it.type_ == "Stalled"));
    write(&scene, "right", spec("ci/right", &sha)).await?;
    posted(&scene, "right", Phase::Success).await?;
    let (state, _) = scene.commit_status("env/dev", "ci/right").await?;
    assert_eq!(state, "success");
    assert_eq!(scene.told(&sha, OLD).await?, 0);

    // The name is free once no strategy has it.
    let patch = Patch::Merge(json!({"spec": {"statusName": "sluice/promotion"}}));
    let params = PatchParams::default();
    scene.strategies().patch(NAME, &params, &patch).await?;
    posted(&scene, "reserved", Phase::Success).await?;

    let params = DeleteParams::default();
    scene.accesses().delete(NAME, &params).await?;
    for name in ["right", "reserved", "wrong"] {
        until(&scene, name, "to have no access", |it| {
            says(it, "AccessNotUsable")
        })
        .await?;
    }
    controller.stop().await;
    Ok(())
}
