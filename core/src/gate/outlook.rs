//! When a gate changes next, as far as time alone decides.

use jiff::Timestamp;
use sluice_crds::{Require, State};

use super::{Forces, View, answer_with, opinions};
use crate::question::Question;
use crate::schedule::{HORIZON, UPCOMING};
use crate::verdict::Opinion;

/// How many instants are examined for one list of changes. Gatekeepers that flip out of step every
/// minute would have it look for ever.
const MOST_LOOKS: usize = 2_000;

/// What time will do to a gate.
pub(super) struct Outlook {
    /// Its next changes of state, as [`upcoming`] tells them.
    pub changes: Vec<(Timestamp, State)>,
    /// Where none is in view: before this instant there is none, and it lies behind the horizon.
    pub behind: Option<Timestamp>,
}

/// The gate's next changes of state that are known ahead: at most [`UPCOMING`], within
/// [`HORIZON`], ascending. Instants at which only a gatekeeper changes are passed over.
pub fn upcoming<'q>(
    view: &View<'_>,
    forces: &Forces,
    question: impl Into<Question<'q>>,
) -> Vec<(Timestamp, State)> {
    look_ahead(view, forces, question.into()).changes
}

pub(super) fn look_ahead(view: &View<'_>, forces: &Forces, question: Question<'_>) -> Outlook {
    let now = question.now.at;
    let horizon = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
    let mut changes = Vec::new();
    let mut behind = None;
    let mut state = answer_with(view, forces, question).state;
    let mut at = now;
    for _ in 0..MOST_LOOKS {
        match candidate(view, forces, question.moved_to(at)) {
            Some(next) if next <= horizon && changes.len() < UPCOMING => at = next,
            next => {
                behind = next.filter(|_| changes.is_empty());
                break;
            }
        }
        let then = answer_with(view, forces, question.moved_to(at)).state;
        if then != state {
            changes.push((at, then));
            state = then;
        }
    }
    Outlook { changes, behind }
}

/// The earliest instant at which the gate could change: a force starts or ends, or what holds the
/// gate in its state has changed.
pub(super) fn candidate(
    view: &View<'_>,
    forces: &Forces,
    question: Question<'_>,
) -> Option<Timestamp> {
    let now = question.now.at;
    let forced = forces.ends().filter(|at| *at > now).min();
    if forces.in_effect(now).is_some() {
        return forced;
    }
    forced.into_iter().chain(unforced(view, question)).min()
}

/// Those that hold the gate where it is have all to change first; where none does, any may.
fn unforced(view: &View<'_>, question: Question<'_>) -> Option<Timestamp> {
    let holds = match view.require() {
        Require::All => State::Closed,
        Require::OneOf => State::Open,
    };
    let (holding, others): (Vec<Opinion>, Vec<Opinion>) =
        opinions(view, question).partition(|opinion| opinion.counts_as(view.require()) == holds);
    match holding.is_empty() {
        true => any(&others),
        false => every(&holding),
    }
}

/// The first of them to change is enough.
fn any(opinions: &[Opinion]) -> Option<Timestamp> {
    opinions.iter().filter_map(|opinion| opinion.next).min()
}

/// All of them have to have changed; one that never does, holds for ever.
fn every(opinions: &[Opinion]) -> Option<Timestamp> {
    let changes: Option<Vec<Timestamp>> = opinions.iter().map(|opinion| opinion.next).collect();
    changes?.into_iter().max()
}
