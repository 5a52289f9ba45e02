//! `Decision`: whether a change may go out now. It has the same form in the answer over HTTP, in a
//! consumer's status, in the log, and in the audit log.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::{Require, State};

/// What Events about decisions carry for programs. Their reason is [`told::BLOCKED`] or
/// [`told::ADMITTED`].
pub mod told {
    /// The reason of an Event, and the value of [`OUTCOME`]: the subject has to wait.
    pub const BLOCKED: &str = "Blocked";
    /// The same: the subject may go on.
    pub const ADMITTED: &str = "Admitted";
    /// A label: the outcome, so that a selector finds everything that waits.
    pub const OUTCOME: &str = "sluice.dev/decision";
    /// An annotation: the kind of the subject.
    pub const KIND: &str = "sluice.dev/subject-kind";
    /// An annotation: its namespace.
    pub const NAMESPACE: &str = "sluice.dev/subject-namespace";
    /// An annotation: its name, where it has one.
    pub const NAME: &str = "sluice.dev/subject-name";
    /// An annotation: the environment that it wants to do it in, where it names one.
    pub const ENVIRONMENT: &str = "sluice.dev/subject-environment";
    /// An annotation: what it wants to do.
    pub const ACTION: &str = "sluice.dev/subject-action";
    /// An annotation: the step of it that it wants to do, where it names one.
    pub const STEP: &str = "sluice.dev/subject-step";
    /// An annotation: the revision that it wants to do it with, where it names one.
    pub const REVISION: &str = "sluice.dev/subject-revision";
    /// An annotation: who asked, where that is known.
    pub const ASKED_BY: &str = "sluice.dev/asked-by";
    /// An annotation: the gates that the subject itself names, as `namespace/name`, with commas between
    /// them.
    pub const ASKED: &str = "sluice.dev/asked";
    /// An annotation: the gates that decided, as `namespace/name`, with commas between them.
    pub const GATES: &str = "sluice.dev/decided-by";
    /// An annotation: since when the outcome has been the same, RFC 3339.
    pub const SINCE: &str = "sluice.dev/since";
    /// An annotation: when time alone may change the answer, where that is known.
    pub const NEXT: &str = "sluice.dev/next";
}

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

    /// How the gates that the subject names combine. The gates of each GatePolicy are asked as well.
    pub require: Require,

    /// Every gate that was checked.
    pub checked: Vec<CheckedGate>,

    /// The gates that decided: those that let it out, or those that hold it back. Each is listed once,
    /// also if the subject and a GatePolicy ask for the same one.
    pub decided_by: Vec<String>,

    /// Why, in a sentence.
    pub message: String,

    /// The earliest instant at which time alone may change the answer: when a window, an override or an
    /// approval begins or ends. It is assumed that measured and reported values are renewed before they
    /// expire. None: as far as is known, time alone does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}

/// Who wants to do what.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The kind of the object that wants to do it, such as `Pipeline`. A program that asks over HTTP and
    /// names none: `Check`.
    pub kind: String,

    /// Its namespace.
    pub namespace: String,

    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// The environment that it wants to do it in, where it has several, such as a Pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,

    /// What it wants to do: one word, such as `promote`.
    pub action: String,

    /// The step of it, where it is done in steps, such as `2/4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,

    /// The revision that it wants to do it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// A gate that was checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedGate {
    /// The gate, as `namespace/name`. If it is unknown which gates a GatePolicy names, the policy itself
    /// is listed here, as `GatePolicy name`, and counts as closed.
    pub gate: String,

    /// The GatePolicy that asks for it. None: the subject itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,

    /// Whether it admits the revision.
    pub state: State,

    /// Why, in one word.
    pub reason: String,

    /// Why, in a sentence, with what was measured.
    pub message: String,
}
