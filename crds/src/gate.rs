//! `Gate`: may a change go out now? An object that gatekeepers, a default and people open and close.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gatekeeper::VerdictStatus;
use crate::values::{Duration, Require, Setting, State, Transition, with_days};

/// Annotations on a Gate by which people force it, and what the controller adds to them.
pub mod annotations {
    /// `open` or `closed`: the forced state.
    pub const FORCE: &str = "sluice.dev/force";
    /// The end of the force, RFC 3339. Without it the force lasts `spec.window`.
    pub const FORCE_UNTIL: &str = "sluice.dev/force-until";
    /// Why the gate is forced. Required.
    pub const FORCE_REASON: &str = "sluice.dev/force-reason";
    /// Who forces the gate: the requesting user, as the API server knows them. Required.
    pub const FORCE_BY: &str = "sluice.dev/force-by";
    /// Written by the controller: when it first saw this force, and which force it was.
    pub const FORCE_SEEN: &str = "sluice.dev/force-seen";
    /// The gating RFC's request to open: an instant, from which `spec.window` counts.
    pub const RFC_OPEN: &str = "open.gate.fluxcd.io/requestedAt";
    /// The gating RFC's request to close: an instant, from which `spec.window` counts.
    pub const RFC_CLOSE: &str = "close.gate.fluxcd.io/requestedAt";

    /// All of them.
    pub const ALL: [&str; 7] = [
        FORCE,
        FORCE_UNTIL,
        FORCE_REASON,
        FORCE_BY,
        FORCE_SEEN,
        RFC_OPEN,
        RFC_CLOSE,
    ];
}

/// Which gatekeepers a gate has, and how their verdicts combine.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "Gate",
    plural = "gates",
    shortname = "gt",
    category = "sluice",
    namespaced,
    status = "GateStatus",
    derive = "PartialEq",
    doc = "A Gate says whether a change may go out now, and why. Its gatekeepers toggle it; people can force it.",
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
    printcolumn(name = "Forced-By", type_ = "string", json_path = ".status.override.by"),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.since"),
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
    validation = Rule::new(with_days("duration(self.window) >= duration('1m')"))
        .message("window: must be at least 1m; write a duration such as 1h")
        .field_path(".window"),
    validation = Rule::new(with_days("duration(self.maxOverride) >= duration('1h') && duration(self.maxOverride) <= duration('8784h')"))
        .message("maxOverride: must be at least 1h and at most 8784h (366 days); write a duration such as 24h")
        .field_path(".maxOverride"),
    validation = Rule::new(with_days("duration(self.window) <= duration(self.maxOverride)"))
        .message("window: must not be longer than maxOverride; shorten window or raise maxOverride")
        .field_path(".window"),
    validation = Rule::new("!has(self.gatekeepers) || size(self.gatekeepers) == 0 || self.default == 'closed'")
        .message("default: only a gate without gatekeepers has a default; remove default or the gatekeepers")
        .field_path(".default")
)]
pub struct GateSpec {
    /// The gatekeepers that keep this gate. None: a static gate, in the state of `default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(
        validation = Rule::new("self.all(a, self.exists_one(b, b.name == a.name && (has(b.__namespace__) ? b.__namespace__ : '') == (has(a.__namespace__) ? a.__namespace__ : '')))")
            .message("gatekeepers: a gatekeeper is listed twice; list each one once")
    )]
    pub gatekeepers: Vec<GatekeeperReference>,

    /// How the verdicts of the gatekeepers combine.
    #[serde(default)]
    pub require: Require,

    /// The state of a gate without gatekeepers.
    #[serde(default)]
    pub default: Setting,

    /// How long a force lasts that has no end of its own: at least a minute.
    #[serde(default = "default_window")]
    pub window: Duration,

    /// The longest a force may last: at least an hour, so that people can close the gate.
    #[serde(default = "default_max_override")]
    pub max_override: Duration,

    /// Stop keeping this gate. It counts as closed until it is resumed; a force still holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl Default for GateSpec {
    /// A static gate with the defaults that the API server writes: closed.
    fn default() -> Self {
        Self {
            gatekeepers: Vec::new(),
            require: Require::default(),
            default: Setting::default(),
            window: default_window(),
            max_override: default_max_override(),
            suspend: false,
        }
    }
}

fn default_window() -> Duration {
    Duration::from("1h")
}

fn default_max_override() -> Duration {
    Duration::from("24h")
}

/// Names a Gatekeeper.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatekeeperReference {
    /// The name of the Gatekeeper.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Its namespace. Default: the namespace of the Gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// What the controller last decided about a gate, for people and other tools to read. No
/// decision is ever made from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Open or Closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,

    /// Why, in one word of a fixed vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why, in a sentence: who decided, what was seen, until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// What each gatekeeper said, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<GatekeeperVerdict>,

    /// The force in effect, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#override: Option<Override>,

    /// The next changes of the gate that are known in advance: at most 8, within 90 days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcoming: Vec<Transition>,

    /// Since when the gate has been in its present state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// `Ready`: the gate was decided from all it names (a closed gate is ready). `Opened`: its
    /// state. `Stalled`: the spec has to change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}

/// What one gatekeeper said about a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatekeeperVerdict {
    /// The gatekeeper, as `name`, or `namespace/name` where it lives in another namespace.
    pub gatekeeper: String,

    /// Its verdict.
    #[serde(flatten)]
    pub verdict: VerdictStatus,
}

/// A force in effect: who, why, until when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// The state it forces.
    pub state: Setting,
    /// Who forces it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Time,
    /// Until when.
    pub until: Time,
}
