//! Mistakes in Rollouts.

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};
use sluice_crds::Rollout;

use super::super::object;
use super::promotion::{accepts, refuses, with};
use super::{Judge, Mistake};

mod changes;

/// Mistakes in a rollout of two Deployments in one batch, but for what is written here.
#[rustfmt::skip]
const ROLLOUTS: &[Mistake] = &[
    ("{targetRef: null}", "spec.targetRef", "Required value", "="),
    ("{rolloutPlan: null}", "spec.rolloutPlan", "Required value", "="),
    ("{targetRef: {kind: DaemonSet, name: a}, sourceRef: null}", "spec.targetRef.kind", "use a CloneSet, or gate its source", "="),
    ("{targetRef: {kind: Pod, name: a}, sourceRef: null}", "spec.targetRef.kind", "can be rolled out", "="),
    ("{targetRef: {kind: Deployment, name: A}}", "spec.targetRef.name", "should match", "="),
    ("{targetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: a}}", "spec.targetRef.apiVersion", "write apps/v1", "="),
    ("{targetRef: {apiVersion: apps/v1, kind: CloneSet, name: a}, sourceRef: null}", "spec.targetRef.apiVersion", "belongs to another kind", "="),
    ("{targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: a}, sourceRef: null}", "spec.targetRef.apiVersion", "belongs to another kind", "="),
    ("{targetRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: Kustomization, name: a}, sourceRef: null}", "spec.targetRef.apiVersion", "belongs to another kind", "="),
    ("{targetRef: {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: HelmRelease, name: a}, sourceRef: null}", "spec.targetRef.apiVersion", "belongs to another kind", "="),
    ("{sourceRef: [{kind: DaemonSet, name: b}]}", "spec.sourceRef[0].kind", "use a CloneSet, or gate its source", "="),
    ("{sourceRef: [{apiVersion: extensions/v1beta1, kind: Deployment, name: b}]}", "spec.sourceRef[0].apiVersion", "write apps/v1", "="),
    ("{sourceRef: [{kind: Kustomization, name: b}]}", "spec.sourceRef", "source and target are of one kind", "spec.sourceRef[0]"),
    ("{sourceRef: [{kind: Deployment, name: a}]}", "spec.sourceRef", "the target is also a source", "spec.sourceRef[0]"),
    ("{sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: b}]}", "spec.sourceRef", "is listed twice", "spec.sourceRef[1]"),
    ("{sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: c}, {kind: Deployment, name: d}, {kind: Deployment, name: e}, {kind: Deployment, name: f}]}", "spec.sourceRef", "at most 4 items", "="),
    ("{targetRef: {kind: StatefulSet, name: a}, sourceRef: [{kind: StatefulSet, name: b}]}", "spec.sourceRef", "rolled in place", "="),
    ("{targetRef: {kind: CloneSet, name: a}, sourceRef: [{kind: CloneSet, name: b}]}", "spec.sourceRef", "rolled in place", "="),
    ("{targetRef: {kind: StatefulSet, name: a}, sourceRef: null, rolloutPlan: {rolloutStrategy: DecreaseFirst}}", "spec.rolloutPlan.rolloutStrategy", "DecreaseFirst belongs to two Deployments", "="),
    ("{targetRef: {kind: CloneSet, name: a}, sourceRef: null, rolloutPlan: {rolloutStrategy: DecreaseFirst}}", "spec.rolloutPlan.rolloutStrategy", "DecreaseFirst belongs to two Deployments", "="),
    ("{component: web}", "spec.component", "belongs to a Kustomization or HelmRelease", "="),
    ("{targetRef: {kind: StatefulSet, name: a}, sourceRef: null, component: web}", "spec.component", "belongs to a Kustomization or HelmRelease", "="),
    ("{rearm: false}", "spec.rearm", "belongs to a StatefulSet or CloneSet", "="),
    ("{revision: ''}", "spec.revision", "at least 1 chars long", "="),
    ("{gates: {refs: []}}", "spec.gates.refs", "at least 1 items", "="),
    ("{gates: {refs: [{name: a}, {name: a}]}}", "spec.gates.refs", "a gate is listed twice", "spec.gates.refs[1]"),
    ("{serviceAccountName: A}", "spec.serviceAccountName", "should match", "="),
    ("{progressDeadline: 29s}", "spec.progressDeadline", "must be between 30s and 24h", "="),
    ("{progressDeadline: 1d1s}", "spec.progressDeadline", "must be between 30s and 24h", "="),
    ("{onFailure: Ignore}", "spec.onFailure", "supported values", "="),
    ("{rolloutPlan: {rolloutStrategy: Random}}", "spec.rolloutPlan.rolloutStrategy", "supported values", "="),
    ("{rolloutPlan: {targetSize: -1}}", "spec.rolloutPlan.targetSize", "greater than or equal to 0", "="),
    ("{rolloutPlan: {numBatches: 0}}", "spec.rolloutPlan.numBatches", "greater than or equal to 1", "="),
    ("{rolloutPlan: {numBatches: 31}}", "spec.rolloutPlan.numBatches", "less than or equal to 30", "="),
    ("{rolloutPlan: {rolloutBatches: []}}", "spec.rolloutPlan.rolloutBatches", "at least 1 items", "="),
    ("{rolloutPlan: {numBatches: 2, rolloutBatches: [{}]}}", "spec.rolloutPlan.numBatches", "write one of numBatches and rolloutBatches", "="),
    ("{rolloutPlan: {batchPartition: 0, lastBatchToRollout: 0}}", "spec.rolloutPlan.batchPartition", "write one of them", "="),
    ("{rolloutPlan: {lastBatchToRollout: -1}}", "spec.rolloutPlan.lastBatchToRollout", "greater than or equal to 0", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 1}, {}, {}]}}", "spec.rolloutPlan.rolloutBatches", "before the last has no size", "spec.rolloutPlan.rolloutBatches[1].replicas"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: -1}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "greater than or equal to 0", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: ab}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "should match", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: '0.2'}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "should match", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 101%}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "should match", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 2.5%}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "should match", "="),
    ("{rolloutPlan: {rolloutBatches: [{replicas: true}]}}", "spec.rolloutPlan.rolloutBatches[0].replicas", "must be of type", "="),
    ("{rolloutPlan: {rolloutBatches: [{maxUnavailable: some}]}}", "spec.rolloutPlan.rolloutBatches[0].maxUnavailable", "should match", "="),
    ("{rolloutPlan: {rolloutBatches: [{podList: [a]}]}}", "spec.rolloutPlan.rolloutBatches[0].podList", "cannot be picked yet", "="),
    ("{rolloutPlan: {rolloutBatches: [{instanceInterval: 5}]}}", "spec.rolloutPlan.rolloutBatches[0].instanceInterval", "cannot go one after another yet", "="),
    ("{rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}]}]}}", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks", "write others among rolloutWebhooks", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[0].type"),
    ("{rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}]}}", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks", "a name is listed twice", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[1].name"),
    ("{rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a', secretRef: {name: a}}]}]}}", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[0].secretRef", "sent over https only", "="),
    ("{rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a', timeout: 0s}]}]}}", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[0].timeout", "longer than zero", "="),
    ("{rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a', metadata: {kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: b}}]}]}}", "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[0].metadata", "a key is longer than 63 characters", "="),
    ("{rolloutPlan: {rolloutBatches: [{canaryMetric: [{name: a}, {name: a}]}]}}", "spec.rolloutPlan.rolloutBatches[0].canaryMetric", "a name is listed twice", "spec.rolloutPlan.rolloutBatches[0].canaryMetric[1].name"),
    ("{rolloutPlan: {rolloutBatches: [{canaryMetric: [{name: a, interval: 1d1s}]}]}}", "spec.rolloutPlan.rolloutBatches[0].canaryMetric[0].interval", "must be between 5s and 24h", "="),
    ("{rolloutPlan: {rolloutBatches: [{canaryMetric: [{name: a, metricsRange: {}}]}]}}", "spec.rolloutPlan.rolloutBatches[0].canaryMetric[0].metricsRange", "admits everything", "="),
    ("{rolloutPlan: {rolloutBatches: [{canaryMetric: [{name: a, metricsRange: {min: 2, max: 1}}]}]}}", "spec.rolloutPlan.rolloutBatches[0].canaryMetric[0].metricsRange.min", "must not be above max", "="),
    ("{rolloutPlan: {rolloutBatches: [{gates: {refs: [{name: a}, {name: a}]}}]}}", "spec.rolloutPlan.rolloutBatches[0].gates.refs", "a gate is listed twice", "spec.rolloutPlan.rolloutBatches[0].gates.refs[1]"),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}}", "spec.rolloutPlan.rolloutWebhooks", "a name is listed twice", "spec.rolloutPlan.rolloutWebhooks[1].name"),
    ("{rolloutPlan: {rolloutWebhooks: [{type: confirm-rollout, name: a, url: 'http://a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].type", "supported values", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'ftp://a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].url", "should match", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'https://me@a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].url", "should match", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', method: DELETE}]}}", "spec.rolloutPlan.rolloutWebhooks[0].method", "supported values", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', expectedStatus: [99]}]}}", "spec.rolloutPlan.rolloutWebhooks[0].expectedStatus[0]", "greater than or equal to 100", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', timeout: 61s}]}}", "spec.rolloutPlan.rolloutWebhooks[0].timeout", "at most 60s", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', metadata: {kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: b}}]}}", "spec.rolloutPlan.rolloutWebhooks[0].metadata", "a key is longer than 63 characters", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', secretRef: {name: a}}]}}", "spec.rolloutPlan.rolloutWebhooks[0].secretRef", "sent over https only", "="),
    ("{rolloutPlan: {canaryMetric: [{name: a}, {name: a}]}}", "spec.rolloutPlan.canaryMetric", "a name is listed twice", "spec.rolloutPlan.canaryMetric[1].name"),
    ("{rolloutPlan: {canaryMetric: [{name: a, interval: 4s}]}}", "spec.rolloutPlan.canaryMetric[0].interval", "must be between 5s and 24h", "="),
    ("{rolloutPlan: {canaryMetric: [{name: a, metricsRange: {}}]}}", "spec.rolloutPlan.canaryMetric[0].metricsRange", "admits everything", "="),
    ("{rolloutPlan: {canaryMetric: [{name: a, metricsRange: {min: 2, max: 1}}]}}", "spec.rolloutPlan.canaryMetric[0].metricsRange.min", "must not be above max", "="),
    ("{rolloutPlan: {canaryMetric: [{name: a, templateRef: {kind: Gate, name: a}}]}}", "spec.rolloutPlan.canaryMetric[0].templateRef.kind", "supported values", "="),
];

fn rollout() -> Value {
    json!({
        "targetRef": {"kind": "Deployment", "name": "a"},
        "sourceRef": [{"kind": "Deployment", "name": "b"}],
        "rolloutPlan": {},
    })
}

#[tokio::test]
async fn mistakes_in_rollouts_are_refused() -> Result<()> {
    refuses("Rollout", rollout(), ROLLOUTS).await?;
    let right = [
        "{}",
        "{targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: a}, sourceRef: null, rearm: false}",
        "{targetRef: {kind: HelmRelease, name: a}, sourceRef: [{kind: HelmRelease, name: b}], component: web}",
        "{rolloutPlan: {rolloutBatches: [{replicas: 0}, {replicas: 100%, maxUnavailable: 1}, {}], batchPartition: 99}}",
        "{rolloutPlan: {rolloutBatches: [{podList: [], instanceInterval: 0}], paused: true, revertOnDelete: true}}",
        "{targetRef: {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: a}, \
         sourceRef: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: b}], rearm: true}",
        "{progressDeadline: 30s, gates: {refs: [{name: a}, {name: a, namespace: b}]}}",
        "{progressDeadline: 1d, rolloutPlan: {canaryMetric: [{name: a, interval: 5s}, {name: b, interval: 1d}]}}",
        "{rolloutPlan: {rolloutWebhooks: [{type: initialize-rollout, name: a, url: 'https://a', timeout: 60s, \
         secretRef: {name: a}, metadata: {kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: b}}], rolloutBatches: [{batchRolloutWebhooks: \
         [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: post-batch-rollout, name: b, url: 'http://a'}]}]}}",
    ];
    accepts("Rollout", rollout(), &right).await
}

/// No rule is there without a row that breaks it, at each field that has it. Those about changes have rows of
/// their own.
#[test]
fn every_rule_has_a_row() -> Result<()> {
    let version = Rollout::crd().spec.versions.remove(0);
    let schema = version.schema.and_then(|it| it.open_api_v3_schema);
    let fields = schema.and_then(|it| it.properties).unwrap_or_default();
    let mut rules = Vec::new();
    collect("spec", fields.get("spec").context("no spec")?, &mut rules);
    let rows = ROLLOUTS.iter().map(|(_, field, words, _)| (*field, *words));
    let rows: Vec<_> = rows.chain(changes::rows()).collect();
    for (field, message) in &rules {
        let breaks =
            |row: &(&str, &str)| row.0.replace("[0]", "[]") == *field && message.contains(row.1);
        ensure!(
            rows.iter().any(breaks),
            "no row breaks, at {field}: {message}"
        );
    }
    ensure!(rules.len() > 40, "only {} rules are found", rules.len());
    Ok(())
}

/// The rules of a field and of those in it: where each refuses, and in which words.
fn collect(field: &str, schema: &JSONSchemaProps, found: &mut Vec<(String, String)>) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        let within = rule.field_path.as_deref().unwrap_or_default();
        let message = rule.message.clone().unwrap_or_default();
        found.push((format!("{field}{within}"), message));
    }
    for (name, property) in schema.properties.iter().flatten() {
        collect(&format!("{field}.{name}"), property, found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(each)) = &schema.items {
        collect(&format!("{field}[]"), each, found);
    }
}

/// Plans that KubeVela has published, in its examples and its manual, for Deployments and for CloneSets. Its names
/// of revisions and components are `targetRef` and `sourceRef` here.
const PUBLISHED: &[&str] = &[
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 10%}, {replicas: 2}, {replicas: 2}], batchPartition: 1}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 10%}, {replicas: 2}, {replicas: 2}]}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 1}, {replicas: 50%}, {replicas: 50%}], batchPartition: 1}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 20%}, {replicas: 30%}, {replicas: 50%}]}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 50%}, {replicas: 50%}], targetSize: 6}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 3}, {replicas: 2}], targetSize: 5}",
    "{rolloutStrategy: IncreaseFirst, rolloutBatches: [{replicas: 5}], targetSize: 5}",
    "{targetSize: 5, batchPartition: 0, rolloutBatches: [{replicas: 2}, {replicas: 3}]}",
    "{targetSize: 2, rolloutBatches: [{replicas: 1}, {replicas: 1}]}",
    "{targetSize: 7}",
];

/// The same, where it scales what is there. Percentages are of the difference then.
const PUBLISHED_TO_SCALE: &str = "{targetSize: 6, rolloutStrategy: IncreaseFirst, \
    rolloutBatches: [{replicas: 1}, {replicas: 20%}, {replicas: 40%}, {replicas: 40%}]}";

#[tokio::test]
async fn plans_of_kubevela_are_accepted() -> Result<()> {
    let pair = |plan: &&str| format!("{{rolloutPlan: {plan}}}");
    let in_place = |plan: &&str| {
        format!("{{targetRef: {{kind: CloneSet, name: a}}, sourceRef: null, rolloutPlan: {plan}}}")
    };
    let pairs = PUBLISHED.iter().map(pair);
    let all = PUBLISHED.iter().chain([&PUBLISHED_TO_SCALE]);
    let right: Vec<_> = pairs.chain(all.map(in_place)).collect();
    let right: Vec<_> = right.iter().map(String::as_str).collect();
    accepts("Rollout", rollout(), &right).await
}

/// So many batches, each with as many hooks and metrics as there may be, and each another one.
fn largest(count: usize) -> Vec<Value> {
    let text = |length: usize| "x".repeat(length);
    let hook = |n: usize| {
        let metadata: serde_json::Map<String, Value> =
            (0..4).map(|n| (format!("k{n}"), text(64).into())).collect();
        json!({
            "type": "post-batch-rollout", "name": format!("{n}-{}", text(60)), "metadata": metadata,
            "url": format!("https://{}/", text(200)), "expectedStatus": [200, 201],
        })
    };
    let metric =
        |n: usize| json!({"name": format!("{n}-{}", text(60)), "metricsRange": {"max": 1}});
    let batch = |n: usize| {
        json!({
            "batchRolloutWebhooks": (0..8).map(hook).collect::<Vec<_>>(),
            "canaryMetric": (0..8).map(metric).collect::<Vec<_>>(), "replicas": n + 1,
        })
    };
    (0..count).map(batch).collect()
}

/// The most that a plan can have, which is also what the rules have to be cheap enough for.
#[tokio::test]
async fn plans_have_a_size() -> Result<()> {
    let judge = Judge::new().await?;
    let of = |count: usize| {
        let plan = json!({"rolloutBatches": largest(count)});
        object(
            "Rollout",
            &with(rollout(), &json!({"rolloutPlan": plan}).to_string())?,
        )
    };
    judge.accepts(&of(30)?).await?;
    let field = "spec.rolloutPlan.rolloutBatches";
    let mistake = ("", field, "must have at most 30 items", "=");
    judge.refuses("", of(31)?, &mistake).await?;
    let mut long = of(1)?;
    long["metadata"]["name"] = "a".repeat(64).into();
    let words = "metadata.name: at most 63 characters";
    let mistake = ("", "", words, "metadata.name");
    judge.refuses("", long.clone(), &mistake).await?;
    long["metadata"]["name"] = "a".repeat(63).into();
    judge.accepts(&long).await
}
