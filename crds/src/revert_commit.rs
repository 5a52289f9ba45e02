//! `RevertCommit`: one environment goes back to what it had before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git_repository_access::AccessReference;

/// Which environment goes back, from where, and where to. Only `fixedBy` ever changes.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "RevertCommit",
    plural = "revertcommits",
    shortname = "rvc",
    category = "sluice",
    namespaced,
    status = "RevertCommitStatus",
    derive = "PartialEq",
    doc = "A RevertCommit brings the branch of one environment back to what it had at an earlier dry commit. What it takes back stays held until the RevertCommit is deleted, or names the commit that fixes it.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits the name of a branch"),
    printcolumn(name = "Branch", type_ = "string", json_path = ".spec.activeBranch"),
    printcolumn(name = "Dry-SHA", type_ = "string", json_path = ".spec.drySHA"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "By", type_ = "string", json_path = ".spec.by"),
    printcolumn(
        name = "Pull-Request",
        type_ = "string",
        json_path = ".status.url"
    ),
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
    validation = Rule::new("self.repoRef == oldSelf.repoRef && self.activeBranch == oldSelf.activeBranch && self.from == oldSelf.from && self.drySHA == oldSelf.drySHA && self.reason == oldSelf.reason && self.by == oldSelf.by && has(self.hydratedSHA) == has(oldSelf.hydratedSHA) && (!has(self.hydratedSHA) || self.hydratedSHA == oldSelf.hydratedSHA) && has(self.merge) == has(oldSelf.merge) && (!has(self.merge) || self.merge == oldSelf.merge)")
        .message("a RevertCommit never changes but for fixedBy; delete it and create another one")
)]
pub struct RevertCommitSpec {
    /// The repository.
    pub repo_ref: AccessReference,

    /// The branch of the environment.
    #[schemars(length(min = 1, max = 244))]
    pub active_branch: String,

    /// The commit that the branch has now: what is taken back. If it has another one, nothing is done.
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub from: String,

    /// The dry commit to go back to: an ancestor of the one that is active.
    #[serde(rename = "drySHA")]
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub dry_sha: String,

    /// The commit of the branch with what was made of that dry commit. Default: the one that the status of
    /// the PromotionStrategy has in `lastHealthyDrySHAs`.
    #[serde(
        default,
        rename = "hydratedSHA",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub hydrated_sha: Option<String>,

    /// The dry commit that fixes what was wrong. It and what descends from it may be promoted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub fixed_by: Option<String>,

    /// When it is merged. Default: at once where the environment has `autoMerge`, else by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<RevertMerge>,

    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,

    /// Who says so: the requesting user, as the API server knows them.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,
}

/// When a revert is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RevertMerge {
    /// At once.
    Auto,
    /// When the proposed checks of the environment pass on it.
    AfterChecks,
    /// By a person.
    Manual,
}

/// What the controller reports about a RevertCommit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevertCommitStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RevertPhase>,

    /// The name of its PullRequest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,

    /// The page of its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub url: Option<String>,

    /// `Ready`: the environment is back, or nothing is left to do. `Reconciling` and `Stalled` are there only
    /// while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// How far a revert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RevertPhase {
    /// Nothing has been done yet.
    Pending,
    /// Its pull request is open.
    Open,
    /// It is merged, and the environment is back.
    Merged,
    /// The environment had what it leads to already.
    Done,
    /// The environment has another commit than the one that was to be taken back.
    Superseded,
    /// A person has to do something.
    Stalled,
}

impl RevertPhase {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            RevertPhase::Pending => "Pending",
            RevertPhase::Open => "Open",
            RevertPhase::Merged => "Merged",
            RevertPhase::Done => "Done",
            RevertPhase::Superseded => "Superseded",
            RevertPhase::Stalled => "Stalled",
        }
    }
}
