//! Who owns a field, as `managedFields` says.

use serde_json::Value;

/// As whom rollouts write.
pub const MANAGER: &str = "gate-controller-rollouts";

/// The entries of `managedFields` that have the field.
pub(super) fn entries<'a>(object: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let path: String = pointer
        .split('/')
        .skip(1)
        .map(|part| format!("/f:{part}"))
        .collect();
    let all = object.pointer("/metadata/managedFields");
    let all = all.and_then(Value::as_array).into_iter().flatten();
    all.filter(|entry| entry.pointer(&format!("/fieldsV1{path}")).is_some())
        .collect()
}

/// Whether a manager has applied the field.
pub(super) fn applies(object: &Value, pointer: &str, manager: &str) -> bool {
    entries(object, pointer)
        .iter()
        .any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
}

/// Who has written the field last, but for ourselves.
pub(super) fn owner(object: &Value, pointer: &str) -> Option<String> {
    let others = entries(object, pointer);
    let others = others
        .into_iter()
        .filter(|entry| entry["manager"] != MANAGER);
    let newest = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default());
    newest?["manager"].as_str().map(str::to_owned)
}
