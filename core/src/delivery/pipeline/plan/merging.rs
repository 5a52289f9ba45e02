//! An open pull request: whether it may be merged, and who does it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::PullRequest;
use sluice_crds::pipeline::{
    EnvironmentState, GateAt, MergeGate, MergeMode, Order, Phase, PromotionRecord, StrategyKind,
    WaitingApproval,
};

use super::super::Act;
use super::super::approval::Word;
use super::super::child::Child;
use super::super::words;
use super::{Ask, At, Merge, Plan, Then, Wish, facts, moved};
use crate::delivery::order;
use crate::text::words::clean;
use crate::time::stamp::time;

/// The reason of a record whose branch somebody has pushed to.
pub(super) const BRANCH_TOUCHED: &str = "BranchTouched";
/// The reason of a record that is not approved, or not any more.
const UNAPPROVED: &str = "Unapproved";

impl Merge {
    /// Whether a record has an order for this merge that holds now, and not for longer than the gates admit it.
    pub(in super::super) fn is_ordered(
        &self,
        record: &PromotionRecord,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        let holds = |order: &Order| {
            order.key == record.key
                && Some(&order.head_sha) == self.head.as_ref()
                && order.method == self.method
                && order::holds(order, until, now)
        };
        record.order.as_ref().is_some_and(holds)
    }
}

impl At<'_, '_> {
    /// It is open: the gates are asked about the merge.
    pub(super) fn opened(
        &self,
        plan: &mut Plan,
        current: Option<PromotionRecord>,
        wish: Wish<'_>,
        object: Option<&Arc<PullRequest>>,
    ) {
        let (StrategyKind::PullRequest(strategy), Some(object)) = (wish.strategy, object) else {
            return;
        };
        let order = current.as_ref().and_then(|record| record.order.clone());
        let record = match current {
            Some(record) => moved(record, Phase::Created, self.context.now),
            None => wish.fresh(Phase::Created, self.context.now),
        };
        let gate = record.gate.unwrap_or(MergeGate::Pending);
        let mut record = facts::with_child(
            PromotionRecord {
                gate: Some(gate),
                order,
                attempts: 0,
                ..record
            },
            Some(object),
        );
        plan.state = EnvironmentState::PullRequestOpen;
        let status = object.status.as_ref();
        let commit = status.and_then(|it| it.commit_sha.as_ref());
        let head = status.and_then(|it| it.head_sha.as_ref());
        let held = match self.word(wish) {
            Word::Rejected(by) => {
                let message = words::rejected(&record.revision, &by);
                Some((EnvironmentState::Rejected, "Rejected", message))
            }
            Word::Awaited => {
                let (revision, run) = (&record.revision, record.run);
                let message = words::awaited(revision, self.name(), run);
                Some((EnvironmentState::Unapproved, UNAPPROVED, message))
            }
            Word::Unverified => {
                let message = words::UNVERIFIED.to_owned();
                Some((EnvironmentState::Unapproved, UNAPPROVED, message))
            }
            Word::NotNeeded | Word::Approved => {
                // Without a head it would be merged into another branch.
                let is_touched = commit.is_some() && commit != head;
                is_touched.then(|| {
                    let message = "somebody has pushed to the branch of the pull request, or changed the \
                                   one that it is merged into: it is not merged by the controller; merge \
                                   or close it";
                    let state = EnvironmentState::PullRequestOpen;
                    (state, BRANCH_TOUCHED, message.to_owned())
                })
            }
        };
        let held = held.or_else(|| {
            let ring = self.ring()?;
            Some((EnvironmentState::CyclicGates, "CyclicGates", ring))
        });
        if let Some((state, reason, message)) = held {
            // It was approved until now: what was signed before that is over.
            plan.waits_for = (reason == UNAPPROVED).then(|| WaitingApproval {
                revision: record.revision.clone(),
                run: record.run,
                since: time(self.context.now),
            });
            record.gate = Some(MergeGate::Pending);
            record.order = None;
            record.reason = Some(reason.to_owned());
            plan.record = Some(record);
            return plan.say(state, message);
        }
        let head = commit
            .filter(|_| strategy.merge == MergeMode::Auto)
            .cloned();
        plan.record = Some(record);
        plan.ask = Some(Ask {
            wanted: wish.wanted.clone(),
            asks_own: match self.environment.spec.gate_at {
                GateAt::Create => false,
                GateAt::Merge | GateAt::Both => true,
            },
            then: Then::Merge(Merge {
                head,
                method: strategy.method,
            }),
        });
    }

    /// It could not be opened, and tries again by itself. It waits while the gates are closed.
    pub(super) fn fails(
        &self,
        plan: &mut Plan,
        current: Option<PromotionRecord>,
        wish: Wish<'_>,
        (child, object): (&Child, Option<&Arc<PullRequest>>),
    ) {
        let (
            Child::Failing {
                why,
                attempts,
                next,
            },
            Some(object),
        ) = (child, object)
        else {
            return;
        };
        let record = wish.record(current, Phase::Failed, self.context.now);
        let record = PromotionRecord {
            reason: object.status.as_ref().and_then(|it| it.outcome.clone()),
            message: Some(clean(why, words::LONGEST)),
            attempts: *attempts,
            next_attempt_at: next.map(time),
            ..facts::with_child(record, Some(object))
        };
        if let Word::Rejected(by) = self.word(wish) {
            let message = words::rejected(&record.revision, &by);
            plan.acts
                .extend((!object.spec.suspend).then(|| Act::Change {
                    before: Arc::clone(object),
                    suspend: true,
                    close: object.spec.close.clone(),
                }));
            plan.record = Some(record);
            return plan.say(EnvironmentState::Rejected, message);
        }
        plan.say(EnvironmentState::Failed, words::failed(&record));
        plan.record = Some(record);
        plan.ask = Some(Ask {
            wanted: wish.wanted.clone(),
            asks_own: wish.asks_at_begin(self.environment.spec.gate_at),
            then: Then::GoOn(Arc::clone(object)),
        });
    }
}
