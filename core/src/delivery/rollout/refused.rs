//! A Rollout of which nothing can be decided: its spec is refused, although it came past admission, or something that
//! a look needs may not be read.

use sluice_crds::rollout::{Held, Outcome, RollingState};
use sluice_crds::{Rollout, RolloutStatus};

use super::acts::Act;
use super::conditions::{BLOCKED, stalled};
use super::given::Given;
use super::report::{Report, is_under_way, settle};
use super::transition::News;
use super::why::{INVALID_SPEC, short};
use crate::delivery::act;
use crate::text::refusal::Refusals;
use crate::time::clock::{Now, Trust};
use crate::time::stamp::time;
use crate::verdict::condition::Wanted;
use crate::verdict::status::requested_at;

/// Something that a look needs may not be read.
const READ_REFUSED: &str = "ReadRefused";

/// The status that says why something may not be read. It is read only while a run is under way, which is held until it
/// can be. None: the status says so already.
pub fn unread(object: &Rollout, message: &str, now: Now) -> Option<RolloutStatus> {
    let before = object.status.clone().unwrap_or_default();
    let mut status = seen(object, &before);
    hold(&mut status, READ_REFUSED, message, now);
    let wanted = said(READ_REFUSED, message);
    status.conditions = settle(wanted, &before, object.metadata.generation, now.at);
    (status != before).then_some(status)
}

/// Nothing is changed by a spec that is refused. A run that is on its way is held; one that has not begun has
/// failed, until the spec is another one. One that is deleted is let go: what it would bring back cannot be
/// read.
pub(super) fn report(given: &Given, refusals: &Refusals) -> Report {
    let object = given.object.as_ref();
    let before = object.status.clone().unwrap_or_default();
    let message = format!("the spec is refused: {refusals}");
    let is_on_its_way = before.run.is_some() && is_under_way(&before);
    let is_new = before.rolling_state.is_none() || (before.run.is_none() && is_under_way(&before));
    let mut status = seen(object, &before);
    if is_on_its_way {
        hold(&mut status, INVALID_SPEC, &message, given.now);
    }
    if is_new {
        status.rolling_state = Some(RollingState::RolloutFailed);
        status.deadline = None;
        status.held = None;
        status.outcome = Some(Outcome {
            reason: INVALID_SPEC.to_owned(),
            message: message.clone(),
        });
    }
    let wanted = said(INVALID_SPEC, &message);
    status.conditions = settle(wanted, &before, object.metadata.generation, given.now.at);
    let changed = status != before;
    let is_kept = object.metadata.deletion_timestamp.is_some() && given.has_finalizer();
    let report = act::Report {
        acts: match is_kept && !changed {
            true => vec![Act::Finalize(false)],
            false => Vec::new(),
        },
        wake: changed.then_some(given.now.at),
        changed,
        status,
    };
    Report {
        report,
        news: match is_new {
            true => vec![News {
                is_warning: true,
                reason: INVALID_SPEC,
                message,
            }],
            false => Vec::new(),
        },
        // Which hook an answer is of is not known: with another spec it may be wanted.
        hears: false,
    }
}

/// The status before, of an object that was looked at.
fn seen(object: &Rollout, before: &RolloutStatus) -> RolloutStatus {
    let requested = requested_at(&object.metadata);
    RolloutStatus {
        observed_generation: object.metadata.generation,
        last_handled_reconcile_at: requested.or_else(|| before.last_handled_reconcile_at.clone()),
        ..before.clone()
    }
}

/// The run is held, and was since it was held by something else.
fn hold(status: &mut RolloutStatus, reason: &str, message: &str, now: Now) {
    let since = status.held.take().map(|it| it.since);
    status.held = Some(Held {
        by: None,
        reason: reason.to_owned(),
        message: short(message.to_owned()),
        since: since.unwrap_or_else(|| time(now.at)),
    });
    if matches!(now.trust, Trust::Lost(_)) {
        // It has all its time again once the clock is right, as every run.
        status.deadline = None;
    }
}

/// What the conditions say.
fn said(reason: &str, message: &str) -> Vec<Wanted> {
    let mut wanted = stalled(reason, message);
    let free = "nothing waits for gates or people";
    wanted.push(Wanted::new(BLOCKED, false, "NothingBlocked", free));
    wanted
}
