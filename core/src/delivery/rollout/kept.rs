//! What is kept in memory of the objects that looks read: as much as they read, and nothing else.
//!
//! What comes in: an object as the API server has it. What goes out: the same with fewer fields. Of a pod template
//! its labels and its hash are kept, and of `managedFields` who owns the fields that a rollout writes.

use serde_json::{Map, Value, json};
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::rollout::marks;

use super::app;
use super::applied::{RECONCILE, SSA, managed, put};
use super::claim;
use super::hook::hash;
use super::identity::HASH;
use super::workload::Kind;
use crate::flux::users::labels;

/// The kind of autoscalers.
pub const AUTOSCALER: &str = "HorizontalPodAutoscaler";

/// What is read of an autoscaler.
const OF_AUTOSCALER: &[&str] = &[
    "/metadata/name",
    "/spec/scaleTargetRef/kind",
    "/spec/scaleTargetRef/name",
];
/// What is read of what applies workloads, but for its inventory and whether it is ready.
const OF_KUSTOMIZATION: &[&str] = &[
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/generation",
    "/spec/suspend",
    "/spec/ignore",
    "/status/observedGeneration",
    "/status/lastAppliedRevision",
    "/status/lastAttemptedRevision",
];
const OF_HELM_RELEASE: &[&str] = &[
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/generation",
    "/spec/suspend",
    "/spec/driftDetection",
    "/spec/chartRef",
    "/spec/chart/spec/sourceRef",
    "/status/observedGeneration",
    "/status/lastAttemptedGeneration",
];
/// What is read of its conditions, and of its releases. A Kustomization has no such releases.
const OF_CONDITION: &[&str] = &["/type", "/status", "/reason", "/lastTransitionTime"];
const OF_RELEASE: &[&str] = &["/chartVersion", "/ociDigest", "/status"];
/// How many releases are kept, the newest first.
const RELEASES: usize = 5;
/// The longest word that kustomize-controller reads: `IfNotPresent`.
const LONGEST_WORD: usize = 12;
/// What is read of a workload, but for its labels, annotations, owners and template.
const OF_WORKLOAD: &[&str] = &[
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/deletionTimestamp",
    "/spec/replicas",
    "/spec/paused",
    "/spec/selector",
    "/spec/minReadySeconds",
    "/spec/podManagementPolicy",
    "/spec/ordinals/start",
    "/spec/updateStrategy/type",
    "/spec/updateStrategy/paused",
    "/spec/updateStrategy/partition",
    "/spec/updateStrategy/rollingUpdate/partition",
    "/status/observedGeneration",
    "/status/replicas",
    "/status/availableReplicas",
    "/status/updatedReplicas",
    "/status/updatedAvailableReplicas",
    "/status/currentRevision",
    "/status/updateRevision",
];

/// What is kept of an object. One of another kind than Rollouts read is kept as it is.
pub fn kept(object: Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default();
    if Kind::ALL.iter().any(|it| it.as_str() == kind) {
        return workload(&object);
    }
    if kind == AUTOSCALER {
        return picked(&object, OF_AUTOSCALER);
    }
    match [ConsumerKind::Kustomization, ConsumerKind::HelmRelease]
        .into_iter()
        .find(|it| it.as_str() == kind)
    {
        Some(ConsumerKind::Kustomization) => applier(&object, OF_KUSTOMIZATION, &[]),
        Some(ConsumerKind::HelmRelease) => applier(&object, OF_HELM_RELEASE, OF_RELEASE),
        None => object,
    }
}

/// What applies workloads: which of them, and whether it is ready.
fn applier(object: &Value, fields: &[&str], of_release: &[&str]) -> Value {
    let mut kept = picked(object, fields);
    let status = &object["status"];
    let list = |field: &str| status[field].as_array().into_iter().flatten();
    let ready = list("conditions").filter(|it| it["type"] == "Ready");
    let ready: Vec<_> = ready.map(|it| picked(it, OF_CONDITION)).collect();
    let workloads: Vec<_> = app::entries(object).map(|(entry, ..)| entry).collect();
    let releases = list("history")
        .take(RELEASES)
        .filter(|_| !of_release.is_empty());
    let releases: Vec<_> = releases.map(|it| picked(it, of_release)).collect();
    kept["status"]["conditions"] = ready.into();
    kept["status"]["inventory"] = json!({"entries": workloads});
    kept["status"]["history"] = releases.into();
    kept
}

fn workload(object: &Value) -> Value {
    let mut kept = picked(object, OF_WORKLOAD);
    let all_labels: Map<String, Value> = labels()
        .chain([app::COMPONENT])
        .filter_map(|it| text(object, "labels", it))
        .chain(for_flux(object, "labels"))
        .collect();
    let claim = text(object, "annotations", marks::CLAIM);
    let claim = claim.filter(|(_, text)| text.as_str().is_some_and(claim::is_short));
    let annotations = claim.into_iter().chain(for_flux(object, "annotations"));
    let annotations: Map<String, Value> = annotations.collect();
    kept["metadata"]["labels"] = all_labels.into();
    kept["metadata"]["annotations"] = annotations.into();
    kept["metadata"]["managedFields"] = managed(object);
    if let Some(whole) = object.pointer("/spec/template") {
        let mut template = picked(whole, &["/metadata/labels"]);
        // A CloneSet may have any field in its template, also this one.
        template[HASH] = hash(whole).into();
        kept["spec"]["template"] = template;
    }
    kept
}

/// What its labels or annotations say to kustomize-controller. What is longer than any of its words is none.
fn for_flux(object: &Value, of: &str) -> impl Iterator<Item = (String, Value)> {
    let all = [SSA, RECONCILE].into_iter();
    let is_short = |text: &Value| text.as_str().is_some_and(|it| it.len() <= LONGEST_WORD);
    all.filter_map(move |it| text(object, of, it).filter(|(_, text)| is_short(text)))
}

/// A label, or an annotation.
fn text(object: &Value, of: &str, name: &str) -> Option<(String, Value)> {
    let text = object["metadata"][of].get(name)?;
    Some((name.to_owned(), text.clone()))
}

/// The fields at these pointers, where they were.
fn picked(object: &Value, pointers: &[&str]) -> Value {
    let mut kept = json!({});
    for pointer in pointers {
        if let Some(value) = object.pointer(pointer) {
            put(&mut kept, pointer, value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::identity;
    use super::*;

    /// A Deployment as it is, with the remains of a large template.
    fn deployment() -> Value {
        let owner = |manager: &str, fields: Value| {
            json!({
                "manager": manager, "operation": "Apply", "time": "2026-11-23T09:00:00Z",
                "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        let applied = json!({
            "f:metadata": {"f:labels": {}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {}}},
        });
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 3,
                "labels": {
                    "app": "web", "app.kubernetes.io/component": "web",
                    "kustomize.toolkit.fluxcd.io/name": "apps",
                },
                "annotations": {
                    "deployment.kubernetes.io/revision": "4",
                    "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(10_000),
                    marks::CLAIM: "{}",
                },
                "managedFields": [
                    owner("kustomize-controller", applied),
                    owner("kube-controller-manager", json!({"f:status": {"f:replicas": {}}})),
                    owner("else", json!({"f:spec": {"f:strategy": {}}})),
                ],
            },
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate"},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "web:1", "args": ["x".repeat(50_000)]}]},
                },
            },
            "status": {
                "observedGeneration": 3, "replicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
                "conditions": [{"type": "Available", "message": "x".repeat(1_000)}],
            },
        })
    }

    #[test]
    fn of_a_workload_only_what_is_read_is_kept() {
        let whole = deployment();
        let hash = identity::template(&whole).unwrap();
        let owned = json!([{
            "manager": "kustomize-controller", "operation": "Apply", "time": "2026-11-23T09:00:00Z",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}},
        }]);
        let expected = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 3,
                "labels": {
                    "app.kubernetes.io/component": "web", "kustomize.toolkit.fluxcd.io/name": "apps",
                },
                "annotations": {marks::CLAIM: "{}"}, "managedFields": owned,
            },
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, HASH: hash},
            },
            "status": {
                "observedGeneration": 3, "replicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
            },
        });
        let kept = kept(whole);
        assert_eq!(kept, expected);
        // The whole and what is kept of it are the same version.
        assert_eq!(identity::template(&kept), Some(hash));
    }

    /// A claim has a few hundred bytes: what is longer was written by somebody else, and is not kept.
    #[test]
    fn a_claim_that_nobody_of_us_has_written_takes_no_room() {
        let mut forged = deployment();
        forged["metadata"]["annotations"][marks::CLAIM] = "x".repeat(200_000).into();
        assert!(kept(forged).to_string().len() < 2_000);
    }

    /// Nobody says by a field of a template, or by an annotation, more than there is.
    #[test]
    fn what_looks_like_our_own_counts_for_nothing() {
        let mut forged = deployment();
        forged["spec"]["template"][HASH] = json!("abc");
        forged["metadata"]["annotations"][SSA] = json!("x".repeat(10_000));
        let first = kept(forged.clone());
        assert_ne!(identity::template(&first), Some("abc".to_owned()));
        assert!(first.to_string().len() < 2_000);
        forged["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        assert_ne!(
            identity::template(&kept(forged)),
            identity::template(&first)
        );
    }

    #[test]
    fn of_others_what_concerns_workloads_is_kept() {
        let autoscaler = json!({
            "kind": AUTOSCALER, "metadata": {"name": "a", "resourceVersion": "9"},
            "spec": {
                "maxReplicas": 9,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
            "status": {"currentMetrics": []},
        });
        let expected = json!({
            "metadata": {"name": "a"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}},
        });
        assert_eq!(kept(autoscaler), expected);
        let applier = |kind: &str| {
            json!({
                "kind": kind, "metadata": {"name": "apps", "generation": 2, "uid": "u-1"},
                "spec": {
                    "interval": "10m", "ignore": [1], "driftDetection": {"mode": "enabled"},
                    "chartRef": {"kind": "HelmChart"}, "values": {"a": "b"},
                },
                "status": {
                    "lastAppliedRevision": "main@sha1:1",
                    "inventory": {"entries": [
                        {"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "shop_web__Service", "v": "v1"},
                    ]},
                    "history": [{"chartVersion": "1.0.0", "digest": "x"}],
                    "conditions": [
                        {"type": "Ready", "status": "True", "reason": "R", "message": "x", "lastTransitionTime": "t"},
                        {"type": "Healthy", "status": "True"},
                    ],
                },
            })
        };
        let status = |releases: Value| {
            json!({
                "inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]},
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "t"},
                ],
                "history": releases,
            })
        };
        let mut of_kustomization = status(json!([]));
        of_kustomization["lastAppliedRevision"] = "main@sha1:1".into();
        let metadata = json!({"name": "apps", "generation": 2});
        assert_eq!(
            kept(applier("Kustomization")),
            json!({"metadata": metadata, "spec": {"ignore": [1]}, "status": of_kustomization})
        );
        let spec = json!({
            "driftDetection": {"mode": "enabled"}, "chartRef": {"kind": "HelmChart"},
        });
        let of_release = status(json!([{"chartVersion": "1.0.0"}]));
        assert_eq!(
            kept(applier("HelmRelease")),
            json!({"metadata": metadata, "spec": spec, "status": of_release})
        );
    }
}
