//! `objects`: the state of other objects.
//!
//! What comes in: a spec, and its objects as they are seen, one event after another ([`Course`]). What
//! goes out: what was seen of all of them ([`Sighting`]), and the opinion that follows from it at an
//! instant.

use std::fmt;

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use kube::core::Selector;
use sluice_crds::gatekeeper::{ObjectRule, ObjectsStatus};
use sluice_crds::{Setting, State};

use crate::evidence::expression::Expression;
use crate::revision::{Revision, short};
use crate::text::words;
use crate::time::clock::{Now, Trust};
use crate::time::duration;
use crate::time::span::later;
use crate::time::stamp::time;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

mod course;
mod judge;
mod kind;
mod read;
#[cfg(test)]
mod tests;

pub use course::{Course, resume};
pub use judge::Judged;

/// The rule that a spec describes.
#[derive(Clone, Debug)]
pub struct Rule {
    service_account: String,
    parts: Vec<Part>,
    soak: SignedDuration,
}

/// Objects of one kind, and what they should be.
#[derive(Clone, Debug)]
pub struct Part {
    spec: ObjectRule,
    which: Which,
    test: Test,
    /// Which revision an object is at, if that is asked.
    revision: Option<Expression>,
}

#[derive(Clone, Debug)]
enum Which {
    Named(String),
    Selected(Selector),
}

#[derive(Clone, Debug)]
enum Test {
    Condition { type_: String, status: String },
    Expression(Expression),
}

/// What came of looking at the objects: the evidence of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// They were seen.
    Seen(Sighting),
    /// They cannot be, and why: `onError` decides.
    Unavailable(String),
}

/// All the objects of a rule, as they were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// How many there are. One that two parts are about counts twice.
    pub seen: usize,
    /// How many are as they should be.
    pub satisfied: usize,
    /// The revision that all of them are at. None: they are not, or it is not asked.
    pub revision: Option<Box<Revision>>,
    /// The first that is not as it should be, in the order of the spec and then by name.
    pub first_unsatisfied: Option<Unsatisfied>,
    /// Since when all of them have been as they should be, without a break.
    pub satisfied_since: Option<Timestamp>,
    /// See [`ObjectsStatus::digest`].
    pub digest: Option<String>,
    /// Until when this may be relied on.
    pub good_until: Timestamp,
}

/// Why objects are not as they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsatisfied {
    /// A selector matches nothing: what there is none of.
    NothingSelected(String),
    /// There is no object of that name.
    Missing(String),
    /// An object is not as it should be.
    Object {
        /// Its kind and name, with its namespace if it is in one.
        object: String,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for Unsatisfied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsatisfied::NothingSelected(what) | Unsatisfied::Missing(what) => {
                write!(f, "there is no {what}")
            }
            Unsatisfied::Object { object, why } => write!(f, "{object}: {why}"),
        }
    }
}

impl Rule {
    /// The service account with whose rights the objects are read.
    pub fn service_account(&self) -> &str {
        &self.service_account
    }

    /// Whether it admits only the revision that its objects are at.
    fn asks_for_revision(&self) -> bool {
        self.parts.iter().any(|part| part.revision.is_some())
    }

    /// The objects, in the order of the spec.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    /// As the spec has it.
    pub fn spec(&self) -> &ObjectRule {
        &self.spec
    }
}

impl Sighting {
    /// Whether the objects are at another revision than the one that is asked about.
    fn is_elsewhere(&self, asked: Option<&Revision>) -> bool {
        let revision = self.revision.as_ref();
        asked.is_some_and(|asked| revision.is_some_and(|revision| !revision.is(asked)))
    }
}

impl Observed {
    /// Until when it may be relied on. None: until it is seen to change.
    pub fn good_until(&self) -> Option<Timestamp> {
        match self {
            Observed::Seen(sighting) => Some(sighting.good_until),
            Observed::Unavailable(_) => None,
        }
    }

    /// As statuses have it. None: nothing was seen.
    pub fn status(&self) -> Option<ObjectsStatus> {
        let Observed::Seen(sighting) = self else {
            return None;
        };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Some(ObjectsStatus {
            seen: count(sighting.seen),
            satisfied: count(sighting.satisfied),
            // Statuses have whole seconds: do not report more time than there was.
            satisfied_since: sighting
                .satisfied_since
                .map(|since| time(next_second(since))),
            revision: sighting.revision.as_ref().map(ToString::to_string),
            digest: sighting.digest.clone(),
        })
    }
}

/// What the rule says. `observed` None: nothing was observed yet.
fn opinion(
    rule: &Rule,
    observed: Option<&Observed>,
    on_error: Setting,
    question: Question<'_>,
) -> Opinion {
    let (now, asked) = (question.evidence_at(), question.revision);
    let sighting = match observed {
        None => return Opinion::closed(Reason::NotObserved),
        Some(Observed::Unavailable(_)) => {
            return Opinion::of(on_error.into(), Reason::EvidenceUnavailable);
        }
        Some(Observed::Seen(sighting)) if sighting.good_until <= now.at => {
            return Opinion::closed(Reason::Expired);
        }
        Some(Observed::Seen(sighting)) => sighting,
    };
    let opinion = Opinion {
        until: Some(sighting.good_until),
        ..Opinion::closed(Reason::ObjectsNotReady)
    };
    match (&sighting.first_unsatisfied, sighting.satisfied_since) {
        (Some(Unsatisfied::NothingSelected(_)), _) => Opinion {
            reason: Reason::NoObjects,
            ..opinion
        },
        (Some(Unsatisfied::Missing(_) | Unsatisfied::Object { .. }), _) | (None, None) => opinion,
        (None, Some(since)) => match soaked(rule, since) {
            _ if sighting.is_elsewhere(asked) => Opinion {
                reason: Reason::OtherRevision,
                ..opinion
            },
            end if end > now.at => Opinion {
                reason: Reason::Soaking,
                until: Some(end.min(sighting.good_until)),
                next: Some(end),
                ..opinion
            },
            _ if is_by_clock(rule, now) => Opinion {
                reason: Reason::ClockSkew,
                ..opinion
            },
            _ if sighting.revision.is_some() && asked.is_none() => Opinion {
                state: State::Conditional,
                reason: Reason::DependsOnRevision,
                ..opinion
            },
            _ => Opinion {
                state: State::Open,
                reason: Reason::ObjectsReady,
                ..opinion
            },
        },
    }
}

/// The first full second that is not before `at`.
fn next_second(at: Timestamp) -> Timestamp {
    let second = at.round(
        TimestampRound::new()
            .smallest(Unit::Second)
            .mode(RoundMode::Ceil),
    );
    second.unwrap_or(at)
}

/// When objects have been as they should be for long enough.
fn soaked(rule: &Rule, since: Timestamp) -> Timestamp {
    later(since, rule.soak)
}

/// Whether a soak would be over only by a clock that cannot be relied on.
fn is_by_clock(rule: &Rule, now: Now) -> bool {
    match now.trust {
        Trust::Lost(_) => !rule.soak.is_zero(),
        Trust::Good | Trust::Drifting(_) => false,
    }
}

/// Why the rule says what it says, in a sentence.
fn explain(rule: &Rule, observed: Option<&Observed>, opinion: &Opinion) -> String {
    match observed {
        None => "its objects have not been looked at yet".to_owned(),
        Some(Observed::Unavailable(why)) => match opinion.state {
            State::Open => format!("{why}; onError is open"),
            State::Closed | State::Conditional => why.clone(),
        },
        Some(Observed::Seen(sighting)) => explain_sighting(rule, sighting, opinion),
    }
}

fn explain_sighting(rule: &Rule, sighting: &Sighting, opinion: &Opinion) -> String {
    let Sighting {
        seen, satisfied, ..
    } = sighting;
    let (objects, they) = match seen {
        1 => ("object is as it should be", "it has"),
        _ => ("objects are as they should be", "they have"),
    };
    let mut count = format!("{satisfied} of {seen} {objects}");
    if let Some(revision) = &sighting.revision {
        count.push_str(&format!(", at {}", short(revision.as_str())));
    }
    match (&sighting.first_unsatisfied, sighting.satisfied_since) {
        // Without the count: else a roll-out of many objects would be as many statuses to write.
        (Some(first), _) => first.to_string(),
        (None, Some(since)) if !rule.soak.is_zero() => {
            let since_when = words::instant_utc(since);
            match opinion.reason {
                Reason::Soaking => format!(
                    "{count} since {since_when}; {they} to be for {}, until {}",
                    duration::text(rule.soak),
                    words::instant_utc(soaked(rule, since)),
                ),
                _ => format!("{count} since {since_when}"),
            }
        }
        (None, _) => count,
    }
}
