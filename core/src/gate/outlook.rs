//! When a gate changes next, as far as time alone decides.

use jiff::Timestamp;
use sluice_crds::{Require, State};

use super::{Forces, View, answer_with, fold, opinions};
use crate::clock::Now;
use crate::schedule::{HORIZON, UPCOMING};
use crate::verdict::Opinion;

/// How many instants are examined for one list of changes. Gatekeepers that flip out of step every
/// minute would have it look for ever.
const MOST_LOOKS: usize = 2_000;

/// The gate's next changes of state after `now` that are known ahead: at most [`UPCOMING`], within
/// [`HORIZON`], ascending. Instants at which only a gatekeeper changes are passed over.
pub fn upcoming(view: &View<'_>, forces: &Forces, now: Now) -> Vec<(Timestamp, State)> {
    let horizon = now.at.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
    let mut changes = Vec::new();
    let mut state = answer_with(view, forces, now).state;
    let mut at = now.at;
    for _ in 0..MOST_LOOKS {
        match candidate(view, forces, now.moved_to(at)) {
            Some(next) if next <= horizon && changes.len() < UPCOMING => at = next,
            _ => break,
        }
        let then = answer_with(view, forces, now.moved_to(at)).state;
        if then != state {
            changes.push((at, then));
            state = then;
        }
    }
    changes
}

/// The earliest instant after `now` at which the gate could change: what holds it in its state
/// must change first.
fn candidate(view: &View<'_>, forces: &Forces, now: Now) -> Option<Timestamp> {
    if forces.in_effect(now.at).is_some() {
        return forces.ends().filter(|end| *end > now.at).min();
    }
    let (admitting, refusing): (Vec<Opinion>, Vec<Opinion>) = opinions(view, now)
        .into_iter()
        .partition(|opinion| fold::admits(view.require(), opinion));
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
