//! `GatePolicy`: gates that every consumer of some namespaces must pass besides its own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate_set::GateSet;

/// Which consumers, and which gates. The company-wide freeze.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "GatePolicy",
    plural = "gatepolicies",
    shortname = "gp",
    category = "sluice",
    status = "GatePolicyStatus",
    derive = "PartialEq",
    doc = "A GatePolicy names gates that every consumer of some namespaces must pass besides its own: the company-wide freeze.",
    printcolumn(
        name = "Gates",
        type_ = "string",
        json_path = ".spec.gates.refs[*].name"
    ),
    printcolumn(name = "Require", type_ = "string", json_path = ".spec.gates.require"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.gates.refs.all(ref, has(ref.__namespace__))")
        .message("gates.refs: a GatePolicy has no namespace of its own; write the namespace of each gate")
        .field_path(".gates.refs")
)]
pub struct GatePolicySpec {
    /// The namespaces whose consumers must pass. Empty: all.
    #[serde(default)]
    pub namespace_selector: LabelSelector,

    /// The kinds of consumers that must pass. Empty: all, whoever asks over HTTP included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub kinds: Vec<String>,

    /// The gates.
    pub gates: GateSet,
}

/// What the controller made of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatePolicyStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Ready`: every gate that it names exists. `Stalled`: the spec has to change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}
