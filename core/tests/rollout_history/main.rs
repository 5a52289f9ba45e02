//! Random histories of rollouts: looks by two leaders over old caches, processes killed anywhere, answers of the
//! API server that are lost, statuses that are lost, clocks that are doubted; pods that fail, gates and metrics
//! that change, people who pause, write sizes, scale, try again, change their minds, and delete the Rollout or a
//! workload. Whatever happens, the laws hold ([`laws`]); when the faults end, every rollout ends or says
//! what holds it, and then nothing is written any more.
//!
//! The decisions are those that ship. The API server and the controllers of workloads are a model.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::cell::RefCell;
use std::collections::BTreeSet;

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
mod wrongs;

use events::{Event, any_event};
use laws::Reached;
use setup::{Others, Setup};
use world::{Discipline, World};

/// How many steps a history has at most.
const STEPS: usize = 60;

fn setups() -> impl Strategy<Value = Setup> {
    let workloads = prop_oneof![
        2 => Just((Kind::Deployment, 1)),
        2 => Just((Kind::Deployment, 2)),
        2 => Just((Kind::Deployment, 3)),
        1 => Just((Kind::Deployment, 0)),
        2 => Just((Kind::StatefulSet, 0)),
        2 => Just((Kind::CloneSet, 0)),
    ];
    let others = prop_oneof![
        2 => Just(Others::Nobody),
        1 => Just(Others::Careful),
        1 => Just(Others::Careless),
    ];
    let rest = any::<[bool; 5]>();
    (workloads, others, rest).prop_map(|((kind, sources), others, rest)| {
        let [is_sized, decreases, hooks, reverts, takes_back] = rest;
        Setup {
            kind,
            sources,
            is_sized,
            decreases,
            hooks,
            reverts,
            takes_back,
            others,
        }
    })
}

/// Some begin with a Rollout that is deleted in the middle of its run and comes back, and some end with a size that
/// others have written, so that both are held often enough. Others begin with a run that goes on where another one has
/// stopped. Some Rollouts are deleted a moment before their target, or a source.
fn histories() -> impl Strategy<Value = (Setup, Vec<Event>)> {
    let comes_back = [
        Event::Work(0, 7),
        Event::Delete,
        Event::Work(0, 30),
        Event::Return,
    ];
    let is_tried_again = [
        Event::Work(0, 40),
        Event::Raise,
        Event::Retry,
        Event::Work(0, 5),
        Event::Gate(false),
        Event::Work(0, 5),
    ];
    let goes = [Event::Delete, Event::Work(0, 1), Event::Prune];
    let loses_a_source = (0..2_usize).prop_map(|place| {
        let goes = [Event::Delete, Event::Work(0, 1), Event::PruneSource(place)];
        [&[Event::Work(0, 40)], &goes[..]].concat()
    });
    let begins = prop_oneof![
        4 => Just(Vec::new()),
        1 => Just(comes_back.to_vec()),
        2 => Just(is_tried_again.to_vec()),
        1 => Just([&is_tried_again[..], &goes[..]].concat()),
        1 => loses_a_source,
    ];
    let goes_on = prop::collection::vec(any_event(), 1..STEPS);
    let ends = prop_oneof![Just(Vec::new()), Just(vec![Event::Foreign(0, 7)])];
    let all = (begins, goes_on, ends)
        .prop_map(|(begins, goes_on, ends)| [begins, goes_on, ends].concat());
    (setups(), all)
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
    let all = RefCell::new(BTreeSet::new());
    history::hold(&histories(), |setup, events| {
        let mut world = play(setup, &events, Discipline::StatusFirst)?;
        world.ends()?;
        all.borrow_mut().extend(world.ledger.reached);
        Ok(())
    });
    // They are about something.
    assert_eq!(all.into_inner(), BTreeSet::from(Reached::ALL));
}

/// The test of the test: a controller that acts before the status is accepted is found out.
#[rstest]
#[case::midway(Discipline::ActsFirst, "without an accepted intent")]
#[case::at_the_claim(Discipline::ClaimsEarly, "for a run that has not begun")]
fn without_discipline_a_law_is_broken(#[case] discipline: Discipline, #[case] law: &str) {
    let is_broken = history::breaks(&histories(), law, |setup, events| {
        play(setup, &events, discipline).map(drop)
    });
    assert!(is_broken, "no history shows that acts wait for an intent");
}
