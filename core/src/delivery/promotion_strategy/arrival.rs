//! Step 2: how an environment got what it has.
//!
//! It is told by the files: what was merged has the tree of what was proposed, whatever way the forge has
//! merged it. What has any other tree was pushed by somebody else, whatever it says of itself. How a commit
//! came is kept in the status as long as the branch has that commit.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentStatus, Tip as Recorded, marks};
use sluice_crds::{PromotionStrategy, PullRequest};

use super::evidence::Sight;
use super::tips::{Asker, Env, Tip};
use crate::time::stamp::time;

/// The reasons to wait that are no rules: a person may merge in spite of them.
const NO_RULES: [&str; 2] = ["WaitsForPerson", "PullRequestPending"];

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
    pub(super) now: Timestamp,
}

/// How it got what it has. None: that is not known yet.
pub(super) fn arrived(env: &Env<'_>, traces: &Traces<'_>) -> Option<Arrived> {
    let active = env.active.as_ref()?;
    let recorded = env.record.and_then(|record| record.active.as_ref());
    let is_accepted = accepts(traces.object, env.branch(), &active.sha);
    match (env.record, recorded) {
        (Some(_), Some(tip)) if tip.hydrated_sha == active.sha => Some(same(tip, is_accepted)),
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
            Some(merged(env, record, tree, traces)?.unwrap_or_else(|| fresh(Arrival::Foreign)))
        }
        (_, None) | (None, Some(_)) => Some(Arrived {
            by: Arrival::Baseline,
            person: None,
            bypassed: Vec::new(),
            since: time(traces.now),
        }),
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
        Some(Sight::Pending) => return None,
        Some(Sight::Absent | Sight::Failed(_)) | None => false,
    };
    if !was_proposed && !was_merged && !has_tree(env.proposed.as_ref()) {
        return Some(None);
    }
    let is_ours = record.order.is_some();
    let person = status.and_then(|status| status.merged_by.clone());
    let reasons = record.waits.iter().map(|wait| wait.reason.clone());
    let reasons = reasons.filter(|it| !NO_RULES.contains(&it.as_str()));
    Some(Some(Arrived {
        by: match is_ours {
            true => Arrival::Promotion,
            false => Arrival::Person,
        },
        person: person.filter(|_| !is_ours),
        bypassed: match is_ours {
            true => Vec::new(),
            false => reasons.collect(),
        },
        since: time(traces.now),
    }))
}

/// Whether a person has accepted that a branch has this commit.
fn accepts(object: &PromotionStrategy, branch: &str, sha: &str) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let accepted = annotations.and_then(|all| all.get(marks::ACCEPT));
    let mut accepted = accepted.into_iter().flat_map(|all| all.split(','));
    accepted.any(|it| it.trim().split_once('=') == Some((branch, sha)))
}
