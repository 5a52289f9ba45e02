//! The plan of a Rollout: batches, hooks and metrics. Names and defaults are those of the OAM rollout
//! plan, as KubeVela has published it.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::gate_set::GateSet;
use crate::gatekeeper::{Range, SecretReference};
use crate::values::{Duration, IntOrPercent, with_days};

/// The batches, and what each of them waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.numBatches) || !has(self.rolloutBatches)")
        .message("numBatches: write one of numBatches and rolloutBatches")
        .field_path(".numBatches"),
    validation = Rule::new("!has(self.lastBatchToRollout) || !has(self.batchPartition)")
        .message("batchPartition: is another name of lastBatchToRollout; write one of them")
        .field_path(".batchPartition"),
    validation = Rule::new(rules::sizes_but_the_last())
        .message("rolloutBatches: a batch before the last has no size; write its replicas")
        .field_path(".rolloutBatches")
)]
pub struct RolloutPlan {
    /// Of two Deployments: whether the new one grows before the old one shrinks, or after it.
    #[serde(default)]
    pub rollout_strategy: RolloutStrategy,

    /// How many pods there are to be of the new version. Default: as many as the sources have, or the
    /// StatefulSet or CloneSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub target_size: Option<i32>,

    /// In how many batches of equal size. What is left over goes to the last batches, one pod each.
    /// Default: 1, unless there are rolloutBatches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 30))]
    pub num_batches: Option<i32>,

    /// The batches, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 30))]
    pub rollout_batches: Vec<RolloutBatch>,

    /// The last batch that may go out: a person raises it. The first batch is 0. Default: all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub last_batch_to_rollout: Option<i32>,

    /// Another name of `lastBatchToRollout`: KubeVela has this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub batch_partition: Option<i32>,

    /// Bring the old version back when the Rollout is deleted before it has succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revert_on_delete: bool,

    /// Stop: a batch that is on its way is carried to its end, and nothing new begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// What is called. Those of batches are called for every batch, before its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("rolloutWebhooks: a name is listed twice; give each hook its own")
    )]
    pub rollout_webhooks: Vec<RolloutWebhook>,

    /// What has to be measured after every batch, in addition to its own metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("canaryMetric: a name is listed twice; list each metric once")
    )]
    pub canary_metric: Vec<CanaryMetric>,
}

/// Which of two Deployments is scaled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RolloutStrategy {
    /// The new one grows, and then the old one shrinks.
    #[default]
    IncreaseFirst,
    /// The old one shrinks, and then the new one grows.
    DecreaseFirst,
}

/// A batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.podList) || size(self.podList) == 0")
        .message("podList: pods cannot be picked yet; write replicas instead")
        .field_path(".podList"),
    validation = Rule::new("!has(self.instanceInterval) || self.instanceInterval == 0")
        .message("instanceInterval: the pods of a batch cannot go one after another yet; write smaller batches instead")
        .field_path(".instanceInterval")
)]
pub struct RolloutBatch {
    /// How many pods more than the batch before, as a number or in percent of the target size, rounded up.
    /// The last batch may go without: it takes the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<IntOrPercent>,

    /// How many of the pods that are to be available need not be, as a number or in percent. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrPercent>,

    /// Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 253)))]
    pub pod_list: Option<Vec<String>>,

    /// Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_interval: Option<i32>,

    /// What is called before this batch, and after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("batchRolloutWebhooks: a name is listed twice; give each hook its own"),
        validation = Rule::new("self.all(a, a.type in ['pre-batch-rollout', 'post-batch-rollout'])")
            .message("batchRolloutWebhooks: a batch has hooks of the types pre-batch-rollout and post-batch-rollout; write others among rolloutWebhooks")
    )]
    pub batch_rollout_webhooks: Vec<RolloutWebhook>,

    /// What has to be measured after this batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("canaryMetric: a name is listed twice; list each metric once")
    )]
    pub canary_metric: Vec<CanaryMetric>,

    /// The gates that this batch has to pass in addition to those of the Rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateSet>,
}

/// A call over HTTP whose answer may stop the rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.secretRef) || self.url.startsWith('https://')")
        .message("secretRef: secrets are sent over https only; write an https address")
        .field_path(".secretRef"),
    validation = Rule::new(with_days("duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('60s')"))
        .message("timeout: must be longer than zero and at most 60s")
        .field_path(".timeout"),
    validation = Rule::new("!has(self.metadata) || self.metadata.all(key, size(key) <= 63)")
        .message("metadata: a key is longer than 63 characters; write a shorter one")
        .field_path(".metadata")
)]
pub struct RolloutWebhook {
    /// When it is called.
    #[serde(rename = "type")]
    pub type_: HookType,

    /// What it is called in messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// The address.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://[^\s@]+$"))]
    pub url: String,

    /// The method.
    #[serde(default)]
    pub method: Method,

    /// The answers that let the rollout go on. Default: 200 to 204.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(range(min = 100, max = 599)))]
    pub expected_status: Vec<i32>,

    /// What else is sent: at most 16 texts of at most 256 characters, with keys of at most 63.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 16,
        "additionalProperties" = { "type": "string", "maxLength": 256 }
    ))]
    pub metadata: BTreeMap<String, String>,

    /// How long one answer may take.
    #[serde(default = "default_timeout")]
    pub timeout: Duration,

    /// A Secret of the namespace with the key `token`, which is sent as a bearer token, or with `username` and
    /// `password`: over https only, to the hosts of its annotation `sluice.dev/allowed-hook-hosts`. Its `ca.crt`, if it has
    /// one, is trusted in addition to the public authorities. One with nothing but `ca.crt`, `tls.crt` and `tls.key` sends
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

fn default_timeout() -> Duration {
    Duration::from("10s")
}

/// When a hook is called.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HookType {
    /// Before the first batch, and before any pod is made.
    InitializeRollout,
    /// Before a batch.
    PreBatchRollout,
    /// After a batch, when its pods are available and its metrics good.
    PostBatchRollout,
    /// At the end, however it ends.
    FinalizeRollout,
}

impl HookType {
    /// Every type.
    pub const ALL: [HookType; 4] = [
        HookType::InitializeRollout,
        HookType::PreBatchRollout,
        HookType::PostBatchRollout,
        HookType::FinalizeRollout,
    ];

    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            HookType::InitializeRollout => "initialize-rollout",
            HookType::PreBatchRollout => "pre-batch-rollout",
            HookType::PostBatchRollout => "post-batch-rollout",
            HookType::FinalizeRollout => "finalize-rollout",
        }
    }
}

/// The method of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    #[default]
    Post,
}

/// A value that has to be within a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(with_days("!has(self.interval) || (duration(self.interval) >= duration('5s') && duration(self.interval) <= duration('24h'))"))
        .message("interval: must be between 5s and 24h")
        .field_path(".interval")
)]
pub struct CanaryMetric {
    /// What it is called in messages. Without `templateRef` it is also the name of the Gatekeeper.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// For how long without a break the value has to be within the range. Default: one measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,

    /// The range. Default: that of the Gatekeeper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_range: Option<Range>,

    /// The Gatekeeper of the kind `metric`, in the same namespace, that measures the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
}

/// Names what measures a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateReference {
    /// Its kind.
    #[serde(default)]
    pub kind: TemplateKind,

    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// What can measure a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TemplateKind {
    /// A Gatekeeper of the kind `metric`.
    #[default]
    Gatekeeper,
}
