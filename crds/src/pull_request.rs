//! `PullRequest`: one pull request on a forge, with what it changes. The controller writes it, and follows
//! it until it is merged or closed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git_repository_access::AccessReference;
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

    /// The branch with the change. Where `change` is there, the controller makes it.
    #[schemars(length(min = 1, max = 244))]
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

    /// What it changes. None: the branch is there, and somebody else pushes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("change: it never changes; the controller makes another PullRequest")
    )]
    pub change: Option<Change>,

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

/// A repository on a forge: by a GitRepositoryAccess, or by its address and a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.repoRef) ? !has(self.type) && !has(self.url) && !has(self.secretRef) : has(self.type) && has(self.url) && has(self.secretRef)")
        .message("repository: write repoRef alone, or type, url and secretRef")
)]
pub struct Repository {
    /// The GitRepositoryAccess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<AccessReference>,

    /// The kind of forge.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ForgeType>,

    /// Its address, such as `https://git.example.com/platform/apps.git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(
        validation = Rule::new("self.startsWith('https://')")
            .message("url: forges are asked over https alone; write https://...")
    )]
    pub url: Option<String>,

    /// The Secret with the key `token`, and perhaps `ca.crt`, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
}

/// How a repository is named. Code that handles one handles all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryKind<'a> {
    /// By a GitRepositoryAccess.
    Access(&'a AccessReference),
    /// By its address.
    Address {
        /// The kind of forge.
        type_: ForgeType,
        /// The address.
        url: &'a str,
        /// The Secret, in the namespace of the PullRequest.
        secret: &'a str,
    },
}

impl Repository {
    /// By its address.
    pub fn at(type_: ForgeType, url: impl Into<String>, secret_ref: SecretName) -> Self {
        Self {
            repo_ref: None,
            type_: Some(type_),
            url: Some(url.into()),
            secret_ref: Some(secret_ref),
        }
    }

    /// By a GitRepositoryAccess.
    pub fn of(access: AccessReference) -> Self {
        Self {
            repo_ref: Some(access),
            type_: None,
            url: None,
            secret_ref: None,
        }
    }

    /// The one way in which it is named. None: in none, or in several, which admission refuses.
    pub fn kind(&self) -> Option<RepositoryKind<'_>> {
        let Self {
            repo_ref,
            type_,
            url,
            secret_ref,
        } = self;
        match (repo_ref, type_, url, secret_ref) {
            (Some(access), None, None, None) => Some(RepositoryKind::Access(access)),
            (None, Some(type_), Some(url), Some(secret)) => Some(RepositoryKind::Address {
                type_: *type_,
                url,
                secret: &secret.name,
            }),
            _ => None,
        }
    }
}

/// What a pull request changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It writes a revision into marked places of files.
    Markers(Markers),
    /// It has the files of another commit.
    Tree(Tree),
}

/// The files of a commit that was there before, on what the target branch has now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The tree.
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub of: String,
    /// What the target branch has.
    #[schemars(length(min = 40, max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    pub parent: String,
    /// The message of the commit.
    #[schemars(length(min = 1, max = 4096))]
    pub message: String,
    /// The date of the commit, in seconds since 1970: by it a second try makes the same commit.
    pub date: i64,
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
    /// The environment: its name, or its branch.
    #[schemars(length(min = 1, max = 244))]
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

    /// Whether it is a draft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,

    /// Whether it has conflicts with its target branch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conflict: bool,

    /// Its labels. Only those of a pull request whose branch somebody else pushes to are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 128)))]
    pub labels: Vec<String>,

    /// The merge that the controller may have sent to the forge, by an order of its owner. It is written here
    /// before that, and stays until nothing can come of it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_sent: Option<MergeSent>,

    /// How often in a row the forge has refused to merge this commit, for a reason that a person has to change.
    /// It is counted of what a PromotionStrategy orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<u32>,

    /// Before that its merge is not ordered again, unless somebody asks the PromotionStrategy for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_merge_at: Option<Time>,

    /// When it was seen to be merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_at: Option<Time>,

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

/// A merge that may have been sent to a forge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeSent {
    /// The commit: nothing else is merged.
    #[serde(rename = "headSHA")]
    pub head_sha: String,
    /// The end of the order: nothing is sent after it.
    pub not_after: Time,
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
