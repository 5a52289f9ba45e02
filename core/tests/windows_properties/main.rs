//! Windows, proven: against a scanner that looks at every minute, against the `cron` crate with
//! `chrono-tz` where both can answer, and by laws that hold whatever the windows are.
//!
//! `PROPTEST_CASES` sets the number of cases of each property.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod cases;
mod expression;
mod laws;
mod other_crates;
mod scanner;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sluice_core::gatekeeper::schedule::Schedule;
use sluice_core::time::timeline::Moment;
use sluice_crds::State;

use crate::cases::Case;

/// As many cases as `PROPTEST_CASES` says, or `usual`.
fn config(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(usual),
        // Unsatisfiable expressions are rejected, and so are days on which the oracles differ.
        max_global_rejects: 1 << 20,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// What a schedule says of an instant, its timeline made for that instant.
fn ask(schedule: &Schedule, at: Timestamp) -> Moment {
    schedule.timeline(&[], at).unwrap().at(at).unwrap()
}

fn is_open(moment: &Moment) -> bool {
    moment.cause.state() == State::Open
}

/// Compares a case with what the scanner saw.
fn agrees_with_the_scanner(case: &Case) -> Result<(), TestCaseError> {
    let Some(schedule) = case.schedule() else {
        return Err(TestCaseError::reject("never occurs"));
    };
    let scanned = scanner::open(case);
    let moment = ask(&schedule, case.at);
    prop_assert_eq!(is_open(&moment), scanned[0], "at the instant: {:?}", moment);
    let first = Timestamp::from_second(case.at.as_second().div_euclid(60) * 60).unwrap();
    let change = scanned
        .iter()
        .zip(0..)
        .find(|(open, _)| **open != scanned[0]);
    let change = change.map(|(_, minute)| first + SignedDuration::from_mins(minute));
    let seen = first + SignedDuration::from_mins(scanner::AHEAD);
    let next = moment.next.filter(|next| *next < seen);
    prop_assert_eq!(next, change, "the next change: {:?}", moment);
    Ok(())
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn one_window_is_what_the_scanner_sees(case in cases::single()) {
        agrees_with_the_scanner(&case)?;
    }

    #[test]
    fn several_windows_are_what_the_scanner_sees(case in cases::several()) {
        agrees_with_the_scanner(&case)?;
    }
}
