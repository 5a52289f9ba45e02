//! What a Pipeline says of its PullRequests.

use sluice_crds::pipeline::{MergeGate, Order, Phase, PromotionRecord};
use sluice_crds::{Pipeline, PullRequest};

use super::{LONGEST, Says, Words};
use crate::delivery::pipeline::{KIND, Way, is_recalled, is_whole};
use crate::text::words::clean;

/// None: it says nothing of this PullRequest, because it is not its owner, speaks of another promotion, names
/// another PullRequest, would have made this one otherwise, or has not decided that it is to be opened, as
/// after its status was lost.
pub(super) fn says(object: &PullRequest, owner: &Pipeline) -> Option<Says> {
    let about = &object.spec.about;
    if !super::is_named(object, KIND, &owner.metadata) {
        return None;
    }
    let environment = owner
        .status
        .as_ref()?
        .environments
        .get(&about.environment)?;
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
    Some(Says {
        gate,
        why: clean(why, LONGEST),
        order,
        join: None,
        commit: of.commit_sha.clone(),
        head: None,
        context: context(object),
        hold_label: None,
    })
}

/// What the commit status of a PullRequest of a pipeline is called.
pub(super) fn context(object: &PullRequest) -> String {
    let (about, namespace) = (&object.spec.about, object.metadata.namespace.as_deref());
    format!(
        "sluice/gate/{}/{}/{}",
        namespace.unwrap_or_default(),
        about.name,
        about.environment
    )
}

/// What it says of all of them.
pub(super) fn words(owner: &Pipeline) -> Vec<Words> {
    let is_there = owner.metadata.deletion_timestamp.is_none();
    let status = owner.status.as_ref().filter(|_| is_there);
    let environments = status.map(|status| status.environments.values());
    let records = environments.into_iter().flatten();
    let records = records.filter_map(|environment| environment.promotion.as_ref());
    let records = records.filter(|it| it.pull_request.is_some() && is_decided(it));
    let word = |record: &PromotionRecord| {
        let (gate, order) = admitted(owner, record);
        Words {
            of: record.key.clone(),
            gate,
            order,
            join: None,
            why: None,
        }
    };
    records.map(word).collect()
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
