//! Mistakes in Rollouts, and changes that do not fit a run.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::Rollout;
use sluice_tests::Writes;

use super::super::object;
use super::promotion::{accepts, refuses, with};
use super::{Judge, Mistake};

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
    ("{sourceRef: [{kind: Kustomization, name: b}]}", "spec.sourceRef", "source and target are of one kind", "spec.sourceRef[0]"),
    ("{sourceRef: [{kind: Deployment, name: a}]}", "spec.sourceRef", "the target is also a source", "spec.sourceRef[0]"),
    ("{sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: b}]}", "spec.sourceRef", "is listed twice", "spec.sourceRef[1]"),
    ("{sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: c}, {kind: Deployment, name: d}, {kind: Deployment, name: e}, {kind: Deployment, name: f}]}", "spec.sourceRef", "at most 4 items", "="),
    ("{targetRef: {kind: StatefulSet, name: a}, sourceRef: [{kind: StatefulSet, name: b}]}", "spec.sourceRef", "rolled in place", "="),
    ("{targetRef: {kind: CloneSet, name: a}, sourceRef: null, rolloutPlan: {rolloutStrategy: DecreaseFirst}}", "spec.rolloutPlan.rolloutStrategy", "DecreaseFirst belongs to two Deployments", "="),
    ("{component: web}", "spec.component", "belongs to a Kustomization or HelmRelease", "="),
    ("{rearm: false}", "spec.rearm", "belongs to a StatefulSet or CloneSet", "="),
    ("{revision: ''}", "spec.revision", "at least 1 chars long", "="),
    ("{gates: {refs: []}}", "spec.gates.refs", "at least 1 items", "="),
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
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}}", "spec.rolloutPlan.rolloutWebhooks", "a name is listed twice", "spec.rolloutPlan.rolloutWebhooks[1].name"),
    ("{rolloutPlan: {rolloutWebhooks: [{type: confirm-rollout, name: a, url: 'http://a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].type", "supported values", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'ftp://a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].url", "should match", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'https://me@a'}]}}", "spec.rolloutPlan.rolloutWebhooks[0].url", "should match", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', method: DELETE}]}}", "spec.rolloutPlan.rolloutWebhooks[0].method", "supported values", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', expectedStatus: [99]}]}}", "spec.rolloutPlan.rolloutWebhooks[0].expectedStatus[0]", "greater than or equal to 100", "="),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a', timeout: 61s}]}}", "spec.rolloutPlan.rolloutWebhooks[0].timeout", "at most 60s", "="),
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
    ];
    accepts("Rollout", rollout(), &right).await
}

/// The most that a plan can have, which is also what the rules have to be cheap enough for.
#[tokio::test]
async fn plans_have_a_size() -> Result<()> {
    let judge = Judge::new().await?;
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
    let of = |count: usize, size: &Value| {
        let batch = json!({
            "replicas": size, "batchRolloutWebhooks": (0..8).map(hook).collect::<Vec<_>>(),
            "canaryMetric": (0..8).map(metric).collect::<Vec<_>>(),
        });
        let plan = json!({"rolloutBatches": vec![batch; count]});
        object(
            "Rollout",
            &with(rollout(), &json!({"rolloutPlan": plan}).to_string())?,
        )
    };
    judge.accepts(&of(30, &json!(1))?).await?;
    let mistake = (
        "",
        "spec.rolloutPlan.rolloutBatches",
        "must have at most 30 items",
        "=",
    );
    judge.refuses("", of(31, &json!(1))?, &mistake).await
}

/// A run goes on as it began. Of another run everything may be different.
#[tokio::test]
async fn changes_that_do_not_fit_a_run_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let api: Api<Rollout> = Api::namespaced(judge.client.clone(), judge.namespace.name());
    let mut spec = rollout();
    spec["rolloutPlan"] = json!({
        "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {"replicas": "50%"}, {}],
        "lastBatchToRollout": 1,
    });
    let made = object("Rollout", &spec.to_string())?;
    api.add(&serde_json::from_value(made)?).await?;
    let batches = |sizes: &[&str]| {
        let batch = |size: &&str| json!({ "replicas": size });
        json!({"rolloutBatches": sizes.iter().map(batch).collect::<Vec<_>>()})
    };
    for (plan, words) in [
        (
            json!({"rolloutStrategy": "DecreaseFirst"}),
            "rolloutStrategy: never changes during a run",
        ),
        (
            json!({"targetSize": 5}),
            "targetSize: never changes during a run",
        ),
        (
            json!({"rolloutBatches": null, "numBatches": 2}),
            "numBatches: never changes during a run",
        ),
        (
            json!({"rolloutWebhooks": [{"type": "finalize-rollout", "name": "a", "url": "http://a"}]}),
            "rolloutWebhooks: never change during a run",
        ),
        (
            json!({"lastBatchToRollout": 0}),
            "lastBatchToRollout: only grows",
        ),
        (
            json!({"lastBatchToRollout": null, "batchPartition": 0}),
            "lastBatchToRollout: only grows",
        ),
        (
            batches(&["2%", "25%", "50%", "10%"]),
            "rolloutBatches: those up to lastBatchToRollout",
        ),
        (
            batches(&["25%"]),
            "rolloutBatches: those up to lastBatchToRollout",
        ),
    ] {
        let answer = api
            .merge("example", json!({"spec": {"rolloutPlan": plan}}))
            .await;
        let error = answer.err().context(words)?.to_string();
        ensure!(error.contains(words), "{words}: {error}");
    }
    let later = json!([{"replicas": 1}, {"replicas": "25%"}, {"replicas": 2}, {"replicas": 3}, {}]);
    for spec in [
        json!({"rolloutPlan": {"rolloutBatches": later}}),
        json!({"rolloutPlan": {"lastBatchToRollout": null, "batchPartition": 3, "paused": true}}),
        json!({"revision": "2", "rolloutPlan": {
            "rolloutBatches": null, "numBatches": 2, "batchPartition": 0, "targetSize": 7,
            "rolloutStrategy": "DecreaseFirst",
        }}),
    ] {
        api.merge("example", json!({ "spec": spec })).await?;
    }
    Ok(())
}
