//! What the status of a Rollout says: the run, the intent, the batches, hooks, metrics and holds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HookType, WorkloadReference};

/// How far a run is. The words are those of the OAM rollout design, but for `rolloutDeleting`, which is
/// missing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RollingState {
    /// The plan and the workloads are looked at.
    VerifyingSpec,
    /// The workloads get their starting sizes.
    Initializing,
    /// Batches go out.
    RollingInBatches,
    /// All batches are out, and the rest is done.
    Finalising,
    /// It fails: what is half done is settled.
    RolloutFailing,
    /// It has succeeded.
    RolloutSucceed,
    /// It gives way to another run.
    RolloutAbandoned,
    /// The Rollout is deleted.
    RolloutDeleting,
    /// It has failed.
    RolloutFailed,
}

impl RollingState {
    /// Every state.
    pub const ALL: [RollingState; 9] = [
        RollingState::VerifyingSpec,
        RollingState::Initializing,
        RollingState::RollingInBatches,
        RollingState::Finalising,
        RollingState::RolloutFailing,
        RollingState::RolloutSucceed,
        RollingState::RolloutAbandoned,
        RollingState::RolloutDeleting,
        RollingState::RolloutFailed,
    ];

    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            RollingState::VerifyingSpec => "verifyingSpec",
            RollingState::Initializing => "initializing",
            RollingState::RollingInBatches => "rollingInBatches",
            RollingState::Finalising => "finalising",
            RollingState::RolloutFailing => "rolloutFailing",
            RollingState::RolloutSucceed => "rolloutSucceed",
            RollingState::RolloutAbandoned => "rolloutAbandoned",
            RollingState::RolloutDeleting => "rolloutDeleting",
            RollingState::RolloutFailed => "rolloutFailed",
        }
    }
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BatchRollingState {
    /// It waits for its gates and for the hooks before it.
    BatchInitializing,
    /// Its pods are made and taken away.
    BatchInRolling,
    /// Its pods become available, and metrics are looked at.
    BatchVerifying,
    /// The hooks after it are called.
    BatchFinalizing,
    /// It is done.
    BatchReady,
    /// A hook, the pods or a metric said no.
    BatchVerifyFailed,
}

impl BatchRollingState {
    /// Every state.
    pub const ALL: [BatchRollingState; 6] = [
        BatchRollingState::BatchInitializing,
        BatchRollingState::BatchInRolling,
        BatchRollingState::BatchVerifying,
        BatchRollingState::BatchFinalizing,
        BatchRollingState::BatchReady,
        BatchRollingState::BatchVerifyFailed,
    ];

    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            BatchRollingState::BatchInitializing => "batchInitializing",
            BatchRollingState::BatchInRolling => "batchInRolling",
            BatchRollingState::BatchVerifying => "batchVerifying",
            BatchRollingState::BatchFinalizing => "batchFinalizing",
            BatchRollingState::BatchReady => "batchReady",
            BatchRollingState::BatchVerifyFailed => "batchVerifyFailed",
        }
    }
}

/// How a run brings the new version out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Two or more Deployments are scaled against each other.
    Pair,
    /// The partition of a StatefulSet or CloneSet is lowered.
    Update,
    /// One workload is scaled.
    Scale,
}

/// A run: what does not change while it lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// When it began, in milliseconds since 1970, and more than every run before it.
    pub id: i64,
    /// How it brings the new version out.
    pub mode: Mode,
    /// What gates are asked about.
    pub revision: String,
    /// What begins another run when it changes: a hash of the target, the sources, the component and
    /// `spec.revision`.
    pub identity: String,
    /// The workloads, the target first.
    #[schemars(length(max = 5))]
    pub workloads: Vec<WorkloadRecord>,
}

/// A workload of a run, as it was when that began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRecord {
    /// The workload itself, also where the spec names a Kustomization or HelmRelease.
    pub r#ref: WorkloadReference,
    /// Its UID. An object of another one is another object.
    pub uid: String,
    /// Its replicas before the run. Those of a source include what a run whose status is lost had taken from it, and had
    /// not given to its target.
    pub was: i32,
    /// Its replicas, or its partition, when the run began.
    pub start: i32,
    /// Its pod template, as a hash: another one is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The ControllerRevision to go back to, of a StatefulSet or CloneSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
}

/// What is to be written for a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The batch. None: the starting sizes, or those at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<i32>,
    /// When it was decided.
    pub at: Time,
    /// The sizes, in the order of the workloads of the run.
    #[schemars(length(max = 5))]
    pub sizes: Vec<Size>,
    /// The most pods that have been available for it so far: more of them are progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<i32>,
}

/// What one workload is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Its replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Its partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
}

/// What the status says of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchStatus {
    /// How many pods of the new version there are once it is done.
    pub goal: i32,
    /// What the plan said of the batch when it was decided, as a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The decision that let it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<BatchDecision>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Time>,
    /// When its pods were available: metrics count from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Time>,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Time>,
    /// How long it was held, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<i64>,
    /// How long it took without that, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked: Option<i64>,
}

/// The decision that let a batch out, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchDecision {
    /// When it was decided.
    pub at: Time,
    /// The gates that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<String>,
    /// Why, in a sentence.
    pub message: String,
}

/// What a hook has answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRecord {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: HookType,
    /// Its name.
    pub name: String,
    /// The batch. None: it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<i32>,
    /// What the plan says of the hook, as a hash: an answer counts for the same hook alone.
    pub checksum: String,
    /// When the last answer came.
    pub at: Time,
    /// How often it was called.
    pub attempts: i32,
    /// The HTTP status of the last answer. None: there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// Whether the answer is the last one: nothing is called again.
    pub done: bool,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a metric says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricRecord {
    /// Its name.
    pub name: String,
    /// What the metric is, with its range, as a hash: a row counts for the same metric alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Since when it has been within its range without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_since: Option<Time>,
}

/// What holds a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Who: the first gate that decided, as `namespace/name`, a field of the spec, or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when.
    pub since: Time,
}

/// How a run ends, in addition to its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence, and what was not done.
    pub message: String,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// Its number.
    pub id: i64,
    /// What gates were asked about.
    pub revision: String,
    /// How it ended.
    pub state: RollingState,
    /// The same in a sentence.
    pub message: String,
    /// How many pods of the new version there were.
    pub upgraded_replicas: i32,
    /// When it ended.
    pub ended: Time,
}
