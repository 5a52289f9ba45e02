use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::view;
use sluice_crds::Rollout;

use super::*;

const NOW: &str = "2026-11-20T19:11:00Z";

/// A rollout of 20 pods in four batches, with this status, and with so many pods of the old version.
struct Shown {
    spec: Value,
    status: Value,
    pods: BTreeMap<Name, Value>,
}

fn named(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "name": name})
}

/// What is latched of workloads that had so many pods.
fn run(mode: &str, workloads: &[(&str, &str, i32)]) -> Value {
    let all = workloads.iter().map(|(kind, name, was)| {
        json!({"ref": named(kind, name), "uid": format!("u-{name}"), "was": was, "start": 0})
    });
    json!({
        "id": 1, "mode": mode, "revision": "6.8.0", "identity": "i",
        "workloads": all.collect::<Vec<_>>(),
    })
}

fn done(goal: i32, hour: &str, waited: i64, worked: i64) -> Value {
    let at = format!("2026-11-20T{hour}:00Z");
    json!({
        "goal": goal, "checksum": "c", "began": at, "done": at, "waited": waited, "worked": worked,
        "decision": {
            "at": at, "decidedBy": ["shop/office-hours", "shop/error-rate"], "message": "open",
        },
    })
}

fn ready(status: &str, message: &str) -> Value {
    json!([{
        "type": "Ready", "status": status, "reason": "Progressing", "message": message,
        "lastTransitionTime": NOW,
    }])
}

impl Shown {
    /// web-v2 takes the place of web-v1: two batches are out.
    fn pair(old: u32) -> Self {
        let pods = [("web-v1", old)].map(|(name, pods)| {
            let reference = serde_json::from_value(named("Deployment", name)).unwrap();
            let object = json!({"status": {"replicas": pods}});
            (Name::of(&reference).unwrap(), object)
        });
        let workloads = [("Deployment", "web-v2", 0), ("Deployment", "web-v1", 20)];
        Self {
            spec: json!({
                "targetRef": named("Deployment", "web-v2"), "sourceRef": [named("Deployment", "web-v1")],
                "revision": "6.8.0",
                "rolloutPlan": {
                    "rolloutBatches": [
                        {"replicas": 1},
                        {"replicas": "25%", "canaryMetric": [{"name": "error-rate", "interval": "5m"}]},
                        {"replicas": "50%"}, {},
                    ],
                    "lastBatchToRollout": 2,
                },
            }),
            status: json!({
                "observedGeneration": 1, "rollingState": "rollingInBatches", "progress": "2/4",
                "rolloutTargetSize": 20, "rolloutOriginalSize": 20, "upgradedReplicas": 6,
                "upgradedReadyReplicas": 6, "run": run("Pair", &workloads), "currentBatch": 1,
                "batchRollingState": "batchReady",
                "batches": [done(1, "10:02", 0, 38), done(6, "16:41", 23_880, 372)],
                "metrics": [
                    {"name": "error-rate", "value": "0.004", "withinSince": "2026-11-20T16:41:00Z"},
                ],
                "deadline": "2026-11-20T17:10:00Z",
            }),
            pods: pods.into(),
        }
    }

    fn with(mut self, status: Value) -> Self {
        let (Value::Object(into), Value::Object(status)) = (&mut self.status, status) else {
            panic!("no object")
        };
        into.extend(status);
        self
    }

    fn drawn(&self, width: usize, unicode: bool) -> String {
        let object: Rollout = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": self.spec, "status": self.status,
        }))
        .unwrap();
        let zone = Zone::named("Europe/London").unwrap();
        let look = Look { width, unicode };
        let drawn = rollout(
            &view(&object, &self.pods),
            look,
            &zone,
            NOW.parse().unwrap(),
        );
        let text = anstream::adapter::strip_str(&drawn).to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{line}");
            assert_eq!(line.trim_end(), line);
        }
        assert!(unicode || text.is_ascii(), "{text}");
        text
    }
}

fn held() -> Shown {
    Shown::pair(14).with(json!({
        "held": {
            "by": "shop/office-hours", "reason": "GatesClosed", "since": "2026-11-20T17:00:00Z",
            "message": "batch 2 (3/4) waits: held back by shop/office-hours: closed by window 'night' until Mon 2026-11-23 09:00 Europe/London",
        },
        "lastDecision": {
            "allowed": false, "at": "2026-11-20T17:00:00Z", "require": "all", "checked": [],
            "decidedBy": ["shop/office-hours"], "message": "closed", "next": "2026-11-23T09:00:00Z",
            "subject": {"kind": "Rollout", "namespace": "shop", "action": "advance"},
        },
    }))
}

#[rstest]
#[case::usual(120, true)]
#[case::narrow(80, true)]
#[case::ascii(120, false)]
fn a_rollout_that_is_held(#[case] width: usize, #[case] unicode: bool) {
    let text = held().drawn(width, unicode);
    insta::assert_snapshot!(format!("held_in_{width}_{unicode}"), text);
}

#[test]
fn a_rollout_whose_pods_come() {
    let shown = Shown::pair(14).with(json!({
        "batchRollingState": "batchVerifying", "currentBatch": 2, "upgradedReplicas": 16,
        "upgradedReadyReplicas": 9, "deadline": "2026-11-20T19:19:30Z",
        "batches": [
            done(1, "10:02", 0, 38), done(6, "16:41", 23_880, 372),
            {
                "goal": 16, "checksum": "c", "began": "2026-11-20T19:00:00Z", "waited": 60,
                "decision": {"at": "2026-11-20T19:08:00Z", "decidedBy": [], "message": "no gate"},
            },
        ],
        "hooks": [{
            "type": "pre-batch-rollout", "name": "backup", "batch": 2, "checksum": "h", "at": NOW,
            "attempts": 3, "status": 503, "done": false,
        }],
        "conditions": ready("False", "batch 2: 9 of 16 pods are available"),
    }));
    insta::assert_snapshot!("running_in_120", shown.drawn(120, true));
    insta::assert_snapshot!("running_in_80", shown.drawn(80, true));
}

#[test]
fn a_rollout_that_has_failed() {
    let mut first = done(1, "18:02", 0, 38);
    first["decision"]["decidedBy"] = json!(["shop/office-hours"]);
    let mut second = done(6, "18:41", 0, 0);
    second.as_object_mut().unwrap().remove("done");
    let shown = Shown::pair(14).with(json!({
        "rollingState": "rolloutFailed", "batchRollingState": "batchVerifyFailed", "progress": "1/4",
        "batches": [first, second], "deadline": null,
        "metrics": [{"name": "error-rate", "value": "0.09"}],
        "outcome": {
            "reason": "ProgressDeadlineExceeded",
            "message": "there was no progress for too long: metric error-rate is 0.09, above 0.01",
        },
    }));
    insta::assert_snapshot!("failed", shown.drawn(100, true));
    let refused = Shown::pair(20).with(json!({
        "rollingState": "rolloutFailed", "run": null, "batches": [], "deadline": null,
        "progress": null, "upgradedReplicas": null, "upgradedReadyReplicas": null,
        "rolloutTargetSize": null, "rolloutOriginalSize": null, "metrics": [],
        "outcome": {"reason": "InvalidSpec", "message": "spec.rolloutPlan.targetSize: 3 pods are fewer"},
    }));
    insta::assert_snapshot!("refused", refused.drawn(100, true));
}

#[test]
fn a_rollout_that_has_succeeded() {
    let batches = [
        done(1, "10:02", 0, 38),
        done(6, "16:41", 23_880, 372),
        done(16, "17:12", 0, 95),
        done(20, "18:00", 1_800, 41),
    ];
    let shown = Shown::pair(0).with(json!({
        "rollingState": "rolloutSucceed", "progress": "4/4", "upgradedReplicas": 20,
        "upgradedReadyReplicas": 20, "currentBatch": 3, "batches": batches, "deadline": null,
        "metrics": [],
    }));
    insta::assert_snapshot!("succeeded", shown.drawn(100, true));
}

#[test]
fn a_rollout_that_is_deleted() {
    let shown = Shown::pair(17).with(json!({
        "rollingState": "rolloutDeleting", "reverted": true, "currentBatch": 2,
        "batchRollingState": "batchInRolling", "deadline": "2026-11-20T19:20:00Z",
        "conditions": ready("False", "web-v1 has 17 of 20 pods"),
    }));
    insta::assert_snapshot!("deleting", shown.drawn(100, true));
}

#[test]
fn a_rollout_in_place() {
    let mut shown = held();
    shown.spec = json!({
        "targetRef": named("StatefulSet", "db"), "revision": "16.4", "rolloutPlan": {"numBatches": 3},
    });
    let shown = shown.with(json!({
        "run": run("Update", &[("StatefulSet", "db", 7)]), "rolloutTargetSize": 7,
        "rolloutOriginalSize": 7, "progress": "1/3", "currentBatch": 0, "upgradedReplicas": 2,
        "upgradedReadyReplicas": 1, "batches": [done(2, "16:41", 0, 372)], "metrics": [],
    }));
    insta::assert_snapshot!("in_place", shown.drawn(100, true));
}

#[test]
fn a_rollout_that_scales() {
    let mut shown = Shown::pair(0);
    shown.spec = json!({
        "targetRef": named("Deployment", "web"), "revision": "6.8.0",
        "rolloutPlan": {"targetSize": 4, "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {}]},
    });
    let shown = shown.with(json!({
        "run": run("Scale", &[("Deployment", "web", 12)]), "rolloutTargetSize": 4,
        "rolloutOriginalSize": 12, "progress": "1/3", "currentBatch": 1, "upgradedReplicas": 11,
        "batchRollingState": "batchInRolling", "upgradedReadyReplicas": 11, "metrics": [],
        "batches": [
            done(11, "19:05", 0, 12), {"goal": 9, "began": "2026-11-20T19:10:00Z"},
        ],
        "deadline": "2026-11-20T19:20:00Z",
        "conditions": ready("False", "batch 1: 11 pods are to become 9"),
    }));
    insta::assert_snapshot!("scaling", shown.drawn(100, true));
}

#[test]
fn a_rollout_that_nobody_has_looked_at() {
    let mut shown = Shown::pair(20);
    shown.status = json!({});
    insta::assert_snapshot!("fresh", shown.drawn(80, true));
}
