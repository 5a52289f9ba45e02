//! Everything: the API server with its controllers, and two leaders with caches of their own.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sluice_core::delivery::rollout::given::{Arrived, Measure};
use sluice_core::delivery::rollout::metric::Measured;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::delivery::rollout::{Act, Answer, Report, Told, consider, hook, report};
use sluice_core::time::clock::Now;
use sluice_core::verdict::question::Question;
use sluice_crds::Rollout;
use sluice_crds::gatekeeper::Range;

use crate::cluster::{Cluster, image_of};
use crate::events::{Event, Fault, Value};
use crate::laws::Ledger;
use crate::setup::{GATES, IN_PLACE, NEWEST, PODS, Setup, rollout, source, target};

/// In which order a leader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// What it intends first.
    StatusFirst,
    /// What it would do next first.
    ActsFirst,
}

/// A process that leads, or believes so.
#[derive(Clone)]
struct Leader {
    cache: Cluster,
    gate: bool,
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
    leaders: [Leader; 2],
    pub(crate) ledger: Ledger,
    now: Timestamp,
    count: usize,
}

/// A workload whose new template waits.
fn armed(api: &mut Cluster, setup: Setup, strategy: &serde_json::Value) {
    let target = target(setup);
    let strategy = json!({ "updateStrategy": strategy });
    api.add(setup.kind, &target.name, IN_PLACE, "db:1", &strategy);
    let image = json!([{"name": "c", "image": NEWEST}]);
    api.foreign(&target, "/spec/template/spec/containers", image, "git");
    api.settle();
}

impl World {
    pub(crate) fn new(setup: Setup, discipline: Discipline) -> Self {
        let mut api = Cluster::new(rollout(setup));
        match setup.kind {
            Kind::Deployment => {
                api.add(Kind::Deployment, "web-v1", PODS, "web:1", &json!({}));
                api.add(Kind::Deployment, "web-v2", 0, "web:2", &json!({}));
            }
            Kind::StatefulSet => {
                armed(
                    &mut api,
                    setup,
                    &json!({"rollingUpdate": {"partition": 2_147_483_647}}),
                );
            }
            Kind::CloneSet => armed(&mut api, setup, &json!({"partition": "100%"})),
        }
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
            leaders: [leader.clone(), leader],
            ledger: Ledger::default(),
            now: "2026-11-23T10:00:00Z".parse().unwrap(),
            count: 0,
        }
    }

    /// One step of a history.
    pub(crate) fn step(&mut self, event: Event) -> Result<(), String> {
        let setup = self.setup;
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
            Event::Hook(code) => self.hook = code,
            Event::Break(breaks) => {
                let image = image_of(&self.api.workloads[&target(setup)]);
                let new = if setup.is_in_place() { NEWEST } else { "web:2" };
                if breaks && image == new {
                    let pods = self.api.pods[&target(setup)].iter();
                    let break_now = pods.filter(|pod| pod.available && pod.image == image);
                    self.ledger.failed += break_now.count() as u64;
                    self.api.broken.insert(image);
                } else {
                    self.api.broken.clear();
                }
            }
            Event::Fail(pick) => self.fail(pick),
            Event::Foreign(place, size) => self.foreign(place, size),
            Event::Repair => self.repair(),
            Event::Wipe => self.api.respecify(|it| it.status = None),
            Event::Retry => {
                self.count += 1;
                let value = self.count.to_string();
                self.api.respecify(|it| {
                    let all = it.metadata.annotations.get_or_insert_default();
                    all.insert("sluice.dev/retry".to_owned(), value);
                });
            }
            Event::Another => {
                self.count += 1;
                let revision = Some(format!("2.{}", self.count));
                self.api.respecify(|it| it.spec.revision = revision);
            }
            Event::Delete => self.api.delete(self.now),
            Event::Pass(seconds) => self.now += SignedDuration::from_secs(seconds.into()),
        }
        Ok(())
    }

    fn read(&mut self, leader: usize) {
        self.leaders[leader].cache = self.api.clone();
        self.leaders[leader].gate = self.gate;
    }

    /// A pod fails by itself.
    fn fail(&mut self, pick: usize) {
        let mut pods: Vec<_> = self.api.pods.values_mut().flatten().collect();
        let count = pods.len().max(1);
        if let Some(pod) = pods.get_mut(pick % count) {
            self.ledger.failed += u64::from(pod.available);
            pod.available = false;
        }
    }

    fn foreign(&mut self, place: usize, size: u8) {
        let of = match (self.setup.is_in_place(), place) {
            (true, _) | (false, 0) => target(self.setup),
            (false, _) => source(),
        };
        let before = self.api.replicas(&of);
        self.ledger.foreign += before.abs_diff(size.into());
        self.api
            .foreign(&of, "/spec/replicas", size.into(), "kubectl");
    }

    /// Every size is again what the rollout has written or found.
    fn repair(&mut self) {
        use sluice_core::delivery::rollout::claim::Claim;
        for (of, object) in self.api.workloads.clone() {
            let wrote = Claim::of(&object).map(|claim| claim.wrote);
            let Some(replicas) = wrote.and_then(|wrote| wrote.replicas) else {
                continue;
            };
            if object["spec"]["replicas"] != replicas {
                self.ledger.foreign += self
                    .api
                    .replicas(&of)
                    .abs_diff(replicas.try_into().unwrap());
                self.api
                    .foreign(&of, "/spec/replicas", replicas.into(), "kubectl");
            }
        }
    }

    /// The controllers of workloads work.
    fn tick(&mut self) -> Result<(), String> {
        self.api.tick();
        self.judge()
    }

    /// Whether the pods are as they have to be.
    pub(crate) fn judge(&self) -> Result<(), String> {
        match self.setup.is_in_place() {
            true => self.ledger.in_place(&self.api.pods[&target(self.setup)]),
            // Of a pair each write is judged.
            false => Ok(()),
        }
    }

    fn work(&mut self, leader: usize, often: usize) -> Result<(), String> {
        for _ in 0..often {
            self.read(leader);
            self.look(leader, Fault::No)?;
            self.tick()?;
            self.now += SignedDuration::from_secs(1);
        }
        Ok(())
    }

    fn measures(&self) -> BTreeMap<String, Measure> {
        let value = match self.metric {
            Value::Good => Some(0.0),
            Value::Bad => Some(1.0),
            Value::Missing => None,
        };
        let at = self.now + SignedDuration::from_secs(1);
        let range = Range {
            min: None,
            max: Some(0.1),
        };
        let measured = value.map(|value| Measured { value, at });
        [("errors".to_owned(), Measure { range, measured })].into()
    }

    /// What a leader decides, over a Rollout as it may be.
    fn decide(&self, leader: usize, object: Option<Rollout>) -> Option<Report> {
        let it = &self.leaders[leader];
        let mut cache = it.cache.clone();
        if object.is_some() {
            cache.rollout = object;
        }
        let given = cache.given(&it.arrived, &self.measures(), Now::given(self.now))?;
        let considered = consider(&given);
        let answer = considered.question.as_ref().map(|question| {
            let gates = GATES[usize::from(it.gate)].clone();
            let asked = Question::from(given.now);
            let decision = gates.decide(question.subject.clone(), asked);
            Answer::Told(Box::new(Told { gates, decision }))
        });
        Some(report(
            &given,
            &considered,
            &answer.unwrap_or(Answer::NotAsked),
        ))
    }

    /// A look. Returns whether it wrote anything.
    fn look(&mut self, leader: usize, fault: Fault) -> Result<bool, String> {
        let Some(report) = self.decide(leader, None) else {
            return Ok(false);
        };
        let seen = self.leaders[leader].cache.rollout.clone().unwrap();
        if self.discipline == Discipline::ActsFirst && report.changed {
            let mut next = seen.clone();
            next.status = Some(report.status.clone());
            for act in self
                .decide(leader, Some(next))
                .into_iter()
                .flat_map(|it| it.report.acts)
            {
                self.act(leader, &act)?;
            }
        }
        if report.changed {
            if fault == Fault::Conflict {
                return Ok(true);
            }
            let open = self.leaders[leader].gate;
            let status = report.status.clone();
            if self.api.write_status(&seen, status.clone()).is_err() {
                return Ok(true);
            }
            self.ledger.accepts(&seen, &status, open)?;
            if fault == Fault::Lost {
                return Ok(true);
            }
            self.leaders[leader].cache.rollout = self.api.rollout.clone();
        }
        for (place, act) in report.acts.iter().enumerate() {
            if fault == Fault::Killed(place.try_into().unwrap()) {
                self.leaders[leader].arrived.clear();
                break;
            }
            if !self.act(leader, act)? {
                break;
            }
        }
        Ok(report.changed || !report.acts.is_empty())
    }

    /// Carries out an act. Returns whether the API server has accepted it.
    fn act(&mut self, leader: usize, act: &Act) -> Result<bool, String> {
        if let Act::Call(call) = act {
            self.leaders[leader].arrived.push(Arrived {
                key: call.key.clone(),
                attempt: call.attempt,
                answer: hook::Answer::Status(self.hook),
                error: None,
                at: self.now,
            });
            return Ok(true);
        }
        let before = self.api.clone();
        if self.api.act(act).is_err() {
            return Ok(false);
        }
        if let Act::Write(write) = act {
            self.ledger.writes(self.setup, &before, &self.api, write)?;
        }
        self.judge()?;
        Ok(true)
    }

    /// The faults end, and everything is well: the rollout comes to its end, or says what holds it, and then
    /// nothing is written any more.
    pub(crate) fn ends(&mut self) -> Result<(), String> {
        (self.gate, self.metric, self.hook) = (true, Value::Good, 200);
        self.api.broken.clear();
        self.api.respecify(|it| {
            it.spec.rollout_plan.paused = false;
            it.spec.rollout_plan.last_batch_to_rollout = None;
        });
        self.leaders[0].arrived.clear();
        for _ in 0..12 {
            self.work(0, 40)?;
            self.repair();
            // Whatever is withheld or overdue comes now.
            self.now += SignedDuration::from_secs(120);
        }
        self.work(0, 3)?;
        let Some(object) = &self.api.rollout else {
            self.ledger.reached.gone += 1;
            return Ok(());
        };
        let status = object.status.clone().unwrap_or_default();
        let state = status.rolling_state.map_or("nothing", |it| it.as_str());
        match (state, &status.held) {
            ("rolloutSucceed", _) => self.ledger.reached.succeeded += 1,
            ("rolloutFailed", _) => self.ledger.reached.failed += 1,
            (_, Some(_)) => self.ledger.reached.held += 1,
            (state, None) => return Err(format!("it never ends: {state} {status:#?}")),
        }
        self.read(0);
        match self.look(0, Fault::No)? {
            true => Err(format!("a second look writes: {:#?}", self.decide(0, None))),
            false => Ok(()),
        }
    }
}
