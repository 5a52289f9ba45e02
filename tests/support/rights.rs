//! Rights that tests give to users.
//!
//! What comes in: a namespace, a role, users. What goes out: bindings there, which take effect a
//! moment later.

use anyhow::Result;
use kube::Client;
use serde_json::{Value, json};

use crate::apply::Applier;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Lets users do in a namespace what a ClusterRole says.
///
/// # Errors
///
/// If the API server refuses the binding.
pub async fn grant(client: Client, namespace: &str, role: &str, users: &[&str]) -> Result<()> {
    bind(client, namespace, "ClusterRole", role, users).await
}

/// Lets a user do just this in a namespace: `rules` are those of a Role `name` of their own, and
/// take the place of those that it had.
///
/// # Errors
///
/// If the API server refuses the role or the binding.
pub async fn grant_rules(
    client: Client,
    namespace: &str,
    name: &str,
    user: &str,
    rules: &[Value],
) -> Result<()> {
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Role",
        "metadata": {"name": name},
        "rules": rules,
    });
    let applier = Applier::new(client.clone()).in_namespace(namespace);
    applier.text(&role.to_string()).await?;
    bind(client, namespace, "Role", name, &[user]).await
}

/// One rule: these verbs on these resources of a group.
#[must_use]
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

async fn bind(
    client: Client,
    namespace: &str,
    kind: &str,
    role: &str,
    users: &[&str],
) -> Result<()> {
    let subject = |user: &&str| json!({"apiGroup": GROUP, "kind": "User", "name": user});
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": users.iter().map(subject).collect::<Vec<_>>(),
    });
    let applier = Applier::new(client).in_namespace(namespace);
    applier.text(&binding.to_string()).await?;
    Ok(())
}
