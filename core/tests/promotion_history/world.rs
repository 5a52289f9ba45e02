//! Everything: the repository, the forge, the API server with its versions and conflicts, and two leaders with
//! caches of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::pull_request::{Errand, Recent};
use sluice_crds::{CommitStatus, PromotionStrategy, PullRequest, RevertCommit};

use crate::events::{Event, Fault};
use crate::forge::Forge;
use crate::git::Known;
use crate::laws::Ledger;
use crate::repository::Repository;
pub(super) use setup::{Discipline, Setup};
use setup::{Kustomization, NAMES, Opening, start, strategy};

mod arriving;
mod leaders;
mod people;
pub(super) mod setup;

/// What the API server has, or a cache.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) strategy: Arc<PromotionStrategy>,
    pub(super) pull_requests: BTreeMap<String, Arc<PullRequest>>,
    pub(super) checks: BTreeMap<String, Arc<CommitStatus>>,
    pub(super) reverts: Vec<Arc<RevertCommit>>,
    pub(super) gates: [Opening; 3],
    pub(super) active_gates: [Opening; 3],
    pub(super) kustomizations: [Kustomization; 3],
}

/// A process that leads, or believes so.
#[derive(Clone)]
pub(super) struct Leader {
    pub(super) cache: Objects,
    pub(super) known: Known,
    /// What it remembers of PullRequests.
    desks: BTreeMap<String, Desk>,
    /// Whether it has decided about the strategy since it leads.
    has_decided: bool,
}

#[derive(Clone)]
struct Desk {
    recent: Recent,
    errand: Errand,
}

impl Default for Desk {
    fn default() -> Self {
        let (recent, errand) = (Recent::default(), Errand::None);
        Self { recent, errand }
    }
}

/// Everything.
#[derive(Clone)]
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) discipline: Discipline,
    pub(super) git: Arc<Repository>,
    pub(super) forge: Forge,
    pub(super) api: Objects,
    pub(super) leaders: [Leader; 2],
    pub(super) ledger: Ledger,
    pub(super) now: Timestamp,
    /// The newest version of anything.
    version: u64,
    /// What makes names and files differ.
    count: usize,
    /// The statuses that were written.
    writes: usize,
    /// What was forced away from the dry branch.
    lost: Vec<String>,
}

impl World {
    /// All environments have the first dry commit, and the first leader has looked at them.
    pub(super) fn new(setup: Setup, discipline: Discipline) -> Result<Self, String> {
        let mut git = Repository::default();
        let first = git.commit_dry("first");
        for branch in NAMES {
            git.push(branch, &first, "first");
            git.branch(&format!("{branch}-next"), branch);
        }
        let api = Objects {
            strategy: Arc::new(strategy(setup)),
            pull_requests: BTreeMap::new(),
            checks: BTreeMap::new(),
            reverts: Vec::new(),
            gates: [Opening::Open; 3],
            active_gates: [Opening::Open; 3],
            kustomizations: Default::default(),
        };
        let leader = Leader {
            cache: api.clone(),
            known: Known::default(),
            desks: BTreeMap::new(),
            has_decided: false,
        };
        let mut world = Self {
            setup,
            discipline,
            git: Arc::new(git),
            forge: Forge::default(),
            leaders: [leader.clone(), leader],
            api,
            ledger: Ledger::default(),
            now: start(),
            version: 0,
            count: 0,
            writes: 0,
            lost: Vec::new(),
        };
        world.work(0, 2, Fault::No)?;
        Ok(world)
    }

    /// One step of a history.
    pub(super) fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Work(leader, often, fault) => return self.work(leader, often, fault),
            Event::Flow(leader) => return self.flow(leader),
            Event::Look(leader, fault) => {
                let before = self.leaders[leader].known.listed.clone();
                self.look(leader, fault)?;
                let after = self.leaders[leader].known.listed.as_ref();
                let is_same = before.as_ref().map(Arc::as_ptr) == after.map(Arc::as_ptr);
                return match is_same && fault == Fault::No {
                    true => self.look_again(leader),
                    false => Ok(()),
                };
            }
            Event::LookAt(leader, pick, fault) => {
                let name = self.pick(leader, pick);
                return name.map_or(Ok(()), |name| self.look_at(leader, &name, fault));
            }
            Event::Act(leader, pick, reply) => {
                let name = self.pick(leader, pick);
                return name.map_or(Ok(()), |name| self.act(leader, &name, reply));
            }
            Event::Late => return self.late(),
            Event::Person(place, deed) => return self.person(place, deed),
            Event::Hear(leader, news) => self.hear(leader, news),
            Event::List(leader) => self.list(leader),
            Event::Learn(leader) => self.learn(leader),
            Event::Crash(leader) => self.crash(leader),
            Event::Commit => self.commit(),
            Event::Repair => return self.repair(),
            Event::Rewind(back) => self.rewind(back),
            Event::Hydrate(place, made) => self.hydrate(place, made),
            Event::Check(place, of, finding) => self.check(place, of, finding),
            Event::Gate(place, stands) => self.api.gates[place] = Opening::of(stands, self.now),
            Event::ActiveGate(place, stands) => {
                self.api.active_gates[place] = Opening::of(stands, self.now);
            }
            Event::Forge(answers) => self.forge.is_down = !answers,
            Event::Suspend(suspend) => self.respecify(|it| it.spec.suspend = suspend),
            Event::Revert(place, to, by_hand) => self.revert(place, to, by_hand),
            Event::Unrevert(pick) => self.unrevert(pick),
            Event::Fix(pick) => self.fix(pick),
            Event::Wipe => self.wipe(),
            Event::Pass(seconds) => self.now += SignedDuration::from_secs(i64::from(seconds)),
        }
        Ok(())
    }

    /// A PullRequest that a leader knows.
    fn pick(&self, leader: usize, pick: usize) -> Option<String> {
        let all = &self.leaders[leader].cache.pull_requests;
        // The newest are those at which something happens.
        all.keys().nth_back(pick % all.len().max(1)).cloned()
    }

    pub(super) fn git(&mut self) -> &mut Repository {
        Arc::make_mut(&mut self.git)
    }

    fn next_version(&mut self) -> Option<String> {
        self.version += 1;
        Some(self.version.to_string())
    }

    /// Somebody changes the strategy.
    fn respecify(&mut self, change: impl FnOnce(&mut PromotionStrategy)) {
        let version = self.next_version();
        let object = Arc::make_mut(&mut self.api.strategy);
        change(object);
        object.metadata.resource_version = version;
        object.metadata.generation = object.metadata.generation.map(|it| it + 1);
    }

    /// The status of the strategy is lost.
    fn wipe(&mut self) {
        if self.setup.wipes {
            let version = self.next_version();
            let object = Arc::make_mut(&mut self.api.strategy);
            object.metadata.resource_version = version;
            object.status = None;
            self.forgets();
        }
    }
}
