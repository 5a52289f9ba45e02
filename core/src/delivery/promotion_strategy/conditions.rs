//! Step 6: what a status says in conditions, and in short for tables.

use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::{EnvironmentState, EnvironmentStatus, Summary};

use super::checks::short;
use super::dry::newest;
use super::words;
pub use crate::delivery::act::BLOCKED;
use crate::text::words::clean;
use crate::verdict::condition::{READY, RECONCILING, Wanted, find};

/// A person has merged what a rule held back; present only then.
pub const BYPASSED: &str = "Bypassed";

/// Reasons of a status for which the branches need not have been listed.
const UNREAD: [&str; 3] = ["InvalidSpec", "AccessNotReady", "ForgeUnavailable"];

/// Whether the status says that the repository could be read by the access with this uid. Nobody but the controller
/// writes that.
pub fn is_said_to_be_read(object: &PromotionStrategy, access: &str) -> bool {
    object.status.as_ref().is_some_and(|status| {
        let ready = find(&status.conditions, READY);
        status.read_by.as_deref() == Some(access)
            && ready.is_some_and(|ready| !UNREAD.contains(&ready.reason.as_str()))
    })
}

/// All the conditions. `unknown`: why it is not known what the branches have.
pub(super) fn all(
    object: &PromotionStrategy,
    environments: &[EnvironmentStatus],
    unknown: Option<(&str, &str)>,
) -> Vec<Wanted> {
    let mut wanted = ready(object, environments, unknown);
    wanted.push(blocked(environments));
    wanted.extend(bypassed(environments));
    wanted
}

fn ready(
    object: &PromotionStrategy,
    environments: &[EnvironmentStatus],
    unknown: Option<(&str, &str)>,
) -> Vec<Wanted> {
    if object.spec.suspend {
        let message = "suspended: nothing is opened and nothing is merged";
        return vec![Wanted::new(READY, true, "Suspended", message)];
    }
    if let Some((reason, why)) = unknown {
        let message = clean(why, words::LONGEST);
        return not_ready(reason, &message);
    }
    let troubled = environments.iter().find_map(|environment| {
        let waits = environment.waits.iter();
        let mut waits = waits.filter(|wait| is_trouble(&wait.reason));
        Some((environment, waits.next()?))
    });
    if let Some((environment, wait)) = troubled {
        return not_ready(
            &wait.reason,
            &format!("{}: {}", environment.branch, wait.message),
        );
    }
    let message = "the repository can be read, and nothing fails";
    vec![Wanted::new(READY, true, "ReconciliationSucceeded", message)]
}

/// What keeps on failing is tried again.
fn not_ready(reason: &str, message: &str) -> Vec<Wanted> {
    let say = |type_, holds| Wanted::new(type_, holds, reason, message);
    vec![say(READY, false), say(RECONCILING, true)]
}

/// Whether somebody has to repair something, and not only to wait.
fn is_trouble(reason: &str) -> bool {
    [
        "BranchOwned",
        "ActiveBranchMissing",
        "DryBranchMissing",
        "ForgeUnavailable",
        "MetadataInvalid",
        "PullRequestFailed",
        "ForgeRefuses",
    ]
    .contains(&reason)
}

fn blocked(environments: &[EnvironmentStatus]) -> Wanted {
    let held = environments
        .iter()
        .find_map(|it| Some((it, it.waits.first()?)));
    match held {
        Some((environment, wait)) => {
            let message = format!("{}: {}", environment.branch, wait.message);
            Wanted::new(BLOCKED, true, wait.reason.as_str(), message)
        }
        None => Wanted::new(
            BLOCKED,
            false,
            "NothingBlocked",
            "nothing that is proposed waits",
        ),
    }
}

fn bypassed(environments: &[EnvironmentStatus]) -> Option<Wanted> {
    let said = environments.iter().filter_map(|environment| {
        let tip = environment
            .active
            .as_ref()
            .filter(|tip| !tip.bypassed.is_empty())?;
        let person = tip.by.as_deref().unwrap_or("a person");
        let rules = tip.bypassed.join(", ");
        let commit = short(&tip.hydrated_sha);
        Some(format!(
            "{person} has merged {commit} into {} past {rules}",
            environment.branch
        ))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| Wanted::new(BYPASSED, true, "MergedByPerson", said.join("; ")))
}

/// What tables show.
pub(super) fn summary(environments: &[EnvironmentStatus]) -> Summary {
    let newest = newest(environments);
    let has_newest = |it: &&EnvironmentStatus| {
        let active = it.active.as_ref().and_then(|tip| tip.dry_sha.as_deref());
        newest.is_some() && active == newest
    };
    let reached = environments.iter().rfind(has_newest);
    let is_settled =
        |it: &&EnvironmentStatus| it.state == EnvironmentState::UpToDate && has_newest(it);
    let waiting = environments.iter().find(|it| !is_settled(it));
    let first_wait = waiting.and_then(|it| it.waits.first());
    let state = waiting.map(|it| it.state.as_str().to_owned());
    Summary {
        newest: newest.map(|sha| short(sha).to_owned()),
        reached: reached.map(|it| it.branch.clone()),
        waits_at: waiting.map(|it| it.branch.clone()),
        reason: first_wait.map(|wait| wait.reason.clone()).or(state),
        next: waiting.and_then(|it| it.waits.iter().find_map(|wait| wait.next.clone())),
        message: first_wait.map(|wait| wait.message.clone()),
    }
}
