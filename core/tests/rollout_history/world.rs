//! Everything: the API server with its controllers, and two leaders with caches of their own.

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::rollout::given::Arrived;

use crate::cluster::Cluster;
use crate::events::{Event, Value};
use crate::laws::Ledger;
use crate::setup::{Others, Setup, cluster, target};

mod leaders;
mod people;

/// In which order a leader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// What it intends first.
    StatusFirst,
    /// What it would do next in a run first.
    ActsFirst,
    /// What it would do for a run that has not begun.
    ClaimsEarly,
}

/// A process that leads, or believes so.
#[derive(Clone)]
pub(crate) struct Leader {
    pub(crate) cache: Cluster,
    pub(crate) gate: bool,
    arrived: Vec<Arrived>,
}

/// Everything.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    discipline: Discipline,
    pub(crate) api: Cluster,
    gate: bool,
    metric: Value,
    hook: u16,
    is_doubted: bool,
    pub(crate) leaders: [Leader; 2],
    pub(crate) ledger: Ledger,
    now: Timestamp,
    count: usize,
}

impl World {
    pub(crate) fn new(setup: Setup, discipline: Discipline) -> Self {
        let api = cluster(setup);
        let leader = Leader {
            cache: api.clone(),
            gate: true,
            arrived: Vec::new(),
        };
        Self {
            setup,
            discipline,
            api,
            gate: true,
            metric: Value::Good,
            hook: 200,
            is_doubted: false,
            leaders: [leader.clone(), leader],
            ledger: Ledger::default(),
            now: "2026-11-23T10:00:00Z".parse().unwrap(),
            count: 0,
        }
    }

    /// One step of a history.
    pub(crate) fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Work(leader, often) => return self.work(leader, often.into()),
            Event::Look(leader, fault) => return self.look(leader, fault).map(drop),
            Event::Read(leader) => self.read(leader),
            Event::Tick(often) => return (0..often).try_for_each(|_| self.tick()),
            Event::Crash(leader) => {
                self.leaders[leader].arrived.clear();
                self.read(leader);
            }
            Event::Gate(is_open) => self.gate = is_open,
            Event::Pause(paused) => {
                self.api
                    .respecify(|it| it.spec.rollout_plan.paused = paused);
            }
            Event::Raise => self
                .api
                .respecify(|it| it.spec.rollout_plan.last_batch_to_rollout = None),
            Event::Metric(value) => self.metric = value,
            Event::Hook(code) => self.answer(code),
            Event::Break(breaks) => self.breaks(breaks),
            Event::Fail(pick) => self.fail(pick),
            Event::Foreign(place, size) => self.foreign(place, size),
            Event::Repair => self.repair(),
            Event::Scale(place, size) => {
                self.foreign(place, size);
                self.retry();
            }
            Event::Prune => self.prune(),
            Event::PruneSource(place) => self.prune_source(place),
            Event::Replace => self.replace(),
            Event::Wipe => self.wipe(),
            Event::Retry => self.retry(),
            Event::Another => self.another(),
            Event::Delete => self.api.delete(self.now),
            Event::Return => self.come_back(),
            Event::Pass(seconds) => self.pass(seconds.into()),
            Event::Doubt(is_doubted) => self.is_doubted = is_doubted,
        }
        Ok(())
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// The controllers of workloads work.
    pub(crate) fn tick(&mut self) -> Result<(), String> {
        self.api.tick();
        self.judge()
    }

    /// Whether the pods are as they have to be.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let pods = self.api.pods.get(&target(self.setup));
        match pods.filter(|_| self.setup.is_in_place()) {
            Some(pods) => self.ledger.in_place(pods),
            // Of a pair each write is judged.
            None => Ok(()),
        }
    }

    /// Whether somebody has asked for another run.
    pub(crate) fn is_asked_again(&self) -> bool {
        self.count > 0
    }

    /// The faults end, and everything is well: gates open, pods come up, nobody else writes, and time goes on.
    fn be_fair(&mut self) -> Result<(), String> {
        (self.gate, self.metric, self.hook) = (true, Value::Good, 200);
        self.is_doubted = false;
        self.api.broken.clear();
        self.api.respecify(|it| {
            it.spec.rollout_plan.paused = false;
            it.spec.rollout_plan.last_batch_to_rollout = None;
        });
        self.leaders[0].arrived.clear();
        for _ in 0..12 {
            self.work_on()?;
            if self.setup.others == Others::Careful {
                self.repair();
            }
            // Whatever is withheld or overdue comes now.
            self.pass(120);
        }
        self.work_on()
    }

    /// Then the rollout ends, or says what holds it, and nothing is written any more.
    pub(crate) fn ends(&mut self) -> Result<(), String> {
        self.be_fair()?;
        let end = self.end()?;
        self.ledger.reached.insert(end);
        self.nobody_is_short()?;
        self.rests()?;
        self.pass(3600);
        self.rests()
    }
}
