//! What a history is about: the Rollout, its workloads and its gate.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::time::clock::Now;
use sluice_core::verdict::question::Question;
use sluice_crds::{Gate, GateSet, Rollout, Subject};

use crate::cluster::{Cluster, name};

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Of the target.
    pub(crate) kind: Kind,
    /// How many Deployments are sources: those with the old version, and a third one that has no pods. A target without
    /// one is scaled, or updated in place.
    pub(crate) sources: usize,
    /// Whether the spec says how many pods there are to be.
    pub(crate) is_sized: bool,
    /// Whether the old pods go first, or the target shrinks.
    pub(crate) decreases: bool,
    pub(crate) hooks: bool,
    pub(crate) reverts: bool,
    pub(crate) takes_back: bool,
    pub(crate) others: Others,
}

/// Who else writes sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Nobody,
    /// Somebody who brings them back in the end.
    Careful,
    /// Somebody who does not.
    Careless,
}

/// How many pods there are of the old version of a pair.
const PODS: u64 = 10;
/// How many there are in place.
pub(crate) const IN_PLACE: u64 = 4;
/// The images of the new version.
const NEW: &str = "web:2";
pub(crate) const NEWEST: &str = "db:2";

impl Setup {
    pub(crate) fn is_in_place(self) -> bool {
        match self.kind {
            Kind::Deployment => false,
            Kind::StatefulSet | Kind::CloneSet => true,
        }
    }

    /// Whether a Deployment gets another size, and nothing takes its place.
    pub(crate) fn is_alone(self) -> bool {
        !self.is_in_place() && self.sources == 0
    }

    /// The sources, with their sizes. They are emptied in this order.
    pub(crate) fn sources(self) -> Vec<(Name, u64)> {
        let all: &[(&str, u64)] = match self.sources {
            0 => &[],
            1 => &[("web-v1", PODS)],
            2 => &[("web-v0", 4), ("web-v1", PODS - 4)],
            _ => &[("web-v0", 4), ("web-v1", PODS - 4), ("web-bad", 0)],
        };
        let named = all.iter();
        named
            .map(|(called, size)| (name(Kind::Deployment, called), *size))
            .collect()
    }

    /// Whether a workload is a source without pods.
    pub(crate) fn is_empty(self, of: &Name) -> bool {
        let mut sources = self.sources().into_iter();
        sources.any(|(it, size)| it == *of && size == 0)
    }

    /// The target first.
    pub(crate) fn workloads(self) -> Vec<Name> {
        let sources = self.sources().into_iter().map(|(name, _)| name);
        [target(self)].into_iter().chain(sources).collect()
    }

    /// How many pods there were before.
    pub(crate) fn was(self) -> u64 {
        match (self.is_in_place(), self.sources, self.decreases) {
            (true, ..) => IN_PLACE,
            (false, 0, false) => 3,
            (false, ..) => PODS,
        }
    }

    /// How many there are to be.
    pub(crate) fn total(self) -> u64 {
        match (self.is_in_place(), self.sources, self.decreases) {
            (true, ..) => IN_PLACE,
            (false, 0, true) => 3,
            (false, 0, false) => PODS,
            (false, ..) if self.is_sized => PODS + 2,
            (false, ..) => PODS,
        }
    }

    /// How many there are at least, before and afterwards.
    pub(crate) fn least(self) -> u64 {
        self.was().min(self.total())
    }

    /// The most pods that a batch moves.
    pub(crate) fn largest(self) -> u64 {
        let moved = match self.is_alone() {
            true => self.was().abs_diff(self.total()),
            false => self.total(),
        };
        moved.div_ceil(2)
    }

    /// The image of the new version.
    pub(crate) fn image(self) -> &'static str {
        if self.is_in_place() { NEWEST } else { NEW }
    }
}

/// How many pods are moved once each batch is done, of so many: those of the plan in [`rollout`].
pub(crate) fn moves(all: u64) -> [u64; 3] {
    let first = all.min(1);
    [first, all.min(first + all.div_ceil(2)), all]
}

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

/// What is there before anybody looks.
pub(crate) fn cluster(setup: Setup) -> Cluster {
    let mut api = Cluster::new(rollout(setup));
    for (of, size) in setup.sources() {
        api.add(of.kind, &of.name, size, "web:1", &json!({}));
    }
    let target = target(setup);
    let size = if setup.is_alone() { setup.was() } else { 0 };
    match setup.kind {
        Kind::Deployment => api.add(setup.kind, &target.name, size, NEW, &json!({})),
        Kind::StatefulSet | Kind::CloneSet => {
            api.add(setup.kind, &target.name, IN_PLACE, "db:1", &armed(setup));
            let image = json!([{"name": "c", "image": NEWEST}]);
            api.foreign(&target, "/spec/template/spec/containers", image, "git");
        }
    }
    api.settle();
    api
}

/// What makes a new template wait.
pub(crate) fn armed(setup: Setup) -> Value {
    let strategy = match setup.kind {
        Kind::Deployment => return json!({}),
        Kind::StatefulSet => json!({"rollingUpdate": {"partition": 2_147_483_647}}),
        Kind::CloneSet => json!({"partition": "100%"}),
    };
    json!({ "updateStrategy": strategy })
}

pub(crate) fn rollout(setup: Setup) -> Rollout {
    let hook = |type_: &str| json!({"type": type_, "name": type_, "url": "https://a/b"});
    let sources = setup.sources().into_iter();
    let sources = sources.map(|(of, _)| json!({"kind": of.kind.as_str(), "name": of.name}));
    let mut spec = json!({
        "targetRef": {"kind": setup.kind.as_str(), "name": target(setup).name},
        "sourceRef": sources.collect::<Vec<_>>(),
        "revision": "2", "gates": {"refs": [{"name": "g"}]},
        "rolloutPlan": {
            "rolloutBatches": [{"replicas": 1}, {"replicas": "50%"}, {}],
            "lastBatchToRollout": 1, "revertOnDelete": setup.reverts,
            "canaryMetric": [{"name": "errors"}],
        },
    });
    let plan = &mut spec["rolloutPlan"];
    if setup.is_sized || setup.is_alone() {
        plan["targetSize"] = setup.total().into();
    }
    if setup.decreases && setup.sources > 0 {
        plan["rolloutStrategy"] = "DecreaseFirst".into();
    }
    if setup.hooks {
        plan["rolloutWebhooks"] = json!([
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
