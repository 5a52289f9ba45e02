//! What a history is about: the strategy, its environments and its gates.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::promotion_strategy::{What, subject};
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::verdict::question::Question;
use sluice_crds::{CommitStatus, Gate, GateSet, PromotionStrategy, RevertCommit};

/// The branches of the environments, in their order.
pub(crate) const NAMES: [&str; 3] = ["env/dev", "env/test", "env/prod"];
/// What is found out about an environment, and about what is proposed for it.
pub(crate) const HEALTH: &str = "health";
pub(crate) const LINT: &str = "lint";

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Whether the forge makes one commit of what it merges.
    pub(crate) squashes: bool,
    /// Whether a person merges into the last environment.
    pub(crate) by_hand: bool,
    /// Whether the last two environments wait for the first alone.
    pub(crate) side_by_side: bool,
    /// Whether what is proposed is checked, too.
    pub(crate) lints: bool,
    /// Whether the status is lost at times.
    pub(crate) wipes: bool,
}

/// What makes a leader act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// A status that was accepted, as it has to be.
    StatusFirst,
    /// What it has decided, whatever becomes of the status.
    ActsFirst,
    /// Any order, also one that has ended.
    StaleOrders,
}

impl Setup {
    /// The environments that one waits for.
    pub(crate) fn before(self, place: usize) -> &'static [usize] {
        match (place, self.side_by_side) {
            (0, _) => &[],
            (1, _) | (_, true) => &[0],
            (_, false) => &[0, 1],
        }
    }

    /// Those directly before it.
    pub(crate) fn directly_before(self, place: usize) -> &'static [usize] {
        match (place, self.side_by_side) {
            (0, _) => &[],
            (1, _) | (_, true) => &[0],
            (_, false) => &[1],
        }
    }
}

/// Gates that are closed, gates that are open, and none.
pub(crate) static GATES: LazyLock<[Gathered; 3]> = LazyLock::new(|| {
    let gates = json!({"refs": [{"name": "g"}]});
    [
        ("closed", gates.clone()),
        ("open", gates),
        ("open", json!({"refs": []})),
    ]
    .map(|(state, own)| {
        let gate: Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "apps"}, "spec": {"default": state},
        }))
        .unwrap();
        let mut world = simulate::World::default();
        world.gates.insert(Key::of(&gate.metadata), gate);
        let own: GateSet = serde_json::from_value(own).unwrap();
        let setup = Setup {
            squashes: false,
            by_hand: false,
            side_by_side: false,
            lints: false,
            wipes: false,
        };
        let subject = subject(&strategy(setup), NAMES[0], What::Promote, None);
        let question = Question::from(Now::given(start()));
        simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
    })
});

pub(crate) fn start() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

pub(crate) fn strategy(setup: Setup) -> PromotionStrategy {
    let environments = NAMES.iter().enumerate().map(|(place, branch)| {
        let after = setup.directly_before(place).iter().map(|it| NAMES[*it]);
        json!({
            "branch": branch, "gates": {"refs": [{"name": "g"}]},
            "after": after.collect::<Vec<_>>(), "autoMerge": !(setup.by_hand && place == 2),
        })
    });
    let proposed = match setup.lints {
        true => json!([{"key": LINT}]),
        false => json!([]),
    };
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {
            "name": "shop", "namespace": "apps", "generation": 1, "uid": "u", "resourceVersion": "0",
        },
        "spec": {
            "repoRef": {"name": "shop"}, "environments": environments.collect::<Vec<Value>>(),
            "activeCommitStatuses": [{"key": HEALTH}], "proposedCommitStatuses": proposed,
        },
    }))
    .unwrap()
}

pub(crate) fn commit_status(name: &str, sha: &str, key: &str, phase: &str) -> CommitStatus {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
        "metadata": {
            "name": name, "namespace": "apps", "labels": {"sluice.dev/commit-status": key},
        },
        "spec": {"repoRef": {"name": "shop"}, "sha": sha, "name": key, "phase": phase},
    }))
    .unwrap()
}

/// `at`: in seconds since the start.
pub(crate) fn revert_commit(
    name: &str,
    branch: &str,
    (from, to): (&str, &str),
    (by_hand, at): (bool, i64),
) -> RevertCommit {
    let created = start().as_second() + at;
    let created = Timestamp::from_second(created).unwrap().to_string();
    let merge = if by_hand { "Manual" } else { "Auto" };
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
        "metadata": {
            "name": name, "namespace": "apps", "uid": format!("{name}-uid-0000"), "generation": 1,
            "creationTimestamp": created,
        },
        "spec": {
            "repoRef": {"name": "shop"}, "activeBranch": branch, "from": from, "drySHA": to,
            "reason": "INC-4711", "by": "alice", "merge": merge,
        },
    }))
    .unwrap()
}
