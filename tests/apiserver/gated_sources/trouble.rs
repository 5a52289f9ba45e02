//! What keeps a gated source from its work is told in its status, and is over when it is mended.

use anyhow::{Result, ensure};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::GatedSource;
use sluice_tests::controller::InProcess;
use sluice_tests::rights::rule;
use sluice_tests::{Writes, poll};

use super::scene::{Scene, commit, message};
use crate::stage::DEADLINE;

/// Everything that a controller of one namespace needs there, but GitRepositories.
fn rules() -> Vec<Value> {
    let all = ["*"];
    let sources = [
        "buckets",
        "externalartifacts",
        "helmcharts",
        "helmrepositories",
        "ocirepositories",
    ];
    vec![
        rule("sluice.dev", &all, &all),
        rule("source.toolkit.fluxcd.io", &sources, &all),
        rule("kustomize.toolkit.fluxcd.io", &all, &all),
        rule("helm.toolkit.fluxcd.io", &all, &all),
        rule("", &["events"], &all),
        rule("events.k8s.io", &all, &all),
        rule("coordination.k8s.io", &["leases"], &all),
    ]
}

/// Lets a user read what is not in any namespace.
async fn grant_cluster(scene: &Scene, user: &str) -> Result<()> {
    let read = ["get", "list", "watch"];
    let policies = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": user, "labels": {"sluice.dev/test": "true"}});
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
        "rules": [
            rule("sluice.dev", &["gatepolicies", "gatepolicies/status"], &["*"]),
            rule("", &["namespaces"], &read),
            rule("admissionregistration.k8s.io", &policies, &read),
        ],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    scene.stage.apply(&format!("{role}\n---\n{binding}")).await
}

/// Of a kind that may not be listed nothing is known: neither of what is named nor of what is
/// selected. That is told with the right that is missing, and over when it is granted.
#[tokio::test]
async fn a_kind_that_may_not_be_listed_is_told_until_it_may() -> Result<()> {
    let scene = Scene::new("unlisted").await?;
    let stage = &scene.stage;
    let user = format!("controller-of-{}", stage.namespace());
    grant_cluster(&scene, &user).await?;
    let mut rules = rules();
    stage.grant_rules("controller", &user, &rules).await?;
    scene.gate("closed").await?;
    scene.upstream("main", &commit('a')).await?;
    scene.gated(json!({})).await?;
    let freeze = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource", "metadata": {"name": "freeze"},
        "spec": {
            "strategy": "suspend", "gates": {"refs": [{"name": "production"}]},
            "selector": {"kind": "GitRepository", "matchLabels": {"tier": "front"}},
        },
    });
    stage.apply(&freeze.to_string()).await?;
    let client = stage.cluster().client_for(&user).await?;
    let _controller = InProcess::start(stage.settings(), client, stage.clock()).await?;

    let unread = scene.until("Ready", "False", "SourceUnreadable").await?;
    let said = message(&unread, "Ready");
    let missing = "list and watch on gitrepositories in group `source.toolkit.fluxcd.io`";
    ensure!(said.contains(missing), "{said}");
    let all: Api<GatedSource> = Api::namespaced(stage.client(), stage.namespace());
    poll(DEADLINE, "what selects them to say so", async || {
        let freeze = all.get("freeze").await?;
        let said = message(&freeze, "Ready");
        ensure!(said.contains("GitRepository with tier=front"), "{said}");
        ensure!(said.contains(missing), "{said}");
        Ok(())
    })
    .await?;

    let sources = ["gitrepositories"];
    rules.push(rule("source.toolkit.fluxcd.io", &sources, &["*"]));
    stage.grant_rules("controller", &user, &rules).await?;
    scene.until("Blocked", "True", "GatesClosed").await?;
    scene.until("Ready", "True", "NothingAdmitted").await?;
    scene.gate("open").await?;
    scene.pinned(&commit('a')).await?;
    Ok(())
}

/// A volume that is not mounted is told by those who need it, and keeps none of them from going.
#[tokio::test]
async fn a_store_that_cannot_be_used_is_told_and_holds_nobody() -> Result<()> {
    let scene = Scene::open("unstored").await?;
    let folder = tempfile::tempdir()?;
    let mut settings = scene.stage.settings();
    settings.storage_path = Some(folder.path().join("missing"));
    settings.storage_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
    scene
        .gated(
            json!({"strategy": "artifact", "deletionPolicy": "Delete", "baseline": {
                "revision": format!("main@sha1:{}", commit('a')),
            }}),
        )
        .await?;
    let _controller = scene.stage.start_with(settings).await?;
    let failed = scene.until("Ready", "False", "FetchFailed").await?;
    let said = message(&failed, "Ready");
    ensure!(
        said.contains("is not a folder; mount a volume there"),
        "{said}"
    );
    let all: Api<GatedSource> = Api::namespaced(scene.stage.client(), scene.stage.namespace());
    poll(
        DEADLINE,
        "it to be held until its child is gone",
        async || {
            let finalizers = all.get("app").await?.finalizers().to_vec();
            ensure!(!finalizers.is_empty(), "it is not");
            Ok(())
        },
    )
    .await?;
    all.remove("app").await?;
    poll(DEADLINE, "it to go", async || {
        ensure!(all.get_opt("app").await?.is_none(), "it is there");
        Ok(())
    })
    .await
}
