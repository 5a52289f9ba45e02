//! `Pipeline`: one app in an ordered list of environments, and how a revision gets from one to the next.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::gate_set::GateSet;

mod promotion;
mod status;

pub use promotion::{
    Admission, ForgeType, GatekeeperReference, InvolvedObject, MergeMethod, MergeMode,
    Notification, Promotion, PullRequestStrategy, SecretName, Strategy, StrategyKind,
};
pub use status::{
    Admitted, ClusterStatus, EnvironmentState, EnvironmentStatus, MergeGate, Order, Phase,
    PromotionRecord, PullRequestRecord, Run, RunState, TargetStatus, WaitingApproval,
};

/// The most environments of a pipeline.
pub const MOST_ENVIRONMENTS: usize = 16;

/// The most targets of all its environments together.
pub const MOST_TARGETS: usize = 128;

/// Annotations that people put on a pipeline and on what it promotes.
pub mod marks {
    /// On a Pipeline: any new text starts another run of the revision that the first environment runs.
    pub const RETRY: &str = "sluice.dev/retry";
    /// On a Secret with a kubeconfig: the other namespaces whose pipelines may use it, with commas
    /// between them.
    pub const ALLOWED_NAMESPACES: &str = "sluice.dev/allowed-namespaces";
    /// On an app: the pipeline that promotes it, as `namespace/name`. For people who look; nothing is
    /// decided by it.
    pub const PIPELINE: &str = "pipelines.weave.works/pipeline";
    /// On an app: the environment that it belongs to. For people who look; nothing is decided by it.
    pub const ENVIRONMENT: &str = "pipelines.weave.works/environment";
}

/// Which app, which environments, and how a revision gets from one to the next.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Pipeline",
    plural = "pipelines",
    shortname = "pipe",
    category = "sluice",
    namespaced,
    status = "PipelineStatus",
    derive = "PartialEq",
    doc = "A Pipeline brings the revision that one environment runs healthily to the next environment, when the gates of that environment admit it.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.run.short"),
    printcolumn(
        name = "At",
        type_ = "string",
        json_path = ".status.run.environment",
        description = "The environment that the run has reached"
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.run.state"),
    printcolumn(name = "Decided-By", type_ = "string", json_path = ".status.run.decidedBy"),
    printcolumn(
        name = "Next",
        type_ = "string",
        json_path = ".status.run.next",
        description = "When the answer of the gates may be another one, as far as that is known"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "App",
        type_ = "string",
        json_path = ".spec.appRef.name",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.run.message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.environments[0].gates)")
        .message("environments[0].gates: nothing is promoted to the first environment; gate its source with a GatedSource")
        .field_path(".environments"),
    validation = Rule::new("self.environments.map(environment, size(environment.targets)).sum() <= 128")
        .message("environments: at most 128 targets in all; split the pipeline")
        .field_path(".environments")
)]
pub struct PipelineSpec {
    /// The app: the object that is there once in the namespace of each target.
    pub app_ref: AppReference,

    /// What is shown of the app in addition to its revision, such as image tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("versions: a name is listed twice; give each version another name")
    )]
    pub versions: Vec<VersionExpression>,

    /// The environments, in the order in which a revision goes through them.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name))")
            .message("environments: a name is listed twice; give each environment another name")
    )]
    pub environments: Vec<Environment>,

    /// How a revision is promoted to every environment that has no promotion of its own. Without any, an
    /// environment is only watched, and people promote to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,

    /// Which revision an environment is to have.
    #[serde(default)]
    pub algorithm: Algorithm,

    /// Stop: promote nothing, merge nothing, close nothing. What is seen is still shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Names the app.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.kind != 'Secret'")
        .message("kind: a Secret is no app, and what a pipeline shows of it could be read by more people; name the object that deploys")
        .field_path(".kind"),
    // A Secret has its own message above.
    validation = Rule::new("has(self.apiVersion) || self.kind in ['Kustomization', 'HelmRelease', 'Terraform', 'Secret']")
        .message("apiVersion: only Kustomization, HelmRelease and Terraform go without; write the group and version of the kind, such as apps/v1")
        .field_path(".apiVersion")
)]
pub struct AppReference {
    /// Its group and version. Of the kinds of Flux only the group counts: the version that the cluster
    /// serves is read. Default: that of the kind, for `Kustomization`, `HelmRelease` and `Terraform`; of every
    /// other kind it has to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$")
    )]
    pub api_version: Option<String>,

    /// Its kind, such as `HelmRelease` or `Kustomization`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,

    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// What its revision is, as an expression (CEL) over `object` that gives a text. Default: what its
    /// status says that it applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub revision_expression: Option<String>,
}

/// Something that is shown of the app.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionExpression {
    /// What it is called, such as `image`.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub name: String,

    /// An expression (CEL) over `object` that gives a text, such as `object.spec.values.image.tag`.
    #[schemars(length(min = 1, max = 1024))]
    pub expression: String,
}

/// An environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Its name. It stands in markers and in rights.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    #[x_kube(
        validation = Rule::new("!self.contains('..') && !self.endsWith('.lock')")
            .message("name: no `..` in it, and no `.lock` at its end, so that it can be part of a branch's name")
    )]
    pub name: String,

    /// Where the app runs in this environment.
    #[schemars(length(min = 1, max = 32))]
    pub targets: Vec<Target>,

    /// How a revision is promoted to this environment. It replaces `spec.promotion` as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,

    /// The gates that a revision has to pass before it is promoted to this environment. Without any,
    /// only those of GatePolicies are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateSet>,

    /// When the gates are asked. Where there is no pull request, they are always asked before the
    /// promotion.
    #[serde(default)]
    pub gate_at: GateAt,
}

/// When the gates of an environment are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GateAt {
    /// Before the pull request is opened.
    Create,
    /// Before it is merged.
    Merge,
    /// Before it is opened, and again before it is merged.
    #[default]
    Both,
}

/// A namespace in which the app runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The namespace.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: String,

    /// The cluster. Default: the one that the Pipeline is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,
}

/// Names another cluster.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReference {
    /// The group and version of the kind. They are not looked at: the kind says enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub api_version: Option<String>,

    /// Its kind.
    pub kind: ClusterKind,

    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Its namespace. Default: the namespace of the Pipeline. The Secret with the kubeconfig has to
    /// allow every other one, by its annotation `sluice.dev/allowed-namespaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// What names a cluster.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ClusterKind {
    /// A Secret with a kubeconfig in the key `value`, `value.yaml` or `kubeconfig`.
    Secret,
    /// A Cluster of Cluster API, whose kubeconfig is in the Secret `<name>-kubeconfig`.
    Cluster,
    /// A GitopsCluster of Weave GitOps, which names its Secret or its Cluster.
    GitopsCluster,
}

/// Which revision an environment is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Algorithm {
    /// That of the first environment: one revision goes through all environments. A newer one in the
    /// first environment starts again from there.
    #[default]
    Run,
    /// That of the environment before it: several revisions are on their way at once.
    Pairwise,
}

/// What the controller reports about a Pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// The last value of `sluice.dev/retry` that has started a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,

    /// The newest run: which revision is on its way, and how far it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,

    /// The environments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub environments: BTreeMap<String, EnvironmentStatus>,

    /// The other clusters that it names, and whether they can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub clusters: Vec<ClusterStatus>,

    /// `Ready`: every target can be read, and no promotion fails; also while gates, people or a pull
    /// request are waited for. `Blocked`: gates or an approval hold a promotion. `PromotionPending`: the
    /// first environment does not run one revision healthily. `PromotionPending` and `Stalled` are there
    /// only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

impl PipelineSpec {
    /// How a revision is promoted to an environment. None: it is only watched.
    pub fn promotion_of<'p>(&'p self, environment: &'p Environment) -> Option<&'p Promotion> {
        environment.promotion.as_ref().or(self.promotion.as_ref())
    }
}
