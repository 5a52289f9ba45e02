//! `PullRequest`: one pull request on a forge, with what it changes. The controller writes it, and follows
//! it until it is merged or closed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pipeline::{ForgeType, MergeGate, SecretName};

/// Names of annotations.
pub mod marks {
    /// The keys of the labels that it has from its owner, with commas between them: what the owner does not
    /// have any more is taken away.
    pub const LABELS: &str = "sluice.dev/labels";
}

/// What the pull request changes, and where. Only `title`, `description`, `suspend` and `close` ever
/// change. Whether it is merged is not said here: an order to merge is in the status of its owner.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "PullRequest",
    plural = "pullrequests",
    shortname = "pr",
    category = "sluice",
    namespaced,
    status = "PullRequestStatus",
    derive = "PartialEq",
    doc = "A PullRequest is one pull request on a forge. The controller makes it for an object that promotes something, and follows it until it is merged or closed.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "For", type_ = "string", json_path = ".spec.about.name"),
    printcolumn(
        name = "Environment",
        type_ = "string",
        json_path = ".spec.about.environment"
    ),
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".spec.about.revision"
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestSpec {
    /// The repository.
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("repository: it never changes; the controller makes another PullRequest")
    )]
    pub repository: Repository,

    /// The branch with the change. The controller makes it.
    #[schemars(length(min = 1, max = 100))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("sourceBranch: it never changes; the controller makes another PullRequest")
    )]
    pub source_branch: String,

    /// The branch that it is merged into.
    #[schemars(length(min = 1, max = 244))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("targetBranch: it never changes; the controller makes another PullRequest")
    )]
    pub target_branch: String,

    /// Its title.
    #[schemars(length(min = 1, max = 255))]
    pub title: String,

    /// Its text, in Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 16384))]
    pub description: String,

    /// What it changes.
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("change: it never changes; the controller makes another PullRequest")
    )]
    pub change: Change,

    /// What it is for.
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("about: it never changes; the controller makes another PullRequest")
    )]
    pub about: About,

    /// Do not open it now. One that is open stays open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// Close it, or never open it: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub close: Option<String>,
}

/// A repository on a forge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// The kind of forge.
    #[serde(rename = "type")]
    pub type_: ForgeType,

    /// Its address, such as `https://git.example.com/platform/apps.git`.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(
        validation = Rule::new("self.startsWith('https://')")
            .message("url: forges are asked over https alone; write https://...")
    )]
    pub url: String,

    /// The Secret with the key `token`, and perhaps `ca.crt`, in the same namespace.
    pub secret_ref: SecretName,
}

/// What a pull request changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It writes a revision into marked places of files.
    Markers(Markers),
}

/// The marked places of files, and what is written there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Markers {
    /// What the marks name, such as `flux-system:podinfo:prod`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The revision that is written.
    #[schemars(length(min = 1, max = 256))]
    pub revision: String,

    /// The files.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 1024)))]
    pub paths: Vec<String>,
}

/// What a pull request is for. Its owner recognises it by this.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The kind of its owner, such as `Pipeline`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The name of its owner, in the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The environment.
    #[schemars(length(min = 1, max = 63))]
    pub environment: String,
    /// The revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub revision: Option<String>,
    /// The run of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// The key of what is done by it: the same act has the same key.
    #[schemars(length(min = 1, max = 63))]
    pub key: String,
}

/// What the controller reports about a pull request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Its number on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,

    /// Its page on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub url: Option<String>,

    /// How far it is. None: nothing has been done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PullRequestState>,

    /// The commit that the controller has made. It is written here before the pull request is opened.
    #[serde(default, rename = "commitSHA", skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,

    /// The commit that its branch has.
    #[serde(default, rename = "headSHA", skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,

    /// The commit that the merge has made.
    #[serde(default, rename = "mergedSHA", skip_serializing_if = "Option::is_none")]
    pub merged_sha: Option<String>,

    /// The first parent of that commit: what the target branch had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_onto: Option<String>,

    /// Who merged it, as the forge names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub merged_by: Option<String>,

    /// What the commit status of its commit may say on the forge. It is `success` here before it is there,
    /// and `pending` there before it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<MergeGate>,

    /// Whether its branch is gone, or is left to somebody who has pushed to it. Then the forge is not asked
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branch_deleted: bool,

    /// The outcome of the last try, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,

    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// How often it was tried and failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,

    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,

    /// `Ready`: it is open, merged, or closed as it was asked for. `Reconciling` and `Stalled` are there
    /// only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// How far a pull request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PullRequestState {
    /// It has not been opened yet.
    Pending,
    /// It is open.
    Open,
    /// It is merged.
    Merged,
    /// It is closed without a merge, or was never opened.
    Closed,
    /// The target branch has the change already.
    AlreadyInBase,
    /// It was open, and the forge does not know it any more.
    Missing,
}

impl PullRequestState {
    /// Whether the forge is not asked about it again.
    pub fn is_final(self) -> bool {
        match self {
            PullRequestState::Pending | PullRequestState::Open => false,
            PullRequestState::Merged
            | PullRequestState::Closed
            | PullRequestState::AlreadyInBase
            | PullRequestState::Missing => true,
        }
    }
}
