//! What is wrong with a revert.

use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RevertCommit;

use super::*;

mod report;

fn revert(other: &Value) -> RevertCommit {
    let mut spec = json!({
        "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "c".repeat(40),
        "drySHA": "b".repeat(40), "reason": "INC-4711", "by": "alice@example.com",
    });
    for (field, value) in other.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
        "metadata": {"name": "shop-prod-x7", "namespace": "shop"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[rstest]
#[case::no_branch(json!({"activeBranch": "env prod"}), "spec.activeBranch")]
#[case::from_a_short_id(json!({"from": "c0ffee"}), "spec.from")]
#[case::to_a_short_id(json!({"drySHA": "b5d8f7"}), "spec.drySHA")]
#[case::to_no_commit(json!({"hydratedSHA": "main"}), "spec.hydratedSHA")]
#[case::to_where_it_is(json!({"hydratedSHA": "c".repeat(40)}), "spec.hydratedSHA")]
#[case::fixed_by_no_commit(json!({"fixedBy": "HEAD"}), "spec.fixedBy")]
#[case::fixed_by_what_was_before(json!({"fixedBy": "b".repeat(40)}), "spec.fixedBy")]
#[case::for_no_reason(json!({"reason": " "}), "spec.reason")]
#[case::by_nobody(json!({"by": ""}), "spec.by")]
fn a_mistake_is_refused_at_its_field(#[case] other: Value, #[case] field: &str) {
    let refused = check(&revert(&other)).unwrap_err().into_vec();
    let fields: Vec<_> = refused.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, [field]);
}

#[test]
fn a_revert_may_say_little_or_all() {
    assert_eq!(check(&revert(&json!({}))), Ok(()));
    let all = json!({
        "hydratedSHA": "a".repeat(40), "fixedBy": "d".repeat(40), "merge": "AfterChecks",
    });
    assert_eq!(check(&revert(&all)), Ok(()));
}
