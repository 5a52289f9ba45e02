//! Gatekeepers: from a spec and what was observed to a verdict at an instant.
//!
//! What comes in: the object, its evidence, an instant. What goes out: an [`Opinion`] in a few
//! nanoseconds, a [`Verdict`] with its words, and the status to report.
//!
//! Each kind has a module with the name that it has in `sluice_crds::gatekeeper`: its rule with its
//! evidence, its opinion, its words, behind the traits of `kind`. The one `match` that lists
//! the kinds is in [`kind()`]. Everything else here is the same for all of them.
//!
//! It uses [`evidence`](crate::evidence), [`verdict`](crate::verdict),
//! [`revision`](crate::revision), [`time`](crate::time) and [`text`](crate::text).

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::{KINDS, Kind};
use sluice_crds::{Gatekeeper, GatekeeperSpec, State};

use crate::text::refusal::{Refusal, Refusals};
use crate::time::clock::{Now, Trust};
use crate::time::span::Span;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason, Verdict};
use kind::{Basis, Judge, KindSpec, Period, Setup};

mod ahead;
pub mod approval;
mod evidence;
mod external;
pub(crate) mod gates;
mod given;
pub mod http;
pub(crate) mod kind;
mod manual;
pub mod metric;
mod named;
pub mod objects;
mod pipeline;
mod report;
mod reported;
pub mod revisions;
pub mod schedule;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use ahead::{Ahead, MOST_LOOKS};
pub use evidence::Evidence;
pub use given::Given;
pub(crate) use given::{Course, Report as GivenReport};
pub use kind::Known;
pub use named::{FORBIDDEN, Named};
pub use report::{Report, report};

/// The kind that a spec has.
///
/// # Errors
/// The spec is of no kind, or of several.
pub(crate) fn kind(spec: &GatekeeperSpec) -> Result<&dyn KindSpec, Refusals> {
    let problem = "a Gatekeeper has exactly one kind";
    let remedy = || format!("write one of {}", KINDS.join(", "));
    let kind = spec.kind();
    let kind = kind.map_err(|_| Refusals::from(Refusal::new("spec", problem, remedy())))?;
    Ok(match kind {
        Kind::Schedule(spec) => spec,
        Kind::Manual(spec) => spec,
        Kind::Revisions(spec) => spec,
        Kind::Metric(spec) => spec,
        Kind::Objects(spec) => spec,
        Kind::Http(spec) => spec,
        Kind::Approval(spec) => spec,
        Kind::Gates(spec) => spec,
        Kind::Pipeline(spec) => spec,
        Kind::External(spec) => spec,
    })
}

/// Everything that is wrong with a spec, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(spec: &GatekeeperSpec) -> Result<(), Refusals> {
    kind(spec)?.check()
}

/// What a gatekeeper is judged from: what was observed for it, and what else is known.
pub fn evidence(object: &Gatekeeper, observed: Evidence, known: &dyn Known) -> Evidence {
    match kind(&object.spec) {
        Ok(kind) => kind.complete(object, observed, known),
        Err(_) => observed,
    }
}

/// A gatekeeper, ready to be asked.
#[derive(Clone, Debug)]
pub struct Keeper {
    object: Arc<Gatekeeper>,
    evidence: Evidence,
    /// The rule with this evidence. Err: what is wrong with the spec.
    judge: Result<Arc<dyn Judge>, Arc<Refusals>>,
}

/// Made from the same object and the same evidence.
impl PartialEq for Keeper {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object) && self.evidence == other.evidence
    }
}

impl Keeper {
    /// Makes a gatekeeper ready to be asked about `from` and the time after it. It answers for any
    /// instant, but instants that it was not made ready for cost more.
    pub fn new(object: Arc<Gatekeeper>, evidence: Evidence, from: Timestamp) -> Self {
        Self::ready(object, evidence, Period::From(from))
    }

    /// The same for every instant of `span`, with as many changes as it may hold: for code that looks at
    /// all of them.
    pub fn through(object: Arc<Gatekeeper>, evidence: Evidence, span: Span) -> Self {
        Self::ready(object, evidence, Period::Within(span))
    }

    fn ready(object: Arc<Gatekeeper>, evidence: Evidence, period: Period) -> Self {
        let setup = Setup {
            on_error: object.spec.on_error,
            evidence: &evidence,
            period,
        };
        let judge = kind(&object.spec).and_then(|kind| kind.judge(&setup));
        Self {
            judge: judge.map_err(Arc::new),
            object,
            evidence,
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

    /// The same with another rule, unless its spec is refused.
    #[must_use]
    pub(crate) fn judged_by(&self, judge: Arc<dyn Judge>) -> Self {
        Self {
            judge: self.judge.clone().map(|_| judge),
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
        self.judge.as_ref().err().map(AsRef::as_ref)
    }

    /// Its rule. None: its spec is refused.
    fn judge(&self) -> Option<&dyn Judge> {
        self.judge.as_deref().ok()
    }

    /// What its answers are based on. None: its spec is refused.
    fn basis(&self) -> Option<Basis> {
        self.judge().map(Judge::basis)
    }

    /// Whether `at` is among the instants that it was made ready for. If not: make it again.
    pub fn reaches(&self, at: Timestamp) -> bool {
        self.judge().is_none_or(|judge| judge.is_ready_for(at))
    }

    /// What it answers, without words.
    pub fn opinion<'q>(&self, question: impl Into<Question<'q>>) -> Opinion {
        let question = question.into();
        if self.object.spec.suspend {
            return Opinion::closed(Reason::Suspended);
        }
        let Some(judge) = self.judge() else {
            return Opinion::closed(Reason::InvalidSpec);
        };
        let basis = judge.basis();
        let opinion = match judge.is_unread(question) {
            // Measurements are renewed before they expire; what a clock decides is not.
            true if basis == Basis::Clock => self.as_reported(question.now),
            true => self.as_reported(question.evidence_at()),
            false => judge.opinion(question),
        };
        match basis {
            Basis::Clock | Basis::Reports => by_time(opinion, question.now),
            // What will be measured is not known.
            Basis::Measurements if question.is_ahead() => Opinion {
                until: None,
                next: None,
                ..opinion
            },
            Basis::Texts | Basis::Measurements | Basis::Gates => opinion,
        }
    }

    /// What it says at `now`. It holds until time changes it. That evidence has to be renewed before then
    /// is a different matter: see [`Keeper::good_until`].
    pub fn verdict<'q>(&self, question: impl Into<Question<'q>>) -> Verdict {
        let question = question.into();
        let opinion = self.opinion(question);
        if let Some(reported) = self.status_fallback(&opinion, question) {
            return Verdict::from(reported);
        }
        let until = self.next_change_after(&opinion, question);
        let message = self.explain(&opinion, question);
        Verdict::new(Opinion { until, ..opinion }, message)
    }

    /// When time changes what it says, if everything that is measured or reported is renewed before it
    /// expires. None: time does not change it, as far as is known. Gates behind it are asked for this
    /// alone: if each level asked twice, the time would double with every level of a chain of gates.
    pub(crate) fn next_change(&self, question: Question<'_>) -> Option<Timestamp> {
        let basis = self.basis();
        if basis == Some(Basis::Gates) {
            let judge = self.judge().filter(|_| !self.object.spec.suspend);
            return judge?.next_change_behind(question);
        }
        let opinion = self.opinion(question);
        match self.status_fallback(&opinion, question) {
            // The expiry of a measurement is not an instant at which it changes.
            Some(_) if basis == Some(Basis::Measurements) => None,
            Some(reported) => reported.valid_until.as_ref().map(|until| until.0),
            None => self.next_change_after(&opinion, question),
        }
    }

    /// When time changes its state, if everything that is measured or reported is renewed before it
    /// expires. None: time does not change it, as far as is known; or the gates behind it say so
    /// themselves.
    pub(crate) fn next_state_change(&self, question: Question<'_>) -> Option<Timestamp> {
        let opinion = self.opinion(question);
        let is_own = self.basis() != Some(Basis::Gates);
        let is_fallback = self.status_fallback(&opinion, question).is_some();
        let known = is_own && !is_fallback && opinion.reason != Reason::Expired;
        opinion.next.filter(|_| known)
    }

    /// [`Keeper::next_change`], where its opinion is known already.
    fn next_change_after(&self, opinion: &Opinion, question: Question<'_>) -> Option<Timestamp> {
        match self.basis()? {
            _ if opinion.reason == Reason::Expired => None,
            Basis::Reports => None,
            Basis::Measurements => opinion.next,
            Basis::Clock | Basis::Texts | Basis::Gates => self.opinion(question.ahead()).until,
        }
    }

    /// Whether it is judged from evidence that has to be observed again and again.
    pub(crate) fn is_measured(&self) -> bool {
        self.basis() == Some(Basis::Measurements)
    }

    /// Whether its words may differ after each look although they mean the same: such a change is not
    /// reported.
    pub(crate) fn has_volatile_message(&self) -> bool {
        self.judge().is_some_and(Judge::has_volatile_message)
    }

    /// Until when what was read may be relied on; of gates behind it, only what has not expired at `now`.
    pub(crate) fn good_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.judge()?.good_after(now)
    }

    /// Until when everything that was read may be relied on. None: until a change is seen.
    pub fn good_until(&self) -> Option<Timestamp> {
        self.judge()?.good_until()
    }
}

/// Time alone opens nothing while the clock cannot be relied on.
fn by_time(opinion: Opinion, now: Now) -> Opinion {
    if matches!(now.trust, Trust::Lost(_)) && opinion.state == State::Open {
        return Opinion {
            until: opinion.until,
            ..Opinion::closed(Reason::ClockSkew)
        };
    }
    opinion
}
