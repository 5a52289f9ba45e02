//! Gates: may a change go out now, and why?
//!
//! What comes in: the Gate, the gatekeepers that it names, and an instant. What goes out: an [`Answer`]
//! for those who decide at once, and a [`Report`] for the status. Both are made in the same way. The
//! first of these that applies decides: changes are not seen at all, a force is in effect, the gate is
//! suspended, it depends on itself, it has no gatekeepers (then its default), and last the verdicts of
//! its gatekeepers.
//!
//! [`set`] combines the gates that a change has to pass; [`policy`] says whom a policy concerns.
//!
//! It uses [`gatekeeper`](crate::gatekeeper), [`verdict`](crate::verdict), [`time`](crate::time) and
//! [`text`](crate::text).

use jiff::Timestamp;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::{Gate, Require, State};

use crate::gatekeeper::Keeper;
use crate::text::refusal::{Refusal, Refusals};
use crate::time::clock::Now;
use crate::time::duration;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

pub(crate) mod fold;
pub mod force;
pub mod nested;
mod outlook;
pub mod policy;
mod report;
pub mod set;
#[cfg(test)]
mod tests;
mod words;

pub use crate::gatekeeper::{FORBIDDEN, Named};
pub use force::{Force, Forces, Identity};
pub use outlook::upcoming;
pub use report::{Report, Told, report, report_uncompleted, told};
pub use words::about_forces;

/// The shortest limit that a spec may set for forces.
const SHORTEST_OVERRIDE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
/// The shortest time that a spec may set for forces that name no end.
const SHORTEST_WINDOW: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

/// The most gatekeepers of one gate.
const MOST_GATEKEEPERS: usize = 32;

/// A gate and everything that it names.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// Its gatekeepers, in the order of its spec.
    pub keepers: Vec<Named<&'a Keeper>>,
    /// Whether the author of an annotation is known to be who it says.
    pub identity: Identity,
    /// The path by which the gate depends on itself, if it does.
    pub cycle: Option<&'a str>,
    /// Why changes of the objects here are not seen any more, if that is so: somebody may have closed the
    /// gate since then.
    pub unwatched: Option<&'a str>,
    /// The terms that the spec of the gate sets. They are read once.
    terms: Result<Terms, Refusals>,
}

impl<'a> View<'a> {
    /// The gate, with each gatekeeper that it names looked up by `seek`.
    pub fn new(
        gate: &'a Gate,
        identity: Identity,
        seek: impl FnMut(&GatekeeperReference) -> Named<&'a Keeper>,
    ) -> Self {
        Self {
            gate,
            keepers: gate.spec.gatekeepers.iter().map(seek).collect(),
            identity,
            cycle: None,
            unwatched: None,
            terms: check(gate),
        }
    }

    /// The annotations that force the gate, as they are at `now`.
    fn forces(&self, now: Now) -> Forces {
        force::judge(self.gate, &self.terms, self.identity, now)
    }

    fn require(&self) -> Require {
        self.gate.spec.require
    }
}

/// Whether a gate is open, without words: cheap to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Open or closed.
    pub state: State,
    /// Why.
    pub reason: Reason,
    /// The place in the spec of the gatekeeper that decided. None: no gatekeeper did.
    pub decided_by: Option<usize>,
}

/// Whether the gate is open.
pub fn answer<'q>(view: &View<'_>, question: impl Into<Question<'q>>) -> Answer {
    let question = question.into();
    let forces = view.forces(question.now);
    answer_with(view, &forces, question)
}

/// The same with its words (who decided, what was seen), and until when time does not change it.
pub fn explain<'q>(
    view: &View<'_>,
    question: impl Into<Question<'q>>,
) -> (Answer, Option<Timestamp>, String) {
    let question = question.into();
    let forces = view.forces(question.now);
    let answer = answer_with(view, &forces, question);
    let verdicts = words::verdicts(view, question);
    let message = words::explain(view, &forces, &answer, &verdicts, None, question);
    (answer, until(view, &forces, question), message)
}

/// What the gate says to another gate that nests it. Each gatekeeper is asked once: if each level asked
/// twice, the time would double with every level of a chain of gates.
pub(crate) fn opinion(view: &View<'_>, question: Question<'_>) -> Opinion {
    let forces = view.forces(question.now);
    let mut first: Option<Timestamp> = None;
    let said = opinions(view, question).inspect(|opinion| {
        first = earliest(first.into_iter().chain(opinion.until), question);
    });
    let answer = answer_of(view, &forces, question, said);
    let until = earliest(first.into_iter().chain(forces.ends()), question);
    Opinion {
        until,
        next: until,
        ..Opinion::of(answer.state, answer.reason)
    }
}

/// The same, with the annotations and the terms of the spec read already.
fn answer_with(view: &View<'_>, forces: &Forces, question: Question<'_>) -> Answer {
    answer_of(view, forces, question, opinions(view, question))
}

/// The same from the verdicts of its gatekeepers, if those matter.
fn answer_of(
    view: &View<'_>,
    forces: &Forces,
    question: Question<'_>,
    said: impl Iterator<Item = Opinion>,
) -> Answer {
    let undisputed = |state, reason| Answer {
        state,
        reason,
        decided_by: None,
    };
    if view.unwatched.is_some() {
        return undisputed(State::Closed, Reason::NotWatched);
    }
    if let Some(force) = forces.in_effect(question.now.at) {
        return undisputed(force.state.into(), Reason::Forced);
    }
    if forces.terms.is_err() {
        return undisputed(State::Closed, Reason::InvalidSpec);
    }
    if view.gate.spec.suspend {
        return undisputed(State::Closed, Reason::Suspended);
    }
    if view.cycle.is_some() {
        return undisputed(State::Closed, Reason::Cycle);
    }
    if view.keepers.is_empty() {
        return undisputed(view.gate.spec.default.into(), Reason::Default);
    }
    fold::fold(view.require(), said)
}

/// What each gatekeeper answers.
fn opinions(view: &View<'_>, question: Question<'_>) -> impl Iterator<Item = Opinion> {
    view.keepers.iter().map(move |sight| {
        let asked = sight.asked(Reason::Missing);
        asked.map_or_else(|closed| closed, |keeper| keeper.opinion(question))
    })
}

/// The earliest instant after `now` at which time may change anything in the gate's report. None: time
/// changes nothing.
pub(crate) fn until(view: &View<'_>, forces: &Forces, question: Question<'_>) -> Option<Timestamp> {
    let verdicts = opinions(view, question).filter_map(|opinion| opinion.until);
    earliest(verdicts.chain(forces.ends()), question)
}

/// The earliest instant after `now` at which time changes what the gate says, if everything that is
/// measured or reported is renewed before it expires. None: time does not change it, as far as is known.
pub(crate) fn next_change(view: &View<'_>, question: Question<'_>) -> Option<Timestamp> {
    let keepers = view.keepers.iter().filter_map(Named::here);
    let keepers = keepers.filter_map(|keeper| keeper.next_change(question));
    let forces = view.forces(question.now);
    earliest(keepers.chain(forces.ends()), question)
}

/// What those gatekeepers say whose words do not change with each measurement. None: the words of none
/// change, so that everything that the gate says can be compared.
pub(crate) fn steady_words(view: &View<'_>, question: Question<'_>) -> Option<Vec<String>> {
    let keepers = || view.keepers.iter().filter_map(Named::here).copied();
    let is_steady = |keeper: &Keeper| !keeper.has_volatile_message() && !keeper.is_measured();
    let steady = keepers().filter(|&keeper| is_steady(keeper));
    (!keepers().all(is_steady)).then(|| {
        let said = steady.map(|keeper| keeper.verdict(question).message);
        said.collect()
    })
}

fn earliest(
    instants: impl Iterator<Item = Timestamp>,
    question: Question<'_>,
) -> Option<Timestamp> {
    instants.filter(|at| *at > question.now.at).min()
}

/// Everything that is wrong with a gate's spec, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(gate: &Gate) -> Result<Terms, Refusals> {
    let spec = &gate.spec;
    let mut mistakes = Vec::new();
    let mut length = |text, field: &str| match duration::parse(text) {
        Ok(length) if length.is_positive() => length,
        Ok(_) => {
            mistakes.push(Refusal::new(
                field,
                format!("`{text}` is not longer than zero"),
                duration::REMEDY,
            ));
            jiff::SignedDuration::ZERO
        }
        Err(problem) => {
            mistakes.push(Refusal::new(field, problem, duration::REMEDY));
            jiff::SignedDuration::ZERO
        }
    };
    let window = length(&spec.window, "spec.window");
    let max_override = length(&spec.max_override, "spec.maxOverride");
    if mistakes.is_empty() {
        check_lengths(window, max_override, &mut mistakes);
    }
    check_gatekeepers(gate, &mut mistakes);
    Refusals::unless_empty(
        mistakes,
        Terms {
            window,
            max_override,
        },
    )
}

fn check_lengths(
    window: jiff::SignedDuration,
    max_override: jiff::SignedDuration,
    mistakes: &mut Vec<Refusal>,
) {
    // Otherwise the author of the spec could make it impossible to close the gate.
    if max_override < SHORTEST_OVERRIDE {
        mistakes.push(Refusal::new(
            "spec.maxOverride",
            "it is shorter than 1h",
            "write a duration of at least 1h, such as 24h",
        ));
    }
    if window < SHORTEST_WINDOW {
        mistakes.push(Refusal::new(
            "spec.window",
            "it is shorter than 1m",
            "write a duration of at least 1m, such as 1h",
        ));
    }
    if max_override > jiff::SignedDuration::from_hours(366 * 24) {
        mistakes.push(Refusal::new(
            "spec.maxOverride",
            "it is longer than 8784h (366 days)",
            "write a shorter duration, or a manual gatekeeper",
        ));
    }
    if window > max_override {
        mistakes.push(Refusal::new(
            "spec.window",
            "it is longer than maxOverride",
            "shorten window or raise maxOverride",
        ));
    }
}

fn check_gatekeepers(gate: &Gate, mistakes: &mut Vec<Refusal>) {
    let listed = &gate.spec.gatekeepers;
    if listed.len() > MOST_GATEKEEPERS {
        mistakes.push(Refusal::new(
            "spec.gatekeepers",
            format!(
                "{} gatekeepers are more than {MOST_GATEKEEPERS}",
                listed.len()
            ),
            "list fewer gatekeepers",
        ));
        return;
    }
    if !listed.is_empty() && gate.spec.default == sluice_crds::Setting::Open {
        mistakes.push(Refusal::new(
            "spec.default",
            "only a gate without gatekeepers has a default",
            "remove default or the gatekeepers",
        ));
    }
    for (n, reference) in listed.iter().enumerate() {
        if reference.name.is_empty() {
            mistakes.push(Refusal::new(
                format!("spec.gatekeepers[{n}].name"),
                "it is empty",
                "write the name of a Gatekeeper",
            ));
        }
        if listed[..n].contains(reference) {
            mistakes.push(Refusal::new(
                format!("spec.gatekeepers[{n}]"),
                format!("`{}` is listed twice", reference.name),
                "list each gatekeeper once",
            ));
        }
    }
}

/// The lengths of time that a gate's spec sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a force lasts that names no end.
    pub window: jiff::SignedDuration,
    /// The longest a force may last.
    pub max_override: jiff::SignedDuration,
}
