//! `PromotionStrategy`: environments that are branches, and how a commit gets from one to the next.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commit_status::CommitStatusStatus;
use crate::gate_set::GateSet;
use crate::git_repository_access::AccessReference;
use crate::pipeline::MergeMethod;

mod status;

pub use status::{
    Arrival, CheckOf, CheckStatus, EnvironmentState, EnvironmentStatus, Healthy, Held, Join,
    PullRequestRecord, RevertStatus, Summary, Tip, Wait,
};

/// The most environments of a strategy.
pub const MOST_ENVIRONMENTS: usize = 16;

/// Annotations that people put on a PromotionStrategy.
pub mod marks {
    /// The commit of an environment branch that somebody else has pushed and that is accepted, as
    /// `branch=SHA`, with commas between several.
    pub const ACCEPT: &str = "sluice.dev/accept";
    /// Who says that they have accepted it, and why, as `branch=SHA by NAME: TEXT` with a line for each
    /// branch. It is for people: nothing is decided from it.
    pub const ACCEPT_REASON: &str = "sluice.dev/accept-reason";
    /// What the GitOps Promoter writes to ask for a fresh look. It is answered like
    /// `reconcile.fluxcd.io/requestedAt`.
    pub const REFRESHED_AT: &str = "promoter.argoproj.io/refreshedAt";
}

/// Which branches, in which order, and what a commit has to pass before it is merged.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "PromotionStrategy",
    plural = "promotionstrategies",
    shortname = "promo",
    category = "sluice",
    namespaced,
    status = "PromotionStrategyStatus",
    derive = "PartialEq",
    doc = "A PromotionStrategy brings what was made of a commit of the dry branch through its environments, which are branches: for each a pull request stands open, and is merged in order when checks, gates and people say yes.",
    validation = Rule::new("size(self.metadata.name) <= 50")
        .message("metadata.name: at most 50 characters, so that the names of its PullRequests fit a label"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Blocked",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Blocked\")].status"
    ),
    printcolumn(
        name = "Newest",
        type_ = "string",
        json_path = ".status.summary.newest",
        description = "The newest dry commit that is proposed anywhere"
    ),
    printcolumn(
        name = "Reached",
        type_ = "string",
        json_path = ".status.summary.reached",
        description = "The last environment that has it"
    ),
    printcolumn(name = "Waits-At", type_ = "string", json_path = ".status.summary.waitsAt"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.summary.reason"),
    printcolumn(
        name = "Next",
        type_ = "string",
        json_path = ".status.summary.next",
        description = "When time alone may change that, as far as it is known"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.summary.message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.environments.all(e, !self.environments.exists(o, o.branch == e.branch + self.proposedBranchSuffix))")
        .message("environments: a branch is the proposed branch of another one; give it another name")
        .field_path(".environments"),
    validation = Rule::new("!self.environments.exists(e, e.branch == self.dryBranch || e.branch + self.proposedBranchSuffix == self.dryBranch)")
        .message("dryBranch: it is the branch of an environment, or its proposed branch; give that another name")
        .field_path(".dryBranch"),
    validation = Rule::new("(has(self.activeCommitStatuses) && size(self.activeCommitStatuses) > 0) || self.environments.all(e, (has(e.activeCommitStatuses) && size(e.activeCommitStatuses) > 0) || has(e.activeGates) || e.unchecked || e.branch == self.environments[size(self.environments) - 1].branch || !self.environments.exists(l, l.branch != e.branch && (has(l.after) ? e.branch in l.after : l.branch != self.environments[0].branch)))")
        .message("environments: one that others wait for has no activeCommitStatuses and no activeGates, so that what breaks it would go on at once; add a check, or write unchecked: true")
        .field_path(".environments")
)]
pub struct PromotionStrategySpec {
    /// The repository.
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("repoRef: it never changes; create another PromotionStrategy")
    )]
    pub repo_ref: AccessReference,

    /// The branch with what people write, from which the environments are made.
    #[serde(default = "main_branch")]
    #[schemars(length(min = 1, max = 244))]
    pub dry_branch: String,

    /// What has to be found out about the commit that an environment has, before the environments after it
    /// get the same. For every environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.key == a.key))")
            .message("activeCommitStatuses: a key is listed twice; list each one once")
    )]
    pub active_commit_statuses: Vec<CommitStatusSelector>,

    /// What has to be found out about a proposed commit before it is merged. For every environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.key == a.key))")
            .message("proposedCommitStatuses: a key is listed twice; list each one once"),
        validation = Rule::new("self.all(a, !has(a.flux))")
            .message("proposedCommitStatuses: Flux has not applied what is only proposed; write `flux` among activeCommitStatuses")
    )]
    pub proposed_commit_statuses: Vec<CommitStatusSelector>,

    /// The namespaces whose CommitStatuses count, in addition to its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(
            length(min = 1, max = 63),
            regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        )
    )]
    pub commit_status_namespaces: Vec<String>,

    /// The environments. Each waits for the one above it, unless it says for which.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.branch == a.branch))")
            .message("environments: a branch is listed twice; list each one once")
    )]
    pub environments: Vec<Environment>,

    /// What the branch of an environment has at its end where it is the one with what is proposed.
    #[serde(default = "next_suffix")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[-A-Za-z0-9_]+$"))]
    pub proposed_branch_suffix: String,

    /// A pull request with this label is not merged.
    #[serde(default = "hold_label")]
    #[schemars(length(min = 1, max = 50))]
    pub hold_label: String,

    /// What the commit status of a pull request is called that says why it waits: `sluice/` and one word, to
    /// which the branch of the environment is added, or the name that the GitOps Promoter gives it.
    #[serde(default = "status_name")]
    #[schemars(length(min = 1, max = 50))]
    #[x_kube(
        validation = Rule::new("self.startsWith('sluice/') || self == 'promoter-previous-environment'")
            .message("statusName: others write statuses by other names; begin it with `sluice/`, or write promoter-previous-environment"),
        validation = Rule::new("!self.matches('^sluice/(.*/.*|[dD][rR][yY]|[gG][aA][tT][eE]|)$')")
            .message("statusName: with a branch added it could be the name of something else; write one word after `sluice/`, which is neither dry nor gate")
    )]
    pub status_name: String,

    /// Tell the forge in how many environments the newest dry commit is, as a commit status of that commit:
    /// `sluice/dry/` with the namespace and the name of the strategy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_commit_status: bool,

    /// Stop: open nothing and merge nothing. What is seen is still shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

fn main_branch() -> String {
    "main".to_owned()
}

fn next_suffix() -> String {
    "-next".to_owned()
}

fn hold_label() -> String {
    "sluice/hold".to_owned()
}

fn status_name() -> String {
    "sluice/promotion".to_owned()
}

/// A check: what has to be found out about a commit, and by what it is known. Without `flux` and `forge` it is
/// a CommitStatus with this key in its label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.flux) || !has(self.forge)")
        .message("forge: write one of flux and forge")
)]
pub struct CommitStatusSelector {
    /// What it is called.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub key: String,

    /// Kustomizations of Flux on this cluster that have to be ready with the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux: Option<FluxCheck>,

    /// The name of a status or check that the forge has of the commit. Everybody who may push may write one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub forge: Option<String>,
}

/// Kustomizations of Flux.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxCheck {
    /// All of them have to be ready.
    #[schemars(length(min = 1, max = 16))]
    pub kustomizations: Vec<KustomizationReference>,
}

/// Names a Kustomization.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationReference {
    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Its namespace. Default: that of the PromotionStrategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// An environment: a branch with plain manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Its branch. What is proposed for it is in the branch with the suffix at its end.
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(
        validation = Rule::new("self.matches('^[A-Za-z0-9_]([-A-Za-z0-9_./]*[A-Za-z0-9_])?$') && !self.contains('..') && !self.contains('//') && !self.contains('/.') && !self.contains('./') && !self.contains('.lock')")
            .message("branch: write the name of a branch without refs/heads/, such as env/prod")
    )]
    pub branch: String,

    /// Whether the controller merges its pull request. Otherwise a person does.
    #[serde(default = "yes")]
    pub auto_merge: bool,

    /// The branches of the environments that have to be at the same commit before this one. All of them stand
    /// above it. An empty list: none. Default: the one above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), inner(length(min = 1, max = 200)))]
    pub after: Option<Vec<String>>,

    /// The gates that a commit has to pass before it is merged. Without any, only those of GatePolicies are
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateSet>,

    /// The gates that the commit of this environment has to pass before the environments after it get the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_gates: Option<GateSet>,

    /// Checks of this environment alone. One with the key of a check of all environments replaces that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.key == a.key))")
            .message("activeCommitStatuses: a key is listed twice; list each one once")
    )]
    pub active_commit_statuses: Vec<CommitStatusSelector>,

    /// The same for what is proposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.key == a.key))")
            .message("proposedCommitStatuses: a key is listed twice; list each one once"),
        validation = Rule::new("self.all(a, !has(a.flux))")
            .message("proposedCommitStatuses: Flux has not applied what is only proposed; write `flux` among activeCommitStatuses")
    )]
    pub proposed_commit_statuses: Vec<CommitStatusSelector>,

    /// The environments after this one wait for no check of it.
    #[serde(default)]
    pub unchecked: bool,

    /// How the controller merges. Default: as the repository prefers, but without a rebase where it allows
    /// anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_method: Option<MergeMethod>,

    /// What becomes of a commit that somebody else has pushed to the branch.
    #[serde(default)]
    pub foreign_commits: ForeignCommits,

    /// The gates that a revert has to pass. Default: none, so that nothing blocks the way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert_gates: Option<GateSet>,
}

fn yes() -> bool {
    true
}

/// What becomes of a commit on an environment branch that is no promotion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ForeignCommits {
    /// Nothing is merged until a person accepts it.
    #[default]
    Hold,
    /// The next promotion replaces it.
    Overwrite,
}

/// What the controller reports about a PromotionStrategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotionStrategyStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last request for a fresh look that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// The uid of the GitRepositoryAccess by which the branches were last read. Another one of its name has shown
    /// nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<String>,

    /// What tables show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,

    /// The environments, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["branch"]
        )
    )]
    pub environments: Vec<EnvironmentStatus>,

    /// What the forge was told of the newest dry commit, as a CommitStatus says it. Only with
    /// `dryCommitStatus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_commit_status: Option<CommitStatusStatus>,

    /// `Ready`: the repository can be read, and nothing fails; also while something waits. `Blocked`: something
    /// that is proposed waits. `Bypassed`: a person has merged what a rule held back; it names them.
    /// `Bypassed`, `Reconciling` and `Stalled` are there only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

impl PromotionStrategySpec {
    /// The branch with what is proposed for an environment.
    pub fn proposed_branch(&self, environment: &Environment) -> String {
        format!("{}{}", environment.branch, self.proposed_branch_suffix)
    }
}
