//! `manual`: a switch. People who may write the spec set it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::Setting;

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.until) || self.until < timestamp('9999-12-30T00:00:00Z')")
        .message("until: must be before 9999-12-30T00:00:00Z; write an earlier instant, or remove it")
        .field_path(".until")
)]
pub struct Manual {
    /// The position of the switch.
    pub state: Setting,

    /// Until when it stays there; after that it is in the other position. RFC 3339. None: until
    /// the spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,

    /// Why it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
}
