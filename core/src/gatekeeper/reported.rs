//! The fallback for evidence that has not been read yet, after a restart or in a tool: the verdict that
//! the status reports, for as long as it holds.

use sluice_crds::gatekeeper::VerdictStatus;

use super::{Keeper, by_time};
use crate::time::clock::Now;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

impl Keeper {
    /// What its status reports, if nothing was observed yet.
    pub(super) fn as_reported(&self, now: Now) -> Opinion {
        let opinion = match self.reported(now) {
            Some(reported) => Opinion {
                state: reported.state,
                reason: reported_reason(reported),
                until: reported.valid_until.as_ref().map(|until| until.0),
                next: None,
            },
            None => Opinion::closed(Reason::NotObserved),
        };
        // The clock decides how long it holds.
        by_time(opinion, now)
    }

    /// The verdict that its status reports, if it is about exactly this spec and still holds: used if
    /// nothing was observed yet, after a restart or in a tool.
    fn reported(&self, now: Now) -> Option<&VerdictStatus> {
        let verdict = self.object.current_status()?.verdict.as_ref()?;
        let until = verdict.valid_until.as_ref();
        until
            .is_none_or(|until| now.at < until.0)
            .then_some(verdict)
    }

    /// The reported verdict, if `opinion` is only that verdict because nothing was observed yet.
    pub(super) fn status_fallback(
        &self,
        opinion: &Opinion,
        question: Question<'_>,
    ) -> Option<&VerdictStatus> {
        let reported = self.reported(question.evidence_at());
        let judge = self.judge()?;
        let reported = reported.filter(|_| judge.is_unread(question))?;
        (opinion.reason == reported_reason(reported)).then_some(reported)
    }

    /// Whether what it says at `now` is only what its status reports, or depends on what the statuses
    /// behind the gates that it names report: nothing was observed since.
    pub(crate) fn uses_status_fallback(&self, now: Now) -> bool {
        self.judge().is_some_and(|judge| {
            let alone = || {
                self.status_fallback(&self.opinion(now), now.into())
                    .is_some()
            };
            (judge.is_unread(now.into()) && alone()) || judge.uses_status_fallback_behind(now)
        })
    }
}

/// The reason of an opinion that is only a report. That evidence is unavailable stays the reason: it
/// alone does not open a gate for which one gatekeeper would be enough.
fn reported_reason(reported: &VerdictStatus) -> Reason {
    match reported.reason == Reason::EvidenceUnavailable.as_str() {
        true => Reason::EvidenceUnavailable,
        false => Reason::Reported,
    }
}
