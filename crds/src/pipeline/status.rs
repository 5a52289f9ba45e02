//! What the status of a Pipeline says: the run, the environments, their targets and clusters.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClusterReference, Decision, MergeMethod};
use crate::pull_request::PullRequestState;

/// A revision on its way through the environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// When it began, in milliseconds since 1970, and more than every run before it: the same revision
    /// has another number when it is promoted again.
    pub id: i64,
    /// The revision.
    pub revision: String,
    /// The same in short, for tables.
    pub short: String,
    /// When it began.
    pub since: Time,
    /// The environment that it has reached: the first that does not run the revision healthily, or the
    /// last one.
    pub environment: String,
    /// What it waits for there.
    pub state: RunState,
    /// The same in a sentence.
    pub message: String,
    /// The first of the gates that decided, while it waits for gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When time alone may change the answer of the gates, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
    /// When the last environment ran the revision healthily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
}

/// What a run waits for: the state of the environment that it has reached.
pub type RunState = EnvironmentState;

/// How an environment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EnvironmentState {
    /// It runs the revision healthily.
    Passed,
    /// It runs something else, and an earlier environment has not passed.
    Waiting,
    /// A target runs the revision or begins to, and not all of them run it healthily.
    Arriving,
    /// The first environment does not run one revision healthily.
    NotReady,
    /// It is not known what a target runs.
    Unknown,
    /// Nothing is said of how it is promoted to: people do it.
    Unpromoted,
    /// A person has to approve the promotion.
    Unapproved,
    /// A person has rejected the promotion.
    Rejected,
    /// The gates hold the promotion back.
    GatesClosed,
    /// A gate depends on what this environment, or a later one, is admitted.
    CyclicGates,
    /// The pull request of an earlier promotion is being closed first.
    Closing,
    /// The promotion has been decided, and is being done.
    Promoting,
    /// The promotion has failed, and is tried again.
    Failed,
    /// Its pull request is open.
    PullRequestOpen,
    /// It is promoted, and the targets have not begun to run the revision.
    Promoted,
    /// It was promoted, and nothing has come of that for a long time.
    NoEffect,
    /// Its pull request was closed without a merge.
    Abandoned,
    /// `spec.suspend`.
    Suspended,
}

impl EnvironmentState {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            EnvironmentState::Passed => "Passed",
            EnvironmentState::Waiting => "Waiting",
            EnvironmentState::Arriving => "Arriving",
            EnvironmentState::NotReady => "NotReady",
            EnvironmentState::Unknown => "Unknown",
            EnvironmentState::Unpromoted => "Unpromoted",
            EnvironmentState::Unapproved => "Unapproved",
            EnvironmentState::Rejected => "Rejected",
            EnvironmentState::GatesClosed => "GatesClosed",
            EnvironmentState::CyclicGates => "CyclicGates",
            EnvironmentState::Closing => "Closing",
            EnvironmentState::Promoting => "Promoting",
            EnvironmentState::Failed => "Failed",
            EnvironmentState::PullRequestOpen => "PullRequestOpen",
            EnvironmentState::Promoted => "Promoted",
            EnvironmentState::NoEffect => "NoEffect",
            EnvironmentState::Abandoned => "Abandoned",
            EnvironmentState::Suspended => "Suspended",
        }
    }
}

/// What the status says of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// How it stands.
    pub state: EnvironmentState,

    /// Why, in a sentence, where the state does not say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// The revision that a person has to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<WaitingApproval>,

    /// The newest promotion to it. What this field says was written before anything was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionRecord>,

    /// What it was admitted by the strategy `admission`, the newest first. Writing this field is the
    /// admission. At most 5: the oldest are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub admitted: Vec<Admitted>,

    /// What the gates said last about a promotion to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<Decision>,

    /// Its targets in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub targets: Vec<TargetStatus>,
}

/// A revision that a person has to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingApproval {
    /// The revision.
    pub revision: String,
    /// The run. An approval names it: an approval of one run does not count for another.
    pub run: i64,
    /// Since when it waits.
    pub since: Time,
}

/// A promotion of one revision to one environment in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotionRecord {
    /// The run.
    pub run: i64,
    /// The revision.
    pub revision: String,
    /// What tells it from every other: twelve hexadecimal digits of a hash of the pipeline, the
    /// environment, the run, the revision and how it is promoted.
    pub key: String,
    /// How far it is.
    pub phase: Phase,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when the phase is this one.
    pub at: Time,
    /// How often it was tried and failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// How often it was sent again because nothing had come of it. Only notifications are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u32,
    /// When it is tried or sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,
    /// Its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRecord>,
    /// What the commit status of its pull request has to be. None: the gates have not been asked since it
    /// was opened, and it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<MergeGate>,
    /// The order to merge its pull request. Without it nothing is merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How far a promotion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// A person has to approve it.
    Unapproved,
    /// The gates hold it back.
    Unattempted,
    /// It is decided. From here on it may have been done.
    Attempting,
    /// The last try failed.
    Failed,
    /// Its pull request is open.
    Created,
    /// It is done. It is not done again in this run.
    Succeeded,
    /// Its pull request was closed without a merge. It is not tried again in this run.
    Abandoned,
}

/// The pull request of a promotion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestRecord {
    /// The name of the PullRequest object.
    pub name: String,
    /// Its page on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its state, as the PullRequest object says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PullRequestState>,
    /// The commit that the controller has made for it. A PullRequest that was lost takes it from here: no other
    /// commit is opened or merged.
    #[serde(default, rename = "commitSHA", skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,
    /// The commit that the merge made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_commit: Option<String>,
    /// The first parent of that commit. An environment that follows the branch and runs the merge commit
    /// runs the revision, if nobody else has pushed in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_onto: Option<String>,
}

/// What the commit status of a pull request has to be.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum MergeGate {
    /// The gates hold the merge back.
    Pending,
    /// The gates admit the merge.
    Success,
}

/// An order to merge a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The key of the promotion.
    pub key: String,
    /// The name of the PullRequest object.
    pub pull_request: String,
    /// The commit that may be merged. If the branch has another one, nothing is merged.
    #[serde(rename = "headSHA")]
    pub head_sha: String,
    /// How. None: as the repository prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MergeMethod>,
    /// When it was given.
    pub at: Time,
    /// After this instant nothing is merged.
    pub not_after: Time,
}

/// A revision that an environment was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admitted {
    /// The revision.
    pub revision: String,
    /// The run.
    pub run: i64,
    /// When it was admitted.
    pub at: Time,
}

/// What the status says of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// Its namespace.
    pub namespace: String,
    /// Its cluster. None: the one that the Pipeline is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,
    /// Whether the app runs its revision healthily there.
    pub ready: bool,
    /// The revision that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The revision that it was last told to run, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// What `spec.versions` shows, each in at most 64 characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// Why it is not ready, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether another cluster can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// What names it, such as `GitopsCluster fleet/prod-eu`.
    pub cluster: String,
    /// Whether it can be read.
    pub reachable: bool,
    /// Since when this is so.
    pub since: Time,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
