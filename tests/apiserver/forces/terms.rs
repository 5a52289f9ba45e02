//! How long a force lasts: with an end, without, too long, over before it was seen.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::json;
use sluice_crds::State;
use sluice_tests::Writes;

use super::force;
use crate::stage::{OFFICE_HOURS, Stage, at, message};

/// A stage where the annotations of the admin count, in office hours.
async fn noon(word: &str) -> Result<Stage> {
    let stage = Stage::installed(word, "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    Ok(stage)
}

#[tokio::test]
async fn a_force_outlives_the_window_and_ends_when_it_says() -> Result<()> {
    let stage = noon("end").await?;
    let _controller = stage.start().await?;
    let mut annotations = force("open", "admin");
    annotations["sluice.dev/force-until"] = json!("2026-11-20T18:30:00+01:00");
    stage.annotate("production", annotations).await?;
    let forced = stage.says("production", State::Open, "Forced").await?;
    // Within the window, and past its end.
    assert_eq!(
        forced.r#override.unwrap().until.0,
        at("2026-11-20T17:30:00Z")
    );
    assert_eq!(forced.upcoming[0].at.0, at("2026-11-20T17:30:00Z"));
    stage.set("2026-11-20T17:29:59.999Z");
    stage.settle().await?;
    stage.says("production", State::Open, "Forced").await?;
    stage.set("2026-11-20T17:30:00Z");
    let closed = stage.out_of_hours().await?;
    assert_eq!(closed.since.unwrap().0, at("2026-11-20T17:30:00Z"));
    Ok(())
}

#[tokio::test]
async fn a_force_that_is_too_long_stays_refused() -> Result<()> {
    let stage = noon("long").await?;
    let _controller = stage.start().await?;
    let mut annotations = force("closed", "admin");
    annotations["sluice.dev/force-until"] = json!("2026-11-21T13:00:00Z");
    stage.annotate("production", annotations).await?;
    let complained = |now: &'static str| {
        let stage = &stage;
        async move {
            stage.set(now);
            stage.settle().await?;
            let status = stage.gates().get("production").await?.status.unwrap();
            let told = message(&status).to_owned();
            let words = "metadata.annotations[sluice.dev/force-until]: the force would last 25h; \
                         write an end at most 24h (spec.maxOverride) ahead";
            ensure!(
                told.contains(words) && status.r#override.is_none(),
                "{now}: {told}"
            );
            Ok(status.state)
        }
    };
    assert_eq!(complained("2026-11-20T12:00:00Z").await?, Some(State::Open));
    // Now the end is less than a day ahead.
    assert_eq!(complained("2026-11-20T14:00:00Z").await?, Some(State::Open));
    assert_eq!(
        complained("2026-11-21T12:59:00Z").await?,
        Some(State::Closed)
    );

    stage.set("2026-11-20T14:00:00Z");
    let shorter = json!({"sluice.dev/force-until": "2026-11-20T15:00:00Z"});
    stage.annotate("production", shorter).await?;
    stage.says("production", State::Closed, "Forced").await?;
    Ok(())
}

/// A backup brings back what was there: a force that has ended, as people wrote it and as the
/// controller had completed it. Where the policies are, they refuse both.
#[tokio::test]
async fn a_restored_gate_is_not_forced_again() -> Result<()> {
    let stage = Stage::new("restored", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _controller = stage.start_with(settings).await?;
    stage
        .annotate("production", force("closed", "admin"))
        .await?;
    stage.says("production", State::Closed, "Forced").await?;
    stage.settle().await?;
    let mut backup = stage.gates().get("production").await?;
    backup.metadata = ObjectMeta {
        name: backup.metadata.name,
        annotations: backup.metadata.annotations,
        ..ObjectMeta::default()
    };
    stage.set("2026-11-20T13:00:00Z");
    stage.in_hours().await?;

    let gates = stage.gates();
    gates.remove("production").await?;
    gates.add(&backup).await?;
    let open = stage.in_hours().await?;
    assert!(!message(&open).contains("force"), "{}", message(&open));

    gates.remove("production").await?;
    backup.annotations_mut().remove("sluice.dev/force-seen");
    gates.add(&backup).await?;
    let open = stage.in_hours().await?;
    let words = "the end Fri 2026-11-20 13:00 UTC has passed; write a later end, or remove it";
    assert!(message(&open).contains(words), "{}", message(&open));
    Ok(())
}
