//! `Decision`: whether a change may go out now, in the one shape in which it is told: to whoever
//! asks over HTTP, in a consumer's status, in the log, and in the audit log.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::{Require, State};

/// Whether one change may go out now, which gates were checked, and which decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Whether it may go out.
    pub allowed: bool,

    /// When this was decided.
    pub at: Time,

    /// Who wants to do what.
    pub subject: Subject,

    /// How the gates that the subject names combine. Gates of a GatePolicy are asked besides.
    pub require: Require,

    /// Every gate that was checked.
    pub checked: Vec<CheckedGate>,

    /// The gates that decided: those that let it out, or those that hold it back.
    pub decided_by: Vec<String>,

    /// Why, in a sentence.
    pub message: String,

    /// The earliest instant at which the answer may be another one by time alone. None: not by
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}

/// Who wants to do what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The kind of the object that wants to move, such as `Pipeline`. For whoever asks over HTTP
    /// without one: `Check`.
    pub kind: String,

    /// Its namespace.
    pub namespace: String,

    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// What it wants to do: one word, such as `promote`.
    pub action: String,

    /// The revision that it wants to do it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// A gate that was checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedGate {
    /// The gate, as `namespace/name`.
    pub gate: String,

    /// The GatePolicy that asks for it. None: the subject itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,

    /// What it says of the revision.
    pub state: State,

    /// Why, in one word.
    pub reason: String,

    /// Why, in a sentence, with what was measured.
    pub message: String,
}
