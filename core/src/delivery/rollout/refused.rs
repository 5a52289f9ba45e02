//! A Rollout whose spec is refused, although it came past admission.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Held, Outcome, RollingState};

use super::acts::Act;
use super::conditions::{BLOCKED, INVALID_SPEC, stalled};
use super::given::Given;
use super::report::{Report, is_under_way, settle};
use super::transition::News;
use crate::delivery::act;
use crate::text::refusal::Refusals;
use crate::time::stamp::time;
use crate::verdict::condition::Wanted;
use crate::verdict::status::requested_at;

/// Nothing is changed by a spec that is refused. A run that is on its way is held; one that has not begun has
/// failed, until the spec is another one. One that is deleted is let go: what it would bring back cannot be
/// read.
pub(super) fn report(given: &Given, refusals: &Refusals) -> Report {
    let object = given.object.as_ref();
    let before = object.status.clone().unwrap_or_default();
    let message = format!("the spec is refused: {refusals}");
    let is_on_its_way = before.run.is_some() && is_under_way(&before);
    let is_new = before.rolling_state.is_none() || (before.run.is_none() && is_under_way(&before));
    let mut status = RolloutStatus {
        observed_generation: object.metadata.generation,
        last_handled_reconcile_at: requested_at(&object.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        ..before.clone()
    };
    if is_on_its_way {
        let since = before.held.as_ref().map(|it| it.since.clone());
        status.held = Some(Held {
            by: None,
            reason: INVALID_SPEC.to_owned(),
            message: message.clone(),
            since: since.unwrap_or_else(|| time(given.now.at)),
        });
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
    let mut wanted = stalled(INVALID_SPEC, &message);
    let free = "nothing waits for gates or people";
    wanted.push(Wanted::new(BLOCKED, false, "NothingBlocked", free));
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
