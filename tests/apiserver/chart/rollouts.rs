//! What rollouts need: the controller reads workloads and acts as accounts of their namespaces, and these have a
//! role with which it changes them.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sluice_tests::apply::Document;
use sluice_tests::{Cluster, DEADLINE, Namespace, Writes, poll, rights};

use super::values::{find, render};
use super::{installed, of_kind};

/// The role that accounts of Rollouts are bound to.
const ROLE: &str = "sluice-rollout";

/// The chart with rollouts, and with nothing else for which workloads are read.
fn with_rollouts(other: &[(&str, Value)]) -> Result<Vec<Document>> {
    let mut values = json!({
        "rollouts": {"enabled": true, "serviceAccountNames": ["deployer", ROLE]},
        "objects": {"rules": []},
    });
    for (field, value) in other {
        values[field] = value.clone();
    }
    render(values)
}

/// What the controller may do in the namespaces that it watches.
fn rules_of_the_controller(documents: &[Document]) -> Result<Vec<PolicyRule>> {
    let role: ClusterRole = find(documents, "ClusterRole")?;
    role.rules.context("no rules")
}

fn role_of_accounts(documents: &[Document]) -> Result<Option<ClusterRole>> {
    let roles: Vec<ClusterRole> = of_kind(documents, "ClusterRole")?;
    Ok(roles.into_iter().find(|role| role.name_any() == ROLE))
}

/// It reads workloads and what scales them, and acts as accounts of the names that are listed. That is all there is
/// in addition: it has no right to write a workload.
#[test]
fn the_controller_reads_workloads_and_acts_as_others() -> Result<()> {
    const READ: [&str; 3] = ["get", "list", "watch"];
    let with = rules_of_the_controller(&with_rollouts(&[])?)?;
    let without = render(json!({"objects": {"rules": []}}))?;
    let without = rules_of_the_controller(&without)?;
    let (same, more): (Vec<_>, Vec<_>) = with.into_iter().partition(|it| without.contains(it));
    assert_eq!(same, without);
    let expected = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": READ},
        {"apiGroups": ["apps.kruise.io"], "resources": ["clonesets"], "verbs": READ},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": READ},
        {
            "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["deployer", ROLE],
            "verbs": ["impersonate"],
        },
    ]);
    assert_eq!(json!(more), expected);
    Ok(())
}

/// Who may act as others, and where: a controller that watches one namespace in that one alone, and what works at
/// forges nowhere.
#[test]
fn one_role_acts_as_others() -> Result<()> {
    let acting = |documents: &[Document]| -> Result<Vec<String>> {
        let acts = |rules: &Option<Vec<PolicyRule>>| {
            let verbs = rules.iter().flatten().flat_map(|rule| &rule.verbs);
            verbs.into_iter().any(|verb| verb == "impersonate")
        };
        let everywhere: Vec<ClusterRole> = of_kind(documents, "ClusterRole")?;
        let here: Vec<Role> = of_kind(documents, "Role")?;
        let everywhere = everywhere.iter().filter(|role| acts(&role.rules));
        let everywhere = everywhere.map(ResourceExt::name_any);
        let here = here.iter().filter(|role| acts(&role.rules));
        let here = here.map(|role| {
            format!(
                "{}/{}",
                role.namespace().unwrap_or_default(),
                role.name_any()
            )
        });
        Ok(everywhere.chain(here).collect())
    };
    assert_eq!(acting(&render(json!({}))?)?, [""; 0]);
    assert_eq!(acting(&with_rollouts(&[])?)?, ["gate-controller"]);
    let one = ("controller", json!({"watchAllNamespaces": false}));
    let here = "sluice-system/gate-controller";
    assert_eq!(acting(&with_rollouts(&[one])?)?, [here]);
    let two = ("pipelines", json!({"forge": {"separate": true}}));
    assert_eq!(acting(&with_rollouts(&[two])?)?, ["gate-controller"]);
    Ok(())
}

/// An admin opens a namespace: until then nobody has the role, nor is it part of another.
#[test]
fn the_role_of_accounts_is_there_and_bound_to_nobody() -> Result<()> {
    assert_eq!(role_of_accounts(&render(json!({}))?)?, None);
    let documents = with_rollouts(&[])?;
    let role = role_of_accounts(&documents)?.context("no role")?;
    let expected = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": ["patch"]},
        {"apiGroups": ["apps.kruise.io"], "resources": ["clonesets"], "verbs": ["patch"]},
        {"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]},
    ]);
    assert_eq!(json!(role.rules), expected);
    let mut labels = role.labels().keys();
    ensure!(labels.all(|label| !label.contains("aggregate-to")));
    let everywhere: Vec<ClusterRoleBinding> = of_kind(&documents, "ClusterRoleBinding")?;
    let here: Vec<RoleBinding> = of_kind(&documents, "RoleBinding")?;
    let here = here.into_iter().map(|it| it.role_ref);
    let mut bound = everywhere.into_iter().map(|it| it.role_ref).chain(here);
    ensure!(bound.all(|RoleRef { name, .. }| name != ROLE));
    Ok(())
}

/// A rule without names would be one about all accounts, those of Kubernetes itself among them.
#[test]
fn accounts_are_named_one_by_one() -> Result<()> {
    for names in [
        json!([]),
        json!(null),
        json!(["*"]),
        json!([""]),
        json!("deployer"),
    ] {
        let rollouts = json!({"enabled": true, "serviceAccountNames": names});
        let refused = render(json!({"rollouts": rollouts})).err();
        let refused = refused.with_context(|| format!("{names} was let through"))?;
        ensure!(
            refused.to_string().contains("serviceAccountNames"),
            "{refused}"
        );
    }
    Ok(())
}

/// A namespace with a Deployment, where alice has the rights of the controller.
struct Scene {
    cluster: &'static Cluster,
    namespace: Namespace,
}

impl Scene {
    async fn new() -> Result<Self> {
        let cluster = installed().await?;
        let namespace = Namespace::create(cluster, "rolling").await?;
        let scene = Self { cluster, namespace };
        let client = cluster.client().await?;
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "example.com/web"}]},
                },
            },
        });
        let deployments = scene.deployments(client);
        deployments
            .add(&serde_json::from_value(deployment)?)
            .await?;
        let documents = with_rollouts(&[])?;
        let rules = rules_of_the_controller(&documents)?;
        scene.grant("controller", "alice", &rules).await?;
        let rules = role_of_accounts(&documents)?.and_then(|role| role.rules);
        let account = scene.account(ROLE);
        scene
            .grant(ROLE, &account, &rules.context("no role")?)
            .await?;
        Ok(scene)
    }

    async fn grant(&self, role: &str, user: &str, rules: &[PolicyRule]) -> Result<()> {
        let client = self.cluster.client().await?;
        let rules: Vec<_> = rules.iter().map(|rule| json!(rule)).collect();
        rights::grant_rules(client, self.namespace.name(), role, user, &rules).await
    }

    fn account(&self, name: &str) -> String {
        format!("system:serviceaccount:{}:{name}", self.namespace.name())
    }

    /// Alice, who acts as somebody else as the controller does.
    async fn acting_as(&self, user: &str) -> Result<Client> {
        let alice = self.cluster.kubeconfig_for("alice")?;
        Cluster::at(alice.to_path_buf()).client_for(user).await
    }

    fn deployments(&self, client: Client) -> Api<Deployment> {
        Api::namespaced(client, self.namespace.name())
    }

    /// Has a Deployment scaled, only to see whether that is allowed.
    async fn scale(&self, client: Client) -> kube::Result<Deployment> {
        let judged = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
        self.deployments(client).patch("web", &judged, &none).await
    }
}

/// With its own name it changes nothing, whatever it may read. As an account it may what that account may, and it is
/// no account whose name is not listed.
#[tokio::test]
async fn the_controller_changes_workloads_as_an_account_alone() -> Result<()> {
    let scene = Scene::new().await?;
    let account = scene.acting_as(&scene.account(ROLE)).await?;
    poll(DEADLINE, "the account to have its rights", async || {
        scene.scale(account.clone()).await
    })
    .await?;
    let pods: Api<Pod> = Api::namespaced(account.clone(), scene.namespace.name());
    pods.list(&ListParams::default()).await?;
    let revisions: Api<ControllerRevision> = Api::namespaced(account, scene.namespace.name());
    for answer in [
        pods.remove("none").await.err(),
        revisions.get("none").await.err(),
    ] {
        let error = answer.context("it is there")?.to_string();
        ensure!(error.contains("not found"), "{error}");
    }

    let alice = scene.cluster.client_for("alice").await?;
    scene.deployments(alice.clone()).get("web").await?;
    let deployer = scene.acting_as(&scene.account("deployer")).await?;
    let default = scene.acting_as(&scene.account("default")).await?;
    let elsewhere = format!("system:serviceaccount:default:{ROLE}");
    let elsewhere = scene.acting_as(&elsewhere).await?;
    let carol = scene.acting_as("carol").await?;
    for (client, words) in [
        (alice, "cannot patch resource"),
        (deployer, "cannot patch resource"),
        (default, "cannot impersonate resource \"serviceaccounts\""),
        (elsewhere, "cannot impersonate resource \"serviceaccounts\""),
        (carol, "cannot impersonate resource \"users\""),
    ] {
        let refused = scene.scale(client).await.err();
        let refused = refused.with_context(|| words.to_owned())?.to_string();
        ensure!(refused.contains(words), "not {words:?}: {refused}");
    }
    Ok(())
}
