//! When a gate changes next, as far as time alone decides.

use jiff::Timestamp;
use sluice_crds::{Require, State};

use super::Named;
use super::{Forces, View, answer_with, fold, opinions};
use crate::gatekeeper::{Ahead, Keeper, MOST_LOOKS};
use crate::time::span::later;
use crate::verdict::question::Question;
use crate::verdict::status::{HORIZON, UPCOMING};
use crate::verdict::{Opinion, Reason};

/// What time will do to a gate.
#[derive(Default)]
pub(super) struct Outlook {
    /// Its next changes of state, as [`upcoming`] lists them.
    pub changes: Vec<(Timestamp, State)>,
    /// Where none is in view: before this instant there is none, and it lies behind the horizon.
    pub behind: Option<Timestamp>,
}

/// The gate's next changes of state that are known ahead: at most [`UPCOMING`], within [`HORIZON`],
/// ascending. Instants at which only a gatekeeper changes are left out.
pub fn upcoming<'q>(
    view: &View<'_>,
    forces: &Forces,
    question: impl Into<Question<'q>>,
) -> Vec<(Timestamp, State)> {
    look_ahead(view, forces, question.into()).changes
}

pub(super) fn look_ahead(view: &View<'_>, forces: &Forces, question: Question<'_>) -> Outlook {
    let now = question.now.at;
    let horizon = later(now, HORIZON);
    let mut course = Course::new(view, forces, question);
    let mut outlook = Outlook::default();
    let (mut at, mut state) = (now, None);
    let of = |named: &Named<&Keeper>| named.here().map_or(1, |keeper| keeper.weight());
    let weight: usize = view.keepers.iter().map(of).sum();
    for _ in 0..MOST_LOOKS / weight.max(1) {
        let Some((then, next)) = course.at(at) else {
            break;
        };
        if state.is_some_and(|state| state != then) {
            outlook.changes.push((at, then));
        }
        state = Some(then);
        match next {
            Some(next) if next <= horizon && outlook.changes.len() < UPCOMING => at = next,
            next => {
                outlook.behind = next.filter(|_| outlook.changes.is_empty());
                break;
            }
        }
    }
    outlook
}

/// A gate that is asked about one instant after the other.
struct Course<'a> {
    /// The gate by itself, with its forces: what holds independently of its gatekeepers.
    alone: View<'a>,
    forces: &'a Forces,
    question: Question<'a>,
    /// What its gatekeepers said last.
    said: Vec<Opinion>,
    /// What they will say. None: the same for ever.
    keepers: Vec<Option<Ahead<'a>>>,
}

impl<'a> Course<'a> {
    fn new(view: &View<'a>, forces: &'a Forces, question: Question<'a>) -> Self {
        let ahead = |sight: &Named<&'a Keeper>| sight.here().map(|keeper| keeper.ahead(question));
        Self {
            said: opinions(view, question).collect(),
            keepers: view.keepers.iter().map(ahead).collect(),
            alone: View {
                keepers: Vec::new(),
                ..view.clone()
            },
            forces,
            question,
        }
    }

    /// The state at `at`, which is no earlier than at the last call, and the earliest instant after it at
    /// which the gate could change: a force starts or ends, or what holds the gate in its state has
    /// changed. None: not known.
    fn at(&mut self, at: Timestamp) -> Option<(State, Option<Timestamp>)> {
        let forced = self.forces.ends().filter(|end| *end > at).min();
        let alone = answer_with(&self.alone, self.forces, self.question.moved_to(at));
        if alone.reason != Reason::Default || self.keepers.is_empty() {
            return Some((alone.state, forced));
        }
        for (said, keeper) in self.said.iter_mut().zip(&mut self.keepers) {
            if let Some(keeper) = keeper {
                *said = keeper.at(at)?;
            }
        }
        let require = self.alone.require();
        let state = fold::fold(require, self.said.iter().copied()).state;
        let next = forced.into_iter().chain(self.may_change(require)).min();
        Some((state, next))
    }

    /// When the state that they result in together may change.
    fn may_change(&self, require: Require) -> Option<Timestamp> {
        // One gatekeeper with this state is enough to decide, independently of the others.
        let enough = match require {
            Require::All => State::Closed,
            Require::OneOf => State::Open,
        };
        let mut holding = (self.said.iter())
            .filter(|opinion| opinion.counts_as(require) == enough)
            .peekable();
        if holding.peek().is_none() {
            return self.said.iter().filter_map(|opinion| opinion.next).min();
        }
        // All of them have to have changed; one that never does, holds for ever.
        let changes: Option<Vec<Timestamp>> = holding.map(|opinion| opinion.next).collect();
        changes?.into_iter().max()
    }
}
