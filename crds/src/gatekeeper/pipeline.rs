//! `pipeline`: what a Pipeline has admitted to one of its environments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Admits a revision that a Pipeline has admitted to an environment, by the strategy `admission`. What
/// the environment was admitted before may go back: `status.environments` of the Pipeline keeps at most 5.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineRule {
    /// The name of the Pipeline.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Its namespace. Default: the namespace of the Gatekeeper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,

    /// The environment, as `spec.environments` of the Pipeline names it.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub environment: String,
}
