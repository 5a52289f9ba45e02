//! What a history is about: the strategy, its environments and its gates.

use std::sync::{Arc, LazyLock};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::promotion_strategy::{What, subject};
use sluice_core::flux::observed::Found;
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::verdict::question::Question;
use sluice_crds::flux::FluxObject;
use sluice_crds::{CommitStatus, Gate, GateSet, Gatekeeper, PromotionStrategy, RevertCommit};

use crate::events::{Finding, Stands};

/// The branches of the environments, in their order.
pub(crate) const NAMES: [&str; 3] = ["env/dev", "env/test", "env/prod"];
/// What is found out about an environment, and about what is proposed for it.
pub(crate) const HEALTH: &str = "health";
pub(crate) const LINT: &str = "lint";

/// What a history is about.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Whether what an environment has passes a gate before others get it.
    pub(crate) proves: bool,
    /// Whether Flux says how an environment is.
    pub(crate) flux: bool,
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

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Closed,
    Open,
    /// It closes then.
    Until(Timestamp),
}

/// No gates.
pub(crate) static NO_GATES: LazyLock<Gathered> = LazyLock::new(|| gathered(None, start()));
static CLOSED: LazyLock<Gathered> =
    LazyLock::new(|| gathered(Some(&json!({"default": "closed"})), start()));
static OPEN: LazyLock<Gathered> =
    LazyLock::new(|| gathered(Some(&json!({"default": "open"})), start()));

impl Opening {
    pub(crate) fn of(stands: Stands, now: Timestamp) -> Self {
        match stands {
            Stands::Closed => Self::Closed,
            Stands::Open => Self::Open,
            Stands::OpenFor(seconds) => {
                Self::Until(now + SignedDuration::from_secs(i64::from(seconds)))
            }
        }
    }

    /// Until when it is open. None: it is closed.
    pub(crate) fn end(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Closed => None,
            Self::Open => Some(Timestamp::MAX),
            Self::Until(end) => Some(end).filter(|end| *end > now),
        }
    }

    /// It alone, as a set of gates.
    pub(crate) fn gathered(self, now: Timestamp) -> Gathered {
        match self {
            Self::Closed => CLOSED.clone(),
            Self::Open => OPEN.clone(),
            Self::Until(_) if self.end(now).is_none() => CLOSED.clone(),
            Self::Until(end) => {
                let closed =
                    json!([{"name": "end", "from": local(end), "until": "2036-01-01T00:00:00"}]);
                gathered(Some(&json!({"closed": closed})), now)
            }
        }
    }
}

/// As a window has it, in UTC.
fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).datetime().to_string()
}

/// A gate with this `default`, or that is kept by these windows, as a set of gates. None: no gate.
fn gathered(gate: Option<&Value>, at: Timestamp) -> Gathered {
    let mut world = simulate::World::default();
    let metadata = json!({"name": "g", "namespace": "apps"});
    if let Some(closed) = gate.and_then(|gate| gate.get("closed")) {
        let keeper: Gatekeeper = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": metadata,
            "spec": {"schedule": {"closed": closed}},
        }))
        .unwrap();
        world
            .gatekeepers
            .insert(Key::of(&keeper.metadata), Arc::new(keeper));
    }
    let refs = match gate {
        Some(gate) => {
            let spec = match gate.get("closed") {
                Some(_) => json!({"gatekeepers": [{"name": "g"}]}),
                None => gate.clone(),
            };
            let gate: Gate = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": metadata, "spec": spec,
            }))
            .unwrap();
            world.gates.insert(Key::of(&gate.metadata), gate);
            json!([{"name": "g"}])
        }
        None => json!([]),
    };
    let own: GateSet = serde_json::from_value(json!({ "refs": refs })).unwrap();
    let subject = subject(&strategy(Setup::default()), NAMES[0], What::Promote, None);
    let question = Question::from(Now::given(at));
    simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
}

/// The Kustomization of an environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kustomization {
    /// The commit that it has applied, and the one that it has tried last.
    applied: String,
    tried: String,
    /// None: it is not known yet.
    is_ready: Option<bool>,
    is_suspended: bool,
}

impl Kustomization {
    /// Something is found out about the commit that the environment has.
    pub(crate) fn find(&mut self, head: &str, finding: Finding) {
        self.is_suspended = finding == Finding::Gone;
        match finding {
            Finding::Success | Finding::Short => {
                (self.applied, self.tried) = (head.to_owned(), head.to_owned());
                self.is_ready = Some(true);
            }
            Finding::Failure => (self.tried, self.is_ready) = (head.to_owned(), Some(false)),
            Finding::Pending => (self.tried, self.is_ready) = (head.to_owned(), None),
            Finding::Impostor => self.is_ready = Some(true),
            Finding::Gone => {}
        }
    }

    /// Whether it proves a commit.
    pub(crate) fn proves(&self, head: &str) -> bool {
        self.is_ready == Some(true) && self.applied == head && !self.is_suspended
    }

    /// As a leader sees it.
    pub(crate) fn seen(&self, branch: &str) -> ((String, String), Found) {
        let status = match self.is_ready {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let name = kustomization(branch);
        let object: FluxObject = serde_json::from_value(json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": "apps", "generation": 1},
            "spec": {"suspend": self.is_suspended},
            "status": {
                "observedGeneration": 1,
                "lastAppliedRevision": format!("{branch}@sha1:{}", self.applied),
                "lastAttemptedRevision": format!("{branch}@sha1:{}", self.tried),
                "conditions": [{
                    "type": "Ready", "status": status, "reason": "It", "message": "",
                    "lastTransitionTime": "2026-11-23T12:00:00Z", "observedGeneration": 1,
                }],
            },
        }))
        .unwrap();
        (("apps".to_owned(), name), Found::Here(Arc::new(object)))
    }
}

fn kustomization(branch: &str) -> String {
    branch.replace('/', "-")
}

pub(crate) fn start() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

pub(crate) fn strategy(setup: Setup) -> PromotionStrategy {
    let environments = NAMES.iter().enumerate().map(|(place, branch)| {
        let after = setup.directly_before(place).iter().map(|it| NAMES[*it]);
        let mut environment = json!({
            "branch": branch, "gates": {"refs": [{"name": "g"}]},
            "after": after.collect::<Vec<_>>(), "autoMerge": !(setup.by_hand && place == 2),
        });
        if setup.proves {
            environment["activeGates"] = json!({"refs": [{"name": "g"}]});
        }
        if setup.flux {
            let flux = json!({"kustomizations": [{"name": kustomization(branch)}]});
            environment["activeCommitStatuses"] = json!([{"key": HEALTH, "flux": flux}]);
        }
        environment
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
