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

use proptest::prelude::*;
use rstest::rstest;
use sluice_core::delivery::rollout::workload::Kind;
// The cluster of the unit tests finds them here.
use sluice_core::{delivery, time};

#[path = "../../src/delivery/rollout/tests/cluster.rs"]
#[allow(dead_code, reason = "the unit tests use the rest")]
mod cluster;
mod events;
#[path = "../history/mod.rs"]
mod history;
mod laws;
mod setup;
mod world;

use events::{Event, any_event};
use laws::Reached;
use setup::Setup;
use world::{Discipline, World};

/// How many steps a history has at most.
const STEPS: usize = 60;
fn setups() -> impl Strategy<Value = Setup> {
    let kind = prop_oneof![
        2 => Just(Kind::Deployment),
        1 => Just(Kind::StatefulSet),
        1 => Just(Kind::CloneSet),
    ];
    let rest = any::<[bool; 4]>();
    (kind, rest).prop_map(|(kind, [decreases, hooks, reverts, takes_back])| Setup {
        kind,
        decreases,
        hooks,
        reverts,
        takes_back,
    })
}

fn histories() -> impl Strategy<Value = (Setup, Vec<Event>)> {
    (setups(), prop::collection::vec(any_event(), 1..STEPS))
}

fn play(setup: Setup, events: &[Event], discipline: Discipline) -> Result<World, String> {
    let mut world = World::new(setup, discipline);
    for event in events {
        world.step(*event)?;
    }
    Ok(world)
}

#[test]
fn whatever_happens_the_laws_hold_and_every_rollout_ends() {
    let all = Cell::new(Reached::default());
    history::hold(&histories(), |setup, events| {
        let mut world = play(setup, &events, Discipline::StatusFirst)?;
        world.ends()?;
        all.set(all.get() + world.reached());
        Ok(())
    });
    // They are about something.
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

/// The test of the test: a controller that acts before the status is accepted is found out.
#[test]
fn without_discipline_a_law_is_broken() {
    let law = "without an accepted intent";
    let is_broken = history::breaks(&histories(), law, |setup, events| {
        play(setup, &events, Discipline::ActsFirst).map(drop)
    });
    assert!(is_broken, "no history shows that sizes wait for an intent");
}

/// The test of the laws about pods that are replaced in place.
#[rstest]
fn what_is_wrong_in_place_is_found_out(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
    #[values("(a)", "(f)")] law: &str,
) {
    let setup = Setup {
        kind,
        decreases: false,
        hooks: false,
        reverts: false,
        takes_back: false,
    };
    let mut world = World::new(setup, Discipline::StatusFirst);
    world.judge().unwrap();
    let pods = world.api.pods.get_mut(&setup::target(setup)).unwrap();
    match law {
        "(a)" => pods.truncate(2),
        _ => pods[3].image = setup::NEWEST.to_owned(),
    }
    let why = world.judge().unwrap_err();
    assert!(why.starts_with(law), "{why}");
}
