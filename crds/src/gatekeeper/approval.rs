//! `approval`: people who approve one revision.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigMapKeyReference;
use crate::values::{Duration, with_days};

/// Admits a revision once enough people have approved it and nobody has rejected it, each by an
/// [`Approval`](crate::Approval).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(with_days("duration(self.validFor) > duration('0s') && duration(self.validFor) <= duration('8784h')"))
        .message("validFor: must be longer than zero and at most 8784h (366 days)")
        .field_path(".validFor")
)]
pub struct ApprovalRule {
    /// How many people have to approve.
    #[serde(default = "default_required")]
    #[schemars(range(min = 1, max = 16))]
    pub required: u8,

    /// How long an approval counts from its creation.
    #[serde(default = "default_valid_for")]
    pub valid_for: Duration,

    /// Only approvals by members of one of these groups count. Empty: by all who may create them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)))]
    pub groups: Vec<String>,

    /// The author of a revision may not approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbid_self: Option<Authors>,
}

impl ApprovalRule {
    /// The ConfigMap that it is judged from, if it names one.
    pub fn config_map_refs(&self) -> impl Iterator<Item = &ConfigMapKeyReference> {
        let authors = self.forbid_self.iter();
        authors.map(|authors| &authors.config_map_ref)
    }
}

fn default_required() -> u8 {
    1
}

fn default_valid_for() -> Duration {
    Duration::from("24h")
}

/// Where the author of a revision is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authors {
    /// A key of a ConfigMap in the gatekeeper's namespace. It has one line for each revision: the
    /// revision in full, a space, and the user name of its author. A revision that is not listed there
    /// is not admitted.
    pub config_map_ref: ConfigMapKeyReference,
}

/// The votes as they were counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// The revision.
    pub revision: String,
    /// Who approves it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_by: Vec<String>,
    /// Who rejects it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_by: Vec<String>,
}
