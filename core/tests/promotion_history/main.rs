//! Random histories of a promotion by branches: looks by two leaders over old caches, processes killed anywhere,
//! answers of the API server and of the forge that are lost, merges that come about late, statuses that are
//! lost; hydrators that change their minds, people who push, force, merge, close and bring back. Whatever
//! happens, the laws hold ([`laws`]); when the faults end, every environment gets the newest commit, and then
//! nothing is written any more.
//!
//! The decisions are those that ship. The API server, the forge and the repository are models.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::cell::Cell;

use proptest::prelude::*;
use rstest::rstest;
// The repository of the unit tests finds it here.
use sluice_core::delivery;

mod events;
mod forge;
mod git;
#[path = "../history/mod.rs"]
mod history;
mod laws;
#[path = "../../src/delivery/promotion_strategy/tests/repository.rs"]
#[allow(dead_code, reason = "the unit tests use the rest")]
mod repository;
mod world;

use events::{Event, any_event};
use laws::Reached;
use world::{Discipline, Setup, World};

/// How many steps a history has at most.
const STEPS: usize = 80;
fn setups() -> impl Strategy<Value = Setup> {
    any::<[bool; 7]>().prop_map(
        |[squashes, by_hand, side_by_side, lints, wipes, proves, flux]| Setup {
            squashes,
            by_hand,
            side_by_side,
            lints,
            wipes,
            proves,
            flux,
        },
    )
}

/// Half of them begin with two commits that arrive everywhere, so that there is something to go back to.
fn histories() -> impl Strategy<Value = (Setup, Vec<Event>)> {
    let arrives = [Event::Commit, Event::Flow(0), Event::Flow(0)];
    let begins = prop_oneof![Just(Vec::new()), Just(arrives.repeat(2))];
    let goes_on = prop::collection::vec(any_event(), 1..STEPS);
    let all = (begins, goes_on).prop_map(|(begins, goes_on)| [begins, goes_on].concat());
    (setups(), all)
}

fn play(setup: Setup, events: &[Event], discipline: Discipline) -> Result<World, String> {
    let mut world = World::new(setup, discipline)?;
    for event in events {
        world.step(*event)?;
    }
    Ok(world)
}

#[test]
fn whatever_happens_the_laws_hold_and_everything_arrives() {
    let all = Cell::new(Reached::default());
    history::hold(&histories(), |setup, events| {
        let world = play(setup, &events, Discipline::StatusFirst)?;
        all.set(all.get() + world.reached());
        world.arrives()
    });
    // They are about something.
    let Reached {
        merges,
        last,
        reverts,
        strange,
        short,
    } = all.get();
    let reached = [merges, last, reverts, strange, short];
    assert!(reached.iter().all(|it| *it > 0), "{:?}", all.get());
}

/// The test of the test: a controller that acts before the status is accepted is found out, and one that goes
/// by an order that has ended.
#[rstest]
#[case::before_the_status(Discipline::ActsFirst, "merged without an order")]
#[case::after_the_end(Discipline::StaleOrders, "after the end of")]
fn without_discipline_a_law_is_broken(#[case] discipline: Discipline, #[case] law: &str) {
    let is_broken = history::breaks(&histories(), law, |setup, events| {
        play(setup, &events, discipline).map(drop)
    });
    assert!(
        is_broken,
        "no history shows that merges wait for an order that holds"
    );
}
