//! What the status of a PromotionStrategy says of its environments.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commit_status::Phase;
use crate::decision::Decision;
use crate::pipeline::{MergeGate, Order};
use crate::pull_request::PullRequestState;
use crate::revert_commit::RevertPhase;

/// What tables show of a strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The newest dry commit that is proposed anywhere, in twelve digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The last environment that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
    /// The first environment that does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_at: Option<String>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When time alone may change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the status says of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// Its branch.
    pub branch: String,

    /// How it stands.
    pub state: EnvironmentState,

    /// Why, in one word: that of the first of `waits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Everything that holds back what is proposed. The first decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub waits: Vec<Wait>,

    /// What its branch has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Tip>,

    /// What its proposed branch has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Tip>,

    /// What is found out about both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub checks: Vec<CheckStatus>,

    /// Its newest pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRecord>,

    /// What the commit status of the pull request may say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<MergeGate>,

    /// The order to merge the pull request. Without it nothing is merged by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,

    /// The order to join the history of the branch to what is proposed, by a commit that changes no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,

    /// The RevertCommits of this environment, and how far each is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub reverts: Vec<RevertStatus>,

    /// What the gates said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<Decision>,

    /// What was taken back, and does not return before it is fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub held: Vec<Held>,

    /// The newest dry commits with which all its active checks have passed, the newest first. At most 5.
    #[serde(
        default,
        rename = "lastHealthyDrySHAs",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 5))]
    pub last_healthy: Vec<Healthy>,
}

/// How an environment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EnvironmentState {
    /// It has what is proposed, and its checks pass.
    UpToDate,
    /// Something is proposed, and waits.
    Waiting,
    /// What is proposed is being merged.
    Merging,
    /// It has what is proposed, and its checks have not passed yet.
    Verifying,
    /// A check of what it has fails.
    Failed,
    /// It is being brought back.
    Reverting,
    /// It was brought back, and what is proposed does not fix that.
    Held,
    /// It is not known what its branches have.
    Unknown,
    /// `spec.suspend`.
    Suspended,
}

impl EnvironmentState {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            EnvironmentState::UpToDate => "UpToDate",
            EnvironmentState::Waiting => "Waiting",
            EnvironmentState::Merging => "Merging",
            EnvironmentState::Verifying => "Verifying",
            EnvironmentState::Failed => "Failed",
            EnvironmentState::Reverting => "Reverting",
            EnvironmentState::Held => "Held",
            EnvironmentState::Unknown => "Unknown",
            EnvironmentState::Suspended => "Suspended",
        }
    }
}

/// One rule that holds back what is proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// When time alone may change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}

/// The newest commit of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tip {
    /// The dry commit that it was made from. None: that is not known.
    #[serde(default, rename = "drySHA", skip_serializing_if = "Option::is_none")]
    pub dry_sha: Option<String>,
    /// The commit.
    #[serde(rename = "hydratedSHA")]
    pub hydrated_sha: String,
    /// Its tree: the files that it has.
    pub tree: String,
    /// What is found out about it, all checks together. None: nothing has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<Phase>,
    /// How it came there. Only an active one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_by: Option<Arrival>,
    /// Who merged it, where a person did, as the forge names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub by: Option<String>,
    /// Why the controller would not have merged it, where a person has: the reasons that it waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub bypassed: Vec<String>,
    /// Since when the branch has it, as far as the controller has seen it.
    pub since: Time,
}

/// How a commit came to an environment branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Arrival {
    /// The controller has merged it.
    Promotion,
    /// A person has merged what was proposed.
    Person,
    /// It was brought back by a RevertCommit.
    Revert,
    /// It was there when the controller first looked, or a person has accepted it.
    Baseline,
    /// Somebody has pushed something else.
    Foreign,
}

/// A check, with what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckStatus {
    /// Its key.
    pub key: String,
    /// Which commit it is about.
    pub of: CheckOf,
    /// What it says.
    pub phase: Phase,
    /// Why, where the phase does not say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Which commit of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckOf {
    /// The one that its branch has.
    Active,
    /// The one that is proposed.
    Proposed,
}

/// The pull request of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestRecord {
    /// The name of the PullRequest object.
    pub name: String,
    /// Which one of this environment it is.
    pub n: i64,
    /// Its number on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// Its page on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PullRequestState>,
}

/// An order to make a commit on the proposed branch that has the proposed files, and both what is proposed and
/// what the environment has as its parents. Then nothing but those files is merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    /// What is proposed: the first parent.
    #[serde(rename = "headSHA")]
    pub head_sha: String,
    /// What the environment has: the second parent.
    #[serde(rename = "activeSHA")]
    pub active_sha: String,
    /// The tree of what is proposed.
    pub tree: String,
    /// When it was ordered: the date of the commit, so that a second try makes the same.
    pub at: Time,
}

/// How far a RevertCommit is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevertStatus {
    /// Its name.
    pub name: String,
    /// Its generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// How far it is.
    pub phase: RevertPhase,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// The name of its PullRequest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    /// The page of its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A dry commit that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The dry commit.
    #[serde(rename = "drySHA")]
    pub dry_sha: String,
    /// The RevertCommit that took it back.
    pub revert_commit: String,
}

/// A dry commit with which all active checks have passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Healthy {
    /// The dry commit.
    #[serde(rename = "drySHA")]
    pub dry_sha: String,
    /// The commit of the environment branch.
    #[serde(rename = "hydratedSHA")]
    pub hydrated_sha: String,
    /// When they had passed.
    pub time: Time,
}
