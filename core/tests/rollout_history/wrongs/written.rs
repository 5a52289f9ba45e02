//! Acts that no API server may carry out.

use serde_json::json;
use sluice_core::delivery::rollout::claim::Claim;
use sluice_core::delivery::rollout::given::{Name, Pod};
use sluice_core::delivery::rollout::workload::{Kind, Workload};
use sluice_core::delivery::rollout::{Act, Report, What, Write};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Size, marks};

use super::{Said, acts, in_place, pair, setup, until};
use crate::events::Event;
use crate::laws::{Accepted, Ledger};
use crate::setup::{Setup, target};
use crate::world::{Discipline, World};

/// The leader is about to write this to a workload.
fn write(world: &mut World, what: What, of: &str) -> Write {
    let first = |report: &Report| match report.acts.first() {
        Some(Act::Write(write)) if write.what == what && write.name.name == of => {
            Some((**write).clone())
        }
        Some(Act::Write(_) | Act::Finalize(_) | Act::DeletePod(_) | Act::Call(_)) | None => None,
    };
    first(&until(world, |report| first(report).is_some())).unwrap()
}

/// A write of another size, with the same claim.
fn resized(world: &World, like: &Write, of: &Name, size: Size) -> Write {
    let object = &world.api.workloads[of];
    let workload = Workload {
        kind: of.kind,
        object,
    };
    let pods = |count: i32| count.try_into().unwrap();
    let mut patch = match size.partition {
        Some(partition) => workload.part(pods(partition)).unwrap(),
        None => workload.scale(pods(size.replicas.unwrap())),
    };
    patch["metadata"]["annotations"] = like.patch["metadata"]["annotations"].clone();
    Write {
        what: like.what,
        name: of.clone(),
        patch,
    }
}

fn of(world: &World, write: Write) -> Result<(), String> {
    acts(world, &Act::Write(Box::new(write)), true)
}

fn replicas(replicas: i32) -> Size {
    Size {
        replicas: Some(replicas),
        partition: None,
    }
}

fn partition(partition: i32) -> Size {
    Size {
        replicas: None,
        partition: Some(partition),
    }
}

/// A write as it is, and one of another size instead of it that was intended, too.
fn instead(mut world: World, write: Write, place: usize, size: Size) -> Said {
    let name = &world.setup.workloads()[place];
    let wrong = resized(&world, &write, name, size);
    let right = of(&world, write);
    // What was intended before is forgotten, so that the law about writes is asked alone.
    world.ledger.meddled(0);
    let mut status = status(&world);
    status.intent.as_mut().unwrap().sizes[place] = size;
    let mut cache = world.api.clone();
    cache.respecify(|it| it.status.as_mut().unwrap().intent = None);
    let accepted = Accepted {
        setup: world.setup,
        cache: &cache,
        status: &status,
        is_open: true,
        is_doubted: false,
    };
    world.ledger.accepts(&accepted).unwrap();
    [right, of(&world, wrong)]
}

fn status(world: &World) -> RolloutStatus {
    world.api.rollout.as_ref().unwrap().status.clone().unwrap()
}

pub(super) fn a_source_falls_first() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    instead(world, first, 1, replicas(9))
}

/// The old version was about to come back, and somebody has deleted it: a leader who has not heard of it may go on.
pub(super) fn the_last_pods() -> Said {
    let setup = Setup {
        reverts: true,
        ..setup(Kind::Deployment, 1)
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    world.work(0, 40).unwrap();
    world.step(Event::Delete).unwrap();
    let falls = write(&mut world, What::Scale, "web-v2");
    world.step(Event::PruneSource(0)).unwrap();
    let right = of(&world, falls.clone());
    world.read(0);
    [right, of(&world, falls)]
}

pub(super) fn the_target_grows_first() -> Said {
    let setup = Setup {
        decreases: true,
        ..setup(Kind::Deployment, 1)
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    let first = write(&mut world, What::Scale, "web-v1");
    instead(world, first, 0, replicas(1))
}

pub(super) fn too_many_pods() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    instead(world, first, 0, replicas(6))
}

pub(super) fn pods_of_a_source_without_any() -> Said {
    let mut world = World::new(setup(Kind::Deployment, 3), Discipline::StatusFirst);
    let first = write(&mut world, What::Scale, "web-v2");
    instead(world, first, 3, replicas(1))
}

/// Three pods are to become ten, one of them in the first batch.
pub(super) fn more_than_a_batch() -> Said {
    let mut world = in_place(Kind::Deployment);
    let first = write(&mut world, What::Scale, "web-v2");
    instead(world, first, 0, replicas(8))
}

/// There are to be twelve pods, and eleven are there.
pub(super) fn pods_of_a_start_with_a_closed_gate() -> Said {
    let setup = Setup {
        is_sized: true,
        ..setup(Kind::Deployment, 1)
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    world.step(Event::Foreign(0, 1)).unwrap();
    world.step(Event::Raise).unwrap();
    world.step(Event::Tick(3)).unwrap();
    let start = Act::Write(Box::new(write(&mut world, What::Scale, "web-v2")));
    [true, false].map(|is_open| acts(&world, &start, is_open))
}

/// A write as it is, and where the ledger knows nothing.
fn without_a_past(mut world: World, write: Write) -> Said {
    let right = of(&world, write.clone());
    world.ledger = Ledger::default();
    [right, of(&world, write)]
}

pub(super) fn a_claim_without_a_start() -> Said {
    let mut world = pair();
    let claim = write(&mut world, What::Claim, "web-v2");
    without_a_past(world, claim)
}

pub(super) fn a_claim_with_a_size() -> Said {
    let mut world = pair();
    let claim = write(&mut world, What::Claim, "web-v2");
    falsified(&world, claim, |it| {
        it.patch["spec"] = json!({"replicas": 1});
    })
}

/// A write as it is, and with something else in it.
fn falsified(world: &World, mut write: Write, change: impl FnOnce(&mut Write)) -> Said {
    let right = of(world, write.clone());
    change(&mut write);
    [right, of(world, write)]
}

/// The first batch is done, and the second one goes out.
fn second(world: &mut World, what: What) -> Write {
    let name = target(world.setup).name;
    write(world, what, &name);
    world.work(0, 1).unwrap();
    write(world, what, &name)
}

pub(super) fn a_target_that_falls() -> Said {
    let mut world = pair();
    let second = second(&mut world, What::Scale);
    instead(world, second, 0, replicas(0))
}

pub(super) fn a_source_that_grows() -> Said {
    let mut world = pair();
    let second = second(&mut world, What::Scale);
    instead(world, second, 1, replicas(10))
}

pub(super) fn a_partition_that_rises() -> Said {
    let mut world = in_place(Kind::StatefulSet);
    let second = second(&mut world, What::Partition);
    instead(world, second, 0, partition(4))
}

pub(super) fn nothing_was_intended() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    without_a_past(world, first)
}

pub(super) fn another_run_intended_it() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    falsified(&world, first, |it| {
        let claim = Claim::within(&it.patch).unwrap();
        let run = claim.run + 1;
        it.patch["metadata"]["annotations"][marks::CLAIM] = Claim { run, ..claim }.text().into();
    })
}

pub(super) fn another_size_was_intended() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    falsified(&world, first, |it| it.patch["spec"]["replicas"] = 2.into())
}

pub(super) fn scaled_in_place() -> Said {
    let mut world = in_place(Kind::CloneSet);
    let first = write(&mut world, What::Partition, "db");
    instead(world, first, 0, replicas(5))
}

pub(super) fn released_midway() -> Said {
    let mut world = pair();
    let first = write(&mut world, What::Scale, "web-v2");
    falsified(&world, first, |it| it.what = What::Release)
}

pub(super) fn a_pod_is_deleted_midway() -> Said {
    let mut world = in_place(Kind::StatefulSet);
    let first = write(&mut world, What::Partition, "db");
    let model = world.api.pods[&target(world.setup)][3].clone();
    let delete = Act::DeletePod(Pod {
        name: model.name,
        uid: model.uid,
        revision: model.revision,
        ready_since: None,
        is_going: false,
    });
    [of(&world, first), acts(&world, &delete, true)]
}
