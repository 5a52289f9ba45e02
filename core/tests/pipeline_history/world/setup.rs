//! What a history is about: the Pipeline, how its environments are promoted to, and its gates.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::pipeline::{App, Missing, Reader, Sight, Trouble, What, subject};
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::verdict::question::Question;
use sluice_crds::{Gate, GateSet, Pipeline};

/// The environments, in their order.
pub(super) const NAMES: [&str; 3] = ["dev", "staging", "prod"];

/// How an environment is promoted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// People merge.
    PullRequest,
    /// The controller merges.
    Merged,
    Notification,
    Admission,
    /// An admission that a gatekeeper is told.
    Reported,
}

impl Way {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::PullRequest,
        Self::Merged,
        Self::Notification,
        Self::Admission,
        Self::Reported,
    ];
}

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Of staging and prod.
    pub(crate) ways: [Way; 2],
    pub(crate) manual: bool,
    pub(crate) pairwise: bool,
    /// Whether statuses and objects are wiped.
    pub(crate) wipes: bool,
}

/// When acts are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// Once the status is accepted, as it has to be.
    StatusFirst,
    /// Whatever becomes of the status.
    ActsFirst,
}

/// A gate that is open, and one that is closed.
pub(super) static GATES: LazyLock<[Gathered; 2]> = LazyLock::new(|| {
    ["closed", "open"].map(|state| {
        let gate: Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "apps"}, "spec": {"default": state},
        }))
        .unwrap();
        let mut world = simulate::World::default();
        world.gates.insert(Key::of(&gate.metadata), gate);
        let own: GateSet = serde_json::from_value(json!({"refs": [{"name": "g"}]})).unwrap();
        let object = pipeline(&Setup {
            ways: [Way::Admission; 2],
            manual: false,
            pairwise: false,
            wipes: false,
        });
        let subject = subject(&object, "prod", What::Promote, None);
        let question = Question::from(Now::given(start()));
        simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
    })
});

pub(super) fn start() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn promotion(way: Way, manual: bool) -> Value {
    let forge = |merge: &str| {
        json!({"pull-request": {
            "type": "gitea", "url": "https://git.example.com/a.git", "merge": merge,
            "secretRef": {"name": "t"}, "paths": ["a.yaml"],
        }})
    };
    let strategy = match way {
        Way::PullRequest => forge("manual"),
        Way::Merged => forge("auto"),
        Way::Notification => json!({"notification": {}}),
        Way::Admission => json!({"admission": {}}),
        Way::Reported => json!({"admission": {"gatekeeperRef": {"name": "promoted"}}}),
    };
    json!({"manual": manual, "strategy": strategy})
}

pub(super) fn pipeline(setup: &Setup) -> Pipeline {
    let [staging, prod] = setup.ways;
    let algorithm = if setup.pairwise { "pairwise" } else { "run" };
    let gates = json!({"refs": [{"name": "g"}]});
    let target = |name: &str, way| match way {
        // A gatekeeper is told on another cluster.
        Way::Reported => json!({"namespace": name, "clusterRef": {"kind": "Secret", "name": "c"}}),
        _ => json!({"namespace": name}),
    };
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "p", "namespace": "apps", "generation": 1, "uid": "u",
            "resourceVersion": "0"},
        "spec": {
            "appRef": {"kind": "Kustomization", "name": "a"}, "algorithm": algorithm,
            "environments": [
                {"name": "dev", "targets": [{"namespace": "dev"}]},
                {"name": "staging", "targets": [target("staging", staging)], "gates": gates,
                 "promotion": promotion(staging, false)},
                {"name": "prod", "targets": [target("prod", prod)], "gates": gates,
                 "promotion": promotion(prod, setup.manual)},
            ],
        },
    }))
    .unwrap()
}

pub(super) fn unknown() -> Sight {
    Sight::Unknown(Trouble {
        what: Missing::App,
        message: "gone".to_owned(),
    })
}

pub(super) fn app(reader: &Reader, revision: &str, ready: &str) -> App {
    reader.read(&json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAppliedRevision": revision,
            "lastAttemptedRevision": revision,
            "conditions": [{"type": "Ready", "status": ready, "message": "m"}],
        },
    }))
}
