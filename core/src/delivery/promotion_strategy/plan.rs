//! What is planned for each environment, and what the gates are asked about it.

use jiff::Timestamp;
use sluice_crds::pipeline::MergeMethod;
use sluice_crds::promotion_strategy::EnvironmentStatus;

use super::{Act, merges};
use crate::delivery::{asked, order};

/// What a PromotionStrategy wants to know of gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Merge what is proposed, or let people merge it.
    Promote,
    /// Give later environments what this one has.
    Pass,
    /// Bring an environment back.
    Revert,
}

impl What {
    /// The word, as decisions have it.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Promote => "promote",
            What::Pass => "pass",
            What::Revert => "revert",
        }
    }
}

/// A question to the gates, with their answer.
pub type Asked = asked::Asked<What>;

/// What becomes of an environment, before the gates have answered.
pub(super) struct Plan {
    /// Everything of its status but what the answer of the gates decides.
    pub(super) status: EnvironmentStatus,
    pub(super) acts: Vec<Act>,
    pub(super) wakes: Vec<Timestamp>,
    /// What the gates are asked about the merge. None: something else holds it back, or nothing is proposed.
    pub(super) merge: Option<Merge>,
}

/// A pull request that nothing but gates and people hold back.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    pub(super) pull_request: String,
    pub(super) key: String,
    pub(super) head: String,
    /// The commit that gates are asked about: the head, or what the head only joins to a history. It has the same
    /// files, and people have seen and approved it before.
    pub(super) about: String,
    pub(super) method: Option<MergeMethod>,
    /// Whether the controller merges it.
    pub(super) is_auto: bool,
    /// The RevertCommit that it carries out. None: it is a promotion.
    pub(super) revert: Option<String>,
    /// What keeps the forge from merging it so far.
    pub(super) refused: Option<merges::Refusal>,
    /// When a check or a gate of an environment before it may end that lets it pass now.
    pub(super) until: Option<Timestamp>,
}

impl Merge {
    /// Until when it is not ordered again.
    pub(super) fn put_off(&self) -> Option<Timestamp> {
        self.refused.as_ref()?.until
    }

    /// Whether a status has an order for this merge that holds now, and not for longer than the gates admit it.
    pub(super) fn is_ordered(
        &self,
        record: &EnvironmentStatus,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        record.order.as_ref().is_some_and(|order| {
            order.key == self.key
                && order.pull_request == self.pull_request
                && order.head_sha == self.head
                && order.method == self.method
                && order::holds(order, until, now)
        })
    }
}
