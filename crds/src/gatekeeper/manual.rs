//! `manual`: a switch, thrown by whoever may write the spec.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Setting;

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
