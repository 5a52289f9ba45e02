//! What a gatekeeper sees is what the service account that it names may read: asked again every
//! minute, and every 15 seconds while it may not.

use anyhow::Result;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use sluice_crds::State;
use sluice_tests::Writes;

use super::{NOON, READ, WEB, deploy, grant, keeper, report, says};
use crate::stage::Stage;

const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");

fn pass(stage: &Stage, seconds: i64) {
    let later = stage.now() + SignedDuration::from_secs(seconds);
    stage.set(&later.to_string());
}

#[tokio::test]
async fn a_right_that_is_taken_away_closes_the_gate_within_a_minute() -> Result<()> {
    let stage = Stage::new("objects-rights", NOON).await?;
    let home = stage.namespace().to_owned();
    stage.apply(&keeper(&format!("of: [{WEB}]"))).await?;
    deploy(&stage, &home, "web", 1).await?;
    report(&stage, &home, "web", "True", 1).await?;
    grant(&stage, &home, DEPLOYMENTS, &[]).await?;
    let _controller = stage.start().await?;
    let denied = format!(
        "the service account {home}/reader may not get deployments.apps web in namespace {home}: \
         grant it get, list, watch"
    );
    says(&stage, State::Closed, "EvidenceUnavailable", &denied).await?;

    grant(&stage, &home, DEPLOYMENTS, READ).await?;
    pass(&stage, 15);
    says(&stage, State::Open, "ObjectsReady", "").await?;
    pass(&stage, 30);
    report(&stage, &home, "web", "False", 1).await?;
    says(&stage, State::Closed, "ObjectsNotReady", "").await?;
    report(&stage, &home, "web", "True", 1).await?;
    says(&stage, State::Open, "ObjectsReady", "").await?;

    grant(&stage, &home, DEPLOYMENTS, &[]).await?;
    pass(&stage, 29);
    stage.settle().await?;
    says(&stage, State::Open, "ObjectsReady", "").await?;
    pass(&stage, 1);
    says(&stage, State::Closed, "EvidenceUnavailable", &denied).await?;

    // Given again, it is noticed within 15 seconds.
    grant(&stage, &home, DEPLOYMENTS, READ).await?;
    pass(&stage, 15);
    says(&stage, State::Open, "ObjectsReady", "").await?;
    Ok(())
}

#[tokio::test]
async fn an_account_that_is_not_there_sees_nothing() -> Result<()> {
    let stage = super::stage("objects-account", &format!("of: [{WEB}]")).await?;
    let home = stage.namespace().to_owned();
    deploy(&stage, &home, "web", 1).await?;
    report(&stage, &home, "web", "True", 1).await?;
    // It has the right, and is gone.
    let accounts: Api<ServiceAccount> = Api::namespaced(stage.client(), &home);
    accounts.remove("reader").await?;
    let _controller = stage.start().await?;
    let missing = format!("there is no service account {home}/reader");
    says(&stage, State::Closed, "EvidenceUnavailable", &missing).await?;
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}";
    stage.apply(account).await?;
    pass(&stage, 15);
    says(&stage, State::Open, "ObjectsReady", "").await?;
    Ok(())
}
