//! Random histories of rollouts: looks by two leaders over old caches, processes killed anywhere, answers of the
//! API server that are lost, statuses that are lost; pods that fail, gates and metrics that change, people who
//! pause, write sizes, try again, change their minds and delete. Whatever happens, the laws hold ([`laws`]); when
//! the faults end, every rollout comes to an end or says what holds it, and then nothing is written any more.
//!
//! The decisions are those that ship. The API server and the controllers of workloads are a model.

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
// The cluster of the unit tests finds them here.
use sluice_core::{delivery, time};

#[path = "../../src/delivery/rollout/tests/cluster.rs"]
#[allow(dead_code, reason = "the unit tests use the rest")]
mod cluster;
mod events;
mod laws;
mod setup;
mod world;

use events::{Event, any_event};
use laws::Reached;
use setup::Setup;
use world::{Discipline, World};

/// Which histories are played, unless PROPTEST_RNG_SEED says another number.
const SEED: u64 = 1;
/// How many steps a history has at most.
const STEPS: usize = 60;
/// How many histories are played, unless PROPTEST_CASES says another number.
const CASES: u32 = 128;
/// How many are played at most until one shows that a law is broken. A few dozen are enough as a rule.
const TRIES: u32 = 20 * CASES;
/// How long a history is made shorter, in milliseconds.
const SHRINKING: u32 = 60_000;

fn setups() -> impl Strategy<Value = Setup> {
    any::<[bool; 5]>().prop_map(|[in_place, decreases, hooks, reverts, takes_back]| Setup {
        in_place,
        decreases,
        hooks,
        reverts,
        takes_back,
    })
}

fn histories() -> impl Strategy<Value = (Setup, Vec<Event>)> {
    (setups(), prop::collection::vec(any_event(), 1..STEPS))
}

fn play(setup: Setup, events: &[Event], discipline: Discipline) -> Result<World, TestCaseError> {
    let mut world = World::new(setup, discipline);
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
fn whatever_happens_the_laws_hold_and_every_rollout_ends() {
    let all = Cell::new(Reached::default());
    let outcome = runner(CASES, SHRINKING).run(&histories(), |(setup, events)| {
        let mut world = play(setup, &events, Discipline::StatusFirst)?;
        world.ends().map_err(TestCaseError::fail)?;
        all.set(all.get() + world.reached());
        Ok(())
    });
    match outcome {
        // They are about something.
        Ok(()) => {
            let Reached {
                batches,
                succeeded,
                failed,
                gone,
                held,
            } = all.get();
            let reached = [batches, succeeded, failed, gone, held];
            assert!(reached.iter().all(|it| *it > 0), "{:?}", all.get());
        }
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

/// The test of the test: a controller that acts before the status is accepted is found out.
#[test]
fn without_discipline_a_law_is_broken() {
    let law = "without an accepted intent";
    let outcome = runner(TRIES, 1).run(&histories(), |(setup, events)| {
        match play(setup, &events, Discipline::ActsFirst) {
            Err(TestCaseError::Fail(why)) if why.message().contains(law) => {
                Err(TestCaseError::Fail(why))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    });
    let is_broken = matches!(outcome, Err(TestError::Fail(..)));
    assert!(is_broken, "no history shows that sizes wait for an intent");
}
