//! What is wrong with an access.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn access(other: &Value) -> GitRepositoryAccess {
    let mut spec = json!({
        "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
        "secretRef": {"name": "shop-push"},
    });
    for (field, value) in other.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"name": "shop", "namespace": "shop"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[rstest]
#[case::http(json!({"url": "http://git.example.com/a/b"}), "spec.url")]
#[case::ssh(json!({"url": "ssh://git@git.example.com/a/b"}), "spec.url")]
#[case::a_user(json!({"url": "https://me@git.example.com/a/b"}), "spec.url")]
#[case::a_query(json!({"url": "https://git.example.com/a/b?x=1"}), "spec.url")]
#[case::too_often(json!({"interval": "9s"}), "spec.interval")]
#[case::too_seldom(json!({"interval": "61m"}), "spec.interval")]
#[case::no_duration(json!({"interval": "soon"}), "spec.interval")]
#[case::an_app_elsewhere(json!({"githubApp": {"appID": 1, "installationID": 2}}), "spec.githubApp")]
#[case::the_token_that_opens(
    json!({"webhook": {"secretRef": {"name": "shop-push"}}}),
    "spec.webhook.secretRef"
)]
#[case::nobody(json!({"allow": [{"namespaces": [], "branches": ["a"]}]}), "spec.allow[0].namespaces")]
#[case::a_pattern_of_namespaces(
    json!({"allow": [{"namespaces": ["a", "team-*"], "branches": ["a"]}]}),
    "spec.allow[0].namespaces[1]"
)]
#[case::nowhere(json!({"allow": [{"namespaces": ["a"], "branches": []}]}), "spec.allow[0].branches")]
#[case::an_empty_branch(
    json!({"allow": [{"namespaces": ["a"], "branches": ["a", ""]}]}),
    "spec.allow[0].branches[1]"
)]
#[case::no_author(json!({"author": {"name": "a <b>", "email": "a@b"}}), "spec.author")]
#[case::no_address(json!({"author": {"name": "a", "email": "a"}}), "spec.author")]
fn a_mistake_is_refused_at_its_field(#[case] other: Value, #[case] field: &str) {
    let refused = check(&access(&other)).unwrap_err().into_vec();
    let fields: Vec<_> = refused.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, [field]);
}

#[test]
fn an_access_may_say_little_or_all() {
    assert_eq!(check(&access(&json!({}))), Ok(()));
    let all = json!({
        "provider": "github", "interval": "1h", "webhook": {"secretRef": {"name": "shop-hook"}},
        "githubApp": {"appID": 1, "installationID": 2},
        "author": {"name": "Sluice", "email": "sluice@example.com"},
        "allow": [{"namespaces": ["team-a"], "branches": ["env/**"]}],
    });
    assert_eq!(check(&access(&all)), Ok(()));
}
