//! What breaks each rule of rollouts, and fields that they do not have.

use super::*;

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
        "canaryMetric: a name is listed twice",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{canaryMetric: [{name: a}, {name: a}]}]}}",
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

/// The design has them, Rollouts do not: nobody is to believe that they do something.
#[rstest]
#[case::autoscalers("{autoscalers: Detach, rolloutPlan: {}}", "spec.autoscalers")]
#[case::traffic("{traffic: {source: a, target: b}, rolloutPlan: {}}", "spec.traffic")]
#[case::weight(
    "{rolloutPlan: {rolloutBatches: [{trafficWeight: 5}]}}",
    "spec.rolloutPlan.rolloutBatches[0].trafficWeight"
)]
fn what_was_left_out_of_rollouts_is_told_by_name(#[case] spec: &str, #[case] field: &str) {
    let mut rollout = with_spec("Rollout", spec);
    rollout["spec"]["targetRef"] = yaml("{kind: Deployment, name: a}");
    let told = told(&rollout);
    let expected = format!("{field}: there is no such field; remove it; ");
    assert!(
        told.len() == 1 && told[0].starts_with(&expected),
        "{told:#?}"
    );
}

/// Of all else it is known only in the cluster how many pods the batches share.
#[rstest]
#[case::two_deployments("{kind: Deployment, name: a}", "[{kind: Deployment, name: b}]", true)]
#[case::one_that_is_scaled("{kind: Deployment, name: a}", "[]", false)]
#[case::scaled_or_updated("{kind: StatefulSet, name: a}", "[]", false)]
#[case::of_an_application(
    "{kind: Kustomization, name: a}",
    "[{kind: Kustomization, name: b}]",
    false
)]
fn batches_that_do_not_fit_a_target_size_are_refused_of_deployments_that_are_named(
    #[case] target: &str,
    #[case] sources: &str,
    #[case] is_refused: bool,
) {
    let plan = "{targetSize: 10, rolloutBatches: [{replicas: 3}, {replicas: 8}]}";
    let spec = format!("{{targetRef: {target}, sourceRef: {sources}, rolloutPlan: {plan}}}");
    let refusal = "spec.rolloutPlan.rolloutBatches[1].replicas: all batches together move 11 pods, and there are \
                   10 to move; write 7, or leave the size of the last batch out";
    let expected = if is_refused { vec![refusal] } else { vec![] };
    assert_eq!(told(&with_spec("Rollout", &spec)), expected);
}
