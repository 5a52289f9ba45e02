//! Promotion strategies: what was made of a dry commit goes through branches, by pull requests.
//!
//! What comes in ([`Given`]): the PromotionStrategy, what is known of its repository ([`evidence`]), its
//! PullRequests, what was found out about commits, the gates of each environment, and the instant. What goes
//! out, in two steps: [`consider`] says what the gates are asked and what they answer, so that it can be
//! recorded; [`report`] says what the status has to be, what has to be done, and when to look again.
//!
//! Each step takes what the step before has made:
//!
//! | step | | makes |
//! |---|---|---|
//! | 1 | `tips`, `metadata` | what both branches of each environment have, and from which dry commit it is |
//! | 2 | `arrival` | how an environment got what it has |
//! | 3 | `graph`, `checks`, `child`, `pulls`, `merges`, `reverting`, `reverts`, `seen` | which environments wait for which, what was found out, the pull requests, the way back |
//! | 4 | `at`, `waits`, `rules`, `sequence`, `upkeep` | everything that holds back what is proposed, in a fixed order |
//! | 5 | `plan`, `considered`, `fresh` | what the gates say of what nothing else holds back, and whether it is known well enough to order it |
//! | 6 | `settled`, `conditions`, `dry`, `report` | the status, and what has to be done |
//!
//! A merge is ordered in the status, which is written onto the version of the object that it was decided
//! from. What was merged is compared with what was ordered afterwards, by its tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_crds::promotion_strategy::marks;
use sluice_crds::{
    CommitStatus, PromotionStrategy, PromotionStrategyStatus, PullRequest, RevertCommit, Subject,
};

use super::act;
use super::commit_status::report::{Errand, Task};
use crate::flux::observed::Found;
use crate::gate::set::Gathered;
use crate::text::refusal::Refusals;
use crate::time::clock::Now;
use crate::verdict::status::requested_at;

mod arrival;
mod at;
mod checks;
pub mod child;
mod conditions;
mod considered;
mod dry;
pub mod evidence;
mod fresh;
mod graph;
mod merges;
pub mod metadata;
mod plan;
mod pulls;
mod report;
mod reverting;
mod reverts;
mod rules;
mod seen;
mod sequence;
mod settled;
mod spec;
#[cfg(test)]
mod tests;
mod tips;
mod upkeep;
mod waits;
mod words;

pub use conditions::{BLOCKED, BYPASSED, is_said_to_be_read};
pub use considered::{Considered, consider};
pub use dry::dry_commit_status;
pub use evidence::Evidence;
pub use plan::{Asked, What};
pub use report::report;
pub use spec::{LONGEST_NAME, check};
pub use upkeep::join_message;

/// The kind, as it is written in subjects and PullRequests.
pub const KIND: &str = "PromotionStrategy";
/// The kind that a strategy asks for, when it brings an environment back.
pub const REVERT: &str = "RevertCommit";

/// Who asks, what it wants to do, and for which revision.
pub fn subject(
    object: &PromotionStrategy,
    branch: &str,
    what: What,
    revision: Option<&str>,
) -> Subject {
    let metadata = &object.metadata;
    Subject {
        kind: match what {
            // Policies name this kind by itself, so that a freeze does not block the way back.
            What::Revert => REVERT,
            What::Promote | What::Pass => KIND,
        }
        .to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone(),
        environment: Some(branch.to_owned()),
        action: what.as_str().to_owned(),
        step: None,
        revision: revision.map(str::to_owned),
    }
}

/// The branches of a repository that a strategy needs to know.
pub fn branches(object: &PromotionStrategy) -> impl Iterator<Item = String> {
    let spec = &object.spec;
    let environments = spec.environments.iter();
    let both = environments.flat_map(|it| [it.branch.clone(), spec.proposed_branch(it)]);
    [spec.dry_branch.clone()].into_iter().chain(both)
}

/// What somebody has written to ask for a fresh look, in the words of Flux or of the GitOps Promoter.
fn request(object: &PromotionStrategy) -> Option<String> {
    let annotations = object.metadata.annotations.as_ref();
    let refreshed = || annotations?.get(marks::REFRESHED_AT).cloned();
    requested_at(&object.metadata).or_else(refreshed)
}

/// Whether somebody has asked for a fresh look that the status does not answer yet.
pub fn is_requested(object: &PromotionStrategy) -> bool {
    let status = object.status.as_ref();
    let answered = status.and_then(|status| status.last_handled_reconcile_at.as_ref());
    request(object).is_some_and(|request| Some(&request) != answered)
}

/// The result of a look. `changed` is also true if the status says the same and something has to be done:
/// a write onto a version that is no longer current is refused, and then nothing is done.
pub type Report = act::Report<PromotionStrategyStatus, Act>;

/// Everything that a look at a PromotionStrategy is decided from.
pub struct Given {
    /// The PromotionStrategy.
    pub object: Arc<PromotionStrategy>,
    /// Whether its spec is right.
    pub checked: Result<(), Refusals>,
    /// Whether its GitRepositoryAccess may be used, and works.
    pub access: Access,
    /// What is known of the repository.
    pub evidence: Arc<dyn Evidence + Send + Sync>,
    /// What surrounds each environment, in the order of the spec.
    pub surroundings: Vec<Surroundings>,
    /// The PullRequests whose `about` names this strategy.
    pub pull_requests: Vec<Arc<PullRequest>>,
    /// The CommitStatuses of its repository in the namespaces that count.
    pub commit_statuses: Vec<Arc<CommitStatus>>,
    /// The RevertCommits of its repository in its own namespace.
    pub reverts: Vec<Arc<RevertCommit>>,
    /// Whether it is verified who creates them.
    pub reverts_verified: bool,
    /// The Kustomizations that its checks name, by namespace and name.
    pub kustomizations: BTreeMap<(String, String), Found>,
    /// What came of the last errand that told the forge of the dry commit.
    pub dry_errand: Errand,
    /// The instant.
    pub now: Now,
}

/// Whether a GitRepositoryAccess may be used, and works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may, and as far as is known it works.
    Ready,
    /// Why not, in a sentence that names it.
    NotReady(String),
}

/// What surrounds an environment.
pub struct Surroundings {
    /// The gates that a commit has to pass before it is merged.
    pub gates: Gathered,
    /// The gates that its present commit has to pass before the environments after it get the same. None:
    /// there are none.
    pub active_gates: Option<Gathered>,
    /// The gates that a revert has to pass.
    pub revert_gates: Gathered,
    /// An older strategy that has the same branch, as `namespace/name`.
    pub owned_by: Option<String>,
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
        /// Its title.
        title: String,
        /// Its text.
        description: String,
        /// Why it has to be closed, if it has to be.
        close: Option<String>,
    },
    /// Delete a PullRequest: this one, and no other of its name. It is finished, and there are enough newer
    /// ones.
    Delete(Arc<PullRequest>),
    /// Ask the forge about a pull request now: it has probably changed.
    LookAt(String),
    /// List the branches now: one has probably changed.
    List,
    /// List the branches now, and look again after that, also where nothing has changed: a merge waits for it.
    Freshen,
    /// What came of the last errand about the dry commit is in the status.
    Told,
    /// Tell the forge of the dry commit.
    Tell(Task),
}
