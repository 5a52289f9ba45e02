//! That the watch over statuses sees what is wrong, also if it is put right at once.

use anyhow::Result;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::{Gate, Pipeline, PullRequest, Setting};
use sluice_tests::conformance::Watch;
use sluice_tests::stage::gate;
use sluice_tests::{Applier, Namespace, Writes, shared};

/// A status with two conditions, about the first generation.
fn status(ready: &str, since: &str, opened: &str) -> Value {
    let condition = |type_, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Default", "message": "by default",
            "lastTransitionTime": since, "observedGeneration": 1,
        })
    };
    json!({
        "observedGeneration": 1,
        "conditions": [condition("Ready", ready), condition(opened, "True")],
    })
}

#[tokio::test]
async fn a_status_that_is_wrong_for_a_moment_is_seen() -> Result<()> {
    let cluster = shared().await?;
    let namespace = Namespace::create(cluster, "judged").await?;
    let gates: Api<Gate> = Api::namespaced(cluster.client().await?, namespace.name());
    let open = gate("production", Setting::Open);
    gates.add(&open).await?;
    let write = async |manager: &str, status: Value| {
        let patch = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production"}, "status": status,
        });
        let (manager, patch) = (PatchParams::apply(manager).force(), Patch::Apply(patch));
        gates.patch_status("production", &manager, &patch).await
    };
    let (noon, later) = ("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z");
    let good = status("True", noon, "Opened");

    let watch = Watch::start(cluster, namespace.name()).await?;
    write("gate-controller-gates", good.clone()).await?;
    assert!(watch.end()?.is_empty());

    let watch = Watch::start(cluster, namespace.name()).await?;
    write("gate-controller-gates", status("True", later, "Opened")).await?;
    write("gate-controller-gates", status("True", later, "Stalled")).await?;
    write("gate-controller-gates", good).await?;
    let broken = watch.end()?;
    for rule in [
        "Gate production: the last transition is another one only with the status: Ready stays True",
        "Gate production: what is stalled or under way is not ready: both Ready and Stalled hold",
    ] {
        let found = broken.iter().any(|broken| broken.starts_with(rule));
        assert!(found, "{rule}: {broken:?}");
    }

    // Somebody else lies: that is not the controller's doing.
    let watch = Watch::start(cluster, namespace.name()).await?;
    write("alice", json!({"conditions": [], "message": "mine"})).await?;
    assert!(watch.end()?.is_empty());
    Ok(())
}

/// A Pipeline, and a PullRequest of it.
fn delivery() -> [Value; 2] {
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "shop"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "shop"},
            "environments": [{"name": "dev", "targets": [{"namespace": "dev"}]}],
        },
    });
    let pull_request = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest", "metadata": {"name": "shop"},
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/apps/shop.git",
                "secretRef": {"name": "git-token"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/3f9a1c2b7d4e", "targetBranch": "main",
            "title": "Promote", "about": {"kind": "Pipeline", "name": "shop", "environment": "prod",
                "revision": "6.1.6", "run": 7, "key": "3f9a1c2b7d4e"},
            "change": {"markers": {
                "name": "apps:shop:prod", "revision": "6.1.6", "paths": ["prod.yaml"],
            }},
        },
    });
    [pipeline, pull_request]
}

/// Nothing of these is in a status of a controller that is right: each of them is seen.
#[tokio::test]
async fn statuses_of_pipelines_and_pull_requests_are_read_too() -> Result<()> {
    let cluster = shared().await?;
    let namespace = Namespace::create(cluster, "judged-delivery").await?;
    let client = cluster.client().await?;
    let applier = Applier::new(client.clone()).in_namespace(namespace.name());
    let watch = Watch::start(cluster, namespace.name()).await?;
    let manager = PatchParams::apply("gate-controller-pipelines").force();
    for mut object in delivery() {
        applier.text(&object.to_string()).await?;
        object["status"] = status("True", "2026-11-20T12:00:00Z", "Opened");
        if let Some(fields) = object.as_object_mut() {
            fields.remove("spec");
        }
        let patch = Patch::Apply(object.clone());
        match object["kind"] == "Pipeline" {
            true => {
                let api: Api<Pipeline> = Api::namespaced(client.clone(), namespace.name());
                api.patch_status("shop", &manager, &patch).await.map(drop)?;
            }
            false => {
                let api: Api<PullRequest> = Api::namespaced(client.clone(), namespace.name());
                api.patch_status("shop", &manager, &patch).await.map(drop)?;
            }
        }
    }
    let broken: Vec<_> = watch.end()?.into_iter().collect();
    let rule = "a condition is one of its kind's";
    assert_eq!(
        broken,
        [
            format!("Pipeline shop: {rule}: a Pipeline has no Opened"),
            format!("PullRequest shop: {rule}: a PullRequest has no Opened"),
        ]
    );
    Ok(())
}
