//! `Gatekeeper`: one rule that admits a change or does not. Many gates may name the same one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate_set::GateSet;
use crate::values::{Duration, Setting, State, Transition};

mod approval;
mod external;
mod http;
mod manual;
mod metric;
mod objects;
mod pipeline;
mod references;
mod revisions;
mod schedule;

pub use approval::{ApprovalRule, ApprovalStatus, Authors};
pub use external::{External, ExternalReport};
pub use http::{Http, HttpStatus};
pub use manual::Manual;
pub use metric::{Metric, MetricStatus, Range};
pub use objects::{ExpectedCondition, ObjectRule, Objects, ObjectsStatus};
pub use pipeline::PipelineRule;
pub use references::{CertificateReference, ConfigMapKeyReference, SecretReference};
pub use revisions::{ListSource, Revisions};
pub use schedule::{Calendar, Schedule, Window};

/// One rule, of exactly one kind.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Gatekeeper",
    plural = "gatekeepers",
    shortname = "gk",
    category = "sluice",
    namespaced,
    status = "GatekeeperStatus",
    derive = "PartialEq",
    doc = "A Gatekeeper is one rule that admits a change or does not: a schedule of windows, a switch, lists of revisions, a metric, the state of objects, what an address answers, approvals, other gates, what a Pipeline has admitted, or what a third party reports. Gates name the gatekeepers that keep them.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(
        name = "Until",
        type_ = "string",
        json_path = ".status.upcoming[0].at",
        description = "When the state changes next, as far as it is known"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(exactly_one_kind())
        .message(format!("a Gatekeeper has exactly one kind; write one of {}", KINDS.join(", ")).as_str())
)]
pub struct GatekeeperSpec {
    /// The verdict while evidence is unavailable (a calendar is missing, an address does not answer). It
    /// has no effect on anything else.
    #[serde(default)]
    pub on_error: Setting,

    /// Stop this rule. It admits nothing until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// Admits inside an `open` window, or at any time if there is no `open` window, but never inside a
    /// `closed` window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,

    /// Admits while its state is `open`: the switch that lives in Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual: Option<Manual>,

    /// Admits the revisions on its lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Revisions>,

    /// Admits while a value that Prometheus measures is within a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Box<Metric>>,

    /// Admits while other objects are as they should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<Box<Objects>>,

    /// Admits while an address answers as it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<Http>>,

    /// Admits a revision that enough people have approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRule>>,

    /// Admits what other gates admit, each by itself or all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Box<GateSet>>,

    /// Admits what a Pipeline has admitted to one of its environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<PipelineRule>>,

    /// Admits what a third party reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<External>>,
}

/// The names of the kinds, as a spec has them.
pub const KINDS: [&str; 10] = [
    "schedule",
    "manual",
    "revisions",
    "metric",
    "objects",
    "http",
    "approval",
    "gates",
    "pipeline",
    "external",
];

/// The rule (CEL) that a spec is of exactly one of them.
fn exactly_one_kind() -> String {
    let given = KINDS.map(|kind| format!("has(self.{kind})")).join(", ");
    format!("[{given}].filter(given, given).size() == 1")
}

/// The kinds of gatekeeper. Code that handles one handles them all: a `match` on this has no wildcard,
/// so a new kind does not compile until every floor handles it.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// Windows in time.
    Schedule(&'a Schedule),
    /// A switch.
    Manual(&'a Manual),
    /// Lists of revisions.
    Revisions(&'a Revisions),
    /// A value that is measured.
    Metric(&'a Metric),
    /// The state of other objects.
    Objects(&'a Objects),
    /// The answer of an HTTP address.
    Http(&'a Http),
    /// Votes.
    Approval(&'a ApprovalRule),
    /// Other gates.
    Gates(&'a GateSet),
    /// What a Pipeline has admitted.
    Pipeline(&'a PipelineRule),
    /// Reports of a third party.
    External(&'a External),
}

impl Kind<'_> {
    /// Its name, as a spec has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Schedule(_) => "schedule",
            Kind::Manual(_) => "manual",
            Kind::Revisions(_) => "revisions",
            Kind::Metric(_) => "metric",
            Kind::Objects(_) => "objects",
            Kind::Http(_) => "http",
            Kind::Approval(_) => "approval",
            Kind::Gates(_) => "gates",
            Kind::Pipeline(_) => "pipeline",
            Kind::External(_) => "external",
        }
    }
}

/// A Gatekeeper's spec named none of the kinds, or more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOneKind;

impl Gatekeeper {
    /// Its status, if that is about exactly this spec.
    pub fn current_status(&self) -> Option<&GatekeeperStatus> {
        let status = self.status.as_ref();
        status.filter(|it| it.observed_generation == self.metadata.generation)
    }
}

impl GatekeeperSpec {
    /// The one kind that this spec is of.
    ///
    /// # Errors
    /// [`NotOneKind`] if it names none of the kinds, or several, which admission should have refused.
    pub fn kind(&self) -> Result<Kind<'_>, NotOneKind> {
        let Self {
            on_error: _,
            suspend: _,
            schedule,
            manual,
            revisions,
            metric,
            objects,
            http,
            approval,
            gates,
            pipeline,
            external,
        } = self;
        let mut given = [
            schedule.as_ref().map(Kind::Schedule),
            manual.as_ref().map(Kind::Manual),
            revisions.as_ref().map(Kind::Revisions),
            metric.as_deref().map(Kind::Metric),
            objects.as_deref().map(Kind::Objects),
            http.as_deref().map(Kind::Http),
            approval.as_deref().map(Kind::Approval),
            gates.as_deref().map(Kind::Gates),
            pipeline.as_deref().map(Kind::Pipeline),
            external.as_deref().map(Kind::External),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) | (Some(_), Some(_)) => Err(NotOneKind),
        }
    }
}

/// What a gatekeeper says: the part that a gate repeats in its own status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictStatus {
    /// Open: it admits. Closed: it does not.
    pub state: State,
    /// Why, in one word of a fixed vocabulary.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Until when time does not change it. In a gatekeeper's own status it is also not later than the
    /// end of the time for which the evidence is good; newer evidence moves it on. After it the verdict
    /// counts as closed. None: until a spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Time>,
}

/// What the controller last reported about a gatekeeper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatekeeperStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The verdict. None before the first one.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictStatus>,

    /// The next changes of the verdict that are known in advance: at most 8, within 90 days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcoming: Vec<Transition>,

    /// When the verdict was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,

    /// What the verdict was made from, in addition to the spec and the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<EvidenceStatus>>,

    /// What the third party of an `external` gatekeeper reports: the only part of a status that is not
    /// written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<ExternalReport>>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// `Ready`: the rule can be judged. `Reconciling`: its evidence is awaited. `Stalled`: the
    /// spec, or what it names, has to change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// Evidence that a verdict was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceStatus {
    /// The calendars of a schedule, in the order of its windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calendars: Vec<CalendarStatus>,

    /// The result of the query of a metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricStatus>,

    /// What was seen of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsStatus>,

    /// What the address answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpStatus>,

    /// The votes on the revisions that got a vote last: at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<ApprovalStatus>,
}

/// A calendar as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarStatus {
    /// The window that it belongs to.
    pub window: String,
    /// How many events it holds. None: it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<i64>,
    /// The first 12 hexadecimal digits of the SHA-256 of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What is wrong with it. If `events` is there, too: why it could not be read again, and is kept as
    /// it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn default_interval() -> Duration {
    Duration::from("1h")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemars::schema_for;
    use serde_json::Value;

    use super::*;

    /// A kind whose field is not listed would be refused by every definition.
    #[test]
    fn every_field_of_a_spec_but_two_is_a_kind() {
        let schema = Value::from(schema_for!(GatekeeperSpec));
        let fields = schema["properties"].as_object().unwrap();
        let fields: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        let common = ["onError", "suspend"];
        let known: BTreeSet<&str> = KINDS.into_iter().chain(common).collect();
        assert_eq!(fields, known);
    }
}
