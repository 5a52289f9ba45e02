//! What a look at a rollout costs: one of two Deployments in 30 batches, held by a gate at its last batch, waiting
//! for pods, and at rest.
//!
//! `cargo bench -p sluice-core --bench rollouts`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may fail loudly, and criterion's macros write no docs"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use sluice_core::delivery::rollout::given::{Name, Sight};
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::delivery::rollout::{
    Act, Answer, Given, Question, Report, Told, consider, kept, report,
};
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{self, Key, World};
use sluice_core::{Now, Question as Asked};
use sluice_crds::rollout::marks;
use sluice_crds::{Gate, Rollout};

const NOW: &str = "2026-12-01T10:00:00Z";

/// A Rollout, its workloads, and a gate.
struct Scene {
    object: Arc<Rollout>,
    workloads: BTreeMap<Name, Value>,
    world: World,
}

fn name(name: &str) -> Name {
    Name {
        kind: Kind::Deployment,
        name: name.to_owned(),
    }
}

impl Scene {
    /// Looks until nothing is new any more. The pods of `last` pods more than that do not come.
    fn new(gate: &str, last: u64) -> Self {
        let of = |name: &str| json!({"kind": "Deployment", "name": name});
        let mut batches = vec![json!({"replicas": 1}); 29];
        batches.push(json!({"gates": {"refs": [{"name": "production"}]}}));
        let object = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "generation": 1,
                "resourceVersion": "1",
            },
            "spec": {
                "targetRef": of("web-v2"), "sourceRef": [of("web-v1")], "revision": "2",
                "rolloutPlan": {"rolloutBatches": batches},
            },
        }));
        let deployment = |called: &str, replicas: u64| {
            let object = json!({
                "kind": "Deployment",
                "metadata": {"name": called, "uid": called, "resourceVersion": "1", "generation": 1},
                "spec": {
                    "replicas": replicas, "selector": {"matchLabels": {"app": called}},
                    "template": {"metadata": {"labels": {"app": called}}},
                },
            });
            (name(called), object)
        };
        let gate: Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production", "namespace": "shop"}, "spec": {"default": gate},
        }))
        .unwrap();
        let mut world = World::default();
        world.gates.insert(Key::of(&gate.metadata), gate);
        let mut scene = Self {
            object: Arc::new(object.unwrap()),
            workloads: [deployment("web-v1", 60), deployment("web-v2", 0)].into(),
            world,
        };
        scene.settle(last);
        scene
    }

    fn settle(&mut self, last: u64) {
        for _ in 0..1_000 {
            let before = self.workloads.clone();
            for workload in self.workloads.values_mut() {
                let replicas = workload["spec"]["replicas"].as_u64().unwrap();
                workload["status"] = json!({
                    "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
                    "availableReplicas": replicas.min(last),
                });
            }
            let report = look(&self.world, &self.given());
            let is_quiet = !report.changed && report.acts.is_empty() && before == self.workloads;
            let mut object = self.object.as_ref().clone();
            object.status = Some(report.report.status);
            for act in report.report.acts {
                match act {
                    Act::Write(write) => {
                        let workload = self.workloads.get_mut(&write.name).unwrap();
                        json_patch::merge(workload, &write.patch);
                    }
                    Act::Finalize(true) => {
                        object.metadata.finalizers = Some(vec![marks::FINALIZER.to_owned()]);
                    }
                    Act::Finalize(false) => object.metadata.finalizers = None,
                    Act::DeletePod(_) | Act::Call(_) => {}
                }
            }
            self.object = Arc::new(object);
            if is_quiet {
                return;
            }
        }
        unreachable!("a look at what has not changed finds something new each time");
    }

    fn given(&self) -> Given {
        let sight = |(name, object): (&Name, &Value)| {
            let object = Arc::new(kept(object.clone()));
            let is_behind = false;
            (name.clone(), Sight::Here { object, is_behind })
        };
        Given {
            object: Arc::clone(&self.object),
            workloads: self.workloads.iter().map(sight).collect(),
            pods: None,
            templates: None,
            arrived: Vec::new(),
            measures: BTreeMap::new(),
            others: BTreeMap::new(),
            autoscalers: Ok(Vec::new()),
            appliers: BTreeMap::new(),
            unsure_since: None,
            now: Now::given(NOW.parse().unwrap()),
        }
    }

    /// The state of the batch, and which it is.
    fn state(&self) -> (String, Option<i32>) {
        let status = self.object.status.as_ref().unwrap();
        let state = match (&status.held, status.batch_rolling_state) {
            (Some(held), _) => held.reason.clone(),
            (None, Some(state)) => state.as_str().to_owned(),
            (None, None) => String::new(),
        };
        (state, status.current_batch)
    }
}

fn look(world: &World, given: &Given) -> Report {
    let considered = consider(given);
    let question = considered.question.as_ref();
    let answer = question.map_or(Answer::NotAsked, |question| ask(world, question));
    report(given, &considered, &answer)
}

fn ask(world: &World, question: &Question) -> Answer {
    let asked = || Asked::from(Now::given(NOW.parse().unwrap()));
    let Some(own) = question.sets.first() else {
        return Answer::NoGates;
    };
    let (subject, identity) = (&question.subject, Identity::Trusted);
    let gates = simulate::gather(world, Some(own), subject, identity, asked());
    let decision = gates.decide(subject.clone(), asked());
    Answer::Told(Box::new(Told { gates, decision }))
}

fn looks(criterion: &mut Criterion) {
    let held = Scene::new("closed", 60);
    assert_eq!(held.state(), ("GatesClosed".to_owned(), Some(28)));
    let waiting = Scene::new("open", 20);
    assert_eq!(waiting.state(), ("batchInRolling".to_owned(), Some(20)));
    let at_rest = Scene::new("open", 60);
    assert_eq!(at_rest.state(), ("batchReady".to_owned(), Some(29)));

    let mut group = criterion.benchmark_group("a look at a rollout of 30 batches");
    let scenes = [
        ("held by a gate", held),
        ("waiting for pods", waiting),
        ("at rest", at_rest),
    ];
    for (name, scene) in scenes {
        let given = scene.given();
        group.bench_function(name, |bencher| {
            bencher.iter(|| look(&scene.world, black_box(&given)));
        });
    }
    group.finish();
}

criterion_group!(benches, looks);
criterion_main!(benches);
