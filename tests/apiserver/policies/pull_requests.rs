//! Who writes PullRequests, and who deletes them. These users may do everything that rights can give.

use anyhow::Result;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use sluice_crds::PullRequest;
use sluice_tests::{Writes, poll};

use super::scene::{CONTROLLER, DEADLINE, Scene, refused_by};

const POLICY: &str = "sluice-pull-requests";
const NAME: &str = "shop-3f9a1c2b7d4e";

fn pull_request() -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest", "metadata": {"name": NAME},
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/apps/shop.git",
                "secretRef": {"name": "git-token"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/3f9a1c2b7d4e", "targetBranch": "main",
            "title": "Promote apps/shop to 6.1.6 in prod",
            "change": {"markers": {
                "name": "apps:shop:prod", "revision": "6.1.6", "paths": ["prod.yaml"],
            }},
            "about": {
                "kind": "Pipeline", "name": "shop", "environment": "prod", "revision": "6.1.6",
                "run": 7, "key": "3f9a1c2b7d4e",
            },
        },
    })
}

/// One that brings what is proposed into an environment, and one that brings it back.
fn of_a_strategy(n: i64) -> Value {
    let (name, branch) = (format!("shop-717d96ab-{n}"), format!("sluice/revert-{n}"));
    let change = json!({"tree": {
        "of": "7f3a".repeat(10), "parent": "b5d8".repeat(10), "message": "Back\n", "date": 1_000,
    }});
    let mut object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest", "metadata": {"name": name},
        "spec": {
            "repository": {"repoRef": {"name": "shop"}},
            "sourceBranch": "env/prod-next", "targetBranch": "env/prod",
            "title": "Promote b5d8b5d8b5d8 to env/prod",
            "about": {
                "kind": "PromotionStrategy", "name": "shop", "environment": "env/prod",
                "run": n, "key": "3f9a1c2b7d4e",
            },
        },
    });
    if n > 1 {
        object["spec"]["sourceBranch"] = branch.into();
        object["spec"]["change"] = change;
    }
    object
}

async fn pull_requests(scene: &Scene, user: &str) -> Result<Api<PullRequest>> {
    let client = scene.cluster().client_for(user).await?;
    Ok(Api::namespaced(client, scene.namespace()))
}

#[tokio::test]
async fn the_controller_alone_writes_and_deletes_pull_requests() -> Result<()> {
    let scene = Scene::new().await?;
    scene.grant(&["editor"], "cluster-admin").await?;
    scene.wait_until_may("editor", "override").await?;
    let object: PullRequest = serde_json::from_value(pull_request())?;
    let controller = pull_requests(&scene, CONTROLLER).await?;
    let made = poll(DEADLINE, "the rights of the controller", async || {
        controller.create(&PostParams::default(), &object).await
    });
    let made = made.await?;
    for user in ["editor", "admin"] {
        let theirs = pull_requests(&scene, user).await?;
        let mut other = object.clone();
        other.metadata.name = Some("mine".to_owned());
        let words = format!(
            "spec: a PullRequest is written by the controller alone, and \"{user}\" is not it; write a \
             Pipeline or a PromotionStrategy"
        );
        refused_by(POLICY, theirs.add(&other).await, &words)?;
        for n in [1, 2] {
            let other = serde_json::from_value(of_a_strategy(n))?;
            refused_by(POLICY, theirs.add(&other).await, &words)?;
        }
        for spec in [
            json!({"suspend": true}),
            json!({"close": "no"}),
            json!({"title": "Mine"}),
        ] {
            refused_by(
                POLICY,
                theirs.merge(NAME, json!({ "spec": spec })).await,
                &words,
            )?;
        }
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]);
        for metadata in [
            json!({"ownerReferences": owner}),
            json!({"finalizers": ["a.example.com/b"]}),
        ] {
            let answer = theirs.merge(NAME, json!({ "metadata": metadata })).await;
            refused_by(
                POLICY,
                answer,
                "metadata.ownerReferences, metadata.finalizers: ",
            )?;
        }
        let deleted = theirs
            .delete(NAME, &DeleteParams::default())
            .await
            .map(drop);
        refused_by(
            POLICY,
            deleted,
            "a PullRequest is deleted by the controller alone",
        )?;
        let lie = json!({"status": {"state": "Merged"}});
        let words = "status: is written by the controller alone";
        refused_by(
            "sluice-status-writers",
            theirs.merge_status(NAME, &lie).await,
            words,
        )?;
        // Labels are anybody's.
        theirs
            .merge(NAME, json!({"metadata": {"labels": {"team": user}}}))
            .await?;
    }
    controller
        .merge_status(NAME, &json!({"status": {"state": "Merged"}}))
        .await?;
    let now = controller.get(NAME).await?;
    assert_eq!(now.spec, made.spec);
    controller.delete(NAME, &DeleteParams::default()).await?;
    Ok(())
}
