//! `external`: what a third party reports.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::Setting;

/// Admits what its writers last reported in `status.report`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// The user names that may write `status.report`, as the API server knows them, such as
    /// `system:serviceaccount:ci:reporter`.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 256)))]
    pub writers: Vec<String>,
}

/// What a third party reports. It writes this, and nothing else, to the status subresource, with a field
/// manager of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.expiresAt < timestamp('9999-12-30T00:00:00Z')")
        .message("expiresAt: must be before 9999-12-30T00:00:00Z; write an earlier instant")
        .field_path(".expiresAt")
)]
pub struct ExternalReport {
    /// Open: changes may go out.
    pub state: Setting,

    /// Only these revisions, each in full, may go out. Empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub revisions: Vec<String>,

    /// Why, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub reason: Option<String>,

    /// Until when this report is valid. After that the gatekeeper does not admit.
    pub expires_at: Time,

    /// The generation of the spec that it is about: a report about another one does not count.
    pub for_generation: i64,

    /// Who writes it: the requesting user, which an admission policy verifies.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,
}
