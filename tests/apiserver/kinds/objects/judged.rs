//! Objects as they are: by a condition, by an expression, named and selected.

use anyhow::{Result, bail};
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use sluice_crds::State;
use sluice_tests::{Namespace, Writes};

use super::{READ, WEB, deploy, grant, report, says, shows, stage};
use crate::stage::Stage;

#[tokio::test]
async fn a_gate_is_open_while_an_object_has_its_condition() -> Result<()> {
    let stage = stage("objects", &format!("of: [{WEB}]")).await?;
    let home = stage.namespace();
    let _controller = stage.start().await?;
    let missing = format!("there is no Deployment {home}/web");
    says(&stage, State::Closed, "ObjectsNotReady", &missing).await?;

    deploy(&stage, home, "web", 2).await?;
    let without = format!("Deployment {home}/web: it has no condition Available");
    says(&stage, State::Closed, "ObjectsNotReady", &without).await?;
    report(&stage, home, "web", "False", 1).await?;
    let unready = "its condition Available is False (Tested), not True";
    says(&stage, State::Closed, "ObjectsNotReady", unready).await?;
    report(&stage, home, "web", "True", 1).await?;
    says(&stage, State::Open, "ObjectsReady", "1 of 1 object").await?;
    let shown = shows(&stage, "ObjectsReady").await?;
    assert_eq!((shown.seen, shown.satisfied), (1, 1));
    assert!(shown.satisfied_since.is_some() && shown.digest.is_some());

    // Another spec, that nobody has carried out yet.
    deploy(&stage, home, "web", 3).await?;
    let old = "its condition Available is about generation 1, and it is at 2";
    says(&stage, State::Closed, "ObjectsNotReady", old).await?;
    let shown = shows(&stage, "ObjectsNotReady").await?;
    assert_eq!((shown.seen, shown.satisfied), (1, 0));
    assert_eq!((shown.satisfied_since, shown.digest), (None, None));
    report(&stage, home, "web", "True", 2).await?;
    says(&stage, State::Open, "ObjectsReady", "").await?;

    let deployments: Api<Deployment> = Api::namespaced(stage.client(), home);
    deployments
        .delete("web", &DeleteParams::background())
        .await?;
    says(&stage, State::Closed, "ObjectsNotReady", &missing).await?;
    Ok(())
}

#[tokio::test]
async fn a_gate_is_open_while_an_expression_is_true_of_an_object() -> Result<()> {
    let of = "of: [{apiVersion: apps/v1, kind: Deployment, name: web, \
              expression: 'object.status.readyReplicas >= object.spec.replicas'}]";
    let stage = stage("objects-cel", of).await?;
    let home = stage.namespace();
    deploy(&stage, home, "web", 2).await?;
    let _controller = stage.start().await?;
    let nothing = "the expression cannot be evaluated: there is no key `readyReplicas`";
    says(&stage, State::Closed, "ObjectsNotReady", nothing).await?;
    let deployments: Api<Deployment> = Api::namespaced(stage.client(), home);
    for (ready, state, words) in [
        (1, State::Closed, "the expression is false"),
        (2, State::Open, "1 of 1 object is as it should be"),
    ] {
        let status = json!({"status": {"replicas": 2, "readyReplicas": ready}});
        let patch = status;
        deployments.merge_status("web", &patch).await?;
        let reason = match state {
            State::Open => "ObjectsReady",
            State::Closed | State::Conditional => "ObjectsNotReady",
        };
        says(&stage, state, reason, words).await?;
    }
    // Nothing tells what it has come to between two looks that a restart has parted.
    assert_eq!(shows(&stage, "ObjectsReady").await?.digest, None);
    Ok(())
}

/// In another namespace than the gatekeeper's, by labels; none of them is no reason to open.
#[tokio::test]
async fn all_that_a_selector_matches_have_to_be_ready() -> Result<()> {
    let stage = Stage::new("objects-selected", super::NOON).await?;
    let away = Namespace::create(stage.cluster(), "objects-away").await?;
    let of = format!(
        "of: [{{apiVersion: apps/v1, kind: Deployment, namespace: {}, \
         selector: {{matchLabels: {{tier: front}}}}, condition: {{type: Available}}}}]",
        away.name()
    );
    stage.apply(&super::keeper(&of)).await?;
    let kind = ("apps", "deployments");
    grant(&stage, away.name(), kind, READ).await?;
    // Of no matter: it is somewhere else.
    deploy(&stage, stage.namespace(), "web", 1).await?;
    let controller = stage.start().await?;
    let none = format!(
        "there is no Deployment in namespace {} with labels tier=front",
        away.name()
    );
    says(&stage, State::Closed, "NoObjects", &none).await?;
    for name in ["web", "api"] {
        deploy(&stage, away.name(), name, 1).await?;
        report(&stage, away.name(), name, "True", 1).await?;
    }
    says(&stage, State::Open, "ObjectsReady", "2 of 2 objects").await?;
    report(&stage, away.name(), "api", "Unknown", 1).await?;
    let words = format!(
        "health: Deployment {}/api: its condition Available is Unknown (Tested), not True",
        away.name()
    );
    says(&stage, State::Closed, "ObjectsNotReady", &words).await?;

    // It is none of them any more.
    let deployments: Api<Deployment> = Api::namespaced(stage.client(), away.name());
    let relabel = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    deployments.merge("api", relabel("back")).await?;
    says(&stage, State::Open, "ObjectsReady", "1 of 1 object").await?;

    // What changes nothing about them is no reason to write.
    stage.settle().await?;
    let writes = stage.writes(&controller).await?;
    let version = stage.gatekeepers().get("health").await?;
    deployments.merge("api", relabel("cellar")).await?;
    let note = json!({"metadata": {"labels": {"note": "seen"}}});
    deployments.merge("web", &note).await?;
    deploy(&stage, stage.namespace(), "other", 1).await?;
    // Seen after all these.
    report(&stage, away.name(), "web", "False", 1).await?;
    says(&stage, State::Closed, "ObjectsNotReady", "").await?;
    stage.settle().await?;
    assert_eq!(stage.writes(&controller).await?, writes + 1);
    let changes = changes(&stage, &version.metadata.resource_version.unwrap()).await?;
    assert_eq!(changes, 1);
    Ok(())
}

/// How often the gatekeeper was written after this version.
async fn changes(stage: &Stage, version: &str) -> Result<usize> {
    let gatekeepers = stage.gatekeepers();
    let last = gatekeepers.get("health").await?.resource_version();
    let health = WatchParams::default().fields("metadata.name=health");
    let mut watch = Box::pin(gatekeepers.watch(&health, version).await?);
    let mut changes = 0;
    while let Some(event) = watch.try_next().await? {
        let WatchEvent::Modified(gatekeeper) = event else {
            bail!("{event:?}");
        };
        changes += 1;
        if gatekeeper.resource_version() == last {
            break;
        }
    }
    Ok(changes)
}
