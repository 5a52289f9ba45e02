//! The API of Sluice, group `sluice.dev`: one file a kind.
//!
//! What comes in: nothing. What goes out: the Rust types of every spec and status, and their
//! CustomResourceDefinitions with the rules (CEL) that refuse mistakes at admission. What the fields
//! mean is defined one floor up, in `sluice-core`: here a cron expression is still a string.

pub mod approval;
pub mod audit;
pub mod commit_status;
pub mod decision;
pub mod flux;
pub mod gate;
pub mod gate_policy;
pub mod gate_set;
pub mod gated_source;
pub mod gatekeeper;
pub mod git_repository_access;
pub mod pipeline;
pub mod promotion_strategy;
pub mod pull_request;
pub mod revert_commit;
pub mod rollout;
mod values;

pub use approval::{Approval, ApprovalSpec};
pub use commit_status::{CommitStatus, CommitStatusSpec, CommitStatusStatus};
pub use decision::{CheckedGate, Decision, Subject};
pub use gate::{Gate, GateSpec, GateStatus};
pub use gate_policy::{GatePolicy, GatePolicySpec, GatePolicyStatus};
pub use gate_set::{GateReference, GateSet};
pub use gated_source::{GatedSource, GatedSourceSpec, GatedSourceStatus};
pub use gatekeeper::{Gatekeeper, GatekeeperSpec, GatekeeperStatus};
pub use git_repository_access::{
    GitRepositoryAccess, GitRepositoryAccessSpec, GitRepositoryAccessStatus,
};
pub use pipeline::{Pipeline, PipelineSpec, PipelineStatus};
pub use promotion_strategy::{PromotionStrategy, PromotionStrategySpec, PromotionStrategyStatus};
pub use pull_request::{PullRequest, PullRequestSpec, PullRequestStatus};
pub use revert_commit::{RevertCommit, RevertCommitSpec, RevertCommitStatus};
pub use rollout::{Rollout, RolloutSpec, RolloutStatus};
pub use values::{Duration, IntOrPercent, Require, Setting, State, Transition};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The API group of every kind.
pub const GROUP: &str = "sluice.dev";

/// Every CustomResourceDefinition of this API, in the order of the house: a kind after those it
/// names.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        Gatekeeper::crd(),
        Approval::crd(),
        Gate::crd(),
        GatePolicy::crd(),
        GatedSource::crd(),
        Pipeline::crd(),
        GitRepositoryAccess::crd(),
        PromotionStrategy::crd(),
        CommitStatus::crd(),
        RevertCommit::crd(),
        PullRequest::crd(),
        Rollout::crd(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The API server refuses a schema that is not structural; `crd()` panics on one.
    #[test]
    fn every_kind_has_a_schema_and_all_but_votes_a_status() {
        for crd in all() {
            let (kind, version) = (&crd.spec.names.kind, &crd.spec.versions[0]);
            assert!(version.schema.is_some(), "{kind} has no schema");
            let status = version
                .subresources
                .as_ref()
                .is_some_and(|sub| sub.status.is_some());
            assert_eq!(status, kind != "Approval", "{kind}");
        }
    }
}
