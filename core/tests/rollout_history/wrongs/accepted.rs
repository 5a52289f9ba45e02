//! Statuses that no API server may get.

use sluice_core::delivery::rollout::Report;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{RollingState, Size};

use super::{Said, accepts, pair, setup, until};
use crate::events::Event;
use crate::setup::Setup;
use crate::world::{Discipline, World};

/// The leader is about to intend this batch.
fn batch(world: &mut World, batch: i32) -> RolloutStatus {
    let is_it = |report: &Report| {
        let intent = report.status.intent.as_ref();
        report.changed && intent.is_some_and(|it| it.batch == Some(batch))
    };
    until(world, is_it).report.status
}

/// The leader is about to begin a run.
fn start(world: &mut World) -> RolloutStatus {
    let is_it = |report: &Report| {
        let state = report.status.rolling_state;
        report.changed && state == Some(RollingState::Initializing)
    };
    until(world, is_it).report.status
}

/// The same status, as it is and while the gate is closed.
fn of_gates(world: &World, status: &RolloutStatus) -> Said {
    [true, false].map(|is_open| accepts(world, status, is_open, false))
}

/// The same status, as it is and where no batch after this one may go out.
fn of_last(mut world: World, status: &RolloutStatus, last: i32) -> Said {
    let right = accepts(&world, status, true, false);
    world.leaders[0]
        .cache
        .respecify(|it| it.spec.rollout_plan.last_batch_to_rollout = Some(last));
    [right, accepts(&world, status, true, false)]
}

/// A status, as it is and with something else in it.
fn falsified(
    world: &World,
    mut status: RolloutStatus,
    change: impl FnOnce(&mut RolloutStatus),
) -> Said {
    let right = accepts(world, &status, true, false);
    change(&mut status);
    [right, accepts(world, &status, true, false)]
}

/// The sizes that a status intends for the target.
pub(super) fn of_target(status: &mut RolloutStatus) -> &mut Size {
    &mut status.intent.as_mut().unwrap().sizes[0]
}

/// Somebody has begun by hand: of the twelve pods that there are to be seven are new.
fn begun_by_hand() -> World {
    let setup = Setup {
        is_sized: true,
        ..setup(Kind::Deployment, 1)
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    for event in [Event::Foreign(0, 7), Event::Foreign(1, 5), Event::Raise] {
        world.step(event).unwrap();
    }
    // All of them are there.
    world.step(Event::Tick(20)).unwrap();
    world
}

pub(super) fn a_batch_with_a_closed_gate() -> Said {
    let mut world = pair();
    let status = batch(&mut world, 0);
    of_gates(&world, &status)
}

pub(super) fn a_batch_beyond_the_last() -> Said {
    let mut world = pair();
    let status = batch(&mut world, 1);
    of_last(world, &status, 0)
}

pub(super) fn a_start_with_a_closed_gate() -> Said {
    let mut world = pair();
    let status = start(&mut world);
    of_gates(&world, &status)
}

/// The first two batches are there: it begins with the third.
pub(super) fn a_start_beyond_the_last() -> Said {
    let mut world = begun_by_hand();
    let status = start(&mut world);
    of_last(world, &status, 1)
}

pub(super) fn a_goal_that_falls() -> Said {
    let mut world = pair();
    let status = batch(&mut world, 1);
    falsified(&world, status, |status| status.batches[1].goal = 0)
}

pub(super) fn an_intent_that_falls() -> Said {
    let mut world = pair();
    let status = batch(&mut world, 1);
    falsified(&world, status, |status| {
        of_target(status).replicas = Some(0);
    })
}

pub(super) fn a_start_that_falls() -> Said {
    let mut world = begun_by_hand();
    let status = start(&mut world);
    falsified(&world, status, |status| {
        of_target(status).replicas = Some(5);
    })
}

/// Its pods do not come up.
pub(super) fn late_by_a_doubted_clock() -> Said {
    let mut world = pair();
    world.step(Event::Break(true)).unwrap();
    batch(&mut world, 0);
    world.work(0, 10).unwrap();
    world.step(Event::Pass(3600)).unwrap();
    let status = until(&mut world, |it| it.status.outcome.is_some())
        .report
        .status;
    [false, true].map(|is_doubted| accepts(&world, &status, true, is_doubted))
}
