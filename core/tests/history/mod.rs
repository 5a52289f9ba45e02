//! How random histories are played, shown and made shorter.
//!
//! What comes in: histories, each a setup and its events, and what plays one. What goes out: the shortest one that
//! breaks a law, or that there is none among those that were played.

use std::fmt::{Debug, Write as _};

use proptest::prelude::*;
use proptest::test_runner::{
    Config, RngSeed, TestCaseError, TestError, TestRunner, contextualize_config,
};

/// Which histories are played, unless PROPTEST_RNG_SEED says another number.
const SEED: u64 = 1;
/// How many histories are played, unless PROPTEST_CASES says another number.
const CASES: u32 = 128;
/// How many are played at most until one shows that a law is broken. A few dozen are enough as a rule.
const TRIES: u32 = 20 * CASES;
/// How long a history is made shorter, in milliseconds.
const SHRINKING: u32 = 60_000;

fn runner(cases: u32, max_shrink_time: u32) -> TestRunner {
    TestRunner::new(contextualize_config(Config {
        cases,
        max_shrink_time,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(SEED),
        ..Config::default()
    }))
}

/// Plays histories.
///
/// # Panics
/// If one breaks a law, with the shortest that does.
pub fn hold<S: Debug, E: Debug>(
    histories: &impl Strategy<Value = (S, Vec<E>)>,
    play: impl Fn(S, Vec<E>) -> Result<(), String>,
) {
    let outcome = runner(CASES, SHRINKING).run(histories, |(setup, events)| {
        play(setup, events).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
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

/// Whether a history breaks this law, and none before it.
pub fn breaks<S: Debug, E: Debug>(
    histories: &impl Strategy<Value = (S, Vec<E>)>,
    law: &str,
    play: impl Fn(S, Vec<E>) -> Result<(), String>,
) -> bool {
    let outcome = runner(TRIES, 1).run(histories, |(setup, events)| match play(setup, events) {
        Err(why) if why.contains(law) => Err(TestCaseError::fail(why)),
        Ok(()) | Err(_) => Ok(()),
    });
    matches!(outcome, Err(TestError::Fail(..)))
}
