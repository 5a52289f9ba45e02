//! What stands in for evidence that nobody has looked at yet, after a restart or in a tool: the
//! verdict that the status reports, for as long as it holds.

use sluice_crds::gatekeeper::VerdictStatus;

use super::schedule::Fault;
use super::{Keeper, Rule};
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

impl Keeper {
    /// What its status reports, where nobody has looked yet.
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
        // How long it holds is told by the clock.
        self.by_time(opinion, now)
    }

    /// Whether there is evidence to be had that nobody has looked at yet, and a status could stand
    /// in for it: what it says of no revision in particular does so for no particular one.
    pub(super) fn is_unread(&self, revision: Option<&Revision>) -> bool {
        match self.rule.as_ref() {
            Ok(Rule::Schedule { timeline, .. }) => matches!(timeline, Err(Fault::Unread { .. })),
            Ok(Rule::Metric(_)) => self.evidence.metric().is_none(),
            Ok(Rule::Objects(_)) => self.evidence.objects().is_none(),
            Ok(Rule::Http(_)) => self.evidence.http().is_none(),
            Ok(Rule::Revisions(rule)) => {
                revision.is_none() && self.evidence.lists().len() < rule.sources().count()
            }
            Ok(Rule::Approval(rule)) => {
                let votes = self.evidence.votes();
                revision.is_none() && rule.forbids_self() && votes.authors.is_none()
            }
            Ok(Rule::Manual | Rule::External | Rule::Gates) | Err(_) => false,
        }
    }

    /// The verdict that its status reports, if it is about this very spec and still holds: what
    /// is known of evidence where nobody has looked, after a restart or in a tool.
    fn reported(&self, now: Now) -> Option<&VerdictStatus> {
        let status = self.object.status.as_ref()?;
        let verdict = status.verdict.as_ref()?;
        (status.observed_generation == self.object.metadata.generation
            && verdict
                .valid_until
                .as_ref()
                .is_none_or(|until| now.at < until.0))
        .then_some(verdict)
    }

    /// The reported verdict, where `opinion` is only what that says because nobody has looked.
    pub(super) fn stand_in(
        &self,
        opinion: &Opinion,
        question: Question<'_>,
    ) -> Option<&VerdictStatus> {
        let reported = self.reported(question.evidence_at());
        let reported = reported.filter(|_| self.is_unread(question.revision))?;
        (opinion.reason == reported_reason(reported)).then_some(reported)
    }

    /// Whether what it says at `now` is only what its status reports, or rests on what others'
    /// report, behind the gates that it names: nobody has looked since.
    pub(crate) fn stands_in(&self, now: Now) -> bool {
        let alone = || self.stand_in(&self.opinion(now), now.into()).is_some();
        let behind = || self.evidence.gates().iter().any(|gate| gate.stands_in(now));
        (self.is_unread(None) && alone()) || behind()
    }
}

/// The reason of an opinion that is only a report. That evidence cannot be had stays what it is:
/// it opens no gate by itself of which one gatekeeper would be enough.
fn reported_reason(reported: &VerdictStatus) -> Reason {
    match reported.reason == Reason::EvidenceUnavailable.as_str() {
        true => Reason::EvidenceUnavailable,
        false => Reason::Reported,
    }
}
