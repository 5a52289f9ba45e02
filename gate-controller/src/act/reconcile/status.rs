//! Writing the status of an object of ours: one server-side apply, by a field manager of the kind's own.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::write::Part;
use super::{Context, Reconciled};

/// The part of a status that a third party writes, and an admission policy guards.
const REPORT: &str = "report";

/// Makes `status` the status of the object, and removes what others have written there, except the report
/// of a third party. `object` is what it was decided from: the API server refuses the write onto any
/// other version. Reports the object's definition if that is new. Returns the object as it is then.
pub(super) async fn write<K>(
    context: &Context,
    object: &K,
    status: K::Status,
) -> Result<Arc<K>, kube::Error>
where
    K: Reconciled,
    K::Status: Serialize,
{
    let mut wanted = serde_json::to_value(&status).map_err(kube::Error::SerdeError)?;
    if let Value::Object(wanted) = &mut wanted {
        wanted.remove(REPORT);
    }
    let writer = context.writer(object, K::MANAGER);
    // The response is compared field by field, so that it needs no types.
    let fields = json!({ "status": wanted });
    let mut answer: DynamicObject = writer.apply(Part::Status, object.meta(), fields).await?;
    // An apply keeps fields that others own. Only the controller writes here: remove them.
    let is = answer.data.get("status").unwrap_or(&Value::Null);
    if let Some(rest) = foreign(&wanted, is) {
        let patch = json!({ "status": rest });
        answer = writer.merge(Part::Status, &answer.metadata, patch).await?;
    }
    let mut written = object.clone();
    *written.status_mut() = Some(status);
    written.meta_mut().resource_version = answer.metadata.resource_version;
    let written = context.take_in(written);
    context.telling().tell(&writer.work, object);
    Ok(written)
}

/// The merge patch that removes what `is` has beyond `wanted`. None: nothing.
fn foreign(wanted: &Value, is: &Value) -> Option<Value> {
    let (Value::Object(wanted), Value::Object(is)) = (wanted, is) else {
        return None;
    };
    let mut rest = Map::new();
    for (name, value) in is {
        if name == REPORT {
            continue;
        }
        match (wanted.get(name), value) {
            (None, _) => {
                rest.insert(name.clone(), Value::Null);
            }
            (Some(Value::Object(_)), Value::Object(_)) => {
                if let Some(inner) = foreign(&wanted[name], value) {
                    rest.insert(name.clone(), inner);
                }
            }
            (Some(wanted), value) if wanted != value => {
                rest.insert(name.clone(), wanted.clone());
            }
            (Some(_), _) => {}
        }
    }
    (!rest.is_empty()).then_some(Value::Object(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_wrote_is_taken_away() {
        let wanted = json!({ "state": "Open", "override": { "by": "alice" }, "conditions": [1] });
        assert_eq!(foreign(&wanted, &wanted), None);
        let is = json!({
            "state": "Open",
            "override": { "by": "alice", "more": 1 },
            "conditions": [1, 2],
            "report": "theirs",
            "more": "mine",
        });
        let rest = json!({ "override": { "more": null }, "conditions": [1], "more": null });
        assert_eq!(foreign(&wanted, &is), Some(rest));
    }
}
