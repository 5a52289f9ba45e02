//! When a gate changes next, as far as time alone decides.

use jiff::Timestamp;
use sluice_crds::{Require, State};

use super::{Forces, View, answer_with, opinions};
use crate::clock::Now;
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

/// The gate's next changes of state after `now` that are known ahead: at most [`UPCOMING`], within
/// [`HORIZON`], ascending. Instants at which only a gatekeeper changes are passed over.
pub fn upcoming(view: &View<'_>, forces: &Forces, now: Now) -> Vec<(Timestamp, State)> {
    look_ahead(view, forces, now).changes
}

pub(super) fn look_ahead(view: &View<'_>, forces: &Forces, now: Now) -> Outlook {
    let horizon = now.at.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
    let mut changes = Vec::new();
    let mut behind = None;
    let mut state = answer_with(view, forces, now).state;
    let mut at = now.at;
    for _ in 0..MOST_LOOKS {
        match candidate(view, forces, now.moved_to(at)) {
            Some(next) if next <= horizon && changes.len() < UPCOMING => at = next,
            next => {
                behind = next.filter(|_| changes.is_empty());
                break;
            }
        }
        let then = answer_with(view, forces, now.moved_to(at)).state;
        if then != state {
            changes.push((at, then));
            state = then;
        }
    }
    Outlook { changes, behind }
}

/// The earliest instant after `now` at which the gate could change: a force starts or ends, or
/// what holds the gate in its state has changed.
fn candidate(view: &View<'_>, forces: &Forces, now: Now) -> Option<Timestamp> {
    let forced = forces.ends().filter(|at| *at > now.at).min();
    if forces.in_effect(now.at).is_some() {
        return forced;
    }
    forced.into_iter().chain(unforced(view, now)).min()
}

fn unforced(view: &View<'_>, now: Now) -> Option<Timestamp> {
    let (admitting, refusing): (Vec<Opinion>, Vec<Opinion>) =
        opinions(view, now).partition(|opinion| opinion.admits(view.require()));
    match view.require() {
        Require::All if refusing.is_empty() => any(&admitting),
        Require::All => every(&refusing),
        Require::OneOf if admitting.is_empty() => any(&refusing),
        Require::OneOf => every(&admitting),
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
