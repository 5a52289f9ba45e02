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
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{
    Config, RngSeed, TestCaseError, TestError, TestRunner, contextualize_config,
};
use rstest::rstest;
// The repository of the unit tests finds it here.
use sluice_core::delivery;

mod events;
mod forge;
mod git;
mod laws;
#[path = "../../src/delivery/promotion_strategy/tests/repository.rs"]
#[allow(dead_code, reason = "the unit tests use the rest")]
mod repository;
mod world;

use events::{Event, any_event};
use laws::Reached;
use world::{Discipline, Setup, World};

/// Which histories are played, unless PROPTEST_RNG_SEED says another number.
const SEED: u64 = 1;
/// How many steps a history has at most.
const STEPS: usize = 80;
/// How many histories are played, unless PROPTEST_CASES says another number.
const CASES: u32 = 128;
/// How many are played at most until one shows that a law is broken. A few dozen are enough as a rule.
const TRIES: u32 = 20 * CASES;
/// How long a history is made shorter, in milliseconds.
const SHRINKING: u32 = 60_000;

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

fn play(setup: Setup, events: &[Event], discipline: Discipline) -> Result<World, TestCaseError> {
    let world = World::new(setup, discipline);
    let mut world = world.map_err(TestCaseError::fail)?;
    for event in events {
        world.step(*event).map_err(TestCaseError::fail)?;
    }
    Ok(world)
}

fn runner(cases: u32, max_shrink_time: u32) -> TestRunner {
    TestRunner::new(contextualize_config(Config {
        cases,
        max_shrink_time,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(SEED),
        ..Config::default()
    }))
}

#[test]
fn whatever_happens_the_laws_hold_and_everything_arrives() {
    let all = Cell::new(Reached::default());
    let outcome = runner(CASES, SHRINKING).run(&histories(), |(setup, events)| {
        let world = play(setup, &events, Discipline::StatusFirst)?;
        all.set(all.get() + world.reached());
        world.arrives().map_err(TestCaseError::fail)
    });
    let Reached {
        merges,
        last,
        reverts,
        strange,
        short,
    } = all.get();
    match outcome {
        // They are about something.
        Ok(()) => assert!(
            [merges, last, reverts, strange, short]
                .iter()
                .all(|it| *it > 0),
            "{:?}",
            all.get()
        ),
        Err(TestError::Fail(why, (setup, events))) => {
            let mut lines = format!("{setup:?}\n");
            for event in events {
                writeln!(lines, "{event:?}").unwrap();
            }
            panic!("{why}\nafter this history:\n{lines}");
        }
        Err(aborted) => panic!("{aborted}"),
    }
}

/// The test of the test: a controller that acts before the status is accepted is found out, and one that goes
/// by an order that has ended.
#[rstest]
#[case::before_the_status(Discipline::ActsFirst, "merged without an order")]
#[case::after_the_end(Discipline::StaleOrders, "after the end of")]
fn without_discipline_a_law_is_broken(#[case] discipline: Discipline, #[case] law: &str) {
    let outcome = runner(TRIES, 1).run(&histories(), |(setup, events)| {
        match play(setup, &events, discipline) {
            Err(TestCaseError::Fail(why)) if why.message().contains(law) => {
                Err(TestCaseError::Fail(why))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    });
    let is_broken = matches!(outcome, Err(TestError::Fail(..)));
    assert!(
        is_broken,
        "no history shows that merges wait for an order that holds"
    );
}
