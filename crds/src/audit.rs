//! The audit log: what was decided, what changed, who overrode it, one line of JSON each.
//!
//! What comes in: what the controller has done. What goes out: a [`Record`] a line, in a form that has a
//! version. Within one version fields and events are only added, and a reader has to skip what it does
//! not know.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::Decision;
use crate::gate::Override;
use crate::pipeline::Phase;
use crate::values::State;

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The form of this line.
    pub version: Version,

    /// When it happened, by the clock of the replica.
    pub at: MicroTime,

    /// The replica that wrote the record: the name of its pod.
    pub by: String,

    /// What happened.
    pub event: Event,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Version {
    /// The first.
    #[default]
    #[serde(rename = "sluice.dev/audit/v1")]
    V1,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// Somebody asked whether a change may go out, and was answered.
    Decision(Box<Decided>),
    /// A gate is in another state, or in the same one for another reason.
    Transition(Box<Changed>),
    /// A force on a gate began, ended, or does not count.
    Override(Box<Forced>),
    /// Somebody changed what a gate, a gatekeeper or a policy is.
    Definition(Box<Defined>),
    /// A promotion of a pipeline is in another phase, or in the same one for another reason.
    Promotion(Box<Promoted>),
    /// Records are missing here: they could not be written.
    Lost(Lost),
    /// An event that a later version writes.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Somebody asked, and was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Who asked, as the API server knows them. None: the consumer itself, or somebody who sent no
    /// token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,

    /// How many equal answers to the same question were left out since the previous line.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,

    /// The answer.
    pub decision: Decision,
}

/// A gate is in another state, or in the same one for another reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The gate, as `namespace/name`.
    pub gate: String,

    /// The state before. None: it had none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,

    /// The state from now on.
    pub to: State,

    /// Why, in one word.
    pub reason: String,

    /// Why, in a sentence, with what was measured.
    pub message: String,

    /// The gatekeepers that decided, as the gate names them. None: a force did, or its default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<String>,

    /// When it changes next, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}

/// A force on a gate began, ended, or does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forced {
    /// The gate, as `namespace/name`.
    pub gate: String,

    /// What happened to the force.
    pub step: Step,

    /// The force: who, why, until when. None: it does not count, and so has no beginning.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub force: Option<Override>,

    /// In a sentence. If the force does not count: what is wrong with it.
    pub message: String,
}

/// What happened to a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Step {
    /// It is in effect from now on.
    Began,
    /// It is no longer in effect.
    Ended,
    /// Somebody asked for it, and it does not count.
    Refused,
}

/// Somebody changed what an object is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defined {
    /// The object.
    pub object: Object,

    /// What happened to it.
    pub change: Change,

    /// The generation that this record is about. None: the object is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// The generation that was recorded last. None: the object is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_told: Option<i64>,

    /// What is different in the spec. Empty if the previous spec is not known, as after a restart: then
    /// `spec` says what it is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,

    /// The whole spec as it is now. If the object is gone: as it was.
    pub spec: Value,

    /// Who changed the spec last, of the managers in `metadata.managedFields`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by: Vec<Manager>,
}

/// Names an object of this API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Its kind.
    pub kind: String,

    /// Its namespace. None: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Its name.
    pub name: String,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Change {
    /// It is new.
    Created,
    /// Its spec is another.
    Changed,
    /// It is gone.
    Deleted,
}

/// One difference in a spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Where, such as `spec.require` or `spec.gatekeepers[office-hours]`.
    pub field: String,

    /// The value before. None: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,

    /// The value now. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Who changed a spec, as `metadata.managedFields` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// The field manager, such as `kustomize-controller`. It is the name that a client gives itself, and
    /// does not prove who it was: that is in the audit log of the API server.
    pub manager: String,

    /// When it changed its fields last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// A promotion of a pipeline is in another phase, or in the same one for another reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Promoted {
    /// The Pipeline, as `namespace/name`.
    pub pipeline: String,

    /// The environment that is promoted to.
    pub environment: String,

    /// The revision.
    pub revision: String,

    /// The run, by its number. The same revision has another one when it is promoted again.
    pub run: i64,

    /// The phase from now on.
    pub phase: Phase,

    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// The page of its pull request on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,

    /// The gates that decided about this revision last, as `namespace/name`. None: no gate was asked, or
    /// people were waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<String>,
}

/// Records are missing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// How many.
    pub records: u64,

    /// Why, in a sentence.
    pub message: String,
}

/// The JSON schema of a line.
pub fn schema() -> Value {
    SchemaGenerator::default()
        .into_root_schema_for::<Record>()
        .into()
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(event: &Value) -> Value {
        json!({
            "version": "sluice.dev/audit/v1",
            "at": "2026-11-20T12:00:00.000000Z",
            "by": "gate-controller-0",
            "event": event,
        })
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let lines = [
            json!({
                "type": "Decision",
                "askedBy": "system:serviceaccount:ci:deployer",
                "repeated": 41,
                "decision": {
                    "allowed": false,
                    "at": "2026-11-20T12:00:00Z",
                    "subject": {"kind": "Check", "namespace": "apps", "action": "check"},
                    "require": "all",
                    "checked": [],
                    "decidedBy": [],
                    "message": "no gate is named, so nothing may pass",
                },
            }),
            json!({
                "type": "Transition",
                "gate": "apps/production",
                "from": "Open",
                "to": "Closed",
                "reason": "OutsideWindow",
                "message": "m",
                "decidedBy": ["office-hours"],
            }),
            json!({"type": "Override", "gate": "apps/production", "step": "Refused", "message": "m"}),
            json!({
                "type": "Definition",
                "object": {"kind": "Gate", "namespace": "apps", "name": "production"},
                "change": "Changed",
                "generation": 3,
                "lastTold": 2,
                "differences": [{"field": "spec.require", "before": "all", "after": "oneOf"}],
                "spec": {"require": "oneOf"},
                "changedBy": [{"manager": "kubectl", "at": "2026-11-20T12:00:00Z"}],
            }),
            json!({
                "type": "Promotion",
                "pipeline": "apps/shop",
                "environment": "prod",
                "revision": "6.1.6",
                "run": 7,
                "phase": "Succeeded",
                "reason": "Merged",
                "pullRequest": "https://git.example.com/a/b/pulls/7",
                "decidedBy": ["apps/production"],
            }),
            json!({"type": "Lost", "records": 2, "message": "m"}),
        ];
        for event in lines {
            let read: Record = serde_json::from_value(line(&event)).unwrap();
            assert_ne!(read.event, Event::Unknown);
            assert_eq!(serde_json::to_value(&read).unwrap(), line(&event));
        }
    }

    #[test]
    fn later_events_and_fields_are_skipped_and_later_versions_refused() {
        let mut later = line(&json!({"type": "Harvest", "apples": [1, 2]}));
        later["more"] = json!(true);
        let read: Record = serde_json::from_value(later.clone()).unwrap();
        assert_eq!(read.event, Event::Unknown);
        later["version"] = json!("sluice.dev/audit/v2");
        assert!(serde_json::from_value::<Record>(later).is_err());
    }

    #[test]
    fn the_schema_names_every_event_that_is_written() {
        let schema = schema().to_string();
        for event in [
            "Decision",
            "Transition",
            "Override",
            "Definition",
            "Promotion",
            "Lost",
        ] {
            assert!(
                schema.contains(&format!("\"const\":\"{event}\"")),
                "{event}"
            );
        }
        assert!(!schema.contains("Unknown"), "{schema}");
    }
}
