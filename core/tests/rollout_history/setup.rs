//! What a history is about: the Rollout, its workloads and its gate.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::json;
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::time::clock::Now;
use sluice_core::verdict::question::Question;
use sluice_crds::{Gate, GateSet, Rollout, Subject};

use crate::cluster::name;

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Of the target. A Deployment has a source.
    pub(crate) kind: Kind,
    pub(crate) decreases: bool,
    pub(crate) hooks: bool,
    pub(crate) reverts: bool,
    pub(crate) takes_back: bool,
}

impl Setup {
    pub(crate) fn is_in_place(self) -> bool {
        match self.kind {
            Kind::Deployment => false,
            Kind::StatefulSet | Kind::CloneSet => true,
        }
    }
}

/// How many pods there are of a pair.
pub(crate) const PODS: u64 = 10;
/// How many there are in place.
pub(crate) const IN_PLACE: u64 = 4;
/// The image of the new version in place.
pub(crate) const NEWEST: &str = "db:2";
/// The most pods of a batch.
pub(crate) const LARGEST: u64 = 5;

/// A gate that is closed, and one that is open.
pub(crate) static GATES: LazyLock<[Gathered; 2]> = LazyLock::new(|| {
    ["closed", "open"].map(|state| {
        let gate: Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "shop"}, "spec": {"default": state},
        }))
        .unwrap();
        let mut world = simulate::World::default();
        world.gates.insert(Key::of(&gate.metadata), gate);
        let own: GateSet = serde_json::from_value(json!({"refs": [{"name": "g"}]})).unwrap();
        let subject = Subject {
            kind: "Rollout".into(),
            namespace: "shop".into(),
            name: Some("web".into()),
            environment: None,
            action: "rollout".into(),
            step: None,
            revision: None,
        };
        let question = Question::from(Now::given(Timestamp::UNIX_EPOCH));
        simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
    })
});

pub(crate) fn target(setup: Setup) -> Name {
    let called = if setup.is_in_place() { "db" } else { "web-v2" };
    name(setup.kind, called)
}

pub(crate) fn source() -> Name {
    name(Kind::Deployment, "web-v1")
}

pub(crate) fn rollout(setup: Setup) -> Rollout {
    let hook = |type_: &str| json!({"type": type_, "name": type_, "url": "https://a/b"});
    let mut spec = json!({
        "targetRef": {"kind": target(setup).kind.as_str(), "name": target(setup).name},
        "revision": "2", "gates": {"refs": [{"name": "g"}]},
        "rolloutPlan": {
            "rolloutBatches": [{"replicas": 1}, {"replicas": "50%"}, {}],
            "lastBatchToRollout": 1, "revertOnDelete": setup.reverts,
            "canaryMetric": [{"name": "errors"}],
        },
    });
    if !setup.is_in_place() {
        spec["sourceRef"] = json!([{"kind": "Deployment", "name": "web-v1"}]);
        let strategy = match setup.decreases {
            true => "DecreaseFirst",
            false => "IncreaseFirst",
        };
        spec["rolloutPlan"]["rolloutStrategy"] = strategy.into();
    }
    if setup.hooks {
        spec["rolloutPlan"]["rolloutWebhooks"] = json!([
            hook("initialize-rollout"),
            hook("pre-batch-rollout"),
            hook("post-batch-rollout"),
            hook("finalize-rollout"),
        ]);
    }
    if setup.takes_back {
        spec["onFailure"] = "Revert".into();
    }
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "r", "generation": 1, "resourceVersion": "1",
        },
        "spec": spec,
    }))
    .unwrap()
}
