//! What comes next, cell by cell.

use rstest::rstest;

use super::super::child::Child;
use super::super::step::{Due, Reports, Step, Try, admission, notification, pull_request};
use super::*;

const PHASES: [Option<Phase>; 8] = [
    None,
    Some(Phase::Unapproved),
    Some(Phase::Unattempted),
    Some(Phase::Attempting),
    Some(Phase::Failed),
    Some(Phase::Created),
    Some(Phase::Succeeded),
    Some(Phase::Abandoned),
];

fn letter(step: Step) -> &'static str {
    match step {
        Step::Begin => "begin",
        Step::Act => "act",
        Step::Wait => "wait",
        Step::Fails => "fails",
        Step::Failed => "failed",
        Step::Opened => "opened",
        Step::Succeeded(reason) | Step::Abandoned(reason) => reason,
        Step::Finished => "finished",
        Step::GivenUp => "given up",
    }
}

fn row(step: impl Fn(Option<Phase>) -> Step) -> String {
    PHASES.map(|phase| letter(step(phase))).join(" | ")
}

fn failing() -> Child {
    Child::Failing {
        why: "why".to_owned(),
        attempts: 1,
        next: None,
    }
}

//                none | Unapproved | Unattempted | Attempting | Failed | Created | Succeeded | Abandoned
#[rstest]
#[case(
    Child::Missing,
    "begin | begin | begin | act | act | act | finished | given up"
)]
#[case(
    Child::Waiting,
    "begin | begin | begin | wait | wait | wait | finished | given up"
)]
#[case(
    failing(),
    "begin | begin | begin | fails | fails | fails | finished | given up"
)]
#[case(
    Child::Open,
    "opened | opened | opened | opened | opened | opened | finished | given up"
)]
#[case(
    Child::Merged,
    "Merged | Merged | Merged | Merged | Merged | Merged | finished | given up"
)]
#[case(
    Child::AlreadyInBase,
    "AlreadyInBase | AlreadyInBase | AlreadyInBase | AlreadyInBase | AlreadyInBase | AlreadyInBase \
     | finished | given up"
)]
#[case(
    Child::Closed,
    "Closed | Closed | Closed | Closed | Closed | Closed | finished | given up"
)]
#[case(
    Child::Vanished,
    "Vanished | Vanished | Vanished | Vanished | Vanished | Vanished | finished | given up"
)]
fn by_pull_request(#[case] child: Child, #[case] expected: &str) {
    assert_eq!(row(|phase| pull_request(phase, &child)), expected);
}

#[rstest]
#[case(
    Try::NotBegun,
    "begin | begin | begin | act | wait | finished | finished | given up"
)]
#[case(
    Try::TooOld,
    "begin | begin | begin | begin | wait | finished | finished | given up"
)]
#[case(
    Try::UnderWay,
    "begin | begin | begin | wait | wait | finished | finished | given up"
)]
#[case(
    Try::Done,
    "begin | begin | begin | Sent | wait | finished | finished | given up"
)]
#[case(
    Try::Failed,
    "begin | begin | begin | failed | wait | finished | finished | given up"
)]
fn by_notification(#[case] tried: Try, #[case] expected: &str) {
    let step = |phase| notification(phase, tried, Due::Later, Due::Later);
    assert_eq!(row(step), expected);
}

#[test]
fn a_notification_is_tried_and_sent_again_when_its_time_has_come() {
    let retry = row(|phase| notification(phase, Try::NotBegun, Due::Now, Due::Later));
    let expected = "begin | begin | begin | act | begin | finished | finished | given up";
    assert_eq!(retry, expected);
    let repeat = row(|phase| notification(phase, Try::NotBegun, Due::Later, Due::Now));
    let expected = "begin | begin | begin | act | wait | finished | begin | given up";
    assert_eq!(repeat, expected);
}

#[rstest]
#[case(
    Reports::None,
    Try::NotBegun,
    "begin | begin | begin | Admitted | Admitted | finished | finished | given up"
)]
#[case(
    Reports::All,
    Try::NotBegun,
    "begin | begin | begin | Reported | Reported | finished | finished | given up"
)]
#[case(
    Reports::All,
    Try::Failed,
    "begin | begin | begin | Reported | Reported | finished | finished | given up"
)]
#[case(
    Reports::Lacking,
    Try::NotBegun,
    "begin | begin | begin | act | wait | finished | act | given up"
)]
#[case(
    Reports::Lacking,
    Try::TooOld,
    "begin | begin | begin | begin | wait | finished | act | given up"
)]
#[case(
    Reports::Lacking,
    Try::UnderWay,
    "begin | begin | begin | wait | wait | finished | finished | given up"
)]
#[case(
    Reports::Lacking,
    Try::Done,
    "begin | begin | begin | act | wait | finished | act | given up"
)]
#[case(
    Reports::Lacking,
    Try::Failed,
    "begin | begin | begin | failed | wait | finished | finished | given up"
)]
fn by_admission(#[case] reports: Reports, #[case] tried: Try, #[case] expected: &str) {
    let step = |phase| admission(phase, reports, tried, Due::Later);
    assert_eq!(row(step), expected);
    let due = admission(Some(Phase::Failed), Reports::Lacking, tried, Due::Now);
    assert_eq!(due, Step::Begin);
}
