//! What breaks each rule of rollouts.

use super::Broken;

pub(super) const ROLLOUT: &[Broken] = &[
    (
        "sourceRef: source and target are of one kind",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Kustomization, name: b}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: the target is also a source",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: a}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: a StatefulSet or CloneSet is rolled",
        "{targetRef: {kind: CloneSet, name: a}, sourceRef: [{kind: CloneSet, name: b}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: a source is listed twice",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: b}], rolloutPlan: {}}",
    ),
    (
        "rolloutStrategy: a StatefulSet",
        "{targetRef: {kind: StatefulSet, name: a}, rolloutPlan: {rolloutStrategy: DecreaseFirst}}",
    ),
    (
        "component: belongs to a Kustomization",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], component: web, rolloutPlan: {}}",
    ),
    (
        "rearm: belongs to a StatefulSet",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rearm: true, rolloutPlan: {}}",
    ),
    (
        "progressDeadline: must be",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], progressDeadline: 29s, rolloutPlan: {}}",
    ),
    (
        "apiVersion: belongs to another kind",
        "{targetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: a}, rolloutPlan: {}}",
    ),
    (
        "kind: only Deployment",
        "{targetRef: {kind: DaemonSet, name: a}, rolloutPlan: {}}",
    ),
    (
        "numBatches: write one of",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {numBatches: 2, rolloutBatches: [{}]}}",
    ),
    (
        "batchPartition: is another name",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {batchPartition: 0, lastBatchToRollout: 0}}",
    ),
    (
        "rolloutBatches: a batch before the last",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{}, {}]}}",
    ),
    (
        "metadata: a key is longer",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a', metadata: {a234567890123456789012345678901234567890123456789012345678901234: b}}]}}",
    ),
    (
        "rolloutWebhooks: a name is listed twice",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}}",
    ),
    (
        "canaryMetric: a name is listed twice",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {canaryMetric: [{name: a}, {name: a}]}}",
    ),
    (
        "podList: pods cannot be picked yet",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{podList: [a]}]}}",
    ),
    (
        "instanceInterval: the pods of a batch",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{instanceInterval: 5}]}}",
    ),
    (
        "batchRolloutWebhooks: a name is listed twice",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}]}}",
    ),
    (
        "batchRolloutWebhooks: a batch has hooks",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}]}]}}",
    ),
];
