//! An object as it is kept: trimmed to what is read, as text.

use kube::api::{ApiResource, DynamicObject};
use serde_json::{Map, Value, json};
use sluice_watching::{trimmed, typed};

use crate::wanted::{Keep, Part};

/// How much of a message of a condition is kept, in characters.
const MESSAGE: usize = 512;
/// How many releases of a history are kept, the newest first.
const HISTORY: usize = 5;

/// An object as it is kept.
///
/// Of [`Part::State`] it has what says how it is and what it runs: `metadata.name`, `namespace`, `uid`,
/// `generation` and `deletionTimestamp`; `spec.suspend`, `secretRef`, `capiClusterRef` and `external`;
/// `status.observedGeneration`, `lastAppliedRevision`, `lastAttemptedRevision`, `report`, the conditions
/// without their times, and of `history` the versions, digests and states. Of [`Part::Whole`] it has everything
/// but `managedFields` and what `kubectl apply` has noted. Of [`Part::Kept`] it has what a [`Keep`] leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(Box<str>);

impl Object {
    /// The object, in the fields that it has at the API server.
    pub fn read(&self) -> Value {
        // It was made from a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    pub(super) fn new(
        object: DynamicObject,
        resource: &ApiResource,
        (part, keep): (Part, Keep),
    ) -> Self {
        let value = match part {
            Part::State => state(&object, resource),
            Part::Whole => value(trimmed(object, resource)),
            Part::Kept => keep(value(typed(object, resource))),
        };
        Self(value.to_string().into())
    }

    /// How many bytes its text has.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

fn state(object: &DynamicObject, resource: &ApiResource) -> Value {
    let metadata = &object.metadata;
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let mut kept = pick(
        status,
        &[
            "observedGeneration",
            "lastAppliedRevision",
            "lastAttemptedRevision",
            "report",
        ],
    );
    if let Some(conditions) = status["conditions"].as_array() {
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        kept.insert("conditions".to_owned(), conditions.into());
    }
    if let Some(history) = status["history"].as_array() {
        let fields = ["chartVersion", "appVersion", "status", "ociDigest"];
        let history = history.iter().take(HISTORY);
        let history: Vec<_> = history.map(|it| pick(it, &fields).into()).collect();
        kept.insert("history".to_owned(), Value::Array(history));
    }
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "generation": metadata.generation,
            "deletionTimestamp": metadata.deletion_timestamp,
        },
        "spec": pick(spec, &["suspend", "secretRef", "capiClusterRef", "external"]),
        "status": kept,
    })
}

/// When a condition has changed is not read: controllers of Flux set it at every interval.
fn condition(condition: &Value) -> Value {
    let mut kept = pick(
        condition,
        &["type", "status", "reason", "observedGeneration"],
    );
    if let Some(message) = condition["message"].as_str() {
        let message: String = message.chars().take(MESSAGE).collect();
        kept.insert("message".to_owned(), message.into());
    }
    kept.into()
}

fn pick(from: &Value, fields: &[&str]) -> Map<String, Value> {
    let found = fields.iter().filter_map(|field| {
        let value = from.get(field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    found.collect()
}
