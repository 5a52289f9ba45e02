//! A promotion that is decided: what is said of it while it is done, when it fails, and once it is over.

use sluice_crds::pipeline::{EnvironmentState, Phase, PromotionRecord};

use super::super::key::{SETTLE, repeat_after, retry_after};
use super::super::{Outcome, words};
use super::merging::BRANCH_TOUCHED;
use super::{At, Plan, Wish, facts};
use crate::text::words::clean;
use crate::time::span::later;
use crate::time::stamp::time;

impl At<'_, '_> {
    /// It is decided, and being done.
    pub(super) fn under_way(&self, plan: &mut Plan, record: PromotionRecord) {
        match record.phase {
            Phase::Failed => {
                plan.wakes
                    .extend(record.next_attempt_at.as_ref().map(|at| at.0));
                plan.say(EnvironmentState::Failed, words::failed(&record));
            }
            Phase::Created => plan.state = EnvironmentState::PullRequestOpen,
            Phase::Succeeded => plan.state = EnvironmentState::Promoted,
            Phase::Unapproved | Phase::Unattempted | Phase::Attempting | Phase::Abandoned => {
                plan.state = EnvironmentState::Promoting;
            }
        }
        plan.record = Some(record);
    }

    /// The last try of an errand has failed.
    pub(super) fn failed(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let outcome = current.as_ref().map(facts::errand);
        let outcome = outcome.and_then(|errand| self.context.given.errands.get(&errand));
        let (why, not_before) = match outcome {
            Some(Outcome::Failed { why, not_before }) => (why.as_str(), *not_before),
            _ => ("", None),
        };
        let record = wish.record(current, Phase::Failed, now);
        let attempts = record.attempts.saturating_add(1);
        let next = now.saturating_add(retry_after(attempts)).unwrap_or(now);
        let record = PromotionRecord {
            reason: Some("Failed".to_owned()),
            message: Some(clean(why, words::LONGEST)),
            at: time(now),
            attempts,
            next_attempt_at: Some(time(next.max(not_before.unwrap_or(next)))),
            ..record
        };
        self.under_way(plan, record);
    }

    /// It is done. If nothing comes of that for a long time, it is said.
    pub(super) fn finished(&self, plan: &mut Plan, record: PromotionRecord, wish: Wish<'_>) {
        let now = self.context.now;
        let is_sent = facts::is_sent(&record);
        let settled = later(record.at.0, SETTLE);
        let again = record.at.0.saturating_add(repeat_after(record.repeats));
        let again = again.ok().filter(|_| is_sent);
        match now < settled {
            true => {
                plan.state = EnvironmentState::Promoted;
                plan.wakes.push(settled);
            }
            false => {
                let message =
                    words::no_effect(&record, is_sent, again.filter(|again| *again > now));
                plan.say(EnvironmentState::NoEffect, message);
            }
        }
        plan.wakes.extend(again);
        self.tell_unreported(plan, &record, wish);
        plan.record = Some(record);
    }

    pub(super) fn given_up(&self, plan: &mut Plan, wish: Wish<'_>) {
        let revision = &wish.wanted.revision;
        let mut own = self.context.own.iter();
        let child = own.find(|(about, _)| about.key == wish.key);
        let status = child.and_then(|(_, object)| object.status.as_ref());
        let touched = status.filter(|it| it.outcome.as_deref() == Some(BRANCH_TOUCHED));
        let message = match touched.and_then(|it| it.message.as_deref()) {
            Some(why) => format!("the pull request for {revision} has ended: {why}"),
            None => format!(
                "the pull request for {revision} was closed without a merge; it is not promoted \
                 again before another revision comes, or the annotation sluice.dev/retry asks for it"
            ),
        };
        plan.say(EnvironmentState::Abandoned, message);
    }
}
