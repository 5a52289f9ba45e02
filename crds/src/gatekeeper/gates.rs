//! `gates`: other gates, so that gates can be combined.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::gate_set::GateReference;
use crate::values::Require;

/// Admits what other gates admit, each by itself or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gates {
    /// How the answers of the gates combine.
    #[serde(default)]
    pub require: Require,

    /// The gates.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name && (has(b.__namespace__) ? b.__namespace__ : '') == (has(a.__namespace__) ? a.__namespace__ : '')))")
            .message("refs: a gate is listed twice; list each one once")
    )]
    pub refs: Vec<GateReference>,
}
