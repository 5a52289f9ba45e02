//! Forces: people who open or close a gate, whatever its gatekeepers say.
//!
//! Two dialects of annotations. `sluice.dev/force` with who, why and until when; and the gating
//! RFC's `open.gate.fluxcd.io/requestedAt` and `close.gate.fluxcd.io/requestedAt`, an instant from
//! which `spec.window` counts. A malformed value is reported and changes nothing. Closed beats
//! open.
//!
//! A force is accepted when the controller has noted it in `sluice.dev/force-seen`: from then on it has a
//! beginning and an end. A force that opens the gate counts only once it is accepted; a force that closes
//! it counts at once.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use sluice_crds::{Gate, Setting};

use super::Terms;
use crate::text::refusal::{Refusal, Refusals};
use crate::text::words;
use crate::time::clock::Now;

mod note;
pub mod owner;
mod reader;

use note::PARTS;
use reader::Reader;

/// Whether the author of an annotation is known to be who the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Admission policies verify it.
    Verified,
    /// Nothing verifies it, and the operator accepts that.
    Trusted,
    /// Nothing verifies it: forces do not count.
    Unverified,
}

/// A force: who, why, until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Force {
    /// The forced state.
    pub state: Setting,
    /// Who, fit to be shown.
    pub by: String,
    /// Why, fit to be shown.
    pub reason: String,
    /// Since when. While it is not accepted: the instant of the question.
    pub since: Timestamp,
    /// Until when, exclusive. [`Timestamp::MAX`]: it names no end, and gets one when it is accepted.
    pub until: Timestamp,
    /// Whether the controller has noted it.
    pub accepted: bool,
}

impl Force {
    /// Fail closed: a force that closes a gate counts before it is accepted.
    fn counts(&self) -> bool {
        self.accepted || self.state == Setting::Closed
    }

    /// Whether it names no end and has not been given one yet.
    fn is_endless(&self) -> bool {
        self.until == Timestamp::MAX
    }

    fn covers(&self, at: Timestamp) -> bool {
        self.since <= at && at < self.until
    }
}

impl fmt::Display for Force {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            state,
            by,
            reason,
            since: _,
            until,
            accepted: _,
        } = self;
        write!(f, "forced {state} by {by}")?;
        if !self.is_endless() {
            write!(f, " until {}", words::instant_utc(*until))?;
        }
        write!(f, ": {reason}")
    }
}

/// The forces that a gate's annotations ask for, and what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forces {
    /// What the gate's spec says of how long a force may last, or why it is refused.
    pub(super) terms: Result<Terms, Refusals>,
    /// The forces that count at some time, and those that will when they are accepted.
    forces: Vec<Force>,
    /// When an annotation that is refused becomes valid, while nothing notes that it was invalid.
    ripening: Vec<Timestamp>,
    /// What is wrong with the annotations.
    pub complaints: Vec<Refusal>,
    /// The annotations as the controller should complete and co-own them. None: they are complete and it
    /// owns them, or its clock cannot be relied on.
    pub completion: Option<BTreeMap<String, String>>,
}

impl Forces {
    /// Nobody forces the gate.
    fn none(terms: Result<Terms, Refusals>) -> Self {
        Self {
            terms,
            forces: Vec::new(),
            ripening: Vec::new(),
            complaints: Vec::new(),
            completion: None,
        }
    }

    /// The force in effect at `at`: closed beats open, then the one that lasts longest.
    pub fn in_effect(&self, at: Timestamp) -> Option<&Force> {
        first(self.forces.iter().filter(|force| force.counts()), at)
    }

    /// The force that would be in effect at `at` if all of them were accepted.
    pub fn asked_for(&self, at: Timestamp) -> Option<&Force> {
        first(self.forces.iter(), at)
    }

    /// Those that wait to be accepted, and whose end is after `at`.
    pub(super) fn waiting(&self, at: Timestamp) -> impl Iterator<Item = &Force> {
        let waits = move |force: &&Force| !force.accepted && at < force.until;
        self.forces.iter().filter(waits)
    }

    /// When any of them starts or ends, if that is known.
    pub(super) fn ends(&self) -> impl Iterator<Item = Timestamp> {
        let ends = self.forces.iter().flat_map(|f| [f.since, f.until]);
        let known = ends.filter(|end| *end < Timestamp::MAX);
        known.chain(self.ripening.iter().copied())
    }
}

fn first<'a>(forces: impl Iterator<Item = &'a Force>, at: Timestamp) -> Option<&'a Force> {
    forces
        .filter(|force| force.covers(at))
        .max_by_key(|force| (force.state == Setting::Closed, force.until))
}

/// Whether anybody has an annotation on the gate that forces it, valid or not.
pub fn is_asked_for(gate: &Gate) -> bool {
    let annotations = gate.metadata.annotations.as_ref();
    annotations.is_some_and(|all| PARTS.iter().any(|part| all.contains_key(*part)))
}

/// Reads a gate's annotations at `at`, an instant that is given and not measured.
pub fn read(gate: &Gate, identity: Identity, at: Timestamp) -> Forces {
    judge(gate, &super::check(gate), identity, Now::given(at))
}

/// Reads a gate's annotations at `now`, under the terms that its spec sets.
pub(super) fn judge(
    gate: &Gate,
    terms: &Result<Terms, Refusals>,
    identity: Identity,
    now: Now,
) -> Forces {
    let mut forces = Forces::none(terms.clone());
    let annotations = match &gate.metadata.annotations {
        Some(annotations) if is_asked_for(gate) => annotations,
        _ => return forces,
    };
    if identity == Identity::Unverified {
        forces.complaints.push(unverified());
        return forces;
    }
    match forces.terms {
        Ok(terms) => {
            let reader = Reader::new(annotations, &gate.spec.window, terms, identity, now);
            let mut forces = reader.read();
            if forces.completion.is_none() && reader.has_noted() {
                forces.completion = owner::lost(gate, annotations);
            }
            forces
        }
        Err(_) => {
            forces.complaints.push(without_terms());
            forces
        }
    }
}

/// The gate with its annotations as the controller completes them.
pub(super) fn completed(gate: &Gate, completion: &BTreeMap<String, String>) -> Gate {
    let mut gate = gate.clone();
    let annotations = gate.metadata.annotations.get_or_insert_default();
    annotations.extend(completion.clone());
    gate
}

fn field(annotation: &str) -> String {
    format!("metadata.annotations[{annotation}]")
}

/// What is wrong with a force whose author is not verified.
pub fn unverified() -> Refusal {
    Refusal::new(
        "metadata.annotations",
        "the gate is forced by somebody whose identity nobody verified, so the force does not count",
        "install the admission policies of the chart, or run the controller with --trust-unverified-identity",
    )
}

fn without_terms() -> Refusal {
    Refusal::new(
        "metadata.annotations",
        "the spec is refused, which says how long a force may last, so the force does not count",
        "fix the spec",
    )
}
