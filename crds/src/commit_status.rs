//! `CommitStatus`: what somebody has found out about one commit. It is shown at the forge, and promotions
//! wait for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git_repository_access::AccessReference;

/// The labels that say which check it is, the own one first. Of one with several that differ, none counts.
pub const KEY_LABELS: [&str; 3] = [
    "sluice.dev/commit-status",
    "promoter.argoproj.io/commit-status",
    "commit-status.argoproj.io/key",
];

/// What was found out, about which commit.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "CommitStatus",
    plural = "commitstatuses",
    shortname = "cst",
    category = "sluice",
    namespaced,
    status = "CommitStatusStatus",
    derive = "PartialEq",
    doc = "A CommitStatus is what somebody has found out about one commit: that it is tested, healthy, or not. It is shown at the forge, and a PromotionStrategy waits for it by the label sluice.dev/commit-status.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters"),
    printcolumn(
        name = "Key",
        type_ = "string",
        json_path = ".metadata.labels.sluice\\.dev/commit-status"
    ),
    printcolumn(name = "SHA", type_ = "string", json_path = ".spec.sha"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".spec.phase"),
    printcolumn(
        name = "Posted",
        type_ = "string",
        json_path = ".status.posted.phase",
        description = "What the forge was told"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Description",
        type_ = "string",
        json_path = ".spec.description",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CommitStatusSpec {
    /// The repository.
    pub repo_ref: AccessReference,

    /// The commit: of an environment branch, or of its proposed branch.
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub sha: String,

    /// What it is called at the forge. Names that begin with `sluice/` are the controller's.
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(
        validation = Rule::new("!self.startsWith('sluice/')")
            .message("name: names that begin with `sluice/` are the controller's; write another one")
    )]
    pub name: String,

    /// What was found out.
    pub phase: Phase,

    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,

    /// Where people see more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(
        validation = Rule::new("self.startsWith('https://') || self.startsWith('http://')")
            .message("url: write an address that begins with https:// or http://")
    )]
    pub url: Option<String>,

    /// From this instant on it counts as pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// What was found out about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is not known yet.
    Pending,
    /// It has not begun.
    Queued,
    /// It is being found out.
    InProgress,
    /// It is as it should be.
    Success,
    /// It is not.
    Failure,
    /// Nobody will find out.
    Cancelled,
}

impl Phase {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Queued => "queued",
            Phase::InProgress => "in_progress",
            Phase::Success => "success",
            Phase::Failure => "failure",
            Phase::Cancelled => "cancelled",
        }
    }
}

/// What the controller reports about a CommitStatus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitStatusStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What the forge was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,

    /// How often the forge was told and has refused it, or has not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,

    /// When the forge is told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,

    /// `Ready`: the forge shows it. `Reconciling` and `Stalled` are there only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// What a forge was told about a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// The commit.
    pub sha: String,
    /// The phase.
    pub phase: Phase,
    /// Twelve hexadecimal digits of a hash of everything that was told.
    pub digest: String,
    /// The same of where it was told: the repository, the commit and the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// When.
    pub at: Time,
}
