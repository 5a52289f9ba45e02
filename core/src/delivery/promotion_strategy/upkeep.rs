//! Step 4: what is proposed is joined to the history of its environment.
//!
//! A forge merges what has changed on both sides since their last common commit. After a revert, a squash or
//! somebody's push that would be a mixture of both: what was taken back would stay away, and only what is new
//! would come. So a commit is put on what is proposed that has its files, and what the environment has as its
//! second parent. Then there is nothing left on the other side.

use sluice_crds::pipeline::MergeMethod;
use sluice_crds::promotion_strategy::{Join, Wait};

use super::at::At;
use super::evidence::Sight;
use super::tips::KEEP;
use super::waits::{pending, wait};
use crate::time::stamp::time;

/// The message of the commit.
pub fn join_message(branch: &str, active: &str) -> String {
    format!(
        "Join the history of {branch}\n\nNo file is changed by this: it has what was proposed, and goes on from \
         what {branch} has.\n\n{KEEP}{active}\n"
    )
}

/// What has to be done before it can be merged: why it waits, and the order.
pub(super) fn join(at: &At<'_, '_>) -> Option<(Wait, Option<Join>)> {
    let active = at.me.env.active.as_ref()?;
    match is_joined(at, &active.sha) {
        Sight::Known(true) => return None,
        Sight::Known(false) => {}
        Sight::Pending => return Some((pending(), None)),
        Sight::Absent => {
            return Some((
                wait("ForgeUnavailable", "a commit is not there any more"),
                None,
            ));
        }
        Sight::Failed(why) => return Some((wait("ForgeUnavailable", why), None)),
    }
    let branch = at.me.env.branch();
    if at.me.env.spec.merge_method == Some(MergeMethod::Rebase) {
        let next = at.given.object.spec.proposed_branch(at.me.env.spec);
        let message = format!(
            "{branch} has commits that are not in what is proposed, and a rebase cannot join both; begin {next} \
             again from {branch}, or write another mergeMethod"
        );
        return Some((wait("CannotJoin", message), None));
    }
    let Sight::Known(tree) = &at.tip.tree else {
        return Some((pending(), None));
    };
    let standing = at.me.env.record.and_then(|record| record.join.as_ref());
    let standing = standing.filter(|it| it.head_sha == at.tip.sha && it.active_sha == active.sha);
    let order = standing.cloned().unwrap_or_else(|| Join {
        head_sha: at.tip.sha.clone(),
        active_sha: active.sha.clone(),
        tree: tree.clone(),
        at: time(at.given.now.at),
    });
    let message = format!("what is proposed is being joined to the history of {branch}");
    Some((wait("JoiningHistories", message), Some(order)))
}

/// Whether a merge brings exactly the proposed files: what is proposed goes on from what the environment has,
/// or from what was merged into it and left no other files.
fn is_joined(at: &At<'_, '_>, active: &str) -> Sight<bool> {
    match at.asker.contains(&at.tip.sha, active) {
        Sight::Known(false) => {}
        other => return other,
    }
    let commit = match at.asker.commit(active) {
        Sight::Known(commit) => commit,
        other => return other.map(|_| false),
    };
    let [_, merged] = commit.parents.as_slice() else {
        return Sight::Known(false);
    };
    match at.asker.commit(merged) {
        Sight::Known(head) if head.tree == commit.tree => at.asker.contains(&at.tip.sha, merged),
        Sight::Known(_) => Sight::Known(false),
        other => other.map(|_| false),
    }
}
