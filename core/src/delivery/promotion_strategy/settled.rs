//! Step 6: what becomes of each environment, once the gates have answered and that is recorded.

use jiff::Timestamp;
use sluice_crds::Decision;
use sluice_crds::commit_status::Phase;
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::promotion_strategy::{
    Arrival, CheckOf, EnvironmentState, EnvironmentStatus, Healthy, Tip as Recorded, Wait,
};

use super::Given;
use super::arrival::Arrived;
use super::checks;
use super::evidence::Sight;
use super::plan::{Asked, Merge, Plan};
use super::seen::Seen;
use super::tips::{Dry, Tip};
use super::waits::{self, wait};
use crate::delivery::order;
use crate::time::stamp::time;

/// How many healthy dry commits are kept.
const MOST_HEALTHY: usize = 5;

/// What becomes of an environment as far as the gates do not decide it.
pub(super) fn plan(given: &Given, seen: &Seen<'_>, waits: Vec<Wait>, merge: Option<Merge>) -> Plan {
    let now = given.now.at;
    let env = &seen.env;
    let (status_of, before) = (checks::together, env.record);
    // Nothing is recorded of a commit before all is known that it is judged by. A branch that is gone may come
    // back with something else: what it had before is kept.
    let active = env
        .active
        .as_ref()
        .zip(seen.arrived.as_ref())
        .and_then(|(tip, arrived)| {
            let known = before.and_then(|it| it.active.as_ref());
            let dry = match &env.stands_at {
                Dry::Known(dry) => Some(dry.clone()),
                _ => tip.dry.known().map(str::to_owned),
            };
            let tip = recorded(tip, dry, status_of(&seen.active_checks), known, now)?;
            Some(with_arrival(tip, arrived))
        });
    let active = active.or_else(|| before.and_then(|it| it.active.clone()));
    let proposed = env.proposed.as_ref().and_then(|tip| {
        let known = before.and_then(|it| it.proposed.as_ref());
        let dry = match (&env.proposes, &env.stands_at) {
            (Sight::Known(false), Dry::Known(dry)) => Some(dry.clone()),
            _ => tip.dry.known().map(str::to_owned),
        };
        recorded(tip, dry, status_of(&seen.proposed_checks), known, now)
    });
    let all = [
        (&seen.active_checks, CheckOf::Active),
        (&seen.proposed_checks, CheckOf::Proposed),
    ];
    let checks = all
        .iter()
        .flat_map(|(checks, of)| checks.iter().map(|it| it.status(*of)));
    let nexts = all
        .iter()
        .flat_map(|(checks, _)| checks.iter().flat_map(|it| [it.next, it.wake]).flatten());
    let status = EnvironmentStatus {
        branch: env.branch().to_owned(),
        state: state(given, seen, &waits, active.as_ref()),
        reason: waits.first().map(|wait| wait.reason.clone()),
        message: waits.first().map(|wait| wait.message.clone()),
        last_healthy: healthy(before, active.as_ref(), now),
        active,
        proposed,
        checks: checks.collect(),
        pull_request: seen.pull.record.clone(),
        gate: seen.pull.record.is_some().then_some(MergeGate::Pending),
        order: None,
        join: None,
        reverts: seen.reverts.clone(),
        last_decision: before.and_then(|it| it.last_decision.clone()),
        held: seen.held.clone(),
        waits,
    };
    Plan {
        wakes: nexts.chain(waits::next(&status.waits)).collect(),
        status,
        acts: seen.pull.acts.clone(),
        merge,
    }
}

/// A tip as the status has it. It keeps since when the branch has it. None: its files are not known yet.
fn recorded(
    tip: &Tip,
    dry_sha: Option<String>,
    commit_status: Option<Phase>,
    before: Option<&Recorded>,
    now: Timestamp,
) -> Option<Recorded> {
    let same = before.filter(|before| before.hydrated_sha == tip.sha);
    let tree = match &tip.tree {
        Sight::Known(tree) => tree.clone(),
        Sight::Absent | Sight::Pending | Sight::Failed(_) => same?.tree.clone(),
    };
    Some(Recorded {
        dry_sha,
        hydrated_sha: tip.sha.clone(),
        tree,
        commit_status,
        arrived_by: None,
        by: None,
        bypassed: Vec::new(),
        since: same.map_or_else(|| time(now), |same| same.since.clone()),
    })
}

fn with_arrival(tip: Recorded, arrived: &Arrived) -> Recorded {
    Recorded {
        arrived_by: Some(arrived.by),
        by: arrived.person.clone(),
        bypassed: arrived.bypassed.clone(),
        since: arrived.since.clone(),
        ..tip
    }
}

fn state(
    given: &Given,
    seen: &Seen<'_>,
    waits: &[Wait],
    active: Option<&Recorded>,
) -> EnvironmentState {
    let reason = waits.first().map(|wait| wait.reason.as_str());
    match (&seen.env.proposes, reason) {
        _ if given.object.spec.suspend => EnvironmentState::Suspended,
        _ if seen.reverting.is_some() => EnvironmentState::Reverting,
        _ if seen.env.active.is_none() => EnvironmentState::Unknown,
        (Sight::Pending | Sight::Failed(_) | Sight::Absent, _) => EnvironmentState::Unknown,
        (Sight::Known(true), Some("Held")) => EnvironmentState::Held,
        (Sight::Known(true), _) => EnvironmentState::Waiting,
        (Sight::Known(false), _) => match active.and_then(|tip| tip.commit_status) {
            None | Some(Phase::Success) => EnvironmentState::UpToDate,
            Some(Phase::Failure | Phase::Cancelled) => EnvironmentState::Failed,
            Some(Phase::Pending | Phase::Queued | Phase::InProgress) => EnvironmentState::Verifying,
        },
    }
}

/// The dry commits that were healthy, with the present one if it is. What somebody else has pushed is none.
fn healthy(
    before: Option<&EnvironmentStatus>,
    active: Option<&Recorded>,
    now: Timestamp,
) -> Vec<Healthy> {
    let mut all = before.map_or_else(Vec::new, |it| it.last_healthy.clone());
    let is_known = |sha: &str| all.first().is_some_and(|first| first.hydrated_sha == sha);
    let Some(tip) = active.filter(|tip| {
        tip.commit_status == Some(Phase::Success)
            && tip.arrived_by.is_some_and(|by| by != Arrival::Foreign)
            && !is_known(&tip.hydrated_sha)
    }) else {
        return all;
    };
    if let Some(dry) = &tip.dry_sha {
        all.retain(|it| it.dry_sha != *dry);
        let new = Healthy {
            dry_sha: dry.clone(),
            hydrated_sha: tip.hydrated_sha.clone(),
            time: time(now),
        };
        all.insert(0, new);
        all.truncate(MOST_HEALTHY);
    }
    all
}

/// The plan, with what the gates have said. `recorded`: the decision as it was recorded. A yes that could
/// not be recorded has become a no.
pub(super) fn settle(
    mut plan: Plan,
    before: Option<&EnvironmentStatus>,
    answer: Option<(&Asked, &Decision)>,
    now: Timestamp,
) -> Plan {
    let Some(merge) = plan.merge.take() else {
        return plan;
    };
    let Some((asked, decision)) = answer else {
        hold(
            &mut plan,
            wait("GateClosed", "the gates could not be asked"),
        );
        return plan;
    };
    plan.wakes.extend(asked.until);
    plan.wakes.extend(decision.next.as_ref().map(|next| next.0));
    if !decision.allowed {
        let wait = Wait {
            next: decision.next.clone(),
            ..wait("GateClosed", decision.message.as_str())
        };
        hold(&mut plan, wait);
        return plan;
    }
    plan.status.gate = Some(MergeGate::Success);
    if !merge.is_auto {
        let branch = &plan.status.branch;
        let message =
            format!("every rule lets it pass: a person merges its pull request into {branch}");
        hold(&mut plan, wait("WaitsForPerson", message));
        plan.status.gate = Some(MergeGate::Success);
        return plan;
    }
    plan.status.order = ordered(&merge, before, asked.until, now);
    if merge.revert.is_none() {
        plan.status.state = match plan.status.order.is_none() && merge.put_off().is_some() {
            true => EnvironmentState::Waiting,
            false => EnvironmentState::Merging,
        };
    }
    plan.wakes.extend(merge.put_off());
    if let Some(refused) = merge.refused {
        // It is tried again as long as the order stands.
        let wait = Wait {
            next: refused.until.map(time),
            ..wait("ForgeRefuses", refused.why)
        };
        plan.status.reason = Some(wait.reason.clone());
        plan.status.message = Some(wait.message.clone());
        plan.status.waits.push(wait);
    }
    plan.wakes
        .extend(plan.status.order.as_ref().map(|order| order.not_after.0));
    plan
}

fn ordered(
    merge: &Merge,
    before: Option<&EnvironmentStatus>,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Option<Order> {
    let standing = before.filter(|before| merge.is_ordered(before, until, now));
    if let Some(standing) = standing {
        return standing.order.clone();
    }
    if merge.put_off().is_some() {
        return None;
    }
    order::end(until, now).map(|end| Order {
        key: merge.key.clone(),
        pull_request: merge.pull_request.clone(),
        head_sha: merge.head.clone(),
        method: merge.method,
        at: time(now),
        not_after: time(end),
    })
}

/// Nothing lets it be merged.
pub(super) fn hold(plan: &mut Plan, wait: Wait) {
    if plan.status.state != EnvironmentState::Reverting {
        plan.status.state = EnvironmentState::Waiting;
    }
    plan.status.reason = Some(wait.reason.clone());
    plan.status.message = Some(wait.message.clone());
    plan.status.gate = Some(MergeGate::Pending);
    plan.status.order = None;
    plan.status.waits.push(wait);
}
