//! Why a gatekeeper says what it says.

use super::{Keeper, Rule, external, http, manual, metric, objects, schedule};
use crate::gate::nested;
use crate::text::words;
use crate::time::clock::Trust;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

impl Keeper {
    /// Why it says what it says, without the instants that would make each day's words
    /// different.
    pub(crate) fn cause(&self, question: Question<'_>) -> String {
        let now = question.now;
        let reason = self.opinion(question).reason;
        let by_schedule = reason.is_by_window() || reason == Reason::EvidenceUnavailable;
        if by_schedule
            && let Ok(Rule::Schedule { schedule, timeline }) = self.rule.as_ref()
            && let Ok(moment) = self.moment(schedule, timeline.as_ref(), now.at)
        {
            return schedule::cause(schedule, self.evidence.calendars(), moment.cause);
        }
        let opinion = self.opinion(question);
        match self.rule.as_ref() {
            Ok(Rule::Metric(rule)) if !self.is_unread(None) => {
                return metric::cause(rule, self.evidence.metric(), &opinion, now);
            }
            Ok(Rule::Http(rule)) if !self.is_unread(None) => {
                return http::cause(rule, self.evidence.http(), &opinion, now);
            }
            Ok(Rule::Gates) if reason != Reason::Suspended => {
                if let Some(spec) = &self.object.spec.gates {
                    return nested::cause(spec.require, self.evidence.gates(), question);
                }
            }
            // Nobody has looked, or the words tell no instant of a look.
            Ok(
                Rule::Metric(_)
                | Rule::Http(_)
                | Rule::Schedule { .. }
                | Rule::Manual
                | Rule::Revisions(_)
                | Rule::Objects(_)
                | Rule::Approval(_)
                | Rule::External
                | Rule::Gates,
            )
            | Err(_) => {}
        }
        self.verdict(question).message
    }

    pub(super) fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        let Question { now, revision, .. } = question;
        match opinion.reason {
            Reason::Suspended => "it is suspended".to_owned(),
            Reason::ClockSkew => skew(now.trust),
            Reason::Expired if self.external().is_none() && !self.is_measured() => {
                match self.good_until() {
                    Some(end) => format!(
                        "what it was judged from ran out {}",
                        words::instant_utc(end)
                    ),
                    None => "what it was judged from has run out".to_owned(),
                }
            }
            _ => match self.rule.as_ref() {
                Err(refusals) => format!("its spec is refused: {refusals}"),
                Ok(Rule::Manual) => match &self.object.spec.manual {
                    Some(spec) => manual::explain(spec, opinion),
                    None => "it has no kind".to_owned(),
                },
                Ok(Rule::Revisions(rule)) => rule.explain(self.evidence.lists(), revision, opinion),
                Ok(Rule::Metric(rule)) => {
                    metric::explain(rule, self.evidence.metric(), opinion, now)
                }
                Ok(Rule::Objects(rule)) => objects::explain(rule, self.evidence.objects(), opinion),
                Ok(Rule::Http(rule)) => http::explain(rule, self.evidence.http(), opinion, now),
                Ok(Rule::Approval(rule)) => {
                    rule.explain(self.evidence.votes(), revision, opinion, now.at)
                }
                Ok(Rule::External) => match self.external() {
                    Some((spec, report)) => external::explain(spec, report, opinion),
                    None => "it has no kind".to_owned(),
                },
                Ok(Rule::Gates) => match &self.object.spec.gates {
                    Some(spec) => nested::explain(spec.require, self.evidence.gates(), question),
                    None => "it has no kind".to_owned(),
                },
                Ok(Rule::Schedule { schedule, timeline }) => {
                    self.explain_schedule(schedule, timeline.as_ref(), now)
                }
            },
        }
    }
}

fn skew(trust: Trust) -> String {
    match trust {
        Trust::Good => "the clock is right again".to_owned(),
        Trust::Drifting(by) | Trust::Lost(by) => format!(
            "the clock differs by {}s from the API server's, so nothing is open by time alone",
            by.as_secs()
        ),
    }
}
