//! Step 5: what becomes of each environment, once the gates have answered and that is recorded.

use jiff::Timestamp;
use sluice_crds::Decision;
use sluice_crds::pipeline::{
    Admitted, Environment as Spec, EnvironmentState, MergeGate, Order, Phase, PromotionRecord,
    StrategyKind,
};

use super::considered::Asked;
use super::plan::{self, Ask, Context, Merge, Plan, Then};
use super::{Act, key, reasons};
use crate::delivery::order;
use crate::time::stamp::time;

/// How many admissions of an environment are kept.
const MOST_ADMITTED: usize = 5;

/// The plan, with what the gates have said. `recorded`: the decision as it was recorded. A yes that could
/// not be recorded has become a no.
pub(super) fn settle(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    mut plan: Plan,
    asked: Option<(&Asked, &Decision)>,
) -> Plan {
    let Some(Ask { then, .. }) = plan.ask.take() else {
        return plan;
    };
    let Some((asked, decision)) = asked else {
        let message = "the gates could not be asked";
        hold(&mut plan, &then, message);
        return plan;
    };
    plan.wakes.extend(asked.until);
    plan.wakes.extend(decision.next.as_ref().map(|next| next.0));
    if !decision.allowed {
        hold(&mut plan, &then, &decision.message);
        return plan;
    }
    match then {
        Then::Begin(record) => begin(context, place, spec, &mut plan, *record),
        Then::GoOn(object) => plan.acts.extend(object.spec.suspend.then(|| Act::Change {
            suspend: false,
            close: object.spec.close.clone(),
            before: object,
        })),
        Then::Merge(merge) => let_merge(context.now, &mut plan, merge, asked.until),
    }
    plan
}

/// The gates hold it back.
fn hold(plan: &mut Plan, then: &Then, message: &str) {
    match then {
        // What had no effect goes on having none.
        Then::Begin(_) if plan.record.as_ref().is_some_and(is_over) => {
            plan.state = EnvironmentState::NoEffect;
        }
        Then::Begin(_) => plan.state = EnvironmentState::GatesClosed,
        Then::GoOn(object) => {
            plan.state = EnvironmentState::GatesClosed;
            plan.acts
                .extend((!object.spec.suspend).then(|| Act::Change {
                    suspend: true,
                    close: object.spec.close.clone(),
                    before: std::sync::Arc::clone(object),
                }));
        }
        Then::Merge(_) => {
            plan.state = EnvironmentState::GatesClosed;
            if let Some(record) = &mut plan.record {
                record.gate = Some(MergeGate::Pending);
                record.order = None;
            }
        }
    }
    plan.message = Some(message.to_owned());
}

fn is_over(record: &PromotionRecord) -> bool {
    record.phase == Phase::Succeeded
}

/// The promotion begins: its record says so before anything is done.
fn begin(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    plan: &mut Plan,
    record: PromotionRecord,
) {
    let promotion = context.object.spec.promotion_of(spec);
    let Some(strategy) = promotion.and_then(|it| it.strategy.kind()) else {
        return;
    };
    plan.state = EnvironmentState::Promoting;
    plan.message = None;
    plan.acts
        .extend(plan::acts(context, place, spec, &record, strategy));
    plan.record = Some(match strategy {
        StrategyKind::PullRequest(_) | StrategyKind::Notification(_) => record,
        StrategyKind::Admission(admission) => {
            admit(context.now, &mut plan.admitted, &record);
            match admission.gatekeeper_ref {
                Some(_) => record,
                None => {
                    plan.state = EnvironmentState::Promoted;
                    let settled = context.now.saturating_add(key::SETTLE);
                    plan.wakes.extend(settled.ok());
                    PromotionRecord {
                        phase: Phase::Succeeded,
                        reason: Some(reasons::ADMITTED.to_owned()),
                        ..record
                    }
                }
            }
        }
    });
}

/// Writes an admission down, once for each run.
fn admit(now: Timestamp, admitted: &mut Vec<Admitted>, record: &PromotionRecord) {
    if admitted.iter().any(|it| it.run == record.run) {
        return;
    }
    let new = Admitted {
        revision: record.revision.clone(),
        run: record.run,
        at: time(now),
    };
    admitted.insert(0, new);
    admitted.truncate(MOST_ADMITTED);
}

/// The gates admit the merge: the commit status says so, and the controller merges where it has to.
fn let_merge(now: Timestamp, plan: &mut Plan, merge: Merge, until: Option<Timestamp>) {
    let Some(record) = &mut plan.record else {
        return;
    };
    record.gate = Some(MergeGate::Success);
    let is_ordered = merge.is_ordered(record, until, now);
    let Some(head_sha) = merge.head else {
        record.order = None;
        return;
    };
    let name = record.pull_request.as_ref().map(|it| it.name.clone());
    let Some(pull_request) = name else {
        return;
    };
    if !is_ordered {
        record.order = order::end(until, now).map(|end| Order {
            key: record.key.clone(),
            pull_request,
            head_sha,
            method: merge.method,
            at: time(now),
            not_after: time(end),
        });
    }
    let end = record.order.as_ref().map(|order| order.not_after.0);
    plan.wakes.extend(end);
}
