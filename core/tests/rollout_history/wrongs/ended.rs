//! Ends that no rollout may come to, and pods that may not be.

use sluice_core::delivery::rollout::workload::Kind;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;

use super::{Said, in_place, pair, setup, until};
use crate::events::Event;
use crate::laws::Reached;
use crate::setup::{NEWEST, Setup, target};
use crate::world::{Discipline, World};

/// It has succeeded.
fn succeeded() -> World {
    let mut world = pair();
    world.ends().unwrap();
    assert_eq!(world.end(), Ok(Reached::Succeeded));
    world
}

/// The first batch goes out.
fn midway(mut world: World) -> World {
    let goes_out = Some(RollingState::RollingInBatches);
    until(&mut world, |it| it.status.rolling_state == goes_out);
    world.work(0, 2).unwrap();
    world
}

/// Somebody has scaled the target in the middle of its run, and does not bring that back.
fn held() -> World {
    let mut world = midway(pair());
    world.step(Event::Foreign(0, 7)).unwrap();
    world.ends().unwrap();
    assert_eq!(world.end(), Ok(Reached::HeldByOthers));
    world
}

/// A hook has said no.
fn failed() -> World {
    let setup = Setup {
        hooks: true,
        ..setup(Kind::Deployment, 1)
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    world.step(Event::Hook(403)).unwrap();
    world.work(0, 40).unwrap();
    world.ends().unwrap();
    assert_eq!(world.end(), Ok(Reached::Failed));
    world
}

/// What is said of an end as it is, and with something else in its status.
fn falsified(mut world: World, change: impl FnOnce(&mut RolloutStatus)) -> Said {
    let right = world.end().map(drop);
    let object = world.api.rollout.as_mut().unwrap();
    change(object.status.as_mut().unwrap());
    [right, world.end().map(drop)]
}

/// Another reason everywhere: in what holds it, and in what is told of that.
fn reason(status: &mut RolloutStatus, reason: &str) {
    if let Some(held) = &mut status.held {
        held.reason = reason.to_owned();
    }
    if let Some(outcome) = &mut status.outcome {
        outcome.reason = reason.to_owned();
    }
    for condition in &mut status.conditions {
        condition.reason = reason.to_owned();
    }
}

pub(super) fn it_goes_on_for_ever() -> Said {
    falsified(succeeded(), |status| {
        status.rolling_state = Some(RollingState::Finalising);
    })
}

/// The source has a pod again.
pub(super) fn succeeded_and_not_out() -> Said {
    let mut world = succeeded();
    let right = world.end().map(drop);
    let (source, _) = world.setup.sources().remove(0);
    let one = 1_u64.into();
    world.api.foreign(&source, "/spec/replicas", one, "kubectl");
    [right, world.end().map(drop)]
}

pub(super) fn held_by_what_is_open() -> Said {
    falsified(held(), |status| reason(status, "GatesClosed"))
}

pub(super) fn held_by_nobody() -> Said {
    let mut world = held();
    let right = world.end().map(drop);
    world.step(Event::Repair).unwrap();
    [right, world.end().map(drop)]
}

pub(super) fn held_and_not_told() -> Said {
    falsified(held(), |status| status.conditions.clear())
}

pub(super) fn failed_and_not_told() -> Said {
    falsified(failed(), |status| status.outcome = None)
}

pub(super) fn failed_by_nothing() -> Said {
    falsified(failed(), |status| reason(status, "WorkloadGone"))
}

pub(super) fn a_look_that_writes() -> Said {
    let mut early = pair();
    until(&mut early, |it| it.changed);
    [succeeded().rests(), early.rests()]
}

pub(super) fn short_in_the_end() -> Said {
    let mut world = succeeded();
    let right = world.nobody_is_short();
    let pods = world.api.pods.get_mut(&target(world.setup)).unwrap();
    pods[4].available = false;
    [right, world.nobody_is_short()]
}

pub(super) fn two_pods_at_once_in_place() -> Said {
    let mut world = in_place(Kind::CloneSet);
    let right = world.judge();
    let pods = world.api.pods.get_mut(&target(world.setup)).unwrap();
    pods.truncate(2);
    [right, world.judge()]
}

pub(super) fn out_before_its_batch() -> Said {
    let mut world = in_place(Kind::StatefulSet);
    let right = world.judge();
    let pods = world.api.pods.get_mut(&target(world.setup)).unwrap();
    pods[3].image = NEWEST.to_owned();
    [right, world.judge()]
}
