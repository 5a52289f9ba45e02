//! `Rollout`: a new version takes the place of an old one batch by batch, and each batch waits for gates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::gate_set::GateSet;
use crate::values::{Duration, with_days};

mod plan;
mod rules;
mod status;

pub use plan::{
    CanaryMetric, HookType, Method, RolloutBatch, RolloutPlan, RolloutStrategy, RolloutWebhook,
    TemplateKind, TemplateReference,
};
pub use status::{
    BatchDecision, BatchRollingState, BatchStatus, Held, HookRecord, Intent, MetricRecord, Mode,
    Outcome, PastRun, RollingState, Run, Size, WorkloadRecord,
};

/// The most batches of a plan.
pub const MOST_BATCHES: usize = 30;
/// The most sources of a Rollout.
const MOST_SOURCES: usize = 4;

/// Annotations and the finalizer that belong to rollouts.
pub mod marks {
    /// On each workload of a run: which Rollout has it, and what it was before.
    pub const CLAIM: &str = "sluice.dev/rollout";
    /// On a Rollout that has claimed workloads.
    pub const FINALIZER: &str = "sluice.dev/rollout";
    /// On a Rollout, by people: each new value begins another run.
    pub const RETRY: &str = "sluice.dev/retry";
}

/// What is rolled out in place of what, in which batches, and what each batch waits for.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Rollout",
    plural = "rollouts",
    shortname = "gro",
    category = "sluice",
    namespaced,
    status = "RolloutStatus",
    derive = "PartialEq",
    doc = "A Rollout brings a new version out batch by batch: it scales two Deployments against each other, or lowers the partition of a StatefulSet or CloneSet. Each batch waits for gates, hooks, pods and metrics.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.rollingState"),
    printcolumn(
        name = "Progress",
        type_ = "string",
        json_path = ".status.progress",
        description = "How many batches are done, of how many"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".status.rolloutTargetSize"),
    printcolumn(
        name = "Updated",
        type_ = "integer",
        json_path = ".status.upgradedReplicas",
        description = "Pods of the new version"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.upgradedReadyReplicas",
        description = "Those of them that are available"
    ),
    printcolumn(
        name = "Blocked",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Blocked\")].status",
        description = "Whether a batch waits for gates or for people"
    ),
    printcolumn(
        name = "Decided-By",
        type_ = "string",
        json_path = ".status.lastDecision.decidedBy[0]"
    ),
    printcolumn(
        name = "Next",
        type_ = "string",
        json_path = ".status.lastDecision.next",
        description = "When the answer may be another one, as far as that is known"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Batch-State",
        type_ = "string",
        json_path = ".status.batchRollingState",
        priority = 1
    ),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRef.name", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.sourceRef) || self.sourceRef.all(s, s.kind == self.targetRef.kind)")
        .message("sourceRef: source and target are of one kind; name sources of the kind of targetRef")
        .field_path(".sourceRef"),
    validation = Rule::new("!has(self.sourceRef) || self.sourceRef.all(s, s.kind != self.targetRef.kind || s.name != self.targetRef.name)")
        .message("sourceRef: the target is also a source; name the object with the old version")
        .field_path(".sourceRef"),
    validation = Rule::new("!has(self.sourceRef) || size(self.sourceRef) == 0 || !(self.targetRef.kind in ['StatefulSet', 'CloneSet'])")
        .message("sourceRef: a StatefulSet or CloneSet is rolled in place, by its partition; remove sourceRef")
        .field_path(".sourceRef"),
    validation = Rule::new("self.rolloutPlan.rolloutStrategy != 'DecreaseFirst' || !(self.targetRef.kind in ['StatefulSet', 'CloneSet'])")
        .message("rolloutStrategy: a StatefulSet or CloneSet is rolled in place; DecreaseFirst belongs to two Deployments")
        .field_path(".rolloutPlan.rolloutStrategy"),
    validation = Rule::new("!has(self.component) || self.targetRef.kind in ['Kustomization', 'HelmRelease']")
        .message("component: belongs to a Kustomization or HelmRelease, which may have several workloads; remove it")
        .field_path(".component"),
    validation = Rule::new("!has(self.rearm) || self.targetRef.kind != 'Deployment'")
        .message("rearm: belongs to a StatefulSet or CloneSet, which has a partition; remove it")
        .field_path(".rearm"),
    validation = Rule::new(with_days("duration(self.progressDeadline) >= duration('30s') && duration(self.progressDeadline) <= duration('24h')"))
        .message("progressDeadline: must be between 30s and 24h")
        .field_path(".progressDeadline"),
    validation = Rule::new(rules::never_changes("rearm"))
        .message("rearm: never changes during a run; write another revision, or delete the Rollout and create it again")
        .field_path(".rearm"),
    validation = Rule::new(rules::never_changes("rolloutPlan.rolloutStrategy"))
        .message("rolloutStrategy: never changes during a run; write another revision, or delete the Rollout and create it again")
        .field_path(".rolloutPlan.rolloutStrategy"),
    validation = Rule::new(rules::never_changes("rolloutPlan.targetSize"))
        .message("targetSize: never changes during a run; write another revision, or delete the Rollout and create it again")
        .field_path(".rolloutPlan.targetSize"),
    validation = Rule::new(rules::never_changes("rolloutPlan.numBatches"))
        .message("numBatches: never changes during a run; write another revision, or delete the Rollout and create it again")
        .field_path(".rolloutPlan.numBatches"),
    validation = Rule::new(rules::never_changes("rolloutPlan.rolloutWebhooks"))
        .message("rolloutWebhooks: never change during a run; write another revision, or delete the Rollout and create it again")
        .field_path(".rolloutPlan.rolloutWebhooks"),
    validation = Rule::new(rules::partition_grows())
        .message("lastBatchToRollout: only grows during a run, for pods that are out stay out; write a greater number, or remove it")
        .field_path(".rolloutPlan.lastBatchToRollout"),
    validation = Rule::new(rules::passed_batches_stay())
        .message("rolloutBatches: those up to lastBatchToRollout never change during a run, without it none does; change later ones, or write another revision")
        .field_path(".rolloutPlan.rolloutBatches"),
    validation = Rule::new(rules::a_later_batch_stays())
        .message("rolloutBatches: at least one after lastBatchToRollout stays during a run, otherwise the batch at lastBatchToRollout would get all remaining pods; keep one, or write another revision")
        .field_path(".rolloutPlan.rolloutBatches")
)]
pub struct RolloutSpec {
    /// What has the new version, in the same namespace. A StatefulSet or CloneSet has both versions.
    pub target_ref: WorkloadReference,

    /// What has the old version. Several are emptied in their order. None: this is the first deployment of
    /// the target, or only its scaling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.kind == a.kind && b.name == a.name))")
            .message("sourceRef: a source is listed twice; list each one once")
    )]
    pub source_ref: Vec<WorkloadReference>,

    /// Which workload of a Kustomization or HelmRelease: that with this value of the label
    /// `app.kubernetes.io/component`. Not needed where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub component: Option<String>,

    /// The revision that gates are asked about. Another one begins another run. Default: a hash of the pod
    /// template of the target; for a Kustomization or HelmRelease, what it has applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub revision: Option<String>,

    /// The gates that each batch has to pass. Without any, only those of GatePolicies are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateSet>,

    /// The ServiceAccount of the namespace in whose name the workloads are changed.
    #[serde(default = "default_account")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub service_account_name: String,

    /// How long the rollout may go without progress before it fails. It stands still while the rollout is
    /// held.
    #[serde(default = "default_deadline")]
    pub progress_deadline: Duration,

    /// What a rollout that fails does: stay as it is, or bring the old version back.
    #[serde(default)]
    pub on_failure: OnFailure,

    /// Raise the partition again after success, so that the next template waits for the next run. Default:
    /// true for a StatefulSet or CloneSet. False leaves the partition at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rearm: Option<bool>,

    /// The batches, and what each of them waits for.
    pub rollout_plan: RolloutPlan,
}

fn default_account() -> String {
    "sluice-rollout".to_owned()
}

fn default_deadline() -> Duration {
    Duration::from("10m")
}

/// Names a workload of the same namespace, or a Kustomization or HelmRelease that has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.kind in ['Deployment', 'StatefulSet', 'CloneSet', 'Kustomization', 'HelmRelease']) || !has(self.apiVersion) || (self.kind == 'CloneSet' ? self.apiVersion == 'apps.kruise.io/v1alpha1' : self.kind == 'Kustomization' ? self.apiVersion.startsWith('kustomize.toolkit.fluxcd.io/') : self.kind == 'HelmRelease' ? self.apiVersion.startsWith('helm.toolkit.fluxcd.io/') : self.apiVersion == 'apps/v1')")
        .message("apiVersion: belongs to another kind; write apps/v1 for Deployment and StatefulSet, apps.kruise.io/v1alpha1 for CloneSet, or leave it out")
        .field_path(".apiVersion")
)]
pub struct WorkloadReference {
    /// Its group and version. Default: that of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub api_version: Option<String>,

    /// Its kind: Deployment, StatefulSet, CloneSet, Kustomization or HelmRelease.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(
        validation = Rule::new("self in ['Deployment', 'StatefulSet', 'CloneSet', 'Kustomization', 'HelmRelease']")
            .message("kind: only Deployment, StatefulSet, CloneSet, Kustomization and HelmRelease can be rolled out; a DaemonSet has one pod a node and no partition to hold at: use a CloneSet, or gate its source")
    )]
    pub kind: String,

    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// What a rollout that fails does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// It stays as it is: no pod is taken away that serves.
    #[default]
    Stop,
    /// It brings the old version back.
    Revert,
}

/// What the controller reports about a Rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// The last value of `sluice.dev/retry` that has begun a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry_at: Option<String>,

    /// How far the run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_state: Option<RollingState>,

    /// How far the present batch is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_rolling_state: Option<BatchRollingState>,

    /// The present batch. The first one is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_batch: Option<i32>,

    /// How many batches are done, of how many: `2/4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,

    /// Pods of the new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded_replicas: Option<i32>,

    /// Pods of the new version that are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded_ready_replicas: Option<i32>,

    /// How many pods there are to be of the new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_target_size: Option<i32>,

    /// How many pods there were when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_original_size: Option<i32>,

    /// The run: what does not change while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,

    /// The sizes that are to be written for the present batch. They are written after this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,

    /// The batches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub batches: Vec<BatchStatus>,

    /// What hooks have answered, those of the present batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub hooks: Vec<HookRecord>,

    /// What metrics say of the present batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub metrics: Vec<MetricRecord>,

    /// When the run fails, unless there is progress before. It moves while the run is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,

    /// What holds the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,

    /// How the run ends: why it has failed, or what was not done although it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,

    /// Whether the old version was brought back, or that was tried: it is not tried twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverted: bool,

    /// The last answer of the gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<Decision>,

    /// The runs before, the newest first. At most 5: the oldest are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub history: Vec<PastRun>,

    /// `Ready`: it is done, or nothing is left to do but to wait for gates or people; false: it has failed.
    /// `Reconciling`: it works. `Stalled`: a person has to act. `Blocked`: it waits for gates or people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}
