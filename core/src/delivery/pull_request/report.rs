//! A look at a PullRequest: its status, what has to be done at the forge, and when to look again.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use super::step::{self, At, Step};
use super::taken::Taking;
use super::{Joining, Outcome, Says, Task, Telling, Text, conditions, taken};
use crate::delivery::act;
use crate::time::stamp::whole_second;
use crate::verdict::condition;

/// Everything that a look at a PullRequest is decided from.
pub struct Given {
    /// The PullRequest.
    pub object: Arc<PullRequest>,
    /// What its owner says of it. None: its owner is gone, or speaks of another promotion.
    pub owner: Option<Says>,
    /// Whether its owner was looked at since this process leads: what it says is not of a leader before.
    pub is_owner_current: bool,
    /// What this process remembers.
    pub recent: Recent,
    /// How the last errand stands.
    pub errand: Errand,
    /// The instant.
    pub now: Timestamp,
}

/// How the last errand to the forge stands. Its outcome is kept until a status was accepted that was decided
/// from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// There is none.
    None,
    /// It is under way, and its end leads to another look.
    UnderWay {
        /// What it does.
        task: Task,
        /// Whether it may have changed something at the forge.
        is_sent: bool,
    },
    /// It is over.
    Over(Box<(Task, Outcome)>),
}

/// A commit status that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What it says.
    pub telling: Telling,
    /// When it was set.
    pub at: Timestamp,
}

/// What is remembered of a PullRequest as long as this process leads. Nothing breaks if it is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// When the forge last said what it has.
    pub seen_at: Option<Timestamp>,
    /// What this process has last set the commit status to.
    pub told: Option<Told>,
    /// The title and the text, as the forge had them when it was last seen.
    pub text: Option<Text>,
    /// The title and the text that this process has last written. What people write over it stays until there
    /// is something else to say.
    pub edited: Option<Text>,
    /// Before that the text is not tried to be changed again.
    pub edit_after: Option<Timestamp>,
    /// Since when it is not known whether it has conflicts.
    pub unsure_since: Option<Timestamp>,
    /// When a look last failed while something else waits because it has failed.
    pub missed_at: Option<Timestamp>,
    /// Before that the forge is not looked at again.
    pub look_after: Option<Timestamp>,
    /// Before that only what is spared is done: nothing has failed, and what is left of the rate limit of the
    /// forge is kept for merges.
    pub throttled_until: Option<Timestamp>,
    /// Whether it was a look that has failed, as the status says.
    pub is_look_failing: bool,
    /// Whether it was the commit status that could not be set, as the status says.
    pub is_gate_failing: bool,
    /// How often in a row the commit status could not be set to pending, and when that failed last.
    pub unwithdrawn: u32,
    /// When that failed last.
    pub unwithdrawn_at: Option<Timestamp>,
    /// Since when it is to be closed while it is open.
    pub close_asked_at: Option<Timestamp>,
    /// Whether anything has failed since then.
    pub failed_since_close: bool,
    /// Before that a merge is not tried again.
    pub merge_after: Option<Timestamp>,
    /// Whether a merge that was begun before the last one may have been sent: that nothing comes of the last one
    /// says nothing of that.
    pub sent_before: bool,
    /// A merge was begun, and given up for something more urgent before anything was sent.
    pub is_merge_dropped: bool,
    /// What was joined last.
    pub joined: Option<Joining>,
    /// Whether it has probably been merged, and the forge is to be asked now.
    pub is_asked_for: bool,
    /// Whether something has changed at its forge, and a fresh list says what.
    pub is_news: bool,
}

/// What a look leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// The status, what has to be done, and when to look again.
    pub report: act::Report<PullRequestStatus, Task>,
    /// What is to be remembered once the status was accepted.
    pub recent: Recent,
}

/// The status, at most one task, and when to look again. Where the task changes something, the status is
/// written also if it says the same as before: what was decided from an old version begins nothing.
pub fn report(given: Given) -> Looked {
    let Given {
        object,
        owner,
        is_owner_current,
        recent,
        errand,
        now,
    } = given;
    let before = object.status.clone().unwrap_or_default();
    let (mut status, mut recent) = (before.clone(), recent);
    // Its owner remembers the commit of one that was lost.
    let remembered = owner.as_ref().and_then(|owner| owner.commit.clone());
    status.commit_sha = status.commit_sha.or(remembered);
    if std::mem::take(&mut recent.is_merge_dropped) && !recent.sent_before {
        status.merge_sent = None;
    }
    let mut lasts = conditions::lasted(&before);
    if let Errand::Over(over) = &errand {
        let (task, outcome) = over.as_ref();
        let hold_label = owner.as_ref().and_then(|owner| owner.hold_label.as_deref());
        let mut taking = Taking {
            object: &object,
            hold_label,
            status: &mut status,
            recent: &mut recent,
            now,
        };
        lasts = taking.take(task, outcome, lasts);
    }
    let is_closing = object.spec.close.is_some() && status.state == Some(PullRequestState::Open);
    let asked_at = recent.close_asked_at.unwrap_or(now).min(now);
    recent.close_asked_at = is_closing.then_some(asked_at);
    recent.failed_since_close &= is_closing;
    let is_ordered = owner.as_ref().is_some_and(|owner| owner.order.is_some());
    let is_put_off = status.next_merge_at.as_ref().is_some_and(|at| at.0 > now);
    taken::tell_no_hold(&mut status, is_ordered || is_put_off);
    let at = At {
        object: &object,
        status: &status,
        owner: owner.as_ref(),
        is_owner_current,
        recent: &recent,
        lasts,
        now,
    };
    let next = match &errand {
        _ if object.metadata.deletion_timestamp.is_some() => None,
        Errand::None | Errand::Over(_) => Some(step::next(&at)),
        Errand::UnderWay { is_sent: true, .. } => None,
        Errand::UnderWay { task, .. } => step::before(&at, task),
    };
    let Some(Step { task, gate, wake }) = next else {
        return Looked {
            report: act::Report::without_acts(before.clone(), &before),
            recent,
        };
    };
    status.commit_status = gate.or(status.commit_status);
    if let Some(sent) = task.as_ref().and_then(step::sent) {
        recent.sent_before = status.merge_sent.is_some();
        status.merge_sent = Some(sent);
    }
    status.state = status.state.or(Some(PullRequestState::Pending));
    let generation = object.metadata.generation;
    status.observed_generation = generation;
    let wanted = conditions::all(&object, &status, owner.is_some(), lasts);
    let at = whole_second(now);
    status.conditions = condition::settle(wanted, &before.conditions, generation, at);
    let acts = task.as_ref().is_some_and(|task| !task.only_looks());
    Looked {
        report: act::Report {
            changed: acts || status != before,
            status,
            acts: task.into_iter().collect(),
            wake,
        },
        recent,
    }
}
