//! What is wrong with a commit status.

use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::CommitStatus;

use super::*;

mod report;

fn commit_status(other: &Value) -> CommitStatus {
    let mut spec = json!({
        "repoRef": {"name": "shop"}, "sha": "7f3a".repeat(10), "name": "load-test",
        "phase": "success",
    });
    for (field, value) in other.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
        "metadata": {"name": "load-test-7f3a", "namespace": "shop"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[rstest]
#[case::a_short_id(json!({"sha": "7f3a"}), "spec.sha")]
#[case::capital_letters(json!({"sha": "7F3A".repeat(10)}), "spec.sha")]
#[case::the_controllers(json!({"name": "sluice/promotion"}), "spec.name")]
#[case::the_controllers_for_github(json!({"name": " Sluice/promotion"}), "spec.name")]
#[case::nothing_to_see(json!({"name": " "}), "spec.name")]
#[case::two_lines(json!({"name": "a\nb"}), "spec.name")]
#[case::no_address(json!({"url": "ci.example.com"}), "spec.url")]
#[case::another_scheme(json!({"url": "javascript:alert(1)"}), "spec.url")]
fn a_mistake_is_refused_at_its_field(#[case] other: Value, #[case] field: &str) {
    let refused = check(&commit_status(&other)).unwrap_err().into_vec();
    let fields: Vec<_> = refused.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, [field]);
}

#[test]
fn a_commit_status_may_say_little_or_all() {
    assert_eq!(check(&commit_status(&json!({}))), Ok(()));
    let all = json!({
        "phase": "in_progress", "description": "p99 210 ms", "url": "http://ci.example.com/7",
        "expiresAt": "2026-11-23T09:00:00Z", "name": "ci/sluice/load-test",
    });
    assert_eq!(check(&commit_status(&all)), Ok(()));
}
