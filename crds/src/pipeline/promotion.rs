//! How a revision is promoted: by a pull request, a notification or an admission.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a revision is promoted to an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Promotion {
    /// A person has to approve each promotion first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,

    /// How it is done.
    pub strategy: Strategy,
}

/// How a promotion is done: exactly one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.pull__dash__request), has(self.notification), has(self.admission)].exists_one(given, given)")
        .message("strategy: write exactly one of pull-request, notification and admission")
)]
pub struct Strategy {
    /// A pull request that writes the revision into marked places of a Git repository.
    #[serde(
        default,
        rename = "pull-request",
        skip_serializing_if = "Option::is_none"
    )]
    pub pull_request: Option<PullRequestStrategy>,

    /// An event for the notification-controller of Flux, whose Alerts call what does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<Notification>,

    /// The status says that the environment may have the revision: gates whose gatekeepers are of the
    /// kind `pipeline` admit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,

    /// The Secret whose key `hmac-key` signs approvals by webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
}

/// The one way in which a promotion is done. Code that handles one handles all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyKind<'a> {
    /// By a pull request.
    PullRequest(&'a PullRequestStrategy),
    /// By a notification.
    Notification(&'a Notification),
    /// By an admission.
    Admission(&'a Admission),
}

impl Strategy {
    /// The one way that it names. None: it names none, or several, which admission refuses.
    pub fn kind(&self) -> Option<StrategyKind<'_>> {
        let Self {
            pull_request,
            notification,
            admission,
            secret_ref: _,
        } = self;
        match (pull_request, notification, admission) {
            (Some(it), None, None) => Some(StrategyKind::PullRequest(it)),
            (None, Some(it), None) => Some(StrategyKind::Notification(it)),
            (None, None, Some(it)) => Some(StrategyKind::Admission(it)),
            _ => None,
        }
    }
}

impl StrategyKind<'_> {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            StrategyKind::PullRequest(_) => "pull-request",
            StrategyKind::Notification(_) => "notification",
            StrategyKind::Admission(_) => "admission",
        }
    }
}

/// Where a pull request is opened, and what it changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestStrategy {
    /// The kind of forge.
    #[serde(rename = "type")]
    pub type_: ForgeType,

    /// The address of the repository, such as `https://git.example.com/platform/apps.git`.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(
        validation = Rule::new("self.startsWith('https://')")
            .message("url: forges are asked over https alone; write https://...")
    )]
    pub url: String,

    /// The branch that the pull request is merged into.
    #[serde(default = "main_branch")]
    #[schemars(
        length(min = 1, max = 244),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9_])?$")
    )]
    pub base_branch: String,

    /// The Secret with the key `token`, and perhaps `ca.crt`.
    pub secret_ref: SecretName,

    /// The files in which the revision is written at the places that are marked for this environment.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 1024)))]
    #[x_kube(
        validation = Rule::new("self.all(path, !path.startsWith('/') && !path.endsWith('/') && !path.contains('..') && !path.contains('//'))")
            .message("paths: each is a file in the repository, without `/` at its start or end, and without `..`; write such as apps/prod/podinfo.yaml")
    )]
    pub paths: Vec<String>,

    /// Who merges it.
    #[serde(default)]
    pub merge: MergeMode,

    /// How the controller merges it. Default: as the repository prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MergeMethod>,
}

fn main_branch() -> String {
    "main".to_owned()
}

/// A kind of forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeType {
    /// GitHub and GitHub Enterprise Server.
    #[serde(rename = "github")]
    GitHub,
    /// GitLab.
    #[serde(rename = "gitlab")]
    GitLab,
    /// Gitea.
    Gitea,
    /// Forgejo, which is asked like Gitea.
    Forgejo,
    /// Bitbucket Data Center.
    BitbucketServer,
}

impl ForgeType {
    /// The word, as a spec has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::BitbucketServer => "bitbucket-server",
        }
    }
}

/// Who merges a pull request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MergeMode {
    /// A person.
    #[default]
    Manual,
    /// The controller, when the gates admit it.
    Auto,
}

/// How a pull request is merged.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum MergeMethod {
    /// With a merge commit.
    Merge,
    /// As one commit.
    Squash,
    /// Its commits onto the branch.
    Rebase,
}

/// What a notification is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// The object that the event is about: what the Alerts of Flux select.
    #[serde(default)]
    pub involved_object: InvolvedObject,
}

/// The object that an event is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InvolvedObject {
    /// The Pipeline. The definition of Alerts has to know this kind: Flux does not, unless it is
    /// patched.
    #[default]
    Pipeline,
    /// The app.
    Application,
}

/// Who learns of an admission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// A Gatekeeper of the kind `external` in each cluster of the environment's targets, to which the
    /// admission is reported. Default: none; gatekeepers of the kind `pipeline` on this cluster read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gatekeeper_ref: Option<GatekeeperReference>,
}

/// Names a Gatekeeper in the clusters of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatekeeperReference {
    /// Its name.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Its namespace: that of a target. Default: the namespace of each target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// Names a Secret in the namespace of the Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretName {
    /// Its name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}
