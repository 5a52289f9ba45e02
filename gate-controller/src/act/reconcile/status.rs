//! Writing a status: one server-side apply, by a field manager of the kind's own.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cluster::key::ObjectKey;

/// What became of a status.
pub(super) struct Wrote {
    /// How many requests it took.
    pub(super) requests: u32,
    /// The version of the object that has it.
    pub(super) version: Option<String>,
}

/// Makes `status` the status of the object, whatever others have written there. `version` is what
/// it was decided from: onto any other the API server refuses it.
pub(super) async fn write<K, S>(
    client: &Client,
    key: &ObjectKey,
    version: Option<&str>,
    manager: &str,
    status: &S,
) -> Result<Wrote, kube::Error>
where
    K: Resource<DynamicType = ()>,
    S: Serialize,
{
    // What comes back is compared field by field, so that it needs no types.
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match &*key.namespace {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    };
    let wanted = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": &*key.name, "resourceVersion": version },
        "status": wanted,
    });
    let force = PatchParams::apply(manager).force();
    let written = api
        .patch_status(&key.name, &force, &Patch::Apply(&patch))
        .await?;
    // An apply leaves what others own. Only the controller writes here: take it away.
    match foreign(&wanted, written.data.get("status").unwrap_or(&Value::Null)) {
        None => Ok(Wrote {
            requests: 1,
            version: written.metadata.resource_version,
        }),
        Some(mend) => {
            let version = &written.metadata.resource_version;
            let mend = json!({ "metadata": { "resourceVersion": version }, "status": mend });
            let params = PatchParams {
                field_manager: Some(manager.to_owned()),
                ..PatchParams::default()
            };
            let mended = api
                .patch_status(&key.name, &params, &Patch::Merge(&mend))
                .await?;
            Ok(Wrote {
                requests: 2,
                version: mended.metadata.resource_version,
            })
        }
    }
}

/// The part of a status that a third party writes, and an admission policy guards.
const REPORT: &str = "report";

/// The merge patch that takes away what `is` has beyond `wanted`. None: nothing.
fn foreign(wanted: &Value, is: &Value) -> Option<Value> {
    let (Value::Object(wanted), Value::Object(is)) = (wanted, is) else {
        return None;
    };
    let mut mend = Map::new();
    for (name, value) in is {
        if name == REPORT {
            continue;
        }
        match (wanted.get(name), value) {
            (None, _) => {
                mend.insert(name.clone(), Value::Null);
            }
            (Some(Value::Object(_)), Value::Object(_)) => {
                if let Some(inner) = foreign(&wanted[name], value) {
                    mend.insert(name.clone(), inner);
                }
            }
            (Some(wanted), value) if wanted != value => {
                mend.insert(name.clone(), wanted.clone());
            }
            (Some(_), _) => {}
        }
    }
    (!mend.is_empty()).then_some(Value::Object(mend))
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
        let mend = json!({ "override": { "more": null }, "conditions": [1], "more": null });
        assert_eq!(foreign(&wanted, &is), Some(mend));
    }
}
