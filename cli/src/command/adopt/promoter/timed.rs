//! A TimedCommitStatus as gates: what an environment has stays there for a while before it goes on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::guard::{Gates, Side, kept_gate};
use super::names::Names;
use super::theirs::Theirs;
use crate::converted::Converted;

/// # Errors
/// Why it cannot be done.
pub(super) fn gates(theirs: &Theirs, names: &mut Names) -> Result<Gates, String> {
    let spec = theirs.spec();
    let key = spec["key"].as_str().unwrap_or("timer");
    let strategy = theirs.names("promotionStrategyRef");
    let account = names.name(&[strategy, "soak"]);
    let mut documents = reader(&theirs.namespace, &account, strategy);
    let mut of = BTreeMap::new();
    for environment in spec["environments"].as_array().into_iter().flatten() {
        let branch = environment["branch"].as_str().unwrap_or_default();
        let name = names.name(&[strategy, key, branch]);
        let mut notes = theirs.notes();
        notes.note(format!(
            "the time counts from when {branch} is UpToDate: it has what is proposed, and all its checks pass. It \
             begins again with each promotion, and when the controller restarts. With Flux, name the Kustomization \
             that applies {branch} in `of` instead, without an expression: then a restart changes nothing"
        ));
        // JSON quotes a text as CEL does.
        let quoted = json!(branch).to_string();
        let expression = format!(
            "object.status.environments.exists(e, e.branch == {quoted} && e.state == \"UpToDate\")"
        );
        let spec = json!({"objects": {
            "serviceAccountName": account, "soak": environment["duration"],
            "of": [{
                "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy", "name": strategy,
                "expression": expression,
            }],
        }});
        documents.extend(kept_gate(theirs, &name, notes, &spec)?);
        of.insert(branch.to_owned(), name);
    }
    Ok(Gates {
        side: Side::Active,
        of,
        others_wait: true,
        documents,
    })
}

/// An account that may read the strategy, and nothing else.
fn reader(namespace: &str, name: &str, strategy: &str) -> Vec<Converted> {
    let metadata = json!({"name": name, "namespace": namespace});
    let rights = "rbac.authorization.k8s.io";
    let all: [Value; 3] = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({
            "apiVersion": format!("{rights}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": ["sluice.dev"], "resources": ["promotionstrategies"],
                "resourceNames": [strategy], "verbs": ["get", "list", "watch"],
            }],
        }),
        json!({
            "apiVersion": format!("{rights}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }),
    ];
    let all = all.into_iter().map(|object| Converted {
        object,
        comments: Vec::new(),
    });
    all.collect()
}
