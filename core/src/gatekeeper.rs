//! Gatekeepers: from a spec and what was observed to a verdict at an instant.
//!
//! What comes in: the object, its evidence, an instant. What goes out: an [`Opinion`] in a few
//! nanoseconds, a [`Verdict`] with its words, and the status to report. The `match`es on
//! [`Kind`](sluice_crds::gatekeeper::Kind) have no wildcard: a new kind does not compile until it
//! is judged here.
//!
//! Each kind has a module with the name that it has in `sluice_crds::gatekeeper`: its rule, its
//! opinion, its words. A kind uses [`evidence`](crate::evidence), [`verdict`](crate::verdict),
//! [`revision`](crate::revision), [`time`](crate::time) and [`text`](crate::text). What judges all
//! kinds uses [`gate::nested`](crate::gate::nested), too, because a gatekeeper may name gates.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::External;
use sluice_crds::{Gatekeeper, State};

use crate::gate::nested::{self, Nested};
use crate::text::refusal::Refusals;
use crate::time::clock::{Now, Trust};
use crate::time::span::Span;
use crate::time::timeline::Timeline;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason, Verdict};
use schedule::{Fault, Reading, Schedule};

mod ahead;
pub mod approval;
mod evidence;
pub mod external;
pub mod http;
pub mod manual;
pub mod metric;
pub mod objects;
mod report;
mod reported;
pub mod revisions;
mod rule;
pub mod schedule;
mod scheduled;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use ahead::{Ahead, MOST_LOOKS};
pub use evidence::Evidence;
pub use report::{Report, report};
use rule::Rule;
pub use rule::check;
use scheduled::{holds, reason_of};

/// A gatekeeper, ready to be asked.
#[derive(Clone, Debug)]
pub struct Keeper {
    object: Arc<Gatekeeper>,
    evidence: Evidence,
    rule: Arc<Result<Rule, Refusals>>,
}

/// Made from the same object and the same evidence.
impl PartialEq for Keeper {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object) && self.evidence == other.evidence
    }
}

impl Keeper {
    /// Makes a gatekeeper ready to be asked about `from` and the time after it. It answers for
    /// any instant; those that it was not made ready for cost more.
    pub fn new(object: Arc<Gatekeeper>, evidence: Evidence, from: Timestamp) -> Self {
        Self::ready(object, evidence, |schedule, readings| {
            schedule.timeline(readings, from)
        })
    }

    /// The same for every instant of `span`, which holds as many changes as it may: for whoever
    /// walks through them all.
    pub fn through(object: Arc<Gatekeeper>, evidence: Evidence, span: Span) -> Self {
        Self::ready(object, evidence, |schedule, readings| {
            schedule.timeline_within(readings, span)
        })
    }
    fn ready(
        object: Arc<Gatekeeper>,
        evidence: Evidence,
        timeline: impl FnOnce(&Schedule, &[Reading]) -> Result<Timeline, Fault>,
    ) -> Self {
        let rule = Rule::read(&object.spec, |schedule| {
            timeline(schedule, evidence.calendars())
        });
        Self {
            object,
            evidence,
            rule: Arc::new(rule),
        }
    }

    /// The same for an object with the same spec, whose metadata or status has changed.
    #[must_use]
    pub fn with_object(&self, object: Arc<Gatekeeper>) -> Self {
        Self {
            object,
            ..self.clone()
        }
    }

    /// The same, judged from other evidence that changes nothing about its windows.
    #[must_use]
    pub(crate) fn with_evidence(&self, evidence: Evidence) -> Self {
        Self {
            evidence,
            ..self.clone()
        }
    }

    /// The object that it was made from.
    pub fn object(&self) -> &Arc<Gatekeeper> {
        &self.object
    }

    /// The evidence that it was made from.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// What is wrong with its spec, if anything is.
    pub fn refusals(&self) -> Option<&Refusals> {
        self.rule.as_ref().as_ref().err()
    }

    /// Whether `at` is among the instants that it was made ready for. If not: make it anew.
    pub fn reaches(&self, at: Timestamp) -> bool {
        match self.rule.as_ref() {
            Ok(Rule::Schedule {
                timeline: Ok(timeline),
                ..
            }) => timeline.at(at).is_some(),
            Ok(Rule::Schedule {
                timeline: Err(fault),
                ..
            }) => holds(fault, at),
            Ok(
                Rule::Manual
                | Rule::Revisions(_)
                | Rule::Metric(_)
                | Rule::Objects(_)
                | Rule::Http(_)
                | Rule::Approval(_)
                | Rule::External
                | Rule::Gates,
            )
            | Err(_) => true,
        }
    }

    /// What it answers, without words.
    pub fn opinion<'q>(&self, question: impl Into<Question<'q>>) -> Opinion {
        let question = question.into();
        let good_until = self.rests_until();
        if good_until.is_some_and(|good_until| good_until <= question.evidence_at().at) {
            return Opinion::closed(Reason::Expired);
        }
        let opinion = self.lasting(question);
        if question.is_ahead() {
            return opinion;
        }
        Opinion {
            until: opinion.until.into_iter().chain(good_until).min(),
            ..opinion
        }
    }

    /// The same as if its evidence never ran out.
    fn lasting(&self, question: Question<'_>) -> Opinion {
        let Question { now, revision, .. } = question;
        let seen_at = question.evidence_at();
        let spec = &self.object.spec;
        if spec.suspend {
            return Opinion::closed(Reason::Suspended);
        }
        let refused = || Opinion::closed(Reason::InvalidSpec);
        let opinion = match self.rule.as_ref() {
            Err(_) => refused(),
            Ok(Rule::Manual) => match &spec.manual {
                Some(spec) => manual::opinion(spec, now.at),
                None => refused(),
            },
            Ok(Rule::Schedule { schedule, timeline }) => {
                self.scheduled(schedule, timeline.as_ref(), now)
            }
            // A schedule knows of each calendar whether it decides.
            Ok(_) if self.is_unread(revision) => self.as_reported(seen_at),
            Ok(Rule::Revisions(rule)) => {
                rule.opinion(self.evidence.lists(), revision, spec.on_error)
            }
            Ok(Rule::Metric(rule)) => {
                metric::opinion(rule, self.evidence.metric(), spec.on_error, seen_at)
            }
            Ok(Rule::Objects(rule)) => {
                objects::opinion(rule, self.evidence.objects(), spec.on_error, seen_at)
            }
            Ok(Rule::Http(rule)) => {
                http::opinion(rule, self.evidence.http(), spec.on_error, seen_at)
            }
            Ok(Rule::Approval(rule)) => rule.opinion(self.evidence.votes(), revision, now.at),
            Ok(Rule::External) => match self.external() {
                Some((spec, report)) => {
                    let generation = self.object.metadata.generation;
                    let verified = self.evidence.verified();
                    external::opinion(spec, report, generation, verified, revision, now.at)
                }
                None => refused(),
            },
            Ok(Rule::Gates) => match &spec.gates {
                Some(spec) => nested::opinion(spec.require, self.evidence.gates(), question),
                None => refused(),
            },
        };
        match self.rule.as_ref() {
            // What will be measured nobody knows.
            _ if self.is_measured() && question.is_ahead() => Opinion {
                until: None,
                next: None,
                ..opinion
            },
            // No instant is asked for here, or whoever was asked minds the clock.
            Ok(
                Rule::Revisions(_)
                | Rule::Gates
                | Rule::Metric(_)
                | Rule::Objects(_)
                | Rule::Http(_),
            ) => opinion,
            Ok(Rule::Schedule { .. } | Rule::Manual | Rule::Approval(_) | Rule::External)
            | Err(_) => self.by_time(opinion, now),
        }
    }

    /// What a third party reports, and who may.
    fn external(&self) -> Option<(&External, Option<&sluice_crds::gatekeeper::ExternalReport>)> {
        let status = self.object.status.as_ref();
        let report = status.and_then(|status| status.report.as_deref());
        Some((self.object.spec.external.as_ref()?, report))
    }

    /// What it says at `now`. It holds until time changes it: that evidence has to be renewed
    /// meanwhile is told by [`Keeper::good_until`].
    pub fn verdict<'q>(&self, question: impl Into<Question<'q>>) -> Verdict {
        let question = question.into();
        let opinion = self.opinion(question);
        if let Some(reported) = self.stand_in(&opinion, question) {
            return Verdict::from(reported);
        }
        let until = self.turns_from(&opinion, question);
        let message = self.explain(&opinion, question);
        Verdict::new(Opinion { until, ..opinion }, message)
    }

    /// When time changes what it says, where everything that is measured or reported is renewed
    /// before it runs out. None: not by time, as far as is known. Gates behind it are asked for
    /// this alone: asked twice on every floor, those that hang together in a chain would take
    /// longer with each by double.
    pub(crate) fn turns(&self, question: Question<'_>) -> Option<Timestamp> {
        if let Ok(Rule::Gates) = self.rule.as_ref() {
            let gates = self.evidence.gates().iter();
            let turns = gates.filter_map(|gate| gate.turns(question));
            return turns.min().filter(|_| !self.object.spec.suspend);
        }
        let opinion = self.opinion(question);
        match self.stand_in(&opinion, question) {
            // Until when what was measured counts is no instant at which it changes.
            Some(_) if self.is_measured() => None,
            Some(reported) => reported.valid_until.as_ref().map(|until| until.0),
            None => self.turns_from(&opinion, question),
        }
    }

    /// When time changes its state, where everything that is measured or reported is renewed before
    /// it runs out. None: not by time, as far as is known; or the gates behind it say so themselves.
    pub(crate) fn changes(&self, question: Question<'_>) -> Option<Timestamp> {
        let opinion = self.opinion(question);
        let is_own = !matches!(self.rule.as_ref(), Ok(Rule::Gates));
        let stands_in = self.stand_in(&opinion, question).is_some();
        let known = is_own && !stands_in && opinion.reason != Reason::Expired;
        self.lasting(question).next.filter(|_| known)
    }

    /// The same, with its opinion at hand.
    fn turns_from(&self, opinion: &Opinion, question: Question<'_>) -> Option<Timestamp> {
        match opinion.reason {
            Reason::Expired => None,
            // A report is renewed before it runs out, as other evidence is.
            _ if self.external().is_some() => None,
            _ if self.is_measured() => self.lasting(question).next,
            _ => self.lasting(question.ahead()).until,
        }
    }

    /// Nothing is open by time alone while the clock cannot be relied on.
    fn by_time(&self, opinion: Opinion, now: Now) -> Opinion {
        if matches!(now.trust, Trust::Lost(_)) && opinion.state == State::Open {
            return Opinion {
                until: opinion.until,
                ..Opinion::closed(Reason::ClockSkew)
            };
        }
        opinion
    }

    /// Whether it is judged from what somebody has to look at again and again.
    pub(crate) fn is_measured(&self) -> bool {
        match self.rule.as_ref() {
            Ok(Rule::Metric(_) | Rule::Objects(_) | Rule::Http(_)) => true,
            Ok(
                Rule::Schedule { .. }
                | Rule::Manual
                | Rule::Revisions(_)
                | Rule::Approval(_)
                | Rule::External
                | Rule::Gates,
            )
            | Err(_) => false,
        }
    }

    /// Whether the words of it may be others after each look although it comes to the same: that
    /// is no news.
    pub(crate) fn wavers(&self) -> bool {
        match self.rule.as_ref() {
            Ok(Rule::Metric(_) | Rule::Http(_)) => true,
            Ok(Rule::Gates) => self.evidence.nested_wavers(),
            Ok(
                Rule::Schedule { .. }
                | Rule::Manual
                | Rule::Revisions(_)
                | Rule::Objects(_)
                | Rule::Approval(_)
                | Rule::External,
            )
            | Err(_) => false,
        }
    }

    /// Until when its opinion rests on what was read. None: for as long as nothing is seen to
    /// change.
    fn rests_until(&self) -> Option<Timestamp> {
        let rests = matches!(self.rule.as_ref(), Ok(Rule::Schedule { .. }));
        self.good_until()
            .filter(|_| rests && !self.object.spec.suspend)
    }

    /// Until when what was read may be relied on; of gates behind it what has not run out at `now`.
    pub(crate) fn good_after(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.evidence {
            Evidence::Gates(gates) => gates.iter().filter_map(|gate| gate.good_after(now)).min(),
            _ => self.good_until(),
        }
    }

    /// Until when everything that was read may be relied on. None: until it is seen to change.
    pub fn good_until(&self) -> Option<Timestamp> {
        if let Some((_, report)) = self.external() {
            return report.map(|report| report.expires_at.0);
        }
        match &self.evidence {
            Evidence::Calendars(readings) => readings
                .iter()
                .filter_map(|reading| match reading {
                    Reading::Read { good_until, .. } => *good_until,
                    Reading::Unavailable(_) | Reading::Broken(_) => None,
                })
                .min(),
            Evidence::Metric(observed) => observed.good_until(),
            Evidence::Objects(observed) => observed.good_until(),
            Evidence::Http(observed) => observed.good_until(),
            Evidence::Gates(gates) => gates.iter().filter_map(Nested::good_until).min(),
            Evidence::Nothing
            | Evidence::Lists(_)
            | Evidence::Votes(_)
            | Evidence::Reporters { .. } => None,
        }
    }
}
