//! An environment that runs its revision, or begins to: whatever was on its way has done its work.

use sluice_crds::pipeline::{Admission, Phase, PromotionRecord, StrategyKind};

use super::super::child::is_outstanding;
use super::super::reasons::{ADMITTED, ARRIVED, REPORTED, SENT};
use super::super::step::{self, Due, Reports, Step};
use super::super::{Act, Outcome, ReportSight};
use super::{At, Plan, Wish, acts, facts, frozen};

impl At<'_, '_> {
    /// A target runs the revision or begins to: whatever was on its way has done its work.
    pub(super) fn arrive(
        &self,
        plan: &mut Plan,
        current: Option<PromotionRecord>,
        wish: Option<Wish<'_>>,
        is_closing: bool,
    ) {
        let Some(wish) = wish.filter(|_| !is_closing) else {
            return;
        };
        let now = self.context.now;
        let is_known = current.as_ref().is_some_and(|record| {
            record.phase == Phase::Succeeded && record.reason.as_deref() != Some(SENT)
        });
        // Until it is reported, it is known that it was made without that.
        let is_reported = matches!(
            wish.strategy,
            StrategyKind::Admission(Admission {
                gatekeeper_ref: Some(_),
            })
        );
        let record = match current {
            Some(record)
                if is_known && (is_reported || record.reason.as_deref() != Some(ADMITTED)) =>
            {
                facts::merged(record)
            }
            current => {
                let is_open = current.as_ref().filter(|record| is_outstanding(record));
                let of = is_open.and_then(|record| record.pull_request.as_ref());
                plan.acts.extend(of.map(|it| Act::LookAt(it.name.clone())));
                PromotionRecord {
                    reason: Some(ARRIVED.to_owned()),
                    ..wish.record(current, Phase::Succeeded, now)
                }
            }
        };
        let mut record = frozen(record);
        if let StrategyKind::Admission(_) = wish.strategy {
            let is_said = acts::is_said(self.context, self.place, &record.revision);
            if is_said && self.is_admitted(plan, &record) {
                record.reason = Some(REPORTED.to_owned());
            }
            self.keep_reported(plan, &record, wish);
        }
        plan.record = Some(record);
    }

    /// A report of an admission that was wiped is written again.
    pub(super) fn keep_reported(&self, plan: &mut Plan, record: &PromotionRecord, wish: Wish<'_>) {
        let tried = facts::tried(self.context, record);
        let reports = self.reports(wish, Some(record));
        match step::admission(Some(record.phase), reports, tried, Due::Later) {
            Step::Act
                if record.reason.as_deref() != Some(ARRIVED) || self.is_admitted(plan, record) =>
            {
                plan.acts.extend(self.acts(record, wish.strategy));
            }
            _ => self.tell_unreported(plan, record, wish),
        }
    }

    /// Says why gatekeepers that were told of an admission do not have it any more, and when that is tried
    /// again.
    pub(super) fn tell_unreported(
        &self,
        plan: &mut Plan,
        record: &PromotionRecord,
        wish: Wish<'_>,
    ) {
        let StrategyKind::Admission(Admission {
            gatekeeper_ref: Some(_),
        }) = wish.strategy
        else {
            return;
        };
        let revision = record.revision.as_str();
        let errand = facts::errand(record);
        if let Some(Outcome::Failed { why, not_before }) = self.context.given.errands.get(&errand)
            && self.reports(wish, Some(record)) == Reports::Lacking
        {
            plan.message = Some(format!(
                "the report of {revision} is lost, and could not be written again: {why}"
            ));
            plan.wakes.extend(*not_before);
            return;
        }
        let all = acts::reports(self.context, self.place).iter();
        let mut others = all.filter_map(|report| match report {
            ReportSight::Says(other) => acts::is_foreign(record, other).then_some(other),
            ReportSight::Nothing | ReportSight::Unreadable(_) => None,
        });
        if let Some(other) = others.next() {
            plan.message = Some(format!(
                "somebody else has reported {other} to the gatekeeper; let this Pipeline alone \
                 report to it"
            ));
        }
    }

    /// Whether the admission was made, and not only overtaken by people.
    pub(super) fn is_admitted(&self, plan: &Plan, record: &PromotionRecord) -> bool {
        plan.admitted.iter().any(|it| it.run == record.run)
    }

    /// What the gatekeepers say of an admission, which `record` is about.
    pub(super) fn reports(&self, wish: Wish<'_>, record: Option<&PromotionRecord>) -> Reports {
        let StrategyKind::Admission(admission) = wish.strategy else {
            return Reports::None;
        };
        match admission.gatekeeper_ref {
            None => Reports::None,
            Some(_) => {
                let revision = wish.wanted.revision.as_str();
                let spec = self.environment.spec;
                match acts::lacking(self.context, self.place, spec, revision, record).is_empty() {
                    true => Reports::All,
                    false => Reports::Lacking,
                }
            }
        }
    }
}
