//! `GitRepositoryAccess`: one repository on a forge, the Secret that opens it, and who may promote by it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pipeline::{ForgeType, SecretName};
use crate::values::{Duration, with_days};

/// Which repository, how it is opened, and for whom.
#[allow(
    clippy::duplicated_attributes,
    reason = "each column has a type of its own"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sluice.dev",
    version = "v1alpha1",
    kind = "GitRepositoryAccess",
    plural = "gitrepositoryaccesses",
    shortname = "gra",
    category = "sluice",
    namespaced,
    status = "GitRepositoryAccessStatus",
    derive = "PartialEq",
    doc = "A GitRepositoryAccess is one repository on a forge, with the Secret that opens it. It says who may promote by it, and into which branches.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: at most 63 characters, so that it fits a label"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider"),
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(with_days("duration(self.interval) >= duration('10s') && duration(self.interval) <= duration('1h')"))
        .message("interval: must be between 10s and 1h")
        .field_path(".interval"),
    validation = Rule::new("!has(self.webhook) || self.webhook.secretRef.name != self.secretRef.name")
        .message("webhook.secretRef: who sets up the webhook sees this token, so that it must not be what opens the repository; name another Secret")
        .field_path(".webhook")
)]
pub struct GitRepositoryAccessSpec {
    /// The kind of forge.
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("provider: it never changes; create another GitRepositoryAccess")
    )]
    pub provider: ForgeType,

    /// The address of the repository, such as `https://git.example.com/acme/shop.git`.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message("url: it never changes; create another GitRepositoryAccess"),
        validation = Rule::new("self.startsWith('https://')")
            .message("url: forges are asked over https alone; write https://..."),
        validation = Rule::new("!self.contains('@') && !self.contains('?') && !self.contains('#')")
            .message("url: no user and no query in it; the Secret has what opens the repository")
    )]
    pub url: String,

    /// The Secret that opens it, with the keys of Flux: `token`; or `username` and `password`; or
    /// `githubAppID`, `githubAppInstallationID` and `githubAppPrivateKey`. It may have `ca.crt`, too. Its
    /// annotation `sluice.dev/allowed-hosts` names the host of the forge.
    pub secret_ref: SecretName,

    /// The GitHub App, where the Secret holds its private key alone.
    #[serde(default, rename = "githubApp", skip_serializing_if = "Option::is_none")]
    pub github_app: Option<GitHubApp>,

    /// How often its branches are listed. Between `10s` and `1h`.
    #[serde(default = "a_minute")]
    pub interval: Duration,

    /// By which the forge says that something has changed, so that its branches are listed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,

    /// The other namespaces that may name it, and the branches that they may merge into. Those of its own
    /// namespace may always name it, for any branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub allow: Vec<Allowed>,

    /// Who has made the commits that the controller makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
}

fn a_minute() -> Duration {
    Duration::from("1m")
}

/// A GitHub App, installed where the repository is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitHubApp {
    /// The id of the App.
    #[serde(rename = "appID")]
    #[schemars(range(min = 1))]
    pub app_id: i64,
    /// The id of its installation.
    #[serde(rename = "installationID")]
    #[schemars(range(min = 1))]
    pub installation_id: i64,
}

/// What the forge calls when something has changed: `/hooks/NAMESPACE/NAME` of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The Secret with the `token` that the forge signs with. It has at least 32 bytes, and opens nothing.
    pub secret_ref: SecretName,
}

/// Namespaces that may promote by it, and where to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The names of the namespaces.
    #[schemars(
        length(min = 1, max = 64),
        inner(
            length(min = 1, max = 63),
            regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        )
    )]
    pub namespaces: Vec<String>,
    /// The branches that they may merge into. A `*` stands for any characters but `/`, and `**` for any.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 244)))]
    pub branches: Vec<String>,
}

/// Who has made a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^<>\x00-\x1f]+$"))]
    pub name: String,
    /// The address.
    #[schemars(length(min = 3, max = 254), regex(pattern = r"^[^<>@\s]+@[^<>@\s]+$"))]
    pub email: String,
}

/// Names a GitRepositoryAccess.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct AccessReference {
    /// Its name.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Its namespace, where that is another one. It has to allow that, by its field `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// What the controller reports about a GitRepositoryAccess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryAccessStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of `reconcile.fluxcd.io/requestedAt` that was answered by a fresh list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// `Ready`: the branches of the repository could be listed, or nobody needs them. `Reconciling` and
    /// `Stalled` are there only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
}
