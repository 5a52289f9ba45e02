//! Looks at Rollouts, one after another, beside an API server and controllers that are played.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_crds::rollout::marks;
use sluice_crds::{Decision, Rollout, RolloutStatus};

use super::given::{Arrived, Measure, Name};
use super::hook;
use super::workload::Kind;
use super::*;
use crate::gate::Identity;
use crate::gate::set::gather_all;
use crate::offline::simulate::sources::Seen;
use crate::offline::simulate::{Key, World};
use crate::time::clock::{Now, Trust};
use crate::verdict::condition::find;
use crate::verdict::question::Question as Asked;
use cluster::{Cluster, line, name};

mod afterwards;
mod apps;
mod asked;
mod batches;
pub(crate) mod cluster;
mod conflicts;
mod deadline;
mod deleted;
mod ends;
mod halfway;
mod in_place;
mod limits;
mod lost;
mod pairs;
mod policies;
mod refused;
mod scaled;
mod shown;
mod waits;

const MONDAY: &str = "2026-11-23T10:00:00Z";

/// A Rollout and everything around it, in the namespace shop.
struct Play {
    cluster: Cluster,
    world: World,
    now: Timestamp,
    trust: Trust,
    /// What hooks answer. Others answer 200.
    answers: BTreeMap<String, hook::Answer>,
    /// Hooks that do not answer.
    silent: BTreeSet<String>,
    arrived: Vec<Arrived>,
    /// Of all calls.
    keys: BTreeSet<String>,
    measures: BTreeMap<String, Measure>,
    /// Each write to a workload, and each call of a hook.
    log: Vec<String>,
    /// The decisions by which something went out.
    told: Vec<Decision>,
    news: Vec<String>,
    /// How often the status was written.
    writes: usize,
}

fn rollout(spec: &Value) -> Rollout {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "r-1", "generation": 1,
            "resourceVersion": "1",
        },
        "spec": spec,
    }))
    .unwrap()
}

/// web-v2 takes the place of the 10 pods of web-v1, by this plan.
fn pair(plan: &Value) -> Play {
    let spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"kind": "Deployment", "name": "web-v1"}],
        "revision": "2", "rolloutPlan": plan,
    });
    let mut play = Play::new(&spec);
    play.deployment("web-v1", 10, "web:1");
    play.deployment("web-v2", 0, "web:2");
    play
}

/// The StatefulSet db of 4 pods is to get another image.
fn in_place(kind: Kind, spec: &Value) -> Play {
    let mut whole = json!({
        "targetRef": {"kind": kind.as_str(), "name": "db"},
        "revision": "2", "rolloutPlan": {"numBatches": 2},
    });
    json_patch::merge(&mut whole, spec);
    let mut play = Play::new(&whole);
    let strategy = match kind {
        Kind::Deployment => json!({}),
        Kind::StatefulSet => {
            json!({"updateStrategy": {"rollingUpdate": {"partition": 2_147_483_647}}})
        }
        Kind::CloneSet => json!({"updateStrategy": {"partition": "100%"}}),
    };
    play.cluster.add(kind, "db", 4, "db:1", &strategy);
    play
}

fn v1() -> Name {
    name(Kind::Deployment, "web-v1")
}

fn v2() -> Name {
    name(Kind::Deployment, "web-v2")
}

impl Play {
    fn new(spec: &Value) -> Self {
        Self {
            cluster: Cluster::new(rollout(spec)),
            world: World::default(),
            now: MONDAY.parse().unwrap(),
            trust: Trust::Good,
            answers: BTreeMap::new(),
            silent: BTreeSet::new(),
            arrived: Vec::new(),
            keys: BTreeSet::new(),
            measures: BTreeMap::new(),
            log: Vec::new(),
            told: Vec::new(),
            news: Vec::new(),
            writes: 0,
        }
    }

    fn deployment(&mut self, called: &str, replicas: u64, image: &str) {
        let kind = Kind::Deployment;
        self.cluster.add(kind, called, replicas, image, &json!({}));
    }

    /// The gate `g`, which the Rollout names from now on.
    fn gate(&mut self, state: &str) {
        let gate: sluice_crds::Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "shop"}, "spec": {"default": state},
        }))
        .unwrap();
        self.world.gates.insert(Key::of(&gate.metadata), gate);
        let gates = serde_json::from_value(json!({"refs": [{"name": "g"}]})).unwrap();
        self.cluster.respecify(|it| it.spec.gates = Some(gates));
    }

    fn spec(&mut self, change: &Value) {
        self.cluster.respecify(|it| {
            let mut spec = serde_json::to_value(&it.spec).unwrap();
            json_patch::merge(&mut spec, change);
            it.spec = serde_json::from_value(spec).unwrap();
        });
    }

    fn retry(&mut self, value: &str) {
        self.cluster.respecify(|it| {
            let all = it.metadata.annotations.get_or_insert_default();
            all.insert("sluice.dev/retry".to_owned(), value.to_owned());
        });
    }

    fn instant(&self) -> Now {
        Now {
            at: self.now,
            trust: self.trust,
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        let asked = Asked::from(self.instant());
        let seen = Seen {
            world: &self.world,
            identity: Identity::Trusted,
            from: self.now,
        };
        let gates = gather_all(&seen, &question.sets, &question.subject, self.now);
        if gates.is_empty() {
            return Answer::NoGates;
        }
        let decision = gates.decide(question.subject.clone(), asked);
        Answer::Told(Box::new(Told { gates, decision }))
    }

    fn given(&self) -> Option<Given> {
        self.cluster
            .given(&self.arrived, &self.measures, self.instant())
    }

    /// A look up to its report: nothing is done yet.
    fn decide(&mut self) -> Option<Report> {
        let given = self.given()?;
        let considered = consider(&given);
        let question = considered.question.as_ref();
        let answer = question.map_or(Answer::NotAsked, |question| self.answer(question));
        if let Answer::Told(told) = &answer
            && considered.takes_effect
            && told.decision.allowed
        {
            self.told.push(told.decision.clone());
        }
        let report = report(&given, &considered, &answer);
        self.check(&given, &report);
        Some(report)
    }

    /// What holds at every look.
    fn check(&self, given: &Given, report: &Report) {
        let before = given.object.status.clone().unwrap_or_default();
        let after = &report.status;
        let is_new = |new: bool, intends: bool| i32::from(new && intends);
        let intents = is_new(
            after.run != before.run,
            after.run.is_some() && after.intent.is_none(),
        ) + is_new(
            after.intent.as_ref().map(|it| (&it.sizes, it.batch))
                != before.intent.as_ref().map(|it| (&it.sizes, it.batch)),
            after.intent.is_some(),
        );
        assert!(intents <= 1, "more than one intent: {before:?} {after:?}");
        let went_on = (
            after.rolling_state,
            after.batch_rolling_state,
            after.current_batch,
        ) != (
            before.rolling_state,
            before.batch_rolling_state,
            before.current_batch,
        );
        assert!(
            !went_on || report.acts.is_empty(),
            "acts with a status that is new"
        );
    }

    /// The status is written, and then what it intends is done.
    fn carry_out(&mut self, report: &Report) {
        let seen = self.cluster.rollout.clone().unwrap();
        if report.changed {
            self.cluster
                .write_status(&seen, report.status.clone())
                .unwrap();
            self.writes += 1;
        }
        self.news.extend(
            report
                .news
                .iter()
                .map(|it| format!("{}: {}", it.reason, it.message)),
        );
        for act in &report.acts {
            self.act(act);
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Write(write) => self.log.push(line(write)),
            Act::DeletePod(pod) => self.log.push(format!("DeletePod {}", pod.name)),
            Act::Finalize(on) => self.log.push(format!("Finalize {on}")),
            Act::Call(call) => self.call(call),
        }
        self.cluster.act(act).unwrap();
    }

    fn call(&mut self, call: &Calling) {
        let phase = call.payload["phase"].as_str().unwrap_or_default();
        let line = format!("Call {} in {phase}", call.hook.name);
        if self.silent.contains(&call.hook.name) && self.log.last() == Some(&line) {
            return;
        }
        self.log.push(line);
        self.keys.insert(call.key.clone());
        if self.silent.contains(&call.hook.name) {
            return;
        }
        let answer = self.answers.get(&call.hook.name).cloned();
        self.arrived.push(Arrived {
            key: call.key.clone(),
            attempt: call.attempt,
            answer: answer.unwrap_or(hook::Answer::Status(200)),
            error: None,
            at: self.now,
        });
    }

    fn look(&mut self) -> Option<Report> {
        let heard = self.arrived.len();
        let report = self.decide()?;
        self.carry_out(&report);
        if report.hears {
            self.arrived.drain(..heard);
        }
        Some(report)
    }

    /// Looks and ticks until nothing happens any more. A second look writes nothing.
    fn run(&mut self) {
        for _ in 0..600 {
            let before = format!("{:?}", self.cluster);
            let Some(report) = self.look() else {
                return;
            };
            self.cluster.tick();
            self.now += SignedDuration::from_secs(1);
            // A call that is under way is not begun again.
            let waits = |act: &Act| match act {
                Act::Call(call) => self.silent.contains(&call.hook.name),
                Act::Write(_) | Act::DeletePod(_) | Act::Finalize(_) => false,
            };
            let is_quiet = !report.changed && report.acts.iter().all(waits);
            if is_quiet && format!("{:?}", self.cluster) == before {
                // Numbers are withheld for a while.
                match report.wake {
                    Some(at) if at <= self.now + SignedDuration::from_secs(10) => {
                        self.now = self.now.max(at);
                    }
                    Some(_) | None => return,
                }
            }
        }
        panic!("it never rests: {:#?}", self.status());
    }

    fn pass(&mut self, minutes: i64) {
        self.now += SignedDuration::from_mins(minutes);
    }

    fn status(&self) -> RolloutStatus {
        let object = self.cluster.rollout.as_ref();
        object.and_then(|it| it.status.clone()).unwrap_or_default()
    }

    /// The state, the batch, and why it is held.
    fn state(&self) -> String {
        let status = self.status();
        let Some(rolling) = status.rolling_state else {
            return "gone".to_owned();
        };
        let mut text = rolling.as_str().to_owned();
        if let (sluice_crds::rollout::RollingState::RollingInBatches, Some(batch)) =
            (rolling, status.batch_rolling_state)
        {
            text = format!("{} {}", batch.as_str(), status.current_batch.unwrap_or(-1));
        }
        match status.held {
            Some(held) => format!("{text}, held: {}", held.reason),
            None => text,
        }
    }

    fn ready(&self) -> (String, String) {
        let status = self.status();
        let ready = find(&status.conditions, "Ready").unwrap();
        (ready.status.clone(), ready.reason.clone())
    }

    /// The writes that change sizes.
    fn sizes(&self) -> Vec<&str> {
        let is_size = |it: &&String| it.starts_with("Scale") || it.starts_with("Partition");
        self.log
            .iter()
            .filter(is_size)
            .map(String::as_str)
            .collect()
    }

    fn present(&self) -> (u64, u64) {
        (self.cluster.replicas(&v2()), self.cluster.replicas(&v1()))
    }
}

/// Nothing is done that can be seen, and nothing is written, for hours.
#[track_caller]
fn rests(play: &mut Play) {
    let (writes, log) = (play.writes, play.log.len());
    for _ in 0..20 {
        play.pass(30);
        play.look();
    }
    assert_eq!(
        (play.writes, play.log.len()),
        (writes, log),
        "{}",
        play.state()
    );
}
