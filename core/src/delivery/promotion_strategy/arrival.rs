//! Step 2: how an environment got what it has.
//!
//! It is told by the files: what was merged has the tree of what was proposed, whatever way the forge has
//! merged it. What has any other tree was pushed by somebody else, whatever it says of itself. How a commit
//! came is kept in the status as long as the branch has that commit.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentStatus, Tip as Recorded, marks};
use sluice_crds::{PromotionStrategy, PullRequest, PullRequestStatus};

use super::evidence::Sight;
use super::tips::{Asker, Env, Tip};
use crate::time::stamp::time;

/// The reasons to wait that are no rules: a person may merge in spite of them.
const NO_RULES: [&str; 4] = [
    "WaitsForPerson",
    "PullRequestPending",
    "ForgeRefuses",
    "ForgeThrottled",
];

/// How an environment got what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) by: Arrival,
    /// The person who merged it, as the forge names them.
    pub(super) person: Option<String>,
    /// What that person has merged past.
    pub(super) bypassed: Vec<String>,
    pub(super) since: Time,
}

/// What it is told by.
pub(super) struct Traces<'a> {
    pub(super) object: &'a PromotionStrategy,
    pub(super) asker: &'a Asker<'a>,
    /// Its newest PullRequest.
    pub(super) pull_request: Option<&'a PullRequest>,
    /// The trees that its reverts lead back to.
    pub(super) reverts: &'a [String],
    /// Whether all of them are known, and what an earlier revert has written.
    pub(super) are_reverts_known: bool,
    pub(super) now: Timestamp,
}

/// How it got what it has. None: that is not known yet.
pub(super) fn arrived(env: &Env<'_>, traces: &Traces<'_>) -> Option<Arrived> {
    let active = env.active.as_ref()?;
    let recorded = env.record.and_then(|record| record.active.as_ref());
    let is_accepted = accepts(traces.object, env.branch(), &active.sha);
    match (env.record, recorded) {
        (Some(_), Some(tip)) if tip.hydrated_sha == active.sha => {
            let arrived = same(tip, is_accepted);
            let status = traces.pull_request.and_then(|it| it.status.as_ref());
            // The pull request may be seen later than the branch.
            let is_nameless = arrived.by == Arrival::Person && arrived.person.is_none();
            let person = is_nameless.then(|| person(env, status, traces)).flatten();
            Some(Arrived {
                person: arrived.person.or(person),
                ..arrived
            })
        }
        (Some(record), Some(before)) => {
            let tree = match &active.tree {
                Sight::Known(tree) => tree,
                Sight::Absent | Sight::Pending | Sight::Failed(_) => return None,
            };
            let fresh = |by| Arrived {
                by,
                person: None,
                bypassed: Vec::new(),
                since: time(traces.now),
            };
            if is_accepted {
                return Some(fresh(Arrival::Baseline));
            }
            if before.tree == *tree {
                // The same files in another commit.
                return Some(same(before, false));
            }
            if traces.reverts.contains(tree) {
                return Some(fresh(Arrival::Revert));
            }
            match merged(env, record, tree, traces)? {
                Some(arrived) => Some(arrived),
                None if !traces.are_reverts_known => None,
                None => Some(fresh(Arrival::Foreign)),
            }
        }
        (_, None) | (None, Some(_)) => {
            let is_known = matches!(active.tree, Sight::Known(_)) && traces.are_reverts_known;
            is_known.then(|| Arrived {
                by: Arrival::Baseline,
                person: None,
                bypassed: Vec::new(),
                since: time(traces.now),
            })
        }
    }
}

fn same(tip: &Recorded, is_accepted: bool) -> Arrived {
    let by = tip.arrived_by.unwrap_or(Arrival::Baseline);
    Arrived {
        by: if is_accepted { Arrival::Baseline } else { by },
        person: tip.by.clone(),
        bypassed: if is_accepted {
            Vec::new()
        } else {
            tip.bypassed.clone()
        },
        since: tip.since.clone(),
    }
}

/// A merge of what is or was proposed, by the controller or by a person. None within: it is none.
fn merged(
    env: &Env<'_>,
    record: &EnvironmentStatus,
    tree: &String,
    traces: &Traces<'_>,
) -> Option<Option<Arrived>> {
    let has_tree = |tip: Option<&Tip>| tip.is_some_and(|it| it.tree == Sight::Known(tree.clone()));
    let was_proposed = record.proposed.as_ref().is_some_and(|it| it.tree == *tree);
    let status = traces.pull_request.and_then(|it| it.status.as_ref());
    let head = status.filter(|status| status.merged_sha.is_some());
    let head = head.and_then(|status| status.head_sha.as_deref());
    let was_merged = match head.map(|head| traces.asker.commit(head)) {
        Some(Sight::Known(commit)) => commit.tree == *tree,
        // What cannot be read is no reason to call it somebody else's.
        Some(Sight::Pending | Sight::Failed(_)) => return None,
        Some(Sight::Absent) | None => false,
    };
    if !was_proposed && !was_merged && !has_tree(env.proposed.as_ref()) {
        return Some(None);
    }
    let ordered = record
        .order
        .as_ref()
        .map(|order| traces.asker.commit(&order.head_sha));
    let is_ours = match ordered {
        Some(Sight::Known(commit)) => commit.tree == *tree,
        Some(Sight::Pending | Sight::Failed(_)) => return None,
        Some(Sight::Absent) | None => false,
    };
    let reasons = record.waits.iter().map(|wait| wait.reason.clone());
    let reasons = reasons.filter(|it| !NO_RULES.contains(&it.as_str()));
    Some(Some(Arrived {
        by: match is_ours {
            true => Arrival::Promotion,
            false => Arrival::Person,
        },
        person: person(env, status, traces).filter(|_| !is_ours),
        bypassed: match (is_ours, was_proposed) {
            (true, _) => Vec::new(),
            (false, true) => reasons.collect(),
            // It was merged before the rules were asked about it.
            (false, false) => vec!["NotLookedAt".to_owned()],
        },
        since: time(traces.now),
    }))
}

/// Who has merged what the branch has, as far as its pull request brought it there.
fn person(
    env: &Env<'_>,
    status: Option<&PullRequestStatus>,
    traces: &Traces<'_>,
) -> Option<String> {
    let (active, status) = (env.active.as_ref()?, status?);
    let merged = status.merged_sha.as_ref()?;
    let is_there = traces.asker.contains(&active.sha, merged) == Sight::Known(true);
    status.merged_by.clone().filter(|_| is_there)
}

/// Whether a person has accepted that a branch has this commit.
fn accepts(object: &PromotionStrategy, branch: &str, sha: &str) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let accepted = annotations.and_then(|all| all.get(marks::ACCEPT));
    let mut accepted = accepted.into_iter().flat_map(|all| all.split(','));
    accepted.any(|it| it.trim().split_once('=') == Some((branch, sha)))
}
