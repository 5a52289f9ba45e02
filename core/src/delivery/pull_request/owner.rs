//! What the owner of a PullRequest says of it: whether it is wanted, and whether it may be merged.

use sluice_crds::pipeline::{MergeGate, Order, Phase, PromotionRecord};
use sluice_crds::{Pipeline, PullRequest};

use crate::delivery::pipeline::{KIND, Way, is_recalled, is_whole};
use crate::text::words::clean;

/// The most characters of a description of a commit status.
const LONGEST: usize = 140;

/// What its owner says of a PullRequest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Says {
    /// What its commit status has to be.
    pub gate: MergeGate,
    /// Why, for people.
    pub why: String,
    /// The order to merge it.
    pub order: Option<Order>,
    /// The commit that was made for it, as its owner remembers it.
    pub commit: Option<String>,
}

impl Says {
    /// What a Pipeline says of it. None: it says nothing of this PullRequest, because it is not its owner,
    /// speaks of another promotion, names another PullRequest, would have made this one otherwise, or has not
    /// decided that it is to be opened, as after its status was lost.
    pub fn of(object: &PullRequest, owner: &Pipeline) -> Option<Self> {
        let about = &object.spec.about;
        let is_owner = about.kind == KIND
            && owner.metadata.name.as_deref() == Some(about.name.as_str())
            && owner.metadata.namespace == object.metadata.namespace
            && owner.metadata.deletion_timestamp.is_none();
        let status = owner.status.as_ref().filter(|_| is_owner)?;
        let environment = status.environments.get(&about.environment)?;
        let record = environment.promotion.as_ref()?;
        let of = record.pull_request.as_ref()?;
        let is_named = record.key == about.key && object.metadata.name.as_ref() == Some(&of.name);
        if !is_named || !is_decided(record) || !is_whole(object) || !is_same_way(object, owner) {
            return None;
        }
        let (gate, order) = admitted(owner, record);
        let gate = gate.unwrap_or(MergeGate::Pending);
        let why = match (gate, &environment.message) {
            _ if owner.spec.suspend => "the Pipeline is suspended",
            (MergeGate::Success, _) => "the gates admit the merge",
            (MergeGate::Pending, Some(message)) => message,
            (MergeGate::Pending, None) => "the gates hold the merge back",
        };
        Some(Self {
            gate,
            why: clean(why, LONGEST),
            order,
            commit: of.commit_sha.clone(),
        })
    }
}

/// What the gates say of the merge, and the order for it. While the Pipeline is suspended there is nothing of
/// both, although its status may still show what was decided before.
fn admitted(owner: &Pipeline, record: &PromotionRecord) -> (Option<MergeGate>, Option<Order>) {
    match owner.spec.suspend {
        true => (None, None),
        false => (record.gate, record.order.clone()),
    }
}

/// Whether a promotion was decided, and is still wanted.
fn is_decided(record: &PromotionRecord) -> bool {
    match record.phase {
        Phase::Unapproved | Phase::Unattempted => false,
        Phase::Attempting
        | Phase::Failed
        | Phase::Created
        | Phase::Succeeded
        | Phase::Abandoned => !is_recalled(record),
    }
}

/// Whether the Pipeline still promotes to that environment in the way of this PullRequest.
fn is_same_way(object: &PullRequest, owner: &Pipeline) -> bool {
    let spec = &owner.spec;
    let mut all = spec.environments.iter();
    let environment = all.find(|it| it.name == object.spec.about.environment);
    let promotion = environment.and_then(|it| spec.promotion_of(it));
    let strategy = promotion.and_then(|it| it.strategy.pull_request.as_ref());
    strategy.is_some_and(|it| Some(Way::of_strategy(it)) == Way::of_pull_request(&object.spec))
}

/// What an owner says of all its PullRequests: if it says something else, they are looked at.
pub fn words(owner: &Pipeline) -> Vec<(String, Option<MergeGate>, Option<Order>)> {
    let is_there = owner.metadata.deletion_timestamp.is_none();
    let status = owner.status.as_ref().filter(|_| is_there);
    let environments = status.map(|status| status.environments.values());
    let records = environments.into_iter().flatten();
    let records = records.filter_map(|environment| environment.promotion.as_ref());
    let records = records.filter(|it| it.pull_request.is_some() && is_decided(it));
    let word = |record: &PromotionRecord| {
        let (gate, order) = admitted(owner, record);
        (record.key.clone(), gate, order)
    };
    records.map(word).collect()
}
