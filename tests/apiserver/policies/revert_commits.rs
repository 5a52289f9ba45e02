//! Who takes a promotion back, and in whose name; and who writes the statuses of the kinds of promotion.

use anyhow::Result;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sluice_crds::RevertCommit;
use sluice_tests::{Writes, poll, rights};

use super::scene::{CONTROLLER, DEADLINE, Scene, refused_by};

const POLICY: &str = "sluice-revert-commits";

fn revert(name: &str, by: &str) -> Result<RevertCommit> {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit", "metadata": {"name": name},
        "spec": {
            "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "7f3a".repeat(10),
            "drySHA": "b5d8".repeat(10), "reason": "INC-4711", "by": by,
        },
    });
    Ok(serde_json::from_value(object)?)
}

async fn reverts(scene: &Scene, user: &str) -> Result<Api<RevertCommit>> {
    let client = scene.cluster().client_for(user).await?;
    Ok(Api::namespaced(client, scene.namespace()))
}

/// Users of whom one may take back, and the other may only say what fixes it.
async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.grant(&["alice", "bob"], "sluice-revert").await?;
    let rules = [json!({
        "apiGroups": ["sluice.dev"], "resources": ["revertcommits"], "verbs": ["get", "patch"],
    })];
    let client = scene.cluster().client().await?;
    rights::grant_rules(client, scene.namespace(), "fixer", "fixer", &rules).await?;
    let probe = revert("probe", "alice")?;
    let alice = reverts(&scene, "alice").await?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    poll(DEADLINE, "the binding to be in effect", async || {
        alice.create(&dry, &probe).await
    })
    .await?;
    Ok(scene)
}

#[tokio::test]
async fn a_promotion_is_taken_back_in_ones_own_name() -> Result<()> {
    let scene = scene().await?;
    let alice = reverts(&scene, "alice").await?;
    let answer = alice.add(&revert("back", "bob")?).await;
    let words = "spec.by: \"bob\" is not the requesting user; write \"alice\"";
    refused_by(POLICY, answer, words)?;
    // Not even who may do everything.
    let admin = reverts(&scene, "admin").await?;
    let answer = admin.add(&revert("back", "alice")?).await;
    refused_by(POLICY, answer, "write \"admin\"")?;
    let answer = admin.add(&revert("back", "")?).await;
    assert!(answer.is_err());
    alice.add(&revert("back", "alice")?).await?;
    Ok(())
}

#[tokio::test]
async fn anyone_who_may_update_it_says_what_fixes_it_and_nothing_else() -> Result<()> {
    let scene = scene().await?;
    let alice = reverts(&scene, "alice").await?;
    alice.add(&revert("back", "alice")?).await?;
    let fixer = reverts(&scene, "fixer").await?;
    let fixed = json!({"spec": {"fixedBy": "d1e2".repeat(10)}});
    let now = poll(DEADLINE, "the binding to be in effect", async || {
        fixer.merge("back", fixed.clone()).await
    });
    let now = now.await?;
    assert_eq!(
        (now.spec.by.as_str(), now.spec.fixed_by.is_some()),
        ("alice", true)
    );
    for other in [
        json!({"by": "fixer"}),
        json!({"reason": "mine"}),
        json!({"activeBranch": "env/dev"}),
        json!({"from": "0".repeat(40)}),
        json!({"drySHA": "0".repeat(40)}),
        json!({"hydratedSHA": "0".repeat(40)}),
        json!({"merge": "Auto"}),
        json!({"repoRef": {"name": "other"}}),
        json!({"repoRef": {"namespace": "other"}}),
    ] {
        let answer = fixer.merge("back", json!({"spec": other.clone()})).await;
        let error = answer
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        let words = "a RevertCommit never changes but for fixedBy";
        assert!(error.contains(words), "{other}: {error}");
    }
    // A fix that was none is corrected.
    fixer
        .merge("back", json!({"spec": {"fixedBy": null}}))
        .await?;
    assert!(fixer.remove("back").await.is_err());
    // It is not needed any more: what was taken back may return.
    reverts(&scene, "bob").await?.remove("back").await?;
    Ok(())
}

/// An object of each kind of promotion, as small as it may be.
fn objects() -> [(&'static str, &'static str, Value); 3] {
    let sha = "7f3a".repeat(10);
    [
        (
            "GitRepositoryAccess",
            "gitrepositoryaccesses",
            json!({
                "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
                "secretRef": {"name": "shop-push"},
            }),
        ),
        (
            "PromotionStrategy",
            "promotionstrategies",
            json!({"repoRef": {"name": "shop"}, "environments": [{"branch": "env/prod"}]}),
        ),
        (
            "CommitStatus",
            "commitstatuses",
            json!({"repoRef": {"name": "shop"}, "sha": sha, "name": "x", "phase": "success"}),
        ),
    ]
}

#[tokio::test]
async fn the_controller_alone_writes_their_statuses() -> Result<()> {
    let scene = scene().await?;
    scene.grant(&["editor"], "cluster-admin").await?;
    scene.wait_until_may("editor", "override").await?;
    let lie = json!({"status": {"observedGeneration": 7}});
    let words = "status: is written by the controller alone, and \"editor\" is not it";
    let order = json!({
        "key": "3f9a1c2b7d4e", "pullRequest": "shop-717d96ab-1", "headSHA": "7f3a".repeat(10),
        "at": "2026-11-20T12:00:00Z", "notAfter": "2026-11-20T12:01:00Z",
    });
    let order = json!({"status": {"environments": [{
        "branch": "env/prod", "state": "Merging", "gate": "success", "order": order,
    }]}});
    let all = |client, plural: &str, kind: &str| -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(sluice_crds::GROUP, "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(client, scene.namespace(), &resource)
    };
    for (kind, plural, spec) in objects() {
        let theirs = all(scene.cluster().client_for("editor").await?, plural, kind);
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": "shop"},
            "spec": spec,
        });
        theirs.add(&serde_json::from_value(object)?).await?;
        let answer = theirs.merge_status("shop", &lie).await;
        refused_by("sluice-status-writers", answer, words)?;
        let own = all(scene.cluster().client_for(CONTROLLER).await?, plural, kind);
        own.merge_status("shop", &lie).await?;
        if kind == "PromotionStrategy" {
            // What would be merged.
            let answer = theirs.merge_status("shop", &order).await;
            refused_by("sluice-status-writers", answer, words)?;
            own.merge_status("shop", &order).await?;
        }
    }
    let theirs = reverts(&scene, "editor").await?;
    theirs.add(&revert("back", "editor")?).await?;
    let answer = theirs.merge_status("back", &lie).await;
    refused_by("sluice-status-writers", answer, words)?;
    let own = reverts(&scene, CONTROLLER).await?;
    own.merge_status("back", &lie).await?;
    Ok(())
}

/// The controller makes commit statuses of its own; it edits no strategy, and takes nothing back.
#[tokio::test]
async fn the_controller_writes_no_spec_of_people() -> Result<()> {
    let scene = scene().await?;
    let own = reverts(&scene, CONTROLLER).await?;
    let answer = own.add(&revert("back", CONTROLLER)?).await;
    let error = answer
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("cannot create resource"), "{error}");
    Ok(())
}
