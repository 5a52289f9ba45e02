//! Random histories of a Pipeline: looks by two leaders over old caches, crashes anywhere, answers lost
//! after their effect, objects and statuses wiped, the Pipeline deleted and created again, its strategies
//! changed on the way, people who merge and close. Whatever happens, nothing is promoted twice in a run, no
//! environment ever has two open pull requests, and nothing is merged for one Pipeline that another has opened;
//! when the faults end, every environment arrives.
//!
//! The decisions are those that ship. The API server, the forge, the receiver of notifications and the
//! clusters are models.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use rstest::rstest;

mod forge;
mod world;

use world::{Discipline, Setup, Way, World};

/// How many steps a history has.
const STEPS: usize = 200;
/// How many histories are played.
const CASES: u32 = 256;
/// How many are played at most until one shows that a promise is broken. A few dozen are enough as a rule.
const TRIES: u32 = 20 * CASES;

fn setups() -> impl Strategy<Value = Setup> {
    let way = prop_oneof![
        2 => Just(Way::PullRequest),
        3 => Just(Way::Merged),
        1 => Just(Way::Notification),
        1 => Just(Way::Admission),
        1 => Just(Way::Reported),
    ];
    let ways = (way.clone(), way);
    (ways, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |((staging, prod), manual, pairwise, wipes)| Setup {
            ways: [staging, prod],
            manual,
            pairwise,
            wipes,
        },
    )
}

fn histories() -> impl Strategy<Value = (Setup, Vec<[u8; 3]>)> {
    let steps = prop::collection::vec(any::<[u8; 3]>(), STEPS);
    (setups(), steps)
}

fn play(setup: Setup, steps: &[[u8; 3]], discipline: Discipline) -> Result<World, TestCaseError> {
    let mut world = World::new(setup, discipline);
    for step in steps {
        world.step(*step).map_err(TestCaseError::fail)?;
    }
    Ok(world)
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..Config::default()
    }
}

#[test]
fn whatever_happens_nothing_is_promoted_twice_and_everything_arrives() {
    let mut runner = TestRunner::new(config(CASES));
    let outcome = runner.run(&histories(), |(setup, steps)| {
        let world = play(setup, &steps, Discipline::StatusFirst)?;
        world.arrives().map_err(TestCaseError::fail)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// The test of the test: a controller that acts before the status is accepted is found out, whatever it does.
#[rstest]
#[case::pull_requests(Way::PullRequest)]
#[case::notifications(Way::Notification)]
#[case::reports(Way::Reported)]
fn acts_before_the_status_break_a_promise(#[case] way: Way) {
    let mut runner = TestRunner::new(Config {
        max_shrink_iters: 0,
        ..config(TRIES)
    });
    let outcome = runner.run(&histories(), |(setup, steps)| {
        let setup = Setup {
            ways: [way; 2],
            ..setup
        };
        play(setup, &steps, Discipline::ActsFirst).map(drop)
    });
    assert!(
        matches!(outcome, Err(TestError::Fail(..))),
        "no history shows that acts wait for the status"
    );
}
