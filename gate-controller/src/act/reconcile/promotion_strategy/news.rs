//! What is reported of a strategy when its status has changed: in the log, and by events.
//!
//! News is that an environment gets another commit, and how, that a merge is ordered, that something waits
//! for another reason, that a check fails, and problems. Each is told once: a status that says the same is no
//! news.

use sluice_crds::PromotionStrategyStatus;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};

use crate::act::reconcile::news::{Item, of_conditions};

/// What is new.
pub(super) fn of(before: &PromotionStrategyStatus, now: &PromotionStrategyStatus) -> Vec<Item> {
    let mut news = Vec::new();
    for environment in &now.environments {
        let mut all = before.environments.iter();
        let was = all.find(|it| it.branch == environment.branch);
        news.extend(arrived(was, environment));
        news.extend(ordered(was, environment));
        news.extend(failed(was, environment));
    }
    news.extend(of_conditions(&before.conditions, &now.conditions, None));
    news
}

fn item(environment: &EnvironmentStatus, warning: bool, reason: &str, message: String) -> Item {
    let active = environment.active.as_ref();
    Item {
        warning,
        reason: reason.to_owned(),
        message,
        environment: Some(environment.branch.clone()),
        revision: active.map(|tip| format!("{}@sha1:{}", environment.branch, tip.hydrated_sha)),
    }
}

/// An environment has another commit.
fn arrived(before: Option<&EnvironmentStatus>, now: &EnvironmentStatus) -> Option<Item> {
    let tip = now.active.as_ref()?;
    let was = before.and_then(|before| before.active.as_ref());
    if was.is_some_and(|was| was.hydrated_sha == tip.hydrated_sha) {
        return None;
    }
    let dry = tip.dry_sha.as_deref().unwrap_or("an unknown commit");
    let dry = dry.get(..12).unwrap_or(dry);
    let branch = &now.branch;
    let by = tip.by.as_deref().unwrap_or("a person");
    let (warning, reason, message) = match tip.arrived_by? {
        Arrival::Promotion => (
            false,
            "Promoted",
            format!("{branch} has {dry}, by a promotion"),
        ),
        Arrival::Person if tip.bypassed.is_empty() => (
            false,
            "Promoted",
            format!("{branch} has {dry}: {by} has merged it"),
        ),
        Arrival::Person => {
            let rules = tip.bypassed.join(", ");
            (
                true,
                "Bypassed",
                format!("{branch} has {dry}: {by} has merged it past {rules}"),
            )
        }
        Arrival::Revert => (false, "Reverted", format!("{branch} is back at {dry}")),
        Arrival::Foreign => {
            let message = format!(
                "somebody has pushed {} to {branch}, which is no promotion",
                tip.hydrated_sha
            );
            (true, "ForeignCommit", message)
        }
        Arrival::Baseline => return None,
    };
    Some(item(now, warning, reason, message))
}

/// A merge was ordered.
fn ordered(before: Option<&EnvironmentStatus>, now: &EnvironmentStatus) -> Option<Item> {
    let order = now.order.as_ref()?;
    let was = before.and_then(|before| before.order.as_ref());
    if was.is_some_and(|was| (&was.key, &was.head_sha) == (&order.key, &order.head_sha)) {
        return None;
    }
    let message = format!("{} is merged into {}", order.head_sha, now.branch);
    let revision = Some(format!("{}@sha1:{}", now.branch, order.head_sha));
    let item = item(now, false, "Merging", message);
    Some(Item { revision, ..item })
}

/// A check of what an environment has fails.
fn failed(before: Option<&EnvironmentStatus>, now: &EnvironmentStatus) -> Option<Item> {
    let is_new = before.is_none_or(|before| before.state != EnvironmentState::Failed);
    let failed = now.state == EnvironmentState::Failed && is_new;
    failed.then(|| {
        let check = now.checks.iter().find(|it| it.phase.as_str() == "failure");
        let why = check.map(|it| {
            format!(
                "{}: {}",
                it.key,
                it.message.as_deref().unwrap_or("it has failed")
            )
        });
        let message = format!("{} is not healthy: {}", now.branch, why.unwrap_or_default());
        item(now, true, "CheckFailed", message)
    })
}
