//! `objects`: the state of other objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::{Duration, with_days};

/// Admits while all the objects that are named or selected are as they should be, at their present
/// generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(with_days("!has(self.soak) || (duration(self.soak) > duration('0s') && duration(self.soak) <= duration('168h'))"))
        .message("soak: must be longer than zero and at most 168h")
        .field_path(".soak")
)]
pub struct Objects {
    /// The service account whose rights are used to read the objects. It is in the gatekeeper's
    /// namespace, and needs `get`, `list` and `watch` on them.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")
    )]
    pub service_account_name: String,

    /// The objects.
    #[schemars(length(min = 1, max = 16))]
    pub of: Vec<ObjectRule>,

    /// For how long without a break all of them must have been so. The time starts again whenever one of
    /// them was not, or has come to another revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Duration>,
}

/// Objects of one kind, and what they should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.name) != has(self.selector)")
        .message("objects are named or selected; write name or selector"),
    validation = Rule::new("!has(self.condition) || !has(self.expression)")
        .message("expression: takes the place of condition; write one of them")
        .field_path(".expression"),
    validation = Rule::new("self.kind != 'Secret' || self.apiVersion != 'v1'")
        .message("kind: Secrets are never read; name another kind")
        .field_path(".kind")
)]
pub struct ObjectRule {
    /// The group and version, such as `apps/v1`.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$")
    )]
    pub api_version: String,

    /// The kind, such as `Deployment`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub kind: String,

    /// The namespace. Default: the gatekeeper's own. It has no meaning for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,

    /// The name of one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,

    /// All objects with these labels. If there are none, the gatekeeper does not admit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,

    /// The condition that each of them must have. Default: `Ready` is `True`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ExpectedCondition>,

    /// An expression (CEL) over `object` that has to be true for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: Option<String>,

    /// An expression (CEL) over `object` whose value is the revision that the object is at, such as
    /// `object.status.lastAppliedRevision`. Then only that revision is admitted, and all objects have to
    /// be at the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub revision_expression: Option<String>,
}

/// A condition that an object must have in its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedCondition {
    /// Its type.
    #[schemars(length(min = 1, max = 316))]
    pub r#type: String,

    /// Its status.
    #[serde(default = "default_status")]
    #[schemars(regex(pattern = r"^(True|False|Unknown)$"))]
    pub status: String,
}

fn default_status() -> String {
    "True".to_owned()
}

/// What was seen of the objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectsStatus {
    /// How many there are.
    pub seen: i64,
    /// How many are as they should be.
    pub satisfied: i64,
    /// Since when all of them have been, without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub satisfied_since: Option<Time>,
    /// The revision that all of them are at, where `revisionExpression` says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub revision: Option<String>,
    /// A digest of the conditions and generations of the objects. After a restart the controller
    /// compares it to know whether `satisfiedSince` is still right. None if that cannot be known, as
    /// with an `expression`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}
