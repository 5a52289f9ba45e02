//! Deployments: a pair that is scaled against each other, and what a paused one does.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica};

use crate::scene::Scene;

#[tokio::test]
async fn two_are_scaled_against_each_other() -> Result<()> {
    let scene = Scene::new("pair").await?;
    let old = scene.create(Kind::Deployment, "old", json!({"replicas": 3}));
    let old = old.await?;
    let new = scene.create(Kind::Deployment, "new", json!({"replicas": 0}));
    let new = new.await?;
    old.has(Counts::all(3)).await?;
    new.scale(2).await?;
    new.has(Counts::all(2)).await?;
    let kept = old.pods().await?;
    old.scale(1).await?;
    old.has(Counts::all(1)).await?;
    let left = old.pods().await?;
    assert!(left.iter().all(|pod| kept.contains(pod)), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn a_count_of_nobody_is_absent() -> Result<()> {
    let scene = Scene::new("nobody").await?;
    let web = scene.create(Kind::Deployment, "web", json!({"replicas": 0}));
    let status = web.await?.looked_at().await?;
    for count in ["replicas", "updatedReplicas", "readyReplicas"] {
        assert_eq!(status[count], Value::Null, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn one_that_was_created_paused_makes_no_pods() -> Result<()> {
    let scene = Scene::new("born").await?;
    let spec = json!({"replicas": 1, "paused": true});
    let web = scene.create(Kind::Deployment, "web", spec).await?;
    web.looked_at().await?;
    web.scale(2).await?;
    let status = web.looked_at().await?;
    assert_eq!(condition(&status, "Available")?["status"], "False");
    let sets: Api<ReplicaSet> = Api::namespaced(scene.client(), scene.namespace());
    let sets = sets.list(&ListParams::default()).await?.items;
    assert!(sets.is_empty() && web.pods().await?.is_empty(), "{sets:?}");
    web.set(json!({"paused": false})).await?;
    web.has(Counts::all(2)).await?;
    Ok(())
}

/// Hence a target is unpaused before it is scaled.
#[tokio::test]
async fn a_paused_one_is_scaled_up_with_its_old_template() -> Result<()> {
    let scene = Scene::new("up").await?;
    let web = scene.create(Kind::Deployment, "web", json!({"replicas": 0}));
    let web = web.await?;
    web.looked_at().await?;
    web.set(json!({"paused": true})).await?;
    web.release("2", Readiness::Ready).await?;
    web.scale(2).await?;
    let old = Counts {
        updated: 0,
        ..Counts::all(2)
    };
    web.has(old).await?;
    let pods = web.pods().await?;
    assert!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    Ok(())
}

/// Hence a source may be paused and its template changed: it only gets smaller.
#[tokio::test]
async fn a_paused_one_keeps_its_template_until_it_is_unpaused() -> Result<()> {
    let scene = Scene::new("down").await?;
    let web = scene.create(Kind::Deployment, "web", json!({"replicas": 3}));
    let web = web.await?;
    web.has(Counts::all(3)).await?;
    let before = web.pods().await?;
    web.set(json!({"paused": true})).await?;
    web.release("2", Readiness::Ready).await?;
    web.scale(1).await?;
    let old = Counts {
        updated: 0,
        ..Counts::all(1)
    };
    let status = web.has(old).await?;
    assert_eq!(status["updatedReplicas"], Value::Null, "{status}");
    let progressing = condition(&status, "Progressing")?;
    assert_eq!(progressing["status"], "Unknown", "{status}");
    assert_eq!(progressing["reason"], "DeploymentPaused", "{status}");
    let left = web.pods().await?;
    assert!(before.contains(&left[0]), "{left:?}");
    web.set(json!({"paused": false})).await?;
    let newer = |pods: &[Replica]| pods.iter().all(|pod| pod.version == "2" && pod.ready);
    web.until_pods("to be of the new version", newer).await?;
    web.has(Counts::all(1)).await?;
    Ok(())
}

fn condition<'a>(status: &'a Value, kind: &str) -> Result<&'a Value> {
    let conditions = status["conditions"].as_array().context("no conditions")?;
    let mut conditions = conditions.iter();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.with_context(|| format!("no {kind}: {status}"))
}
