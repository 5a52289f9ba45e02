//! `open`, `close` and `reset`.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use sluice_crds::State;
use sluice_tests::poll;

use super::{GATES, guarded, says};
use crate::stage::{DEADLINE, Stage, soon};

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
    let past = "2026-01-01T00:00:00Z";
    let until = ["open", "closed", "--until", past, "--reason", "hotfix"];
    says(&stage, "admin", &until, 2, "has passed; write a later end").await?;

    let waits = |time| ["open", "closed", "--reason", "hotfix", "--timeout", time];
    let unconfirmed = "closed: written, not yet confirmed by the controller: forced open by admin";
    let waited = says(&stage, "admin", &waits("300ms"), 0, unconfirmed).await?;
    let warning = "warning: no controller has answered within 300ms";
    ensure!(waited.err.starts_with(warning), "{}", waited.err);
    let at_once = says(&stage, "admin", &waits("0"), 0, unconfirmed).await?;
    ensure!(at_once.err.is_empty(), "{}", at_once.err);
    let close = ["close", "closed", "--reason", "wait", "--timeout", "0"];
    let replaced = says(&stage, "admin", &close, 0, "forced closed by admin").await?;
    ensure!(!replaced.out.contains("is forced"), "{}", replaced.out);

    says(&stage, "admin", &waits("0"), 0, unconfirmed).await?;
    let unseen = "no controller has accepted the force open by admin, so it does not count yet";
    says(&stage, "admin", &["check", "closed"], 1, unseen).await?;
    let trusting = ["check", "closed", "--trust-unverified-identity"];
    says(&stage, "admin", &trusting, 0, "forced open by admin").await?;
    let ignored = "ignored: metadata.annotations[sluice.dev/force-seen]: ";
    says(&stage, "admin", &["why", "closed"], 0, ignored).await?;
    Ok(())
}

#[tokio::test]
async fn a_force_that_the_controller_refuses_is_no_success() -> Result<()> {
    let stage = Stage::new("cli-refused", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    let wary = stage.start_in_real_time(stage.client()).await?;
    let force = ["open", "closed", "--for", "2h", "--reason", "hotfix"];
    let unverified = "closed: written, but not accepted: metadata.annotations: the gate is forced \
                      by somebody whose identity nobody verified";
    // The second one is refused in the same words as the first.
    for _ in 0..2 {
        says(&stage, "admin", &force, 1, unverified).await?;
    }
    wary.stop().await;

    // A controller whose clock is an hour behind.
    stage.clock().set(soon(-3600)?);
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _trusting = stage.start_with(settings).await?;
    let too_long = "closed: written, but not accepted: metadata.annotations[sluice.dev/force-until]: \
                    the force would last ";
    says(&stage, "admin", &force, 1, too_long).await?;
    let shorter = ["open", "closed", "--for", "30m", "--reason", "hotfix"];
    says(
        &stage,
        "admin",
        &shorter,
        0,
        "closed is forced open by admin",
    )
    .await?;
    Ok(())
}

/// Clocks are never quite the same: the longest force is not too long for a controller whose clock
/// is a little behind.
#[tokio::test]
async fn the_longest_force_is_not_too_long() -> Result<()> {
    let stage = Stage::new("cli-longest", "2026-11-20T12:00:00Z").await?;
    stage.apply(GATES).await?;
    stage.clock().set(soon(-30)?);
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _controller = stage.start_with(settings).await?;
    let longest = ["open", "closed", "--for", "2h", "--reason", "hotfix"];
    says(
        &stage,
        "admin",
        &longest,
        0,
        "closed is forced open by admin",
    )
    .await?;
    Ok(())
}
