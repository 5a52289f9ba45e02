//! Objects of a kind that only tests know.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use sluice_crds::GateSet;

/// Says in its status whether its gates let it pass.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Probe",
    namespaced,
    status = "ProbeStatus",
    schema = "disabled"
)]
pub struct ProbeSpec {
    /// What it has to pass.
    pub gates: GateSet,
}

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// The generation of the spec that it speaks of.
    pub observed_generation: Option<i64>,
    /// Whether its gates let it pass.
    pub passes: bool,
}
