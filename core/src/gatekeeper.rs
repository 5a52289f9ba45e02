//! Gatekeepers: from a spec and what was observed to a verdict at an instant.
//!
//! What comes in: the object, its evidence, an instant. What goes out: an [`Opinion`] in a few
//! nanoseconds, a [`Verdict`] with its words, and the status to report. The `match`es on
//! [`Kind`](sluice_crds::gatekeeper::Kind) have no wildcard: a new kind does not compile until it
//! is judged here.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::{External, Kind, VerdictStatus};
use sluice_crds::{Gatekeeper, GatekeeperSpec, State};

use crate::clock::{Now, Trust};
use crate::gate::nested;
use crate::question::Question;
use crate::refusal::{Refusal, Refusals};
use crate::revisions::Revisions;
use crate::schedule::{self, Fault, Reading, Schedule};
use crate::span::Span;
use crate::timeline::{Cause, Moment, Timeline};
use crate::verdict::{Opinion, Reason, Verdict};
use crate::words;
use crate::{approval, external, http, manual, metric, objects};

mod ahead;
mod evidence;
mod report;
#[cfg(test)]
mod tests;

pub(crate) use ahead::{Ahead, MOST_LOOKS};
pub use evidence::{Evidence, Votes};
pub use report::{Report, report};

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

/// What a spec comes to.
#[derive(Clone, Debug)]
enum Rule {
    Schedule {
        schedule: Box<Schedule>,
        timeline: Result<Timeline, Fault>,
    },
    Manual,
    Revisions(Revisions),
    Metric(Box<metric::Rule>),
    Objects(Box<objects::Rule>),
    Http(Box<http::Rule>),
    Approval(approval::Approvals),
    External,
    Gates,
}

/// Everything that is wrong with a spec, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(spec: &GatekeeperSpec) -> Result<(), Refusals> {
    match kind(spec)? {
        Kind::Schedule(spec) => Schedule::read(spec, "spec.schedule").map(|_| ()),
        Kind::Manual(spec) => manual::check(spec).map_err(Refusals::from),
        Kind::Revisions(spec) => Revisions::read(spec, "spec.revisions").map(|_| ()),
        Kind::Metric(spec) => metric::read(spec, "spec.metric").map(drop),
        Kind::Objects(spec) => objects::Rule::read(spec, "spec.objects").map(drop),
        Kind::Http(spec) => http::read(spec, "spec.http").map(drop),
        Kind::Approval(spec) => approval::Approvals::read(spec, "spec.approval").map(|_| ()),
        Kind::Gates(spec) => nested::check(spec, "spec.gates"),
        Kind::External(_) => Ok(()),
    }
}

fn kind(spec: &GatekeeperSpec) -> Result<Kind<'_>, Refusals> {
    spec.kind().map_err(|_| {
        Refusals::from(Refusal::new(
            "spec",
            "a Gatekeeper has exactly one kind",
            format!("write one of {}", sluice_crds::gatekeeper::KINDS.join(", ")),
        ))
    })
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
        let rule = kind(&object.spec).and_then(|kind| match kind {
            Kind::Schedule(spec) => {
                let schedule = Schedule::read(spec, "spec.schedule")?;
                let schedule = Box::new(schedule.on_error(object.spec.on_error.into()));
                let timeline = timeline(&schedule, evidence.calendars());
                Ok(Rule::Schedule { schedule, timeline })
            }
            Kind::Manual(_) => Ok(Rule::Manual),
            Kind::Revisions(spec) => Revisions::read(spec, "spec.revisions").map(Rule::Revisions),
            Kind::Metric(spec) => {
                metric::read(spec, "spec.metric").map(|rule| Rule::Metric(Box::new(rule)))
            }
            Kind::Objects(spec) => {
                objects::Rule::read(spec, "spec.objects").map(|rule| Rule::Objects(Box::new(rule)))
            }
            Kind::Http(spec) => {
                http::read(spec, "spec.http").map(|rule| Rule::Http(Box::new(rule)))
            }
            Kind::Approval(spec) => {
                approval::Approvals::read(spec, "spec.approval").map(Rule::Approval)
            }
            Kind::External(_) => Ok(Rule::External),
            Kind::Gates(spec) => nested::check(spec, "spec.gates").map(|()| Rule::Gates),
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
        if good_until.is_some_and(|good_until| good_until <= question.now.at) {
            return Opinion::closed(Reason::Expired);
        }
        let opinion = self.lasting(question);
        Opinion {
            until: opinion.until.into_iter().chain(good_until).min(),
            ..opinion
        }
    }

    /// The same as if its evidence never ran out.
    fn lasting(&self, question: Question<'_>) -> Opinion {
        let Question { now, revision } = question;
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
            Ok(Rule::Revisions(rule)) => {
                rule.opinion(self.evidence.lists(), revision, spec.on_error)
            }
            Ok(Rule::Metric(_) | Rule::Objects(_) | Rule::Http(_)) if self.is_unread() => {
                self.as_reported(now)
            }
            Ok(Rule::Metric(rule)) => {
                metric::opinion(rule, self.evidence.metric(), spec.on_error, now)
            }
            Ok(Rule::Objects(rule)) => {
                objects::opinion(rule, self.evidence.objects(), spec.on_error, now)
            }
            Ok(Rule::Http(rule)) => http::opinion(rule, self.evidence.http(), spec.on_error, now),
            Ok(Rule::Approval(rule)) => {
                let (approvals, authors, verified) = self.evidence.votes();
                rule.opinion(approvals, authors, verified, revision, now.at)
            }
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
            // No instant is asked for here, or whoever was asked minds the clock.
            Ok(
                Rule::Revisions(_)
                | Rule::Gates
                | Rule::Metric(_)
                | Rule::Objects(_)
                | Rule::Http(_),
            ) => opinion,
            _ => self.by_time(opinion, now),
        }
    }

    /// What a third party reports, and who may.
    fn external(&self) -> Option<(&External, Option<&sluice_crds::gatekeeper::ExternalReport>)> {
        let status = self.object.status.as_ref();
        let report = status.and_then(|status| status.report.as_ref());
        Some((self.object.spec.external.as_ref()?, report))
    }

    /// What it says at `now`. It holds until time changes it: that evidence has to be renewed
    /// meanwhile is told by [`Keeper::good_until`].
    pub fn verdict<'q>(&self, question: impl Into<Question<'q>>) -> Verdict {
        let question = question.into();
        let now = question.now;
        let opinion = self.opinion(question);
        if let Some(reported) = self.stand_in(&opinion, now) {
            return Verdict::from(reported);
        }
        let until = match opinion.reason {
            Reason::Expired => None,
            // A report is renewed before it runs out, as other evidence is.
            _ if self.external().is_some() => None,
            _ if self.is_measured() => self.lasting(question).next,
            _ => self.lasting(question).until,
        };
        let message = self.explain(&opinion, question);
        Verdict::new(Opinion { until, ..opinion }, message)
    }

    fn scheduled(
        &self,
        schedule: &Schedule,
        timeline: Result<&Timeline, &Fault>,
        now: Now,
    ) -> Opinion {
        match self.moment(schedule, timeline, now.at) {
            Err(fault) => self.in_want_of_a_calendar(&fault, now),
            Ok(moment) => Opinion {
                state: moment.cause.state(),
                reason: reason_of(moment.cause),
                until: moment.holds_until(),
                next: moment.next,
            },
        }
    }

    /// The moment at `at`: from the timeline at hand, or from one made for the occasion.
    fn moment<'a>(
        &self,
        schedule: &Schedule,
        at_hand: Result<&Timeline, &'a Fault>,
        at: Timestamp,
    ) -> Result<Moment, Cow<'a, Fault>> {
        match at_hand {
            Ok(timeline) => match timeline.at(at) {
                Some(moment) => Ok(moment),
                None => schedule
                    .moment(self.evidence.calendars(), at)
                    .map_err(Cow::Owned),
            },
            Err(fault) if holds(fault, at) => Err(Cow::Borrowed(fault)),
            Err(_) => schedule
                .moment(self.evidence.calendars(), at)
                .map_err(Cow::Owned),
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

    fn in_want_of_a_calendar(&self, fault: &Fault, now: Now) -> Opinion {
        match fault {
            Fault::Unread { .. } => self.as_reported(now),
            Fault::Broken { within, .. } => Opinion {
                until: within.map(|within| within.end),
                ..Opinion::closed(Reason::EvidenceBroken)
            },
            Fault::TooMuch => Opinion::closed(Reason::EvidenceBroken),
        }
    }

    /// What its status reports, where nobody has looked yet.
    fn as_reported(&self, now: Now) -> Opinion {
        match self.reported(now) {
            Some(reported) => Opinion {
                state: reported.state,
                reason: reported_reason(reported),
                until: reported.valid_until.as_ref().map(|until| until.0),
                next: None,
            },
            None => Opinion::closed(Reason::NotObserved),
        }
    }

    /// Whether there is evidence to be had that nobody has looked at yet.
    fn is_unread(&self) -> bool {
        match self.rule.as_ref() {
            Ok(Rule::Schedule { timeline, .. }) => matches!(timeline, Err(Fault::Unread { .. })),
            Ok(Rule::Metric(_)) => self.evidence.metric().is_none(),
            Ok(Rule::Objects(_)) => self.evidence.objects().is_none(),
            Ok(Rule::Http(_)) => self.evidence.http().is_none(),
            Ok(
                Rule::Manual
                | Rule::Revisions(_)
                | Rule::Approval(_)
                | Rule::External
                | Rule::Gates,
            )
            | Err(_) => false,
        }
    }

    /// Whether it is judged from what is measured again and again: that the words of it change is
    /// no news.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(
            self.rule.as_ref(),
            Ok(Rule::Metric(_) | Rule::Objects(_) | Rule::Http(_))
        )
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
    fn stand_in(&self, opinion: &Opinion, now: Now) -> Option<&VerdictStatus> {
        let reported = self.reported(now).filter(|_| self.is_unread())?;
        (opinion.reason == reported_reason(reported)).then_some(reported)
    }

    /// Whether what it says at `now` is only what its status reports: nobody has looked since.
    pub(crate) fn stands_in(&self, now: Now) -> bool {
        self.is_unread() && self.stand_in(&self.opinion(now), now).is_some()
    }

    /// Until when its opinion rests on what was read. None: for as long as nothing is seen to
    /// change.
    fn rests_until(&self) -> Option<Timestamp> {
        let rests = matches!(self.rule.as_ref(), Ok(Rule::Schedule { .. }));
        self.good_until()
            .filter(|_| rests && !self.object.spec.suspend)
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
            Evidence::Nothing
            | Evidence::Lists(_)
            | Evidence::Votes(_)
            | Evidence::Reporters { .. }
            | Evidence::Gates(_) => None,
        }
    }

    /// Why it says what it says at `now`, without the instants that would make each day's words
    /// different.
    pub(crate) fn cause(&self, now: Now) -> String {
        let reason = self.opinion(now).reason;
        let by_schedule = reason.is_by_window() || reason == Reason::EvidenceUnavailable;
        if by_schedule
            && let Ok(Rule::Schedule { schedule, timeline }) = self.rule.as_ref()
            && let Ok(moment) = self.moment(schedule, timeline.as_ref(), now.at)
        {
            return schedule::cause(schedule, self.evidence.calendars(), moment.cause);
        }
        let opinion = self.opinion(now);
        match self.rule.as_ref() {
            Ok(Rule::Metric(rule)) if !self.is_unread() => {
                return metric::cause(rule, self.evidence.metric(), &opinion, now);
            }
            Ok(Rule::Http(rule)) if !self.is_unread() => {
                return http::cause(rule, self.evidence.http(), &opinion, now);
            }
            _ => {}
        }
        self.verdict(now).message
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        let Question { now, revision } = question;
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
                    let (approvals, authors, _) = self.evidence.votes();
                    rule.explain(approvals, authors, revision, opinion, now.at)
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

    fn explain_schedule(
        &self,
        schedule: &Schedule,
        timeline: Result<&Timeline, &Fault>,
        now: Now,
    ) -> String {
        match self.moment(schedule, timeline, now.at) {
            Ok(moment) => schedule::explain(schedule, self.evidence.calendars(), &moment),
            Err(fault) => fault.to_string(),
        }
    }
}

fn reason_of(cause: Cause) -> Reason {
    match cause {
        Cause::Inside(_) => Reason::InsideWindow,
        Cause::Unbounded => Reason::NoClosedWindow,
        Cause::ClosedBy(_) => Reason::ClosedWindow,
        Cause::LastStart(_) => Reason::LastStart,
        Cause::Outside => Reason::OutsideWindow,
        Cause::Undecided(_) => Reason::EvidenceUnavailable,
    }
}

/// Whether `fault` is about `at`.
fn holds(fault: &Fault, at: Timestamp) -> bool {
    fault.within().is_none_or(|within| within.contains(at))
}

/// The reason of an opinion that is only a report. That evidence cannot be had stays what it is:
/// it opens no gate by itself of which one gatekeeper would be enough.
fn reported_reason(reported: &VerdictStatus) -> Reason {
    match reported.reason == Reason::EvidenceUnavailable.as_str() {
        true => Reason::EvidenceUnavailable,
        false => Reason::Reported,
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
