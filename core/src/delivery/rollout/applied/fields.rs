//! Who owns a field, as `managedFields` says.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::delivery::rollout::workload::Kind;

/// As whom rollouts write.
pub const MANAGER: &str = "gate-controller-rollouts";

/// The entries of `managedFields` that have the field.
pub(super) fn entries<'a>(object: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let path = path(pointer);
    let all = object.pointer("/metadata/managedFields");
    let all = all.and_then(Value::as_array).into_iter().flatten();
    all.filter(|entry| entry.pointer(&path).is_some()).collect()
}

/// Where an entry has a field.
fn path(pointer: &str) -> String {
    let fields = pointer.split('/').skip(1);
    fields.fold("/fieldsV1".to_owned(), |path, field| path + "/f:" + field)
}

/// The entries of `managedFields` that have a field which a rollout writes, or the template, with nothing else.
pub(in crate::delivery::rollout) fn managed(object: &Value) -> Value {
    let written = Kind::ALL.iter().flat_map(|kind| kind.fields());
    let paths: BTreeSet<String> = written
        .chain(&["/spec/replicas", "/spec/template"])
        .map(|it| path(it))
        .collect();
    let entries = object.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let kept = entries.filter_map(|entry| {
        let mut kept = json!({
            "manager": entry["manager"], "operation": entry["operation"], "time": entry["time"],
        });
        for path in paths.iter().filter(|path| entry.pointer(path).is_some()) {
            put(&mut kept, path, json!({}));
        }
        kept.get("fieldsV1").is_some().then_some(kept)
    });
    kept.collect()
}

/// Whether a manager has applied the field.
pub(super) fn applies(object: &Value, pointer: &str, manager: &str) -> bool {
    entries(object, pointer)
        .iter()
        .any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
}

/// When a manager has applied something of the spec last that was another value before.
pub(super) fn applied_at(object: &Value, manager: &str) -> Option<Timestamp> {
    let applied = entries(object, "/spec").into_iter();
    let applied = applied.filter(|it| it["manager"] == manager && it["operation"] == "Apply");
    applied
        .filter_map(|entry| entry["time"].as_str()?.parse().ok())
        .max()
}

/// Who has written the field last, but for ourselves.
pub(in crate::delivery::rollout) fn owner(object: &Value, pointer: &str) -> Option<String> {
    let others = entries(object, pointer);
    let others = others
        .into_iter()
        .filter(|entry| entry["manager"] != MANAGER);
    let newest = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default());
    newest?["manager"].as_str().map(str::to_owned)
}

/// Puts a value where a pointer leads, through objects.
pub(in crate::delivery::rollout) fn put(into: &mut Value, pointer: &str, value: Value) {
    let fields = pointer.split('/').skip(1);
    let place = fields.fold(into, |place, field| &mut place[field]);
    *place = value;
}
