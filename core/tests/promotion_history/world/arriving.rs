//! The faults end: everything arrives, and then it is still.

use jiff::SignedDuration;
use sluice_crds::pipeline::MergeGate;

use super::World;
use super::setup::NAMES;
use crate::events::{Deed, Fault, Finding, Of};
use crate::git::dry;

/// How often a leader works at most until everything has arrived.
const ROUNDS: usize = 40;

impl World {
    /// The faults end: every environment gets the newest dry commit, and then nothing is written any more.
    pub(crate) fn arrives(mut self) -> Result<(), String> {
        self.repair()?;
        self.forge.late.clear();
        self.api.reverts.clear();
        self.crash(0);
        self.commit();
        let newest = self.git.head("main");
        let has_newest = |world: &Self, branch: &str| {
            dry(&world.git, &world.git.head(branch)).as_ref() == Some(&newest)
        };
        for _ in 0..ROUNDS {
            for place in 0..NAMES.len() {
                self.check(place, Of::Both, Finding::Gone);
                self.check(place, Of::Both, Finding::Success);
                self.merges_by_hand(place)?;
            }
            // Whatever has failed is tried again.
            self.now += SignedDuration::from_mins(10);
            self.work(0, 1, Fault::No)?;
            if NAMES.iter().all(|it| has_newest(&self, it)) {
                return self.rests();
            }
        }
        let forge = &self.forge.pulls;
        Err(format!(
            "not everything arrives: {:#?}, {forge:#?}",
            self.api.strategy.status
        ))
    }

    /// A person merges what says that it is ready.
    fn merges_by_hand(&mut self, place: usize) -> Result<(), String> {
        let next = format!("{}-next", NAMES[place]);
        let of = (
            self.git.head(&next),
            format!("sluice/promotion/{}", NAMES[place]),
        );
        let is_ready = self.forge.statuses.get(&of) == Some(&MergeGate::Success);
        match self.setup.by_hand && place == 2 && is_ready {
            true => self.person(place, Deed::Merge),
            false => Ok(()),
        }
    }

    /// Nothing is left to be done, and nothing is written.
    fn rests(mut self) -> Result<(), String> {
        for place in 0..NAMES.len() {
            self.check(place, Of::Both, Finding::Success);
        }
        // What was opened is closed, and told.
        self.work(0, 10, Fault::No)?;
        let (writes, before) = (self.writes, self.api.clone());
        self.work(0, 10, Fault::No)?;
        match self.writes == writes {
            true => Ok(()),
            false => Err(format!(
                "it is never still: {:#?} {:#?}, then {:#?} {:#?}",
                before.strategy.status,
                before.pull_requests,
                self.api.strategy.status,
                self.api.pull_requests
            )),
        }
    }
}
