//! Who may pause a Pipeline, run it again and change it, who writes its status, and who votes on its
//! promotions.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use sluice_crds::{Approval, Pipeline};
use sluice_tests::{Writes, poll, rights};

use super::scene::{CONTROLLER, DEADLINE, Scene, refused_by};

const POLICY: &str = "sluice-pipelines";

/// A namespace with a pipeline, in which `editor` may edit it and `operator` may pause it and run it
/// again.
async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene
        .grant(&["operator"], "sluice-pipeline-operate")
        .await?;
    let shop = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "shop"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "shop"},
            "promotion": {"manual": true, "strategy": {"admission": {}}},
            "environments": [
                {"name": "dev", "targets": [{"namespace": "dev"}]},
                {"name": "prod", "targets": [{"namespace": "prod"}]},
            ],
        },
    });
    pipelines(&scene, "admin")
        .await?
        .add(&serde_json::from_value(shop)?)
        .await?;
    let operator = pipelines(&scene, "operator").await?;
    poll(DEADLINE, "the rights to be there", async || {
        operator.get("shop").await.map(drop)
    })
    .await?;
    Ok(scene)
}

async fn pipelines(scene: &Scene, user: &str) -> Result<Api<Pipeline>> {
    let client = scene.cluster().client_for(user).await?;
    Ok(Api::namespaced(client, scene.namespace()))
}

async fn change(scene: &Scene, user: &str, change: &Value) -> Result<kube::Result<Pipeline>> {
    Ok(pipelines(scene, user).await?.merge("shop", change).await)
}

fn suspended(suspend: bool) -> Value {
    json!({"spec": {"suspend": suspend}})
}

fn retried(text: &str) -> Value {
    json!({"metadata": {"annotations": {"sluice.dev/retry": text}}})
}

/// One change of each field of the spec, and of metadata.
fn edits() -> Vec<Value> {
    let environments = json!([{"name": "dev", "targets": [{"namespace": "other"}]}]);
    let specs = [
        json!({"appRef": {"name": "other"}}),
        json!({"versions": [{"name": "image", "expression": "object.spec.tag"}]}),
        json!({ "environments": environments }),
        json!({"promotion": {"manual": false}}),
        json!({"promotion": null}),
        json!({"algorithm": "pairwise"}),
    ];
    let metadata = [
        json!({"labels": {"team": "other"}}),
        json!({"annotations": {"a": "b"}}),
        json!({"finalizers": ["example.com/kept"]}),
    ];
    let specs = specs.map(|spec| json!({ "spec": spec }));
    let metadata = metadata.map(|metadata| json!({ "metadata": metadata }));
    specs.into_iter().chain(metadata).collect()
}

#[tokio::test]
async fn anyone_who_may_pause_and_retry_does_nothing_else() -> Result<()> {
    let scene = scene().await?;
    change(&scene, "operator", &suspended(true)).await??;
    change(&scene, "operator", &suspended(false)).await??;
    change(&scene, "operator", &retried("1")).await??;
    let look = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    change(&scene, "operator", &look).await??;
    let words = format!(
        "needs the verb update on pipelines.sluice.dev, and \"operator\" does not have it in \
         namespace \"{}\"",
        scene.namespace()
    );
    for edit in edits() {
        let answer = change(&scene, "operator", &edit).await?;
        refused_by(POLICY, answer, &words).with_context(|| edit.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn anyone_who_edits_neither_pauses_nor_retries() -> Result<()> {
    let scene = scene().await?;
    let paused = change(&scene, "editor", &suspended(true)).await?;
    refused_by(
        POLICY,
        paused,
        "spec.suspend: to pause or resume a Pipeline needs the verb pause",
    )?;
    let again = change(&scene, "editor", &retried("1")).await?;
    refused_by(
        POLICY,
        again,
        "sluice.dev/retry]: to run a Pipeline again needs the verb retry",
    )?;
    for edit in edits() {
        let answer = change(&scene, "editor", &edit).await?;
        answer.with_context(|| edit.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn the_controller_alone_says_what_was_admitted() -> Result<()> {
    let scene = scene().await?;
    let admitted = json!([{"revision": "6.1.6", "run": 7, "at": "2026-11-20T12:00:00Z"}]);
    let prod = json!({"state": "Promoted", "admitted": admitted});
    let lie = json!({"status": {"environments": {"prod": prod}}});
    let answer = pipelines(&scene, "admin")
        .await?
        .merge_status("shop", &lie)
        .await;
    refused_by(
        "sluice-status-writers",
        answer,
        "status: is written by the controller alone, and \"admin\" is not it",
    )?;
    let controller = pipelines(&scene, CONTROLLER).await?;
    controller.merge_status("shop", &lie).await?;
    let paused = controller.merge("shop", &suspended(true)).await;
    assert!(matches!(paused, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

/// The right to create Approvals is not enough: a vote on a promotion needs a right on its environment.
#[tokio::test]
async fn who_votes_on_a_promotion_is_a_right_of_each_environment() -> Result<()> {
    let scene = scene().await?;
    let cluster = scene.cluster();
    scene.grant(&["alice", "bob"], "sluice-approve").await?;
    let admin = cluster.client().await?;
    let verb = json!({
        "apiGroups": ["sluice.dev"], "resources": ["environments"],
        "resourceNames": ["shop:prod"], "verbs": ["approve"],
    });
    let (name, rules) = ("approves-shop-prod", [verb]);
    rights::grant_rules(admin, scene.namespace(), name, "alice", &rules).await?;
    let vote = async |user: &str, environment: &str, decision: &str| {
        let vote = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
            "metadata": {"generateName": "shop-"},
            "spec": {
                "pipelineRef": {"name": "shop", "environment": environment, "run": 7},
                "revision": "6.1.6", "decision": decision, "by": user,
            },
        });
        let vote: Approval = serde_json::from_value(vote)?;
        let client = cluster.client_for(user).await?;
        let approvals: Api<Approval> = Api::namespaced(client, scene.namespace());
        Ok::<_, anyhow::Error>(approvals.add(&vote).await)
    };
    poll(DEADLINE, "the rights to be there", async || {
        vote("alice", "prod", "approve").await??;
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    vote("alice", "prod", "reject").await??;
    let refused = |answer, name: &str| refused_by("sluice-approvals", answer, name);
    let dev = "environments.sluice.dev of the name \"shop:dev\", and \"alice\" does not have it";
    refused(vote("alice", "dev", "approve").await?, dev)?;
    let prod = "environments.sluice.dev of the name \"shop:prod\", and \"bob\" does not have it";
    poll(DEADLINE, "bob to be refused by the policy", async || {
        refused(vote("bob", "prod", "approve").await?, prod)
    })
    .await?;
    refused(vote("bob", "prod", "reject").await?, prod)
}

/// Who may delete and create cannot put a Pipeline that is not suspended in place of one that is.
#[tokio::test]
async fn a_suspended_pipeline_is_deleted_only_by_those_who_may_pause() -> Result<()> {
    let scene = scene().await?;
    let of_editor = pipelines(&scene, "editor").await?;
    change(&scene, "operator", &suspended(true)).await??;
    let words = "to delete a suspended Pipeline needs the verb pause on pipelines.sluice.dev, as to \
                 resume it does, and \"editor\" does not have it";
    refused_by(POLICY, of_editor.remove("shop").await, words)?;
    let all = of_editor
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    refused_by(POLICY, all.map(drop), words)?;
    // Nor by the garbage collector.
    let gone = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }]);
    let orphan = json!({"metadata": {"ownerReferences": gone}});
    refused_by(
        POLICY,
        change(&scene, "editor", &orphan).await?,
        "to give a suspended Pipeline an owner needs the verb pause",
    )?;
    change(&scene, "operator", &suspended(false)).await??;
    of_editor.remove("shop").await?;
    Ok(())
}

/// A namespace goes with everything in it.
#[tokio::test]
async fn a_suspended_pipeline_goes_with_its_namespace() -> Result<()> {
    let scene = scene().await?;
    change(&scene, "operator", &suspended(true)).await??;
    let client = scene.cluster().client().await?;
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.remove(scene.namespace()).await?;
    let all = pipelines(&scene, "admin").await?;
    poll(DEADLINE, "the Pipeline to be gone", async || {
        let left = all.get_opt("shop").await?;
        ensure!(left.is_none(), "it is still there");
        Ok(())
    })
    .await
}
