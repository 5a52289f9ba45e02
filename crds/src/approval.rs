//! `Approval`: one person's vote on one revision. The right to create Approvals is the right to approve.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A vote. It never changes: to change your mind, delete it, or add a rejection.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Approval",
    plural = "approvals",
    shortname = "apv",
    category = "sluice",
    namespaced,
    derive = "PartialEq",
    doc = "An Approval is one person's word on one revision: yes or no.",
    printcolumn(
        name = "Gatekeeper",
        type_ = "string",
        json_path = ".spec.gatekeeperRef.name"
    ),
    printcolumn(name = "Decision", type_ = "string", json_path = ".spec.decision"),
    printcolumn(name = "By", type_ = "string", json_path = ".spec.by"),
    printcolumn(name = "Revision", type_ = "string", json_path = ".spec.revision"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".spec.reason",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("an Approval never changes; delete it and create another one"),
    validation = Rule::new("has(self.gatekeeperRef) != has(self.pipelineRef)")
        .message("gatekeeperRef: write exactly one of gatekeeperRef and pipelineRef")
)]
pub struct ApprovalSpec {
    /// The gatekeeper that asks, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gatekeeper_ref: Option<LocalReference>,

    /// The promotion that waits for it, of a Pipeline in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_ref: Option<PipelineReference>,

    /// The revision, in full.
    #[schemars(length(min = 1, max = 256))]
    pub revision: String,

    /// Yes or no.
    pub decision: Vote,

    /// Who says so: the requesting user, as the API server knows them.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,

    /// The groups of that user by which the approval counts, if the gatekeeper asks for groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)))]
    pub groups: Vec<String>,

    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Vote {
    /// It may go out.
    Approve,
    /// It may not, even if others approve it.
    Reject,
}

/// Names an object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalReference {
    /// The name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// Names a promotion of a Pipeline in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineReference {
    /// The name of the Pipeline.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The environment that is promoted to.
    #[schemars(length(min = 1, max = 63))]
    pub environment: String,
    /// The run, as `status.environments.<environment>.waitingApproval.run` has it. A vote on one run does
    /// not count for another.
    pub run: i64,
    /// The promotion, as `status.environments.<environment>.promotion.key` has it. With it, an approval
    /// does not count once the promotion is to be done in another way: by another strategy, in another
    /// repository or branch. Without it, an approval counts for the run, however the promotion is done. A
    /// rejection always counts for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 12, max = 12), regex(pattern = r"^[0-9a-f]{12}$"))]
    pub key: Option<String>,
}
