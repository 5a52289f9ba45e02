//! `GatePolicy`: gates that every consumer of some namespaces must pass, in addition to its own.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate_set::GateSet;

/// Which consumers, and which gates.
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
    doc = "A GatePolicy names gates that every consumer of some namespaces must pass, in addition to its own: the company-wide freeze.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    printcolumn(
        name = "Gate",
        type_ = "string",
        json_path = ".spec.gates.refs[0].name",
        description = "The first of its gates"
    ),
    printcolumn(name = "Require", type_ = "string", json_path = ".spec.gates.require"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.gates.refs.all(ref, has(ref.__namespace__))")
        .message("gates.refs: a GatePolicy has no namespace of its own; write the namespace of each gate")
        .field_path(".gates.refs")
)]
pub struct GatePolicySpec {
    /// The namespaces whose consumers must pass, by their labels. Empty: all.
    #[serde(default, skip_serializing_if = "NamespaceSelector::is_empty")]
    pub namespace_selector: NamespaceSelector,

    /// The kinds of consumers that must pass, such as `Pipeline`. Empty: all, also programs that ask
    /// over HTTP; those are of the kind `Check` unless they name another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub kinds: Vec<String>,

    /// The gates, each with its namespace.
    pub gates: GateSet,
}

/// Selects namespaces by their labels, as every LabelSelector of Kubernetes does. All its requirements
/// have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 32,
        "additionalProperties" = {
            "type": "string",
            "maxLength": 63,
            "pattern": r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
        }
    ))]
    pub match_labels: BTreeMap<String, String>,

    /// Further requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<LabelRequirement>,
}

impl NamespaceSelector {
    /// Whether it selects every namespace.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

/// What is asked of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)")
        .message("values: belong to In and NotIn, which need at least one, and to no other operator")
        .field_path(".values")
)]
pub struct LabelRequirement {
    /// The name of the label.
    #[schemars(
        length(min = 1, max = 317),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
        )
    )]
    pub key: String,

    /// What is asked.
    pub operator: LabelOperator,

    /// The values that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(
            length(max = 63),
            regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
        )
    )]
    pub values: Vec<String>,
}

/// What is asked of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// It has one of the values.
    In,
    /// It has none of the values, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

/// What the controller reports about a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatePolicyStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// `Ready`: every gate that it names exists. `Stalled`: the spec has to change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}
