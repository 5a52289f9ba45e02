//! The rights of approvals by webhook.

use anyhow::Result;
use serde_json::{Value, json};

use super::values::render;

/// The webhook approves where it is listed, and nowhere else.
#[test]
fn approvals_by_webhook_need_a_line_for_each_namespace() -> Result<()> {
    let roles = |approvals: Value| -> Result<Vec<Value>> {
        let check = json!({"enabled": true, "insecure": true, "approvals": approvals});
        let documents = render(json!({"check": check}))?.into_iter();
        let roles = documents.filter(|document| {
            let kind = document
                .object
                .types
                .as_ref()
                .map(|types| types.kind.as_str());
            let is_role = kind == Some("Role") || kind == Some("RoleBinding");
            is_role && document.object.metadata.name.as_deref() == Some("gate-controller-approvals")
        });
        Ok(roles
            .map(|role| json!([role.object.metadata.namespace, role.object.data]))
            .collect())
    };
    assert_eq!(roles(json!([]))?, [Value::Null; 0]);
    let made = roles(json!([
        {"namespace": "apps", "secrets": ["approvals"], "environments": ["podinfo:prod"]},
        {"namespace": "shop", "secrets": ["approvals", "other"]},
    ]))?;
    assert_eq!(made.len(), 4);
    let rules = |names: &[&str], environments: Value| {
        let mut approve = json!({
            "apiGroups": ["sluice.dev"], "resources": ["environments"], "verbs": ["approve"],
        });
        if !environments.is_null() {
            approve["resourceNames"] = environments;
        }
        json!({"rules": [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"]},
            {"apiGroups": ["sluice.dev"], "resources": ["approvals"], "verbs": ["create"]},
            approve,
        ]})
    };
    let apps = rules(&["approvals"], json!(["podinfo:prod"]));
    assert_eq!(made[0], json!(["apps", apps]));
    assert_eq!(made[2][0], "apps");
    assert_eq!(made[2][1]["roleRef"]["name"], "gate-controller-approvals");
    assert_eq!(made[3][0], "shop");
    assert_eq!(
        made[1],
        json!(["shop", rules(&["approvals", "other"], Value::Null)])
    );
    Ok(())
}
