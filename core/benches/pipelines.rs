//! What a look at a pipeline costs: one of 5 environments with a target each, at rest and while a gate
//! holds it, and one of 16 environments with 128 targets.
//!
//! `cargo bench -p sluice-core --bench pipelines`

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
use sluice_core::delivery::pipeline::{
    Given, Reader, Report, Sight, Surroundings, Votes, What, check, consider, report, subject,
};
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key, World};
use sluice_core::{Now, Question};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Decision, Gate, Pipeline};

const NOW: &str = "2026-12-01T10:00:00Z";

/// A pipeline, and what is seen of it.
struct Scene {
    object: Arc<Pipeline>,
    checked: Arc<Reader>,
    gates: Gathered,
    /// Of each environment, the revision that its targets run.
    runs: Vec<&'static str>,
}

impl Scene {
    /// Every environment but the first has a gate, which is closed.
    fn new(environments: usize, targets: usize, runs: impl Fn(usize) -> &'static str) -> Self {
        let environment = |place: usize| {
            let targets = (0..targets).map(|target| json!({"namespace": format!("app-{target}")}));
            let mut environment = json!({
                "name": format!("env-{place}"), "targets": targets.collect::<Vec<_>>(),
            });
            if place > 0 {
                environment["gates"] = json!({"refs": [{"name": "production"}]});
                environment["promotion"] = json!({"strategy": {"admission": {}}});
            }
            environment
        };
        let object: Pipeline = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "app", "namespace": "apps", "generation": 1, "uid": "u",
                "resourceVersion": "1"},
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": "app"},
                "environments": (0..environments).map(environment).collect::<Vec<_>>(),
            },
        }))
        .unwrap();
        let mut scene = Self {
            checked: Arc::new(check(&object).unwrap()),
            gates: gates(&object),
            object: Arc::new(object),
            runs: (0..environments).map(runs).collect(),
        };
        scene.settle();
        scene
    }

    /// Looks until nothing is new any more.
    fn settle(&mut self) {
        for _ in 0..10 {
            let report = self.look();
            if !report.changed {
                return;
            }
            let mut object = self.object.as_ref().clone();
            object.status = Some(report.status);
            self.object = Arc::new(object);
        }
        unreachable!("a look at what has not changed finds something new each time");
    }

    fn given(&self) -> Given {
        let targets = self.object.spec.environments.iter().zip(&self.runs);
        let environments = targets.map(|(environment, revision)| {
            let app = Arc::new(self.checked.read(&app(revision)));
            Surroundings {
                targets: vec![Sight::Here(app); environment.targets.len()],
                gates: self.gates.clone(),
                depends_on: Vec::new(),
                reports: Vec::new(),
            }
        });
        Given {
            object: Arc::clone(&self.object),
            checked: Ok(Arc::clone(&self.checked)),
            environments: environments.collect(),
            pull_requests: Vec::new(),
            votes: Votes::default(),
            errands: BTreeMap::new(),
            clusters: Vec::new(),
            now: Now::given(NOW.parse().unwrap()),
        }
    }

    fn look(&self) -> Report {
        look(self.given())
    }

    fn state(&self) -> Option<EnvironmentState> {
        let status = self.object.status.as_ref()?;
        Some(status.run.as_ref()?.state)
    }
}

fn look(given: Given) -> Report {
    let considered = consider(given);
    let asked = considered.asked().iter();
    let decisions: Vec<Decision> = asked.map(|asked| asked.decision.clone()).collect();
    report(considered, &decisions)
}

fn gates(object: &Pipeline) -> Gathered {
    let gate: Gate = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"name": "production", "namespace": "apps"}, "spec": {"default": "closed"},
    }))
    .unwrap();
    let mut world = World::default();
    world.gates.insert(Key::of(&gate.metadata), gate);
    let own = serde_json::from_value(json!({"refs": [{"name": "production"}]})).unwrap();
    let subject = subject(object, "env-1", What::Promote, None);
    let question = Question::from(Now::given(NOW.parse().unwrap()));
    simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
}

fn app(revision: &str) -> Value {
    json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": revision,
            "history": [{"chartVersion": revision, "status": "deployed"}],
            "conditions": [{"type": "Ready", "status": "True", "message": "m"}],
        },
    })
}

fn looks(criterion: &mut Criterion) {
    let at_rest = Scene::new(5, 1, |_| "1.0.0");
    assert_eq!(at_rest.state(), Some(EnvironmentState::Passed));
    let new_in_first = |place| if place == 0 { "1.1.0" } else { "1.0.0" };
    let held = Scene::new(5, 1, new_in_first);
    assert_eq!(held.state(), Some(EnvironmentState::GatesClosed));
    let large = Scene::new(16, 8, |_| "1.0.0");
    assert_eq!(large.state(), Some(EnvironmentState::Passed));

    let mut group = criterion.benchmark_group("a look at a pipeline");
    let scenes = [
        ("5 environments, at rest", at_rest),
        ("5 environments, held by a gate", held),
        ("128 targets, at rest", large),
    ];
    for (name, scene) in scenes {
        group.bench_function(name, |bencher| {
            let given = || scene.given();
            bencher.iter_batched(
                given,
                |given| look(black_box(given)),
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, looks);
criterion_main!(benches);
