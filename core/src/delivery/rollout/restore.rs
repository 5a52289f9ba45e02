//! The old template of an object that has both versions, from the ControllerRevision that has kept it.

use serde_json::{Map, Value, json};

use super::given::Name;
use super::why::Why;
use super::workload::Workload;

/// The ControllerRevision is gone.
pub(super) fn lost(name: &Name, former: &str) -> Why {
    Why::by(
        "RevisionGone",
        format!("ControllerRevision {former}"),
        format!(
            "the old template of {name} is gone with the ControllerRevision {former}; bring it back in Git, and delete this Rollout"
        ),
    )
}

/// The template that a ControllerRevision has kept. None: it has none of this workload. A claim may have been
/// written by anybody, and name that of another one.
pub(super) fn template(workload: &Workload<'_>, revision: &Value) -> Option<Value> {
    let owners = revision.pointer("/metadata/ownerReferences");
    let mut owners = owners.and_then(Value::as_array).into_iter().flatten();
    owners.find(|it| it["uid"] == workload.uid())?;
    let mut former = revision.pointer("/data/spec/template")?.clone();
    // It says to a strategic merge that it is the whole.
    former.as_object_mut()?.remove("$patch");
    Some(former)
}

/// What brings a template back in place of the one that there is, with a partition that lets all pods have it.
/// None: it is there, and so is the partition.
pub(super) fn patch(workload: &Workload<'_>, now: &Value, former: &Value) -> Option<Value> {
    let template = difference(now, former);
    if template.is_none() && workload.pods_held() == 0 {
        return None;
    }
    let mut patch = workload.part(0)?;
    if let Some(template) = template {
        patch["spec"]["template"] = template;
    }
    Some(patch)
}

/// The merge patch that makes the second of the first. None: they are the same.
fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for (field, before) in from {
        let change = match to.get(field) {
            None => Some(json!(null)),
            Some(after) => difference(before, after),
        };
        patch.extend(change.map(|change| (field.clone(), change)));
    }
    let added = to.iter().filter(|(field, _)| !from.contains_key(*field));
    patch.extend(added.map(|(field, value)| (field.clone(), value.clone())));
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_takes_away_what_was_added() {
        let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2], "f": 4});
        let to = json!({"a": 1, "b": {"c": 5}, "e": [1], "g": 6});
        let expected = json!({"b": {"c": 5, "d": null}, "e": [1], "f": null, "g": 6});
        assert_eq!(difference(&from, &to), Some(expected));
        assert_eq!(difference(&from, &from), None);
    }
}
