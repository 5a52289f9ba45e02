//! What is reported of a Rollout: in the log, and by events.
//!
//! News is what a run does (it begins, lets a batch out, ends), which the decision tells itself, and what stops it and
//! stops it no more, which its status says ([`of`]). Each is told once: a status that says the same is no news.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::delivery::act::BLOCKED;
use sluice_core::delivery::rollout::{News, is_under_way};
use sluice_core::verdict::condition::{READY, STALLED, find};
use sluice_crds::rollout::{Held, RollingState};
use sluice_crds::{Rollout, RolloutStatus};

use crate::act::reconcile::Context;
use crate::act::reconcile::news::{self, Item};
use crate::cluster::key::ObjectKey;

/// Reports something that the run does which has this status.
pub(super) fn tell(
    context: &Context,
    key: &ObjectKey,
    (object, status): (&Rollout, &RolloutStatus),
    item: News,
) {
    let News {
        is_warning,
        reason,
        message,
    } = item;
    let item = Item {
        warning: is_warning,
        reason: reason.to_owned(),
        message,
        environment: None,
        revision: revision(status),
    };
    news::tell(context, key, object, item);
}

/// What stops a run that did not stop it before, and that nothing stops it any more.
pub(super) fn of(before: &RolloutStatus, now: &RolloutStatus) -> Option<Item> {
    let (warning, reason, message) = match (obstacle(before), obstacle(now)) {
        (was, Some(is)) if was.map(Obstacle::what) != Some(is.what()) => is.told(),
        (Some(was), None) => was.gone(before, now)?,
        (_, Some(_)) | (None, None) => return None,
    };
    Some(Item {
        warning,
        reason: reason.to_owned(),
        message: message.to_owned(),
        environment: None,
        revision: revision(now),
    })
}

fn revision(status: &RolloutStatus) -> Option<String> {
    status.run.as_ref().map(|run| run.revision.clone())
}

/// What stops a run.
#[derive(Clone, Copy)]
enum Obstacle<'s> {
    /// It waits for gates or people, as it should.
    Blocked(&'s Condition),
    /// A person has something to do.
    Stalled(&'s Condition),
    /// Something is not known.
    Unknown(&'s Held),
}

impl<'s> Obstacle<'s> {
    /// What it is, without the words of the moment.
    fn what(self) -> (&'static str, &'s str) {
        match self {
            Self::Blocked(it) => (BLOCKED, &it.reason),
            Self::Stalled(it) => (STALLED, &it.reason),
            Self::Unknown(it) => ("Unknown", &it.reason),
        }
    }

    /// Whether it is a warning, a word and a sentence.
    fn told(self) -> (bool, &'s str, &'s str) {
        match self {
            Self::Blocked(it) => (false, "Blocked", &it.message),
            Self::Stalled(it) => (true, &it.reason, &it.message),
            Self::Unknown(it) => (true, &it.reason, &it.message),
        }
    }

    /// The same once it is gone. None: the run ends, which is told in other words.
    fn gone(
        self,
        before: &RolloutStatus,
        now: &'s RolloutStatus,
    ) -> Option<(bool, &'s str, &'s str)> {
        let is_failing = Some(RollingState::RolloutFailing);
        let fails = now.rolling_state == is_failing && before.rolling_state != is_failing;
        if fails || !is_under_way(now) {
            return None;
        }
        let condition = |which| find(&now.conditions, which);
        match self {
            Self::Blocked(_) => Some((false, "Unblocked", &condition(BLOCKED)?.message)),
            Self::Stalled(_) | Self::Unknown(_) => {
                let ready = condition(READY)?;
                Some((false, &ready.reason, &ready.message))
            }
        }
    }
}

/// What stops the run that has this status. That it has failed is no obstacle, but its end.
fn obstacle(status: &RolloutStatus) -> Option<Obstacle<'_>> {
    let holds = |which| find(&status.conditions, which).filter(|it| it.status == "True");
    // A write may be refused while it waits for gates or people.
    if let Some(stalled) = holds(STALLED) {
        let has_failed = status.rolling_state == Some(RollingState::RolloutFailed);
        let outcome = status.outcome.as_ref().filter(|_| has_failed);
        let is_end = outcome.is_some_and(|it| it.reason == stalled.reason);
        return (!is_end).then_some(Obstacle::Stalled(stalled));
    }
    if let Some(blocked) = holds(BLOCKED) {
        return Some(Obstacle::Blocked(blocked));
    }
    status.held.as_ref().map(Obstacle::Unknown)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(status: Value) -> RolloutStatus {
        serde_json::from_value(status).unwrap()
    }

    fn condition(which: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": which, "status": status, "reason": reason, "message": format!("why {reason}"),
            "lastTransitionTime": "2026-11-23T12:00:00Z",
        })
    }

    fn under_way(conditions: &[Value]) -> RolloutStatus {
        status(json!({"rollingState": "rollingInBatches", "conditions": conditions}))
    }

    fn works() -> RolloutStatus {
        under_way(&[
            condition("Ready", "False", "Progressing"),
            condition("Blocked", "False", "NothingBlocked"),
        ])
    }

    fn blocked(reason: &str) -> RolloutStatus {
        under_way(&[
            condition("Ready", "True", reason),
            condition("Blocked", "True", reason),
        ])
    }

    fn stalled(reason: &str) -> RolloutStatus {
        under_way(&[
            condition("Ready", "False", reason),
            condition("Stalled", "True", reason),
            condition("Blocked", "False", "NothingBlocked"),
        ])
    }

    fn told(before: &RolloutStatus, now: &RolloutStatus) -> Option<(bool, String)> {
        of(before, now).map(|it| (it.warning, it.reason))
    }

    fn info(reason: &str) -> Option<(bool, String)> {
        Some((false, reason.to_owned()))
    }

    fn warning(reason: &str) -> Option<(bool, String)> {
        Some((true, reason.to_owned()))
    }

    #[test]
    fn what_waits_for_gates_or_people_is_told_once_and_is_no_warning() {
        assert_eq!(told(&works(), &blocked("GatesClosed")), info("Blocked"));
        assert_eq!(told(&blocked("GatesClosed"), &blocked("GatesClosed")), None);
        assert_eq!(
            told(&blocked("GatesClosed"), &blocked("LastBatch")),
            info("Blocked")
        );
        assert_eq!(told(&blocked("LastBatch"), &works()), info("Unblocked"));
        assert_eq!(told(&works(), &works()), None);
        assert_eq!(told(&RolloutStatus::default(), &works()), None);
    }

    #[test]
    fn what_a_person_has_to_do_is_a_warning_and_that_it_goes_on_is_told() {
        assert_eq!(
            told(&works(), &stalled("Autoscaler")),
            warning("Autoscaler")
        );
        assert_eq!(told(&stalled("Autoscaler"), &stalled("Autoscaler")), None);
        assert_eq!(
            told(&stalled("Autoscaler"), &stalled("WriteRefused")),
            warning("WriteRefused")
        );
        assert_eq!(told(&stalled("Autoscaler"), &works()), info("Progressing"));
        assert_eq!(
            told(&blocked("GatesClosed"), &stalled("Autoscaler")),
            warning("Autoscaler")
        );
        let mut refused = blocked("Paused");
        refused
            .conditions
            .extend(stalled("WriteRefused").conditions.drain(..2));
        refused
            .conditions
            .retain(|it| it.reason != "Paused" || it.type_ == BLOCKED);
        assert_eq!(told(&blocked("Paused"), &refused), warning("WriteRefused"));
        assert_eq!(told(&refused, &blocked("Paused")), info("Blocked"));
    }

    #[test]
    fn what_is_not_known_is_a_warning() {
        let held =
            json!({"reason": "MetricBlind", "message": "why", "since": "2026-11-23T12:00:00Z"});
        let mut blind = under_way(&[condition("Ready", "False", "MetricBlind")]);
        blind.held = serde_json::from_value(held).unwrap();
        assert_eq!(told(&works(), &blind), warning("MetricBlind"));
        assert_eq!(told(&blind, &blind), None);
        assert_eq!(told(&blind, &works()), info("Progressing"));
    }

    /// What stops the way back is told like anything else.
    #[test]
    fn what_stops_a_run_that_fails_is_told_until_it_is_gone() {
        let failing = |mut status: RolloutStatus| {
            status.rolling_state = Some(RollingState::RolloutFailing);
            status
        };
        let (works, refused) = (failing(works()), failing(stalled("WriteRefused")));
        assert_eq!(told(&works, &refused), warning("WriteRefused"));
        assert_eq!(told(&refused, &works), info("Progressing"));
        assert_eq!(told(&stalled("Autoscaler"), &works), None);
    }

    /// The decision tells the end itself.
    #[test]
    fn how_a_run_ends_is_not_told_a_second_time() {
        let mut failed = stalled("HookVetoed");
        failed.rolling_state = Some(RollingState::RolloutFailed);
        failed.outcome =
            serde_json::from_value(json!({"reason": "HookVetoed", "message": "no"})).unwrap();
        assert_eq!(told(&works(), &failed), None);
        assert_eq!(told(&blocked("GatesClosed"), &failed), None);
        // That its claims cannot be taken away is something else.
        let mut refused = stalled("WriteRefused");
        refused.rolling_state = failed.rolling_state;
        refused.outcome.clone_from(&failed.outcome);
        assert_eq!(told(&failed, &refused), warning("WriteRefused"));
        let mut succeeded = works();
        succeeded.rolling_state = Some(RollingState::RolloutSucceed);
        assert_eq!(told(&blocked("GatesClosed"), &succeeded), None);
    }
}
