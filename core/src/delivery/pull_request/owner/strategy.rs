//! What a PromotionStrategy says of its PullRequests.

use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::promotion_strategy::{EnvironmentStatus, PullRequestRecord};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PromotionStrategy, PullRequest};

use super::{LONGEST, Says, Words};
use crate::delivery::promotion_strategy::KIND;
use crate::delivery::promotion_strategy::child::{is_same_way, is_whole};
use crate::delivery::pull_request::{Joining, is_followed};
use crate::text::words::clean;

/// None: it says nothing of this PullRequest, because it is not its owner, names another one of the
/// environment, has seen the end of this one, or does not promote there in this way any more. While it is
/// suspended it has nothing opened.
pub(super) fn says(object: &PullRequest, owner: &PromotionStrategy) -> Option<Says> {
    let (about, spec) = (&object.spec.about, &owner.spec);
    if !super::is_named(object, KIND, &owner.metadata) {
        return None;
    }
    let mut environments = owner.status.as_ref()?.environments.iter();
    let environment = environments.find(|it| it.branch == about.environment)?;
    let of = outstanding(environment)?;
    let is_it = object.metadata.name.as_ref() == Some(&of.name) && about.run == Some(of.n);
    if !is_it || !is_whole(object) || !is_same_way(object, owner) {
        return None;
    }
    let state = object.status.as_ref().and_then(|status| status.state);
    if spec.suspend && state != Some(PullRequestState::Open) {
        return None;
    }
    let (gate, order) = admitted(owner, environment);
    let gate = gate.unwrap_or(MergeGate::Pending);
    let proposed = environment.proposed.as_ref();
    let head = proposed.filter(|_| is_followed(object));
    Some(Says {
        gate,
        why: why(owner, environment, gate),
        order,
        join: joining(owner, environment).filter(|_| is_followed(object)),
        commit: None,
        head: head.map(|tip| tip.hydrated_sha.clone()),
        context: context(&spec.status_name, &environment.branch),
        hold_label: Some(spec.hold_label.clone()),
    })
}

/// What it says of all of them.
pub(super) fn words(owner: &PromotionStrategy) -> Vec<Words> {
    let is_there = owner.metadata.deletion_timestamp.is_none();
    let status = owner.status.as_ref().filter(|_| is_there);
    let environments = status.map(|status| status.environments.iter());
    let word = |environment: &EnvironmentStatus| {
        let of = outstanding(environment)?;
        let (gate, order) = admitted(owner, environment);
        let why = why(owner, environment, gate.unwrap_or(MergeGate::Pending));
        let proposed = environment.proposed.as_ref();
        let proposed = proposed.map_or("", |tip| tip.hydrated_sha.as_str());
        Some(Words {
            of: format!("{}@{proposed}", of.name),
            gate,
            order,
            join: joining(owner, environment),
            why: Some(why),
        })
    };
    environments
        .into_iter()
        .flatten()
        .filter_map(word)
        .collect()
}

/// The pull request of an environment, unless it has seen the end of that.
fn outstanding(environment: &EnvironmentStatus) -> Option<&PullRequestRecord> {
    let of = environment.pull_request.as_ref()?;
    let is_over = of.state.is_some_and(PullRequestState::is_final);
    (!is_over).then_some(of)
}

/// What the rules say of the merge, and the order for it. While the strategy is suspended there is nothing of
/// both, although its status may still show what was decided before.
fn admitted(
    owner: &PromotionStrategy,
    environment: &EnvironmentStatus,
) -> (Option<MergeGate>, Option<Order>) {
    match owner.spec.suspend {
        true => (None, None),
        false => (environment.gate, environment.order.clone()),
    }
}

/// What the commit status is called. A commit may be proposed to several branches, and what is said of it for
/// one must not count for another: so the branch is part of it, but for names that were used before.
pub(in crate::delivery) fn context(name: &str, branch: &str) -> String {
    match name.starts_with("sluice/") {
        true => format!("{name}/{branch}"),
        false => name.to_owned(),
    }
}

/// The order to join both histories.
fn joining(owner: &PromotionStrategy, environment: &EnvironmentStatus) -> Option<Joining> {
    let join = environment.join.as_ref().filter(|_| !owner.spec.suspend)?;
    Some(Joining {
        head: join.head_sha.clone(),
        active: join.active_sha.clone(),
        tree: join.tree.clone(),
        at: join.at.0,
    })
}

fn why(owner: &PromotionStrategy, environment: &EnvironmentStatus, gate: MergeGate) -> String {
    let mut specs = owner.spec.environments.iter();
    let is_merged_by_us = (specs.find(|it| it.branch == environment.branch))
        .is_some_and(|environment| environment.auto_merge);
    let why = match (gate, environment.waits.first()) {
        _ if owner.spec.suspend => "the PromotionStrategy is suspended",
        (MergeGate::Success, _) if is_merged_by_us => "all rules pass",
        (MergeGate::Success, _) => "ready: merge it",
        (MergeGate::Pending, Some(wait)) => &wait.message,
        (MergeGate::Pending, None) => "the rules are looked at",
    };
    clean(why, LONGEST)
}
