//! Step 2: how an environment got what it has.
//!
//! It is told by the files: what was merged has the tree of what was proposed, whatever way the forge has
//! merged it. What has any other tree was pushed by somebody else, whatever it says of itself. That it was the
//! controller who has merged it is told by the PullRequest, which says so before the forge is asked to merge:
//! the order may be taken back meanwhile, and this status may be lost. How a commit came is kept in the status
//! as long as the branch has that commit.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentStatus, Tip as Recorded, marks};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PromotionStrategy, PullRequest, PullRequestStatus};

use super::evidence::Sight;
use super::tips::{Asker, Env, Tip};
use crate::delivery::pull_request::is_followed;
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
    /// Its PullRequests, the newest first.
    pub(super) pull_requests: Vec<&'a PullRequest>,
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
            // The pull request may be seen later than the branch.
            let is_nameless = arrived.by == Arrival::Person && arrived.person.is_none();
            let merged = is_nameless.then(|| merged_as(&active.sha, traces));
            let person = merged.flatten().and_then(|(_, it)| it.merged_by.clone());
            Some(Arrived {
                person: arrived.person.or(person),
                ..arrived
            })
        }
        (Some(record), Some(before)) => {
            let tree = known(&active.tree)?;
            if is_accepted {
                return Some(fresh(Arrival::Baseline, traces));
            }
            if before.tree == *tree {
                // The same files in another commit.
                return Some(same(before, false));
            }
            if traces.reverts.contains(tree) {
                return Some(fresh(Arrival::Revert, traces));
            }
            match merged(env, (record, before), tree, traces)? {
                Some(arrived) => Some(arrived),
                None if !traces.are_reverts_known => None,
                None => Some(fresh(Arrival::Foreign, traces)),
            }
        }
        (_, None) | (None, Some(_)) => {
            let tree = known(&active.tree).filter(|_| traces.are_reverts_known)?;
            match is_accepted {
                true => Some(fresh(Arrival::Baseline, traces)),
                false => forgotten(&active.sha, tree, traces),
            }
        }
    }
}

fn known(tree: &Sight<String>) -> Option<&String> {
    match tree {
        Sight::Known(tree) => Some(tree),
        Sight::Absent | Sight::Pending | Sight::Failed(_) => None,
    }
}

fn fresh(by: Arrival, traces: &Traces<'_>) -> Arrived {
    Arrived {
        by,
        person: None,
        bypassed: Vec::new(),
        since: time(traces.now),
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

/// The pull request whose merge has made this commit.
fn merged_as<'a>(
    sha: &str,
    traces: &Traces<'a>,
) -> Option<(&'a PullRequest, &'a PullRequestStatus)> {
    let all = traces.pull_requests.iter();
    let mut all = all.filter_map(|it| Some((*it, it.status.as_ref()?)));
    all.find(|(_, it)| it.merged_sha.as_deref() == Some(sha))
}

/// What no status says anything of, because it was lost or there was none: the pull request that has brought it
/// says how it came.
fn forgotten(sha: &str, tree: &String, traces: &Traces<'_>) -> Option<Arrived> {
    let Some((object, status)) = merged_as(sha, traces) else {
        return Some(fresh(Arrival::Baseline, traces));
    };
    if !is_followed(object) {
        return Some(fresh(Arrival::Revert, traces));
    }
    if was_sent(status, tree, traces)? {
        return Some(fresh(Arrival::Promotion, traces));
    }
    let could_be = status.commit_status == Some(MergeGate::Success);
    Some(Arrived {
        person: status.merged_by.clone(),
        bypassed: not_looked_at(!could_be),
        ..fresh(Arrival::Person, traces)
    })
}

/// Whether the controller has sent the merge of these files. None: it is not known what it has sent.
fn was_sent(status: &PullRequestStatus, tree: &String, traces: &Traces<'_>) -> Option<bool> {
    let sent = status.merge_sent.as_ref();
    sent.map_or(Some(false), |sent| has_files(&sent.head_sha, tree, traces))
}

/// Whether a commit has these files. What cannot be read is no reason to call it somebody else's.
fn has_files(sha: &str, tree: &String, traces: &Traces<'_>) -> Option<bool> {
    match traces.asker.commit(sha) {
        Sight::Known(commit) => Some(commit.tree == *tree),
        Sight::Pending | Sight::Failed(_) => None,
        Sight::Absent => Some(false),
    }
}

/// The pull requests that may have brought what a branch has now, and did not have before: those whose merge is
/// new there, and those whose merge may not have been seen yet.
fn recent<'a>(
    active: &str,
    before: &str,
    traces: &Traces<'a>,
) -> Option<Vec<&'a PullRequestStatus>> {
    let mut recent = Vec::new();
    for object in traces.pull_requests.iter().filter(|it| is_followed(it)) {
        let Some(status) = &object.status else {
            continue;
        };
        let is_recent = match (&status.merged_sha, status.state) {
            (Some(merged), _) => match traces.asker.contains(before, merged) {
                // What it had before may be gone after a push by force.
                Sight::Known(false) | Sight::Absent => traces.asker.contains(active, merged),
                other => other.map(|_| false),
            },
            (None, Some(PullRequestState::Open | PullRequestState::Merged)) => Sight::Known(true),
            (None, _) => Sight::Known(false),
        };
        match is_recent {
            Sight::Known(true) => recent.push(status),
            Sight::Known(false) | Sight::Absent => {}
            Sight::Pending | Sight::Failed(_) => return None,
        }
    }
    Some(recent)
}

/// A merge of what is or was proposed, by the controller or by a person. None within: it is none.
fn merged(
    env: &Env<'_>,
    (record, before): (&EnvironmentStatus, &Recorded),
    tree: &String,
    traces: &Traces<'_>,
) -> Option<Option<Arrived>> {
    let active = env.active.as_ref()?;
    let recent = recent(&active.sha, &before.hydrated_sha, traces)?;
    for status in &recent {
        if was_sent(status, tree, traces)? {
            return Some(Some(fresh(Arrival::Promotion, traces)));
        }
    }
    let by_merge = recent.iter().find(|it| it.merged_sha.is_some());
    let head = by_merge.and_then(|status| status.head_sha.as_deref());
    let was_merged = head.map_or(Some(false), |head| has_files(head, tree, traces))?;
    let has_tree = |tip: Option<&Tip>| tip.is_some_and(|it| it.tree == Sight::Known(tree.clone()));
    let was_proposed = record.proposed.as_ref().is_some_and(|it| it.tree == *tree);
    if !was_proposed && !was_merged && !has_tree(env.proposed.as_ref()) {
        return Some(None);
    }
    let reasons = record.waits.iter().map(|wait| wait.reason.clone());
    let reasons = reasons.filter(|it| !NO_RULES.contains(&it.as_str()));
    Some(Some(Arrived {
        person: by_merge.and_then(|status| status.merged_by.clone()),
        bypassed: match was_proposed {
            true => reasons.collect(),
            false => not_looked_at(true),
        },
        ..fresh(Arrival::Person, traces)
    }))
}

/// What stands for all rules where they were not asked about what was merged.
fn not_looked_at(is: bool) -> Vec<String> {
    is.then(|| "NotLookedAt".to_owned()).into_iter().collect()
}

/// Whether a person has accepted that a branch has this commit.
fn accepts(object: &PromotionStrategy, branch: &str, sha: &str) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let accepted = annotations.and_then(|all| all.get(marks::ACCEPT));
    let mut accepted = accepted.into_iter().flat_map(|all| all.split(','));
    accepted.any(|it| it.trim().split_once('=') == Some((branch, sha)))
}
