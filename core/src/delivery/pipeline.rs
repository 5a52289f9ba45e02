//! Pipelines: which revision is brought to which environment, and what makes it so.
//!
//! What comes in ([`Given`]): the Pipeline, its app in every target as it was read, its PullRequests, the
//! votes, the gates of each environment with everything that they depend on, what has come of calls to
//! others, and the instant. What goes out, in two steps: [`consider`] says what the gates are asked and
//! what they answer, so that it can be recorded; [`report`] says what the status has to be, what has to be
//! done, and when to look again.
//!
//! Each step takes what the step before has made:
//!
//! | step | | makes |
//! |---|---|---|
//! | 1 | `target`, `environment` | what each target runs, and how its environment stands |
//! | 2 | `memory`, `run` | what was promoted before, and which revision each environment is to have |
//! | 3 | `child`, `step`, `approval`, `plan` | one step for each environment, and what the gates are asked |
//! | 4 | `considered` | what the gates say |
//! | 5 | `settled`, `conditions`, `report` | the status, and what has to be done |
//!
//! Everything that is done outside the API server is in the status first. The status is written onto the
//! version of the object that it was decided from, also if it only says again what has to be done: what
//! was decided from an old version begins nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use sluice_crds::pipeline::{ClusterReference, Environment, InvolvedObject, PullRequestStrategy};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Approval, Pipeline, PipelineStatus, PullRequest, Subject};

use super::act;
use crate::gate::set::Gathered;
use crate::text::refusal::Refusals;
use crate::time::clock::Now;

mod admitted;
mod app;
mod approval;
mod child;
mod conditions;
mod considered;
mod environment;
mod key;
mod memory;
mod plan;
mod reasons;
mod report;
mod reports;
mod run;
mod settled;
mod spec;
mod step;
mod target;
#[cfg(test)]
mod tests;
mod view;
mod webhook;
mod whose;
mod words;

pub use admitted::{admissions, depends_on};
pub use app::kind_of;
pub use child::is_same;
pub(super) use child::is_whole;
pub use conditions::{BLOCKED, PROMOTION_PENDING};
pub use considered::{Asked, Considered, What, consider};
pub(super) use key::{Way, retry_after};
pub(super) use reasons::is_recalled;
pub use reasons::{ADMITTED, MERGED, MERGED_PAST_GATE, RECALLED, SUPERSEDED};
pub use report::{awaited, report};
pub use reports::{Desk, desk, report_of, said};
pub use spec::check;
pub use target::{App, Reader};
pub use view::{App as ViewedApp, EnvironmentView, Needs, PromotionView, View, VoteView, view};
pub use webhook::{Signed, approve_by_webhook, is_by_webhook, name_by_webhook};
pub use words::target as target_name;

/// The kind, as it is written in subjects and PullRequests.
pub const KIND: &str = "Pipeline";

/// The result of a look. `changed` is also true if the status says the same and something has to be done:
/// a write onto a version that is no longer current is refused, and then nothing is done.
pub type Report = act::Report<PipelineStatus, Act>;

/// Who asks, what it wants to do, and for which revision. Its gates are gathered for this, and decisions
/// are about this.
pub fn subject(
    object: &Pipeline,
    environment: &str,
    what: What,
    revision: Option<&str>,
) -> Subject {
    let metadata = &object.metadata;
    Subject {
        kind: KIND.to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone(),
        environment: Some(environment.to_owned()),
        action: what.as_str().to_owned(),
        step: None,
        revision: revision.map(str::to_owned),
    }
}

/// The namespaces of our own cluster in which a promotion to an environment takes effect: those of its
/// targets, and that of the Pipeline. The policies of all of them count.
pub fn namespaces<'p>(object: &'p Pipeline, environment: &'p Environment) -> Vec<&'p str> {
    let targets = environment.targets.iter();
    let targets = targets.filter(|it| it.cluster_ref.is_none());
    let mut namespaces: Vec<&str> = targets.map(|it| it.namespace.as_str()).collect();
    namespaces.extend(object.metadata.namespace.as_deref());
    namespaces
}

/// Everything that a look at a Pipeline is decided from.
pub struct Given {
    /// The Pipeline.
    pub object: Arc<Pipeline>,
    /// What [`check`] says of it. It is the same as long as its generation is.
    pub checked: Result<Arc<Reader>, Refusals>,
    /// What surrounds each environment, in the order of the spec.
    pub environments: Vec<Surroundings>,
    /// The PullRequests whose `about` names this Pipeline.
    pub pull_requests: Vec<Arc<PullRequest>>,
    /// The votes on its promotions.
    pub votes: Votes,
    /// What has come of calls to others, by what was called for.
    pub errands: BTreeMap<Errand, Outcome>,
    /// The other clusters that its targets name, in any order.
    pub clusters: Vec<ClusterSight>,
    /// The instant.
    pub now: Now,
}

/// What surrounds an environment.
pub struct Surroundings {
    /// The app in its targets, in the order of the spec.
    pub targets: Vec<Sight>,
    /// The gates that a promotion to it has to pass.
    pub gates: Gathered,
    /// What those gates depend on: the environments whose admissions are read by gatekeepers of the kind
    /// `pipeline`, as the namespace and name of the Pipeline and the environment.
    pub depends_on: Vec<(String, String, String)>,
    /// For an admission that is reported to gatekeepers: what each of them says, in the order of the
    /// targets.
    pub reports: Vec<ReportSight>,
}

/// The app in a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// As it was read.
    Here(Arc<App>),
    /// It is not known what runs there.
    Unknown(Trouble),
}

/// Why it is not known what a target runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What is missing.
    pub what: Missing,
    /// The same in a sentence that names it.
    pub message: String,
}

/// What is missing where it is not known what a target runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing names the cluster: no Secret, no cluster object, or no right to use it.
    Cluster,
    /// The cluster is there, and is not ready, silent, or refuses.
    Connection,
    /// The app is absent, or cannot be read.
    App,
}

/// What a gatekeeper says of an admission: see [`said`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportSight {
    /// It has the report of this revision, which counts.
    Says(String),
    /// It has no report, or one that does not count, such as one for an older generation.
    Nothing,
    /// It cannot be read: why.
    Unreadable(String),
}

/// The Approvals that name a Pipeline.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    /// All of them.
    pub all: Vec<Arc<Approval>>,
    /// Whether it is verified who approves.
    pub verified: bool,
}

/// Another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSight {
    /// What names it.
    pub cluster: ClusterReference,
    /// Why it cannot be read. None: it can.
    pub trouble: Option<String>,
}

/// A call to somebody else. The same call is made once at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Errand {
    /// The forge is asked for the newest pull request of this environment: see [`Act::Recall`]. With the
    /// `resourceVersion` of the Pipeline when it was asked: what was asked before somebody else has written
    /// the Pipeline may be outdated.
    Recall(String, String),
    /// The try of the promotion with this key, and which try it is: see [`Act::Notify`], [`Act::Admit`].
    Try(String, u32),
}

/// What has come of an errand. It is kept until a status was accepted that was decided from it; what a forge
/// has answered to [`Act::Recall`], as long as the Pipeline has the version for which it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is under way.
    UnderWay,
    /// It is done.
    Done,
    /// The forge has answered: the newest pull request of the environment, if there is any.
    Recalled(Option<Recalled>),
    /// It has failed.
    Failed {
        /// Why.
        why: String,
        /// Before that the other side is not asked again.
        not_before: Option<Timestamp>,
    },
}

/// A pull request that a forge still knows, as the trailers of our commit say. It counts only if the key
/// is that of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The run.
    pub run: i64,
    /// The revision.
    pub revision: String,
    /// The key.
    pub key: String,
    /// Its state.
    pub state: PullRequestState,
    /// Its page.
    pub url: Option<String>,
    /// When it was merged: the commit, and the first parent of that.
    pub merge: Option<(String, String)>,
}

/// Something to be done, only after the status was accepted. All of it can be done twice.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Create a PullRequest. If there is one with its name, it is this one.
    Create(Box<PullRequest>),
    /// Change what may change in a PullRequest.
    Change {
        /// The object as it is.
        before: Arc<PullRequest>,
        /// Whether it must not be opened now.
        suspend: bool,
        /// Why it has to be closed, if it has to be.
        close: Option<String>,
    },
    /// Give a PullRequest what it has from its Pipeline.
    Belong {
        /// The object as it is.
        before: Arc<PullRequest>,
        /// The labels that change. None: it is taken away.
        labels: BTreeMap<String, Option<String>>,
        /// Its annotation that names them all, see [`sluice_crds::pull_request::marks::LABELS`].
        mark: Option<String>,
        /// Its owners, if it gets one.
        owners: Option<Vec<OwnerReference>>,
    },
    /// Delete a PullRequest: this one, and no other of its name. It is finished, and there are enough
    /// newer ones.
    Delete(Arc<PullRequest>),
    /// Ask the forge about a pull request now: it has probably been merged.
    LookAt(String),
    /// Ask the forge for the newest pull request of an environment.
    Recall(Box<Recall>),
    /// Send a notification. It is errand [`Errand::Try`].
    Notify(Box<Notice>),
    /// Report an admission to gatekeepers. It is errand [`Errand::Try`]; if that is over, it is begun again.
    Admit(Box<Admit>),
}

/// A question to a forge.
#[derive(Clone, Debug, PartialEq)]
pub struct Recall {
    /// The errand.
    pub errand: Errand,
    /// The environment.
    pub environment: String,
    /// Where.
    pub strategy: PullRequestStrategy,
    /// What the branches of the environment begin with.
    pub branch_prefix: String,
}

/// A notification for the notification-controller of Flux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The errand.
    pub errand: Errand,
    /// What it is about.
    pub involved: InvolvedObject,
    /// Of the app: the namespace of the environment's first target.
    pub app_namespace: String,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// What tells it from every other notification, also from an earlier one of the same promotion that
    /// had no effect.
    pub token: String,
    /// What it says.
    pub message: String,
}

/// An admission for gatekeepers of the kind `external`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admit {
    /// The errand.
    pub errand: Errand,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// The places of the targets whose gatekeepers do not have the report.
    pub targets: Vec<usize>,
    /// All of them had it before.
    pub again: bool,
}
