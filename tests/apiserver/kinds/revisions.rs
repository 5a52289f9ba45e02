//! Lists of revisions, in the spec and in ConfigMaps.

use anyhow::{Result, ensure};
use sluice_crds::State;
use sluice_tests::poll;

use super::{COMMIT, asked, still_passes};
use crate::stage::{DEADLINE, Stage};

const NOON: &str = "2026-11-20T12:00:00Z";

const RELEASES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: releases}
data: {allowed: \"v1.4.*  # this month\\n\"}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: releases}
spec:
  revisions:
    allowFrom: [{configMapRef: {name: releases, key: allowed}}]
    deny: [v1.4.3]
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: releases}]}
";

#[tokio::test]
async fn a_gate_lets_those_revisions_pass_that_its_lists_allow() -> Result<()> {
    let stage = Stage::new("revisions", NOON).await?;
    stage.apply(RELEASES).await?;
    let controller = stage.start().await?;
    let status = stage
        .says("production", State::Conditional, "DependsOnRevision")
        .await?;
    assert_eq!(status.verdicts[0].verdict.state, State::Conditional);

    let state = async |tag: &str| {
        let revision = format!("{tag}@sha1:{COMMIT}");
        asked(&stage, &controller, "production", &revision).await
    };
    assert_eq!(state("v1.4.2").await?.0, State::Open);
    let (denied, why) = state("v1.4.3").await?;
    assert_eq!(denied, State::Closed);
    assert!(why.contains("v1.4.3"), "{why}");
    assert_eq!(state("v1.5.0").await?.0, State::Closed);

    // The list is watched.
    stage
        .apply(&RELEASES.replace("v1.4.*  #", "v1.5.*  #"))
        .await?;
    poll(DEADLINE, "the other list to count", async || {
        let (newer, why) = state("v1.5.0").await?;
        ensure!(newer == State::Open, "{why}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    assert_eq!(state("v1.4.2").await?.0, State::Closed);

    // A list that makes no sense lets nothing pass, and the status names the line.
    stage
        .apply(&RELEASES.replace("v1.4.*  # this month", "v1.5.*\\n>=x"))
        .await?;
    let status = stage
        .says("production", State::Closed, "EvidenceBroken")
        .await?;
    let message = status.message.unwrap_or_default();
    assert!(message.contains("line 2"), "{message}");
    assert_eq!(state("v1.5.0").await?.0, State::Closed);
    Ok(())
}

/// A controller that starts again says of no revision that it is not allowed only because the
/// lists have not been read yet, and writes nothing.
#[tokio::test]
async fn lists_are_read_before_anything_is_decided() -> Result<()> {
    let stage = Stage::new("revisions-restart", NOON).await?;
    stage.apply(RELEASES).await?;
    still_passes(&stage, "releases", &format!("v1.4.2@sha1:{COMMIT}")).await
}
