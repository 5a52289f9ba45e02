//! The rules (CEL) of the definition about changes, evaluated as the API server would.

use std::sync::Arc;

use cel::{Context, Env, Program};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::Rollout;

use super::rollout;

/// The rules about changes that `before` and `after` break, by the field that each speaks of first.
fn broken(before: &Value, after: &Value) -> Vec<String> {
    let spec = |other: &Value| {
        let mut spec = serde_json::to_value(rollout(other).spec).unwrap();
        // What a user writes, also where it says nothing.
        if other["sourceRef"] == json!([]) {
            spec["sourceRef"] = json!([]);
        }
        spec
    };
    let (before, after) = (spec(before), spec(after));
    let mut broken = Vec::new();
    for (rule, message) in rules() {
        let mut context = Context::with_env(Arc::new(Env::stdlib()));
        context.add_variable("oldSelf", before.clone()).unwrap();
        context.add_variable("self", after.clone()).unwrap();
        let held = Program::compile(&rule).unwrap().execute(&context).unwrap();
        if held != true.into() {
            broken.push(message.split(':').next().unwrap().to_owned());
        }
    }
    broken
}

/// The rules about changes of the spec, with their messages.
fn rules() -> Vec<(String, String)> {
    let crd = <Rollout as kube::CustomResourceExt>::crd();
    let version = crd.spec.versions.into_iter().next().unwrap();
    let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
    let spec = schema.properties.unwrap().remove("spec").unwrap();
    let rules = spec.x_kubernetes_validations.unwrap().into_iter();
    let of_changes = rules.filter(|it| it.rule.contains("oldSelf"));
    of_changes
        .map(|it| (it.rule, it.message.unwrap()))
        .collect()
}

fn plan(plan: &Value) -> Value {
    json!({"rolloutPlan": plan})
}

/// Both ways: a change, and what it breaks.
#[rstest]
#[case::nothing(json!({}), json!({}), &[])]
#[case::strategy(
    json!({}), plan(&json!({"rolloutStrategy": "DecreaseFirst"})), &["rolloutStrategy"]
)]
#[case::target_size(json!({}), plan(&json!({"targetSize": 9})), &["targetSize"])]
#[case::target_size_away(plan(&json!({"targetSize": 9})), json!({}), &["targetSize"])]
#[case::target_size_changed(plan(&json!({"targetSize": 9})), plan(&json!({"targetSize": 8})), &["targetSize"])]
#[case::rearm(json!({"rearm": true}), json!({"rearm": false}), &["rearm"])]
#[case::rearm_away(json!({"rearm": false}), json!({}), &["rearm"])]
#[case::hooks(
    json!({}),
    plan(&json!({"rolloutWebhooks": [{"type": "finalize-rollout", "name": "a", "url": "http://a"}]})),
    &["rolloutWebhooks"]
)]
#[case::number_of_batches(
    plan(&json!({"rolloutBatches": null, "numBatches": 2})),
    plan(&json!({"rolloutBatches": null, "numBatches": 3})),
    &["numBatches"]
)]
#[case::batches_in_place_of_a_number(
    plan(&json!({"rolloutBatches": null, "numBatches": 2})), json!({}), &["numBatches", "rolloutBatches"]
)]
// It is the same run, in other words.
#[case::a_version_of_the_target(
    plan(&json!({"lastBatchToRollout": 2})),
    json!({"targetRef": {"apiVersion": "apps/v1"}, "rolloutPlan": {"lastBatchToRollout": 1}}),
    &["lastBatchToRollout"]
)]
#[case::a_version_of_a_source(
    plan(&json!({"lastBatchToRollout": 2})),
    json!({
        "sourceRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}],
        "rolloutPlan": {"lastBatchToRollout": 1},
    }),
    &["lastBatchToRollout"]
)]
#[case::no_sources_in_words(
    json!({"sourceRef": null, "rolloutPlan": {"lastBatchToRollout": 2}}),
    json!({"sourceRef": [], "rolloutPlan": {"lastBatchToRollout": 1}}),
    &["lastBatchToRollout"]
)]
// The last batch that may go out.
#[case::raised(plan(&json!({"lastBatchToRollout": 1})), plan(&json!({"lastBatchToRollout": 2})), &[])]
#[case::kept(plan(&json!({"lastBatchToRollout": 1})), plan(&json!({"lastBatchToRollout": 1})), &[])]
#[case::lowered(
    plan(&json!({"lastBatchToRollout": 2})), plan(&json!({"lastBatchToRollout": 1})), &["lastBatchToRollout"]
)]
#[case::taken_away(plan(&json!({"lastBatchToRollout": 2})), json!({}), &[])]
#[case::added(json!({}), plan(&json!({"lastBatchToRollout": 9})), &["lastBatchToRollout"])]
#[case::raised_by_its_other_name(
    plan(&json!({"lastBatchToRollout": 1})), plan(&json!({"batchPartition": 2})), &[]
)]
#[case::lowered_by_its_other_name(
    plan(&json!({"batchPartition": 2})), plan(&json!({"lastBatchToRollout": 1})), &["lastBatchToRollout"]
)]
// The batches. There are four: 1, 25%, 50% and the rest.
#[case::a_later_batch(
    plan(&json!({"lastBatchToRollout": 1})),
    plan(&json!({"lastBatchToRollout": 1, "rolloutBatches": [
        {"replicas": 1}, {"replicas": "25%"}, {"replicas": 2}, {"replicas": 3}, {},
    ]})),
    &[]
)]
#[case::fewer_later_batches(
    plan(&json!({"lastBatchToRollout": 0})),
    plan(&json!({"lastBatchToRollout": 0, "rolloutBatches": [{"replicas": 1}, {}]})),
    &[]
)]
#[case::a_passed_batch(
    plan(&json!({"lastBatchToRollout": 1})),
    plan(&json!({"lastBatchToRollout": 1, "rolloutBatches": [
        {"replicas": 1}, {"replicas": "26%"}, {"replicas": "50%"}, {},
    ]})),
    &["rolloutBatches"]
)]
#[case::a_passed_batch_with_a_raise(
    plan(&json!({"lastBatchToRollout": 0})),
    plan(&json!({"lastBatchToRollout": 2, "rolloutBatches": [
        {"replicas": 2}, {"replicas": "25%"}, {"replicas": "50%"}, {},
    ]})),
    &["rolloutBatches"]
)]
#[case::passed_batches_in_another_order(
    plan(&json!({"lastBatchToRollout": 2})),
    plan(&json!({"lastBatchToRollout": 2, "rolloutBatches": [
        {"replicas": "25%"}, {"replicas": 1}, {"replicas": "50%"}, {},
    ]})),
    &["rolloutBatches"]
)]
#[case::a_metric_of_a_passed_batch(
    plan(&json!({"lastBatchToRollout": 0})),
    plan(&json!({"lastBatchToRollout": 0, "rolloutBatches": [
        {"replicas": 1, "canaryMetric": [{"name": "a"}]}, {"replicas": "25%"}, {"replicas": "50%"}, {},
    ]})),
    &["rolloutBatches"]
)]
// One batch after the last that may go out stays: otherwise that one would become the rest of all pods.
#[case::no_later_batch(
    plan(&json!({"lastBatchToRollout": 1})),
    plan(&json!({"lastBatchToRollout": 1, "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}]})),
    &["rolloutBatches"]
)]
#[case::no_later_batch_with_a_raise(
    plan(&json!({"batchPartition": 1})),
    plan(&json!({"batchPartition": 3, "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}]})),
    &["rolloutBatches"]
)]
#[case::no_later_batch_once_all_may_go_out(
    plan(&json!({"lastBatchToRollout": 1})),
    plan(&json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}]})),
    &["rolloutBatches"]
)]
#[case::one_later_batch_with_a_raise(
    plan(&json!({"lastBatchToRollout": 1})),
    plan(&json!({"lastBatchToRollout": 2, "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {}]})),
    &[]
)]
#[case::none_is_later_than_the_last_batch(
    plan(&json!({"lastBatchToRollout": 3})), plan(&json!({"lastBatchToRollout": 3, "paused": true})), &[]
)]
#[case::none_is_later_than_what_is_beyond_it(
    plan(&json!({"lastBatchToRollout": 9})), plan(&json!({"lastBatchToRollout": 9, "paused": true})), &[]
)]
#[case::none_is_later_in_a_number_of_batches(
    plan(&json!({"rolloutBatches": null, "numBatches": 4, "lastBatchToRollout": 1})),
    plan(&json!({"rolloutBatches": null, "numBatches": 4, "lastBatchToRollout": 2})),
    &[]
)]
#[case::any_batch_where_all_may_go_out(
    json!({}),
    plan(&json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {"replicas": "51%"}, {}]})),
    &["rolloutBatches"]
)]
#[case::one_more_where_all_may_go_out(
    json!({}),
    plan(&json!({"rolloutBatches": [
        {"replicas": 1}, {"replicas": "25%"}, {"replicas": "50%"}, {}, {"replicas": 1},
    ]})),
    &["rolloutBatches"]
)]
#[case::one_fewer_where_all_may_go_out(
    json!({}),
    plan(&json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {"replicas": "50%"}]})),
    &["rolloutBatches"]
)]
// What is free.
#[case::free(
    json!({}),
    json!({
        "gates": {"refs": [{"name": "a"}]}, "progressDeadline": "1h", "onFailure": "Revert",
        "serviceAccountName": "other",
        "rolloutPlan": {"paused": true, "revertOnDelete": true, "canaryMetric": [{"name": "a"}]},
    }),
    &[]
)]
fn a_run_goes_on_as_it_began(
    #[case] before: Value,
    #[case] after: Value,
    #[case] expected: &[&str],
) {
    assert_eq!(broken(&before, &after), expected);
}

/// Of another run, everything may be different.
#[rstest]
#[case::target(json!({"targetRef": {"name": "web-v3"}}))]
#[case::kind(json!({"targetRef": {"kind": "StatefulSet"}}))]
#[case::source(json!({"sourceRef": [{"kind": "Deployment", "name": "web-v0"}]}))]
#[case::no_source(json!({"sourceRef": []}))]
#[case::component(json!({"component": "web"}))]
#[case::revision(json!({"revision": "6.8.0"}))]
fn another_run_may_be_different(#[case] other: Value) {
    let mut after = json!({"rearm": true, "rolloutPlan": {
        "rolloutStrategy": "DecreaseFirst", "targetSize": 9, "rolloutBatches": null, "numBatches": 2,
        "batchPartition": 0,
    }});
    let before = plan(&json!({"lastBatchToRollout": 3}));
    assert_eq!(
        broken(&before, &after).len(),
        6,
        "{:?}",
        broken(&before, &after)
    );
    json_patch::merge(&mut after, &other);
    assert_eq!(broken(&before, &after), [""; 0]);
}
