//! What is wrong with a plan, what is not, and what the rules of the definition say of changes.

use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::rollout::RolloutStrategy;

use super::*;
use crate::delivery::rollout::size::{Last, Percent};

mod changes;
mod published;

/// A Rollout of two Deployments in four batches, but for what is written here.
fn rollout(other: &Value) -> Rollout {
    let mut spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"kind": "Deployment", "name": "web-v1"}],
        "rolloutPlan": {"rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {"replicas": "50%"}, {}]},
    });
    json_patch::merge(&mut spec, other);
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The same of one object in place, in a number of batches.
fn in_place(kind: &str, other: &Value) -> Rollout {
    let mut spec = json!({
        "targetRef": {"kind": kind, "name": "db"}, "sourceRef": null,
        "rolloutPlan": {"rolloutBatches": null, "numBatches": 3},
    });
    json_patch::merge(&mut spec, other);
    rollout(&spec)
}

fn plan(other: &Value) -> Plan {
    check(&rollout(other)).unwrap()
}

fn refused(object: &Rollout) -> Vec<String> {
    let refused = check(object).err().map(Refusals::into_vec);
    let refused = refused.into_iter().flatten();
    refused.map(|it| it.field).collect()
}

#[test]
fn a_plan_is_read() {
    let read = plan(&json!({"revision": "6.8.0", "rolloutPlan": {"lastBatchToRollout": 2}}));
    let expected = Members::Pair {
        target: "web-v2".into(),
        sources: vec!["web-v1".into()],
        strategy: RolloutStrategy::IncreaseFirst,
    };
    assert_eq!(read.members, expected);
    let percent = |percent| Amount::Percent(Percent::new(percent).unwrap());
    let before = vec![Amount::Pods(1), percent(25), percent(50)];
    let last = Last::Rest;
    assert_eq!(read.sizes, Sizes::Each { before, last });
    assert_eq!(read.deadline, SignedDuration::from_mins(10));
    assert_eq!(read.account, "sluice-rollout");
    assert_eq!([2, 3].map(|index| read.lets_out(index)), [true, false]);
}

#[test]
fn without_anything_it_is_one_batch() {
    let read = plan(&json!({"rolloutPlan": {"rolloutBatches": null}}));
    assert_eq!(read.sizes.count(), 1);
    assert!(read.lets_out(29));
    assert_eq!(read.batch(0), PLAIN);
}

#[test]
fn a_deployment_without_a_source_is_alone() {
    let read = plan(&json!({"sourceRef": []}));
    let target = "web-v2".to_owned();
    assert_eq!(read.members, Members::Alone { target });
}

#[rstest]
#[case::by_default(json!({}), true)]
#[case::asked_for(json!({"rearm": true}), true)]
#[case::as_the_design_has_it(json!({"rearm": false}), false)]
fn the_partition_is_raised_again(#[case] other: Value, #[case] expected: bool) {
    let read = check(&in_place("StatefulSet", &other)).unwrap();
    let Members::InPlace { kind, rearm, .. } = read.members else {
        panic!("{:?}", read.members)
    };
    assert_eq!((kind, rearm), (InPlaceKind::StatefulSet, expected));
}

#[test]
fn hooks_of_every_batch_come_before_its_own() {
    let hook = |type_: &str, name: &str| json!({"type": type_, "name": name, "url": "http://a.b/"});
    let plan = plan(&json!({"rolloutPlan": {
        "rolloutWebhooks": [hook("post-batch-rollout", "all"), hook("initialize-rollout", "first")],
        "rolloutBatches": [
            {"replicas": 1, "batchRolloutWebhooks": [
                hook("pre-batch-rollout", "before"), hook("post-batch-rollout", "own"),
            ]},
            {},
        ],
    }}));
    let names = |type_, batch| {
        let hooks = plan.hooks_of(type_, batch);
        hooks.map(|hook| hook.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(HookType::PostBatchRollout, 0), ["all", "own"]);
    assert_eq!(names(HookType::PostBatchRollout, 1), ["all"]);
    assert_eq!(names(HookType::PreBatchRollout, 0), ["before"]);
    assert_eq!(names(HookType::InitializeRollout, 0), ["first"]);
    assert_eq!(names(HookType::FinalizeRollout, 0), [""; 0]);
}

#[rstest]
#[case(&[], &[200, 201, 202, 203, 204], &[199, 205, 301, 404, 500])]
#[case(&[200, 409], &[200, 409], &[201, 204, 500])]
fn answers_that_let_it_go_on(#[case] expected: &[i32], #[case] pass: &[u16], #[case] veto: &[u16]) {
    let hook = json!({
        "type": "pre-batch-rollout", "name": "a", "url": "https://a.b", "expectedStatus": expected,
    });
    let read = plan(&json!({"rolloutPlan": {"rolloutWebhooks": [hook]}}));
    let expected = &read.hooks[0].expected;
    assert!(pass.iter().all(|status| expected.has(*status)));
    assert!(!veto.iter().any(|status| expected.has(*status)));
}

fn batches(batches: &Value) -> Value {
    json!({"rolloutPlan": {"rolloutBatches": batches}})
}

fn hooks(other: &Value) -> Value {
    let mut hook = json!({"type": "pre-batch-rollout", "name": "a", "url": "https://a.b/c"});
    json_patch::merge(&mut hook, other);
    json!({"rolloutPlan": {"rolloutWebhooks": [hook]}})
}

fn metric(other: &Value) -> Value {
    let mut metric = json!({"name": "error-rate"});
    json_patch::merge(&mut metric, other);
    json!({"rolloutPlan": {"canaryMetric": [metric]}})
}

fn deployment(name: &str) -> Value {
    json!({"kind": "Deployment", "name": name})
}

#[rstest]
// What is rolled out.
#[case::a_daemon_set(json!({"targetRef": {"kind": "DaemonSet"}, "sourceRef": null}), "targetRef.kind")]
#[case::an_unknown_kind(json!({"targetRef": {"kind": "Pod"}, "sourceRef": null}), "targetRef.kind")]
#[case::another_group(json!({"targetRef": {"apiVersion": "extensions/v1beta1"}}), "targetRef.apiVersion")]
#[case::no_name(json!({"targetRef": {"name": "Web"}}), "targetRef.name")]
#[case::another_kind_of_source(
    json!({"sourceRef": [{"kind": "Kustomization", "name": "web-v1"}]}), "sourceRef[0]"
)]
#[case::the_target_itself(json!({"sourceRef": [deployment("a"), deployment("web-v2")]}), "sourceRef[1]")]
#[case::a_source_twice(json!({"sourceRef": [deployment("a"), deployment("a")]}), "sourceRef[1]")]
#[case::too_many_sources(
    json!({"sourceRef": (["a", "b", "c", "d", "e"].map(deployment))}), "sourceRef"
)]
#[case::a_component_of_a_deployment(json!({"component": "web"}), "component")]
#[case::rearm_of_a_deployment(json!({"rearm": false}), "rearm")]
#[case::no_revision(json!({"revision": " "}), "revision")]
#[case::a_long_revision(json!({"revision": "1".repeat(257)}), "revision")]
#[case::a_gate_twice(json!({"gates": {"refs": [{"name": "a"}, {"name": "a"}]}}), "gates.refs[1]")]
#[case::no_account(json!({"serviceAccountName": "A"}), "serviceAccountName")]
#[case::a_short_deadline(json!({"progressDeadline": "29s"}), "progressDeadline")]
#[case::a_long_deadline(json!({"progressDeadline": "1d1s"}), "progressDeadline")]
#[case::no_deadline(json!({"progressDeadline": "soon"}), "progressDeadline")]
// Its size.
#[case::below_nothing(json!({"rolloutPlan": {"targetSize": -1}}), "rolloutPlan.targetSize")]
#[case::to_nothing(json!({"rolloutPlan": {"targetSize": 0}}), "rolloutPlan.targetSize")]
#[case::batches_that_do_not_fit(
    json!({"rolloutPlan": {"targetSize": 4, "rolloutBatches": [{"replicas": 4}, {}]}}),
    "rolloutPlan.rolloutBatches[0].replicas"
)]
// Its batches.
#[case::batches_in_two_ways(json!({"rolloutPlan": {"numBatches": 2}}), "rolloutPlan.numBatches")]
#[case::no_batches(json!({"rolloutPlan": {"numBatches": 0, "rolloutBatches": null}}), "rolloutPlan.numBatches")]
#[case::too_many_equal(json!({"rolloutPlan": {"numBatches": 31, "rolloutBatches": null}}), "rolloutPlan.numBatches")]
#[case::too_many_batches(batches(&json!(vec![json!({"replicas": 1}); 31])), "rolloutPlan.rolloutBatches")]
#[case::two_partitions(
    json!({"rolloutPlan": {"batchPartition": 1, "lastBatchToRollout": 1}}), "rolloutPlan.batchPartition"
)]
#[case::before_the_first(json!({"rolloutPlan": {"lastBatchToRollout": -1}}), "rolloutPlan.lastBatchToRollout")]
#[case::before_the_first_by_its_other_name(
    json!({"rolloutPlan": {"batchPartition": -1}}), "rolloutPlan.batchPartition"
)]
#[case::no_size(batches(&json!([{"replicas": 1}, {}, {}])), "rolloutPlan.rolloutBatches[1].replicas")]
#[case::a_negative_size(batches(&json!([{"replicas": -1}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_size_in_words(batches(&json!([{"replicas": "ab"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_number_in_quotes(batches(&json!([{"replicas": "5"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_fraction(batches(&json!([{"replicas": "0.2"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_fraction_of_a_percent(batches(&json!([{"replicas": "2.5%"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_leading_zero(batches(&json!([{"replicas": "05%"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::more_than_all(batches(&json!([{"replicas": "101%"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_signed_percentage(batches(&json!([{"replicas": "+5%"}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::more_than_a_workload_has(batches(&json!([{"replicas": 2_147_483_648_u64}, {}])), "rolloutPlan.rolloutBatches[0].replicas")]
#[case::a_wrong_last_size(batches(&json!([{"replicas": 1}, {"replicas": "1"}])), "rolloutPlan.rolloutBatches[1].replicas")]
#[case::unavailable_in_words(batches(&json!([{"maxUnavailable": "some"}])), "rolloutPlan.rolloutBatches[0].maxUnavailable")]
#[case::picked_pods(batches(&json!([{"podList": ["web-0"]}])), "rolloutPlan.rolloutBatches[0].podList")]
#[case::one_after_another(batches(&json!([{"instanceInterval": 5}])), "rolloutPlan.rolloutBatches[0].instanceInterval")]
#[case::a_gate_of_a_batch_twice(
    batches(&json!([{"gates": {"refs": [{"name": "a"}, {"name": "a"}]}}])),
    "rolloutPlan.rolloutBatches[0].gates.refs[1]"
)]
#[case::a_hook_of_the_rollout_in_a_batch(
    batches(&json!([{"batchRolloutWebhooks": [{"type": "finalize-rollout", "name": "a", "url": "https://a.b"}]}])),
    "rolloutPlan.rolloutBatches[0].batchRolloutWebhooks[0].type"
)]
#[case::a_metric_of_a_batch(
    batches(&json!([{"canaryMetric": [{"name": "a", "interval": "1s"}]}])),
    "rolloutPlan.rolloutBatches[0].canaryMetric[0].interval"
)]
// Its hooks.
#[case::a_hook_twice(
    json!({"rolloutPlan": {"rolloutWebhooks": [
        {"type": "pre-batch-rollout", "name": "a", "url": "https://a.b"},
        {"type": "finalize-rollout", "name": "a", "url": "https://a.b"},
    ]}}),
    "rolloutPlan.rolloutWebhooks[1].name"
)]
#[case::a_hook_without_a_name(hooks(&json!({"name": " "})), "rolloutPlan.rolloutWebhooks[0].name")]
#[case::no_scheme(hooks(&json!({"url": "a.b/c"})), "rolloutPlan.rolloutWebhooks[0].url")]
#[case::another_scheme(hooks(&json!({"url": "ftp://a.b/c"})), "rolloutPlan.rolloutWebhooks[0].url")]
#[case::a_user(hooks(&json!({"url": "https://me@a.b/c"})), "rolloutPlan.rolloutWebhooks[0].url")]
#[case::a_secret_over_http(
    hooks(&json!({"url": "http://a.b", "secretRef": {"name": "a"}})), "rolloutPlan.rolloutWebhooks[0].secretRef"
)]
#[case::no_time(hooks(&json!({"timeout": "0s"})), "rolloutPlan.rolloutWebhooks[0].timeout")]
#[case::a_long_time(hooks(&json!({"timeout": "61s"})), "rolloutPlan.rolloutWebhooks[0].timeout")]
#[case::no_status(hooks(&json!({"expectedStatus": [200, 99]})), "rolloutPlan.rolloutWebhooks[0].expectedStatus[1]")]
#[case::a_great_status(hooks(&json!({"expectedStatus": [600]})), "rolloutPlan.rolloutWebhooks[0].expectedStatus[0]")]
#[case::a_long_key(hooks(&json!({"metadata": {"a".repeat(64): "b"}})), "rolloutPlan.rolloutWebhooks[0].metadata")]
#[case::a_long_text(hooks(&json!({"metadata": {"a": "b".repeat(257)}})), "rolloutPlan.rolloutWebhooks[0].metadata")]
// Its metrics.
#[case::a_metric_twice(
    json!({"rolloutPlan": {"canaryMetric": [{"name": "a"}, {"name": "a"}]}}), "rolloutPlan.canaryMetric[1].name"
)]
#[case::no_gatekeeper(metric(&json!({"name": "Error Rate"})), "rolloutPlan.canaryMetric[0].name")]
#[case::no_template(metric(&json!({"templateRef": {"name": "A"}})), "rolloutPlan.canaryMetric[0].templateRef.name")]
#[case::a_short_interval(metric(&json!({"interval": "4s"})), "rolloutPlan.canaryMetric[0].interval")]
#[case::a_long_interval(metric(&json!({"interval": "25h"})), "rolloutPlan.canaryMetric[0].interval")]
#[case::no_limits(metric(&json!({"metricsRange": {}})), "rolloutPlan.canaryMetric[0].metricsRange")]
#[case::limits_the_wrong_way(
    metric(&json!({"metricsRange": {"min": 2, "max": 1}})), "rolloutPlan.canaryMetric[0].metricsRange.min"
)]
fn a_mistake_is_refused_at_its_field(#[case] other: Value, #[case] field: &str) {
    assert_eq!(refused(&rollout(&other)), [format!("spec.{field}")]);
}

#[rstest]
#[case::a_source(json!({"sourceRef": [{"kind": "StatefulSet", "name": "old"}]}), "sourceRef")]
#[case::decrease_first(
    json!({"rolloutPlan": {"rolloutStrategy": "DecreaseFirst"}}), "rolloutPlan.rolloutStrategy"
)]
#[case::a_component(json!({"component": "web"}), "component")]
fn what_does_not_belong_to_one_in_place(#[case] other: Value, #[case] field: &str) {
    let object = in_place("StatefulSet", &other);
    assert_eq!(refused(&object), [format!("spec.{field}")]);
}

#[rstest]
#[case::any_name_with_a_template(metric(&json!({"name": "Error Rate", "templateRef": {"name": "error-rate"}})))]
#[case::a_partition_past_the_end(json!({"rolloutPlan": {"batchPartition": 100}}))]
#[case::the_group_of_the_kind(json!({"targetRef": {"apiVersion": "apps/v1"}}))]
#[case::no_pods_picked(batches(&json!([{"podList": [], "instanceInterval": 0}])))]
#[case::a_size_that_is_not_known_yet(batches(&json!([{"replicas": 400}, {}])))]
#[case::batches_that_fit(json!({"rolloutPlan": {"targetSize": 4, "rolloutBatches": [{"replicas": 3}, {"replicas": 1}]}}))]
#[case::an_address_with_a_query(hooks(&json!({"url": "http://a.b/c?d=e"})))]
#[case::decrease_first(json!({"rolloutPlan": {"rolloutStrategy": "DecreaseFirst"}}))]
#[case::limits(metric(&json!({"metricsRange": {"max": 0.01}, "interval": "5m"})))]
fn what_is_right_is_let_through(#[case] other: Value) {
    assert_eq!(check(&rollout(&other)).err(), None);
}

#[test]
fn an_app_may_be_of_any_workload() {
    let app = json!({
        "targetRef": {"kind": "Kustomization", "name": "web-v2"},
        "sourceRef": [{"kind": "Kustomization", "name": "web-v1"}],
        "component": "web", "rearm": false,
    });
    let read = plan(&app);
    let Members::Apps { kind, rearm, .. } = read.members else {
        panic!("{:?}", read.members)
    };
    assert_eq!((kind, rearm), (AppKind::Kustomization, false));
    let release = json!({
        "targetRef": {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "web"},
        "sourceRef": null,
    });
    let read = plan(&release);
    assert!(matches!(
        read.members,
        Members::Apps {
            kind: AppKind::HelmRelease,
            ..
        }
    ));
}

#[test]
fn a_refusal_says_what_to_write() {
    let said = |other: &Value| check(&rollout(other)).unwrap_err().to_string();
    let daemon = json!({"targetRef": {"kind": "DaemonSet"}, "sourceRef": null});
    let expected = "spec.targetRef.kind: a DaemonSet has one pod a node, and no partition to hold at; use a \
                    CloneSet, or gate its source";
    assert_eq!(said(&daemon), expected);
    let picked = batches(&json!([{"podList": ["web-0"]}]));
    let expected = "spec.rolloutPlan.rolloutBatches[0].podList: pods cannot be picked yet; write replicas \
                    instead";
    assert_eq!(said(&picked), expected);
}

#[test]
fn names_fit_a_label() {
    let mut object = rollout(&json!({}));
    object.metadata.name = Some("a".repeat(63));
    assert_eq!(refused(&object), [""; 0]);
    object.metadata.name = Some("a".repeat(64));
    assert_eq!(refused(&object), ["metadata.name"]);
}
