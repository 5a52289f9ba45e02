//! `open`, `close` and `reset`.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use sluice_crds::State;
use sluice_tests::poll;

use super::{GATES, guarded, says};
use crate::stage::{DEADLINE, Stage};

#[tokio::test]
async fn a_force_has_a_who_a_why_and_an_end() -> Result<()> {
    let (stage, _controller) = guarded().await?;
    let open = ["open", "closed", "--for", "30m", "--reason", "hotfix 4711"];
    let refused = poll(DEADLINE, "the bindings to be in effect", async || {
        says(&stage, "eve", &open, 2, "which needs the verb override").await
    });
    ensure!(refused.await?.err.lines().count() == 1);
    let too_long = ["open", "closed", "--for", "3h", "--reason", "hotfix 4711"];
    says(
        &stage,
        "carol",
        &too_long,
        2,
        "longer than the gate allows (spec.maxOverride); write an end at most 2h ahead",
    )
    .await?;
    ensure!(
        stage
            .gates()
            .get("closed")
            .await?
            .annotations()
            .get("sluice.dev/force")
            .is_none()
    );

    poll(DEADLINE, "the right to force to be in effect", async || {
        says(
            &stage,
            "carol",
            &open,
            0,
            "closed is forced open by carol until ",
        )
        .await
    })
    .await?;
    let gate = stage.gates().get("closed").await?;
    let annotation = |name: &str| gate.annotations().get(name).cloned().unwrap_or_default();
    ensure!(annotation("sluice.dev/force-by") == "carol");
    ensure!(annotation("sluice.dev/force-reason") == "hotfix 4711");
    // What a manager whose name begins with kubectl owns is taken away by Flux.
    let managers: Vec<_> = gate
        .managed_fields()
        .iter()
        .filter_map(|fields| fields.manager.as_deref())
        .collect();
    ensure!(managers.contains(&"sluice-cli"), "{managers:?}");
    ensure!(
        !managers
            .iter()
            .any(|manager| manager.starts_with("kubectl")),
        "{managers:?}"
    );

    stage.says("closed", State::Open, "Forced").await?;
    says(
        &stage,
        "victor",
        &["check", "closed"],
        0,
        "forced open by carol until",
    )
    .await?;
    says(&stage, "victor", &["get", "closed"], 0, "carol").await?;
    says(
        &stage,
        "victor",
        &["why", "closed"],
        0,
        "forced open by carol since ",
    )
    .await?;
    let drawn = says(
        &stage,
        "victor",
        &["calendar", "closed", "--days", "2"],
        0,
        "forced open by carol: hotfix 4711",
    )
    .await?;
    ensure!(drawn.out.contains('▲'), "{}", drawn.out);

    let close = ["close", "closed", "--reason", "no, wait"];
    let replaced = says(
        &stage,
        "carol",
        &close,
        0,
        "closed is forced closed by carol",
    )
    .await?;
    ensure!(
        replaced.out.contains("in place of: forced open by carol"),
        "{}",
        replaced.out
    );
    stage.says("closed", State::Closed, "Forced").await?;
    says(
        &stage,
        "eve",
        &["reset", "closed"],
        2,
        "which needs the verb override",
    )
    .await?;
    says(
        &stage,
        "carol",
        &["reset", "closed"],
        0,
        "closed is no longer forced",
    )
    .await?;
    stage.says("closed", State::Closed, "Manual").await?;
    says(
        &stage,
        "carol",
        &["reset", "closed"],
        0,
        "closed is not forced",
    )
    .await?;
    let left: Vec<String> = stage
        .gates()
        .get("closed")
        .await?
        .annotations()
        .keys()
        .cloned()
        .collect();
    ensure!(
        left.iter().all(|name| !name.starts_with("sluice.dev/")),
        "{left:?}"
    );
    Ok(())
}

/// Without a controller that knows who forces, a force does not count, unless one says so.
#[tokio::test]
async fn a_force_that_nobody_accepted_does_not_count() -> Result<()> {
    let stage = Stage::new("cli-unverified", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let until = [
        "open",
        "closed",
        "--until",
        "2026-01-01T00:00:00Z",
        "--reason",
        "hotfix",
    ];
    says(&stage, "admin", &until, 2, "has passed; write a later end").await?;
    says(
        &stage,
        "admin",
        &["open", "closed", "--reason", "hotfix"],
        0,
        "is forced open by admin",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "closed"],
        1,
        "whose identity nobody verified",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["check", "closed", "--trust-unverified-identity"],
        0,
        "forced open by admin",
    )
    .await?;
    says(
        &stage,
        "admin",
        &["why", "closed"],
        0,
        "ignored: metadata.annotations: ",
    )
    .await?;
    Ok(())
}
