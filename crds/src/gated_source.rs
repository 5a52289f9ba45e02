//! `GatedSource`: a source of Flux whose revisions go out when gates admit them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::decision::Decision;
use crate::gate_set::GateSet;
use crate::values::{Duration, with_days};

/// Annotations and the finalizer that a GatedSource puts on objects.
pub mod marks {
    /// On a child: the GatedSource that made it. An object without it is no child.
    pub const CHILD_OF: &str = "sluice.dev/gated-source";
    /// On a source: the GatedSources that suspend it, by name, with commas between them. Only a source
    /// that carries it is resumed, by the last of them.
    pub const SUSPENDED_BY: &str = "sluice.dev/suspended-by";
    /// On a GatedSource whose children are deleted together with it.
    pub const FINALIZER: &str = "sluice.dev/gated-source";
}

/// Which sources, which gates, and how revisions are held back.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "GatedSource",
    plural = "gatedsources",
    shortname = "gs",
    category = "sluice",
    namespaced,
    status = "GatedSourceStatus",
    derive = "PartialEq",
    doc = "A GatedSource lets the revisions of a Flux source out when its gates admit them. What has gone out stays, and goes on being reconciled.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    validation = Rule::new("!has(self.spec.sourceRef) || self.spec.strategy != 'pin' || (has(self.spec.target) ? self.spec.target.name : self.metadata.name) != self.spec.sourceRef.name")
        .message("spec.target.name: the pinned child is of the same kind as the source and needs another name than it; write target: {name: ...}, or name the GatedSource differently"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Blocked",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Blocked\")].status",
        description = "Whether something waits for the gates"
    ),
    printcolumn(name = "Admitted", type_ = "string", json_path = ".status.admitted.short"),
    printcolumn(name = "Pending", type_ = "string", json_path = ".status.pending.short"),
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
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Blocked\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.sourceRef), has(self.sourceRefs), has(self.selector)].exists_one(given, given)")
        .message("sourceRef: write exactly one of sourceRef, sourceRefs and selector"),
    validation = Rule::new("!has(self.selector) || self.strategy == 'suspend'")
        .message("selector: only the strategy suspend selects sources; name them with sourceRef or sourceRefs")
        .field_path(".selector"),
    validation = Rule::new("!has(self.target) || (has(self.sourceRef) && self.strategy != 'suspend')")
        .message("target: belongs to sourceRef, and not to the strategy suspend, which makes no child; of sourceRefs each has a target of its own")
        .field_path(".target"),
    validation = Rule::new("!has(self.revision) || (has(self.sourceRef) && self.strategy != 'suspend')")
        .message("revision: can be asked for of one source that is named with sourceRef, by the strategies pin and artifact")
        .field_path(".revision"),
    validation = Rule::new("!has(self.baseline) || (has(self.sourceRef) && self.strategy != 'suspend')")
        .message("baseline: belongs to sourceRef, and to the strategies pin and artifact; of sourceRefs each has a baseline of its own")
        .field_path(".baseline"),
    validation = Rule::new("self.strategy != 'pin' || !has(self.sourceRef) || self.sourceRef.kind in ['GitRepository', 'OCIRepository', 'HelmChart']")
        .message("sourceRef.kind: only GitRepository, OCIRepository and HelmChart can be pinned; gate a Bucket with strategy: artifact, and the HelmCharts of a HelmRepository instead of itself")
        .field_path(".sourceRef.kind"),
    validation = Rule::new("self.strategy != 'pin' || !has(self.sourceRefs) || self.sourceRefs.all(source, source.kind in ['GitRepository', 'OCIRepository', 'HelmChart'])")
        .message("sourceRefs: only GitRepository, OCIRepository and HelmChart can be pinned; gate a Bucket with strategy: artifact, and the HelmCharts of a HelmRepository instead of itself")
        .field_path(".sourceRefs"),
    validation = Rule::new("self.strategy != 'artifact' || !has(self.sourceRef) || self.sourceRef.kind != 'HelmRepository'")
        .message("sourceRef.kind: a HelmRepository is an index, not something to deploy; gate the HelmCharts of it instead")
        .field_path(".sourceRef.kind"),
    validation = Rule::new("self.strategy != 'artifact' || !has(self.sourceRefs) || self.sourceRefs.all(source, source.kind != 'HelmRepository')")
        .message("sourceRefs: a HelmRepository is an index, not something to deploy; gate the HelmCharts of it instead")
        .field_path(".sourceRefs"),
    validation = Rule::new("self.strategy != 'suspend' || !has(self.sourceRefs) || self.sourceRefs.all(source, !has(source.target) && !has(source.baseline))")
        .message("sourceRefs: the strategy suspend makes no children; remove target and baseline")
        .field_path(".sourceRefs"),
    validation = Rule::new("!has(self.interval) || self.strategy == 'pin'")
        .message("interval: is that of pinned children; remove it, or write strategy: pin")
        .field_path(".interval"),
    validation = Rule::new(with_days("!has(self.interval) || duration(self.interval) >= duration('1m')"))
        .message("interval: at least 1m; write a duration such as 12h")
        .field_path(".interval"),
    validation = Rule::new(with_days("!has(self.spread) || duration(self.spread) <= duration('24h')"))
        .message("spread: at most 24h; write a duration such as 10m")
        .field_path(".spread"),
    validation = Rule::new("self.strategy == oldSelf.strategy")
        .message("strategy: never changes, for the children of one strategy are of no use to another; create another GatedSource")
        .field_path(".strategy")
)]
pub struct GatedSourceSpec {
    /// The source whose revisions are gated, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceReference>,

    /// Several sources, whose revisions go out together under one decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.kind == a.kind && b.name == a.name))")
            .message("sourceRefs: a source is listed twice; list each one once")
    )]
    pub source_refs: Vec<TargetedSource>,

    /// The sources by their labels: for the strategy `suspend` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<SourceSelector>,

    /// How revisions are held back.
    #[serde(default)]
    pub strategy: Strategy,

    /// The gates that a revision has to pass.
    pub gates: GateSet,

    /// The name of the child. Default: the name of the GatedSource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,

    /// The only revision that may go out, such as an earlier one to go back to: a commit, digest or
    /// version in full. The gates are asked about it as about every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub revision: Option<String>,

    /// What runs already. It is admitted at once, without asking the gates, as long as nothing else has
    /// been admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,

    /// Over how long the sources of one gate go out when it opens: each waits for a part of it. None:
    /// they all go out at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Duration>,

    /// How often a pinned child is fetched again. Default: 12 hours. When its artifact is missing, it is
    /// asked to fetch at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,

    /// What happens to the children when the GatedSource is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Stop: admit nothing, change nothing. What is out stays out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// A kind of source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SourceKind {
    /// A Git repository.
    GitRepository,
    /// An artifact in a registry.
    OCIRepository,
    /// A chart of a Helm repository.
    HelmChart,
    /// Files in an object store.
    Bucket,
    /// The index of a Helm repository.
    HelmRepository,
}

/// Names a source in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceReference {
    /// Its kind.
    pub kind: SourceKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One of several sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetedSource {
    /// Its kind.
    pub kind: SourceKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The name of its child. Default: the name of the GatedSource and the name of the source, with a
    /// `-` between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Which revision of it runs already; see `spec.baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// Selects sources of one kind in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceSelector {
    /// Their kind.
    pub kind: SourceKind,
    /// Labels with these values.
    #[schemars(extend(
        "minProperties" = 1,
        "maxProperties" = 16,
        "additionalProperties" = { "type": "string", "maxLength": 63 }
    ))]
    pub match_labels: std::collections::BTreeMap<String, String>,
}

/// How revisions are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// A child of the same kind, pinned to the admitted commit, digest or version.
    #[default]
    Pin,
    /// An ExternalArtifact that this controller stores and serves.
    Artifact,
    /// The sources themselves are suspended while the gates are closed. This strategy keeps no list of
    /// revisions and cannot restore anything.
    Suspend,
}

/// The name of a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// What runs already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.from) != has(self.revision)")
        .message("baseline: write from, or revision, and not both")
)]
pub struct Baseline {
    /// The object that runs it: the revision that it applied last is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Consumer>,
    /// The revision, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub revision: Option<String>,
}

/// An object that applies what a source brings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// Its kind.
    pub kind: ConsumerKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace. Default: the namespace of the GatedSource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// The kinds that apply what a source brings.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ConsumerKind {
    /// Of kustomize-controller.
    Kustomization,
    /// Of helm-controller.
    HelmRelease,
}

/// What happens to children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They stay as they are, and are adopted again when the GatedSource is created again.
    #[default]
    Orphan,
    /// They are deleted first. What was suspended is resumed.
    Delete,
}

/// What the controller reports about a GatedSource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatedSourceStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// The newest revision that has not gone out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,

    /// What could go out, the newest last. At most 20: the oldest are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub candidates: Vec<Candidate>,

    /// What has gone out. Writing this field is the admission: the children are made from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Admitted>,

    /// What the gates said last about something that waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<Decision>,

    /// `Ready`: the children serve what was admitted. `Blocked`: something waits for the gates.
    /// `Recoverable`: what was admitted can be fetched again. `Reconciling`, `Stalled`, `Bypassed` and
    /// `SelfGated` are there only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// The newest revision that has not gone out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The revision; of several sources all of theirs, with commas between them.
    pub revision: String,
    /// The same in short, for tables: of a digest twelve digits, of several sources the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// When it was first seen.
    pub since: Time,
    /// When it goes out, if the gates still admit it then. It is there when the gates have opened and
    /// `spec.spread` makes it wait for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admit_at: Option<Time>,
}

/// What could go out: what all the sources showed at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The revision; of several sources all of theirs, with commas between them.
    pub revision: String,
    /// When it was first seen.
    pub since: Time,
    /// Whether the gates have held it back. If they have, it waits for its turn (`spec.spread`) once
    /// they admit it; if they have not, it goes out at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// What each source showed, in the order of the spec.
    #[schemars(length(max = 8))]
    pub parts: Vec<Part>,
}

/// What a source showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The kind of the source.
    pub kind: SourceKind,
    /// Its name.
    pub name: String,
    /// The revision, as the source writes it.
    pub revision: String,
    /// The digest of the artifact, with its algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// A fingerprint of what the source said should be fetched.
    pub content: String,
    /// A fingerprint of what selected the revision: the `ref` or `version` that the source had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
}

/// What has gone out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admitted {
    /// The revision; of several sources all of theirs, with commas between them.
    pub revision: String,
    /// The same in short, for tables: of a digest twelve digits, of several sources the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// When it went out.
    pub at: Time,
    /// Why it was admitted.
    pub origin: Origin,
    /// What has gone out of each source, in the order of the spec.
    #[schemars(length(max = 8))]
    pub parts: Vec<AdmittedPart>,
}

/// Why something was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Origin {
    /// The gates admitted it.
    Gates,
    /// It ran already: `spec.baseline`.
    Baseline,
    /// A child had it when the GatedSource came back without a status.
    Adopted,
}

/// What has gone out of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmittedPart {
    /// The kind of the source.
    pub kind: SourceKind,
    /// Its name.
    pub name: String,
    /// The revision, as the source wrote it.
    pub revision: String,
    /// The digest of the artifact, with its algorithm, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the source said should be fetched, as it was then: its spec without the fields that say how
    /// it is reached.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "as_it_is")]
    pub spec: Map<String, Value>,
}

/// An object of which the API server keeps everything. If the schema had `additionalProperties`, the API
/// server would keep those properties, and prune what is inside them.
fn as_it_is(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
