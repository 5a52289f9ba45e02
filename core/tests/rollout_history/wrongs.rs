//! The laws bite: each is shown what a leader does, which it passes, and the same falsified, which it refuses.

use rstest::rstest;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::delivery::rollout::{Act, Report};
use sluice_crds::RolloutStatus;

use crate::laws::{Accepted, Written};
use crate::setup::{Others, Setup};
use crate::world::{Discipline, World};

mod accepted;
mod ended;
mod written;

/// What the laws say of what is right, and of what is wrong.
type Said = [Result<(), String>; 2];

fn setup(kind: Kind, sources: usize) -> Setup {
    Setup {
        kind,
        sources,
        is_sized: false,
        decreases: false,
        hooks: false,
        reverts: false,
        takes_back: false,
        others: Others::Careless,
    }
}

fn pair() -> World {
    World::new(setup(Kind::Deployment, 1), Discipline::StatusFirst)
}

fn in_place(kind: Kind) -> World {
    World::new(setup(kind, 0), Discipline::StatusFirst)
}

/// Plays until the leader is about to do something: what that is.
fn until(world: &mut World, is_it: impl Fn(&Report) -> bool) -> Report {
    for _ in 0..200 {
        world.read(0);
        let report = world.decide(0, None).unwrap();
        if is_it(&report) {
            return report;
        }
        world.work(0, 1).unwrap();
    }
    panic!("that never happens: {:#?}", world.api.rollout);
}

/// A status is accepted that was decided while the gate was open or not, and by a clock that is doubted or not.
fn accepts(
    world: &World,
    status: &RolloutStatus,
    is_open: bool,
    is_doubted: bool,
) -> Result<(), String> {
    world.ledger.clone().accepts(&Accepted {
        setup: world.setup,
        cache: &world.leaders[0].cache,
        status,
        is_open,
        is_doubted,
    })
}

/// An act is carried out, of a leader that knows the gate to be open or not.
fn acts(world: &World, act: &Act, is_open: bool) -> Result<(), String> {
    let mut after = world.api.clone();
    after.act(act).unwrap();
    world.ledger.acts(&Written {
        setup: world.setup,
        seen: world.api.rollout.as_ref().unwrap(),
        cache: &world.leaders[0].cache,
        before: &world.api,
        after: &after,
        act,
        is_open,
    })
}

#[rstest]
#[case::a_source_falls_first("(a)", written::a_source_falls_first)]
#[case::the_last_pods("(a)", written::the_last_pods)]
#[case::two_pods_at_once_in_place("(a)", ended::two_pods_at_once_in_place)]
#[case::short_in_the_end("(a)", ended::short_in_the_end)]
#[case::the_target_grows_first("(b)", written::the_target_grows_first)]
#[case::too_many_pods("(b)", written::too_many_pods)]
#[case::more_than_a_batch("(b)", written::more_than_a_batch)]
#[case::a_batch_with_a_closed_gate("(c)", accepted::a_batch_with_a_closed_gate)]
#[case::a_batch_beyond_the_last("(c)", accepted::a_batch_beyond_the_last)]
#[case::a_start_with_a_closed_gate("(c)", accepted::a_start_with_a_closed_gate)]
#[case::a_start_beyond_the_last("(c)", accepted::a_start_beyond_the_last)]
#[case::pods_of_a_start_with_a_closed_gate("(c)", written::pods_of_a_start_with_a_closed_gate)]
#[case::a_claim_without_a_start("(c)", written::a_claim_without_a_start)]
#[case::a_claim_with_a_size("(c)", written::a_claim_with_a_size)]
#[case::a_goal_that_falls("(d)", accepted::a_goal_that_falls)]
#[case::an_intent_that_falls("(d)", accepted::an_intent_that_falls)]
#[case::a_start_that_falls("(d)", accepted::a_start_that_falls)]
#[case::a_target_that_falls("(d)", written::a_target_that_falls)]
#[case::a_source_that_grows("(d)", written::a_source_that_grows)]
#[case::a_partition_that_rises("(d)", written::a_partition_that_rises)]
#[case::nothing_was_intended("(e)", written::nothing_was_intended)]
#[case::another_run_intended_it("(e)", written::another_run_intended_it)]
#[case::another_size_was_intended("(e)", written::another_size_was_intended)]
#[case::scaled_in_place("(e)", written::scaled_in_place)]
#[case::released_midway("(e)", written::released_midway)]
#[case::a_pod_is_deleted_midway("(e)", written::a_pod_is_deleted_midway)]
#[case::it_goes_on_for_ever("(f)", ended::it_goes_on_for_ever)]
#[case::succeeded_and_not_out("(f)", ended::succeeded_and_not_out)]
#[case::held_by_what_is_open("(f)", ended::held_by_what_is_open)]
#[case::held_by_nobody("(f)", ended::held_by_nobody)]
#[case::held_and_not_told("(f)", ended::held_and_not_told)]
#[case::failed_and_not_told("(f)", ended::failed_and_not_told)]
#[case::failed_by_nothing("(f)", ended::failed_by_nothing)]
#[case::a_look_that_writes("(g)", ended::a_look_that_writes)]
#[case::out_before_its_batch("(h)", ended::out_before_its_batch)]
#[case::late_by_a_doubted_clock("(i)", accepted::late_by_a_doubted_clock)]
#[case::pods_of_a_source_without_any("(j)", written::pods_of_a_source_without_any)]
fn what_is_wrong_is_refused(#[case] law: &str, #[case] say: fn() -> Said) {
    let [right, wrong] = say();
    assert_eq!(right, Ok(()));
    let why = wrong.unwrap_err();
    assert!(why.starts_with(law), "{why}");
}
