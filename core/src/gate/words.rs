//! Why a gate is open or closed, in a sentence.

use std::fmt::Write;

use sluice_crds::gate::annotations::FORCE_SEEN;
use sluice_crds::{Require, Setting, State};

use super::{Answer, Force, Forces, Named, View, opinions};
use crate::gatekeeper::Keeper;
use crate::text::words::clean;
use crate::time::clock::{Now, Trust};
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason, Verdict};

/// How many gatekeepers a message names before it only counts them.
const NAMED: usize = 3;

/// The most characters that are shown of what the API server said.
const LONGEST_OBSTACLE: usize = 1000;

/// What gatekeeper `place` of the gate is called: its name, with its namespace where that is
/// another.
pub(super) fn name(view: &View<'_>, place: usize) -> String {
    let reference = &view.gate.spec.gatekeepers[place];
    match &reference.namespace {
        Some(namespace) if Some(namespace) != view.gate.metadata.namespace.as_ref() => {
            format!("{namespace}/{}", reference.name)
        }
        _ => reference.name.clone(),
    }
}

/// What each gatekeeper answers, in words.
pub(super) fn verdicts(view: &View<'_>, question: Question<'_>) -> Vec<Verdict> {
    let verdict = |sight: &Named<&Keeper>| match sight.asked(Reason::Missing) {
        Ok(keeper) => keeper.verdict(question),
        Err(closed) => Verdict::new(closed, sight.obstacle("gatekeeper").unwrap_or_default()),
    };
    view.keepers.iter().map(verdict).collect()
}

/// Why the gate is what `answer` says: who decided, what was seen, until when; then what is wrong
/// with its forces, and what those wait for that are not accepted.
pub(super) fn explain(
    view: &View<'_>,
    forces: &Forces,
    answer: &Answer,
    verdicts: &[Verdict],
    obstacle: Option<&str>,
    question: Question<'_>,
) -> String {
    let now = question.now;
    let mut message = match answer.reason {
        Reason::NotWatched => format!(
            "{}, so nobody here would see that the gate is to be closed",
            view.unwatched.unwrap_or("changes are not seen")
        ),
        Reason::Forced => forced(forces, now),
        Reason::Suspended if answer.decided_by.is_none() => "the gate is suspended".to_owned(),
        Reason::InvalidSpec if answer.decided_by.is_none() => match &forces.terms {
            Err(refusals) => format!("the spec is refused: {refusals}"),
            Ok(_) => "the spec is refused".to_owned(),
        },
        Reason::Default => {
            format!(
                "{} by default: no gatekeeper keeps the gate",
                view.gate.spec.default
            )
        }
        Reason::Cycle if answer.decided_by.is_none() => {
            format!(
                "the gate depends on itself: {}",
                view.cycle.unwrap_or_default()
            )
        }
        _ => deciders(view, answer.state, verdicts, question),
    };
    for complaint in &forces.complaints {
        // Writing to a String does not fail.
        let _ = write!(message, ". {complaint}");
    }
    if let Some(obstacle) = obstacle {
        for force in forces.waiting(now.at) {
            let _ = write!(message, ". {}", waiting(force, obstacle));
        }
    }
    message
}

/// What a gate's message says of the annotations that force it, if it complains of any: the last
/// part of it, as [`explain`] writes it.
pub fn about_forces(message: &str) -> Option<&str> {
    const FIRST: &str = ". metadata.annotations";
    let start = message.find(FIRST)?;
    message.get(start + 2..)
}

fn forced(forces: &Forces, now: Now) -> String {
    match forces.in_effect(now.at) {
        Some(force) => force.to_string(),
        None => "forced".to_owned(),
    }
}

/// What a force waits for that the controller has not accepted.
fn waiting(force: &Force, obstacle: &str) -> String {
    let Force { state, by, .. } = force;
    let meanwhile = match state {
        Setting::Open => "so it does not count yet",
        Setting::Closed => "so it counts, but its end is not fixed yet",
    };
    format!(
        "metadata.annotations[{FORCE_SEEN}]: the controller has not accepted the force {state} by \
         {by}, {meanwhile}: {}",
        clean(obstacle, LONGEST_OBSTACLE)
    )
}

/// How a clock that is not to be relied on keeps forces from being accepted.
pub(super) fn of_clock(trust: Trust) -> Option<String> {
    match trust {
        Trust::Good => None,
        Trust::Drifting(by) | Trust::Lost(by) => Some(format!(
            "its clock differs by {}s from the API server's; set the one that is wrong",
            by.as_secs()
        )),
    }
}

/// What those say who made the gate what it is.
fn deciders(view: &View<'_>, state: State, verdicts: &[Verdict], question: Question<'_>) -> String {
    let require = view.require();
    let decides = |opinion: &Opinion| opinion.counts_as(require) == state;
    let places: Vec<usize> = opinions(view, question)
        .enumerate()
        .filter_map(|(place, opinion)| decides(&opinion).then_some(place))
        .collect();
    let said = |&place: &usize| format!("{}: {}", name(view, place), verdicts[place].message);
    let mut message = places
        .iter()
        .take(NAMED)
        .map(said)
        .collect::<Vec<_>>()
        .join("; ");
    if places.len() > NAMED {
        let _ = write!(message, "; and {} more", places.len() - NAMED);
    }
    match (require, state, verdicts.len()) {
        (Require::OneOf, State::Closed, 2..) => format!("none admits: {message}"),
        _ => message,
    }
}
