//! For how long objects have to be as they should be, by a clock in hand, and over a restart.

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use sluice_crds::State;

use super::{WEB, deploy, report, says, shows, stage};
use crate::stage::Stage;

/// A Deployment that is available, and has to be for four minutes.
async fn soaking(word: &str) -> Result<Stage> {
    let stage = stage(word, &format!("of: [{WEB}], soak: 4m")).await?;
    deploy(&stage, stage.namespace(), "web", 1).await?;
    report(&stage, stage.namespace(), "web", "True", 1).await?;
    Ok(stage)
}

/// Since when it shows its objects to be as they should be.
async fn since(stage: &Stage, reason: &str) -> Result<Timestamp> {
    let shown = shows(stage, reason).await?;
    Ok(shown
        .satisfied_since
        .map_or(Timestamp::MAX, |since| since.0))
}

fn set(stage: &Stage, at: Timestamp) {
    stage.set(&at.to_string());
}

#[tokio::test]
async fn a_soak_starts_again_after_an_unready_moment() -> Result<()> {
    const SOAK: SignedDuration = SignedDuration::from_mins(4);
    const SECOND: SignedDuration = SignedDuration::from_secs(1);
    let stage = soaking("soak").await?;
    let home = stage.namespace();
    let controller = stage.start().await?;
    let status = says(
        &stage,
        State::Closed,
        "Soaking",
        "it has to be for 4m, until",
    )
    .await?;
    let first = since(&stage, "Soaking").await?;
    // The end of it is known ahead.
    let until = status.verdicts[0].verdict.valid_until.as_ref();
    assert_eq!(until.map(|until| until.0), Some(first + SOAK));

    // Longer than a look takes.
    set(&stage, first + SignedDuration::from_mins(3));
    report(&stage, home, "web", "False", 1).await?;
    report(&stage, home, "web", "True", 1).await?;
    let again = |status: &sluice_crds::GatekeeperStatus| {
        let objects = status.evidence.as_ref().and_then(|it| it.objects.as_ref());
        let since = objects.and_then(|objects| objects.satisfied_since.as_ref());
        since.is_some_and(|since| since.0 > first)
    };
    stage
        .until_gatekeeper("health", "another start", again)
        .await?;
    let second = since(&stage, "Soaking").await?;
    assert!(second >= first + SignedDuration::from_mins(3), "{second}");

    for early in [first + SOAK, second + SOAK - SECOND] {
        set(&stage, early);
        stage.settle().await?;
        says(&stage, State::Closed, "Soaking", "").await?;
    }
    set(&stage, second + SOAK);
    says(&stage, State::Open, "ObjectsReady", "1 of 1 object").await?;
    // The end of a soak is one write.
    stage.settle().await?;
    let writes = stage.writes(&controller).await?;
    set(&stage, second + SOAK + SECOND);
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await?, writes);
    Ok(())
}

#[tokio::test]
async fn a_soak_goes_on_over_a_restart_if_nothing_has_changed() -> Result<()> {
    let stage = soaking("soak-restart").await?;
    let first = stage.start().await?;
    says(&stage, State::Closed, "Soaking", "").await?;
    stage.settle().await?;
    let began = since(&stage, "Soaking").await?;
    first.stop().await;
    let versions = async || {
        let keeper = stage.gatekeepers().get("health").await?;
        let version = stage.version("production").await?;
        Ok::<_, anyhow::Error>((keeper.metadata.resource_version, version))
    };
    let before = versions().await?;

    // Nobody looks, and nothing happens.
    set(&stage, began + SignedDuration::from_mins(2));
    let second = stage.start().await?;
    stage.settle().await?;
    let looked = |status: &sluice_crds::GatekeeperStatus| status.verdict.is_some();
    stage
        .until_gatekeeper("health", "a verdict", looked)
        .await?;
    assert_eq!(versions().await?, before);
    set(&stage, began + SignedDuration::from_mins(4));
    says(&stage, State::Open, "ObjectsReady", "").await?;
    assert_eq!(since(&stage, "ObjectsReady").await?, began);
    stage.settle().await?;
    second.stop().await;

    // Nobody looks, and something does: it was another object meanwhile, for all that is known.
    report(&stage, stage.namespace(), "web", "False", 1).await?;
    report(&stage, stage.namespace(), "web", "True", 1).await?;
    set(&stage, began + SignedDuration::from_mins(6));
    let _third = stage.start().await?;
    says(&stage, State::Closed, "Soaking", "").await?;
    let anew = since(&stage, "Soaking").await?;
    assert!(anew >= began + SignedDuration::from_mins(6), "{anew}");
    Ok(())
}
