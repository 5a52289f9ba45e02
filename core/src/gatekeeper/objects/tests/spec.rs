//! Specs: what is read, and what is refused with which words.

use super::*;

#[rstest]
#[case::named(json!({ "name": "web" }))]
#[case::named_with_colons(json!({ "name": "system:web" }))]
#[case::selected(json!({ "selector": { "matchLabels": { "app": "web" } } }))]
#[case::all_of_them(all())]
#[case::elsewhere(json!({ "name": "web", "namespace": "shop" }))]
#[case::condition(json!({ "name": "web", "condition": { "type": "Stalled", "status": "False" } }))]
#[case::expression(json!({ "name": "web", "expression": "object.status.phase == 'Running'" }))]
#[case::core(json!({ "name": "web", "apiVersion": "v1", "kind": "Pod" }))]
#[case::a_secret_of_others(json!({ "name": "s", "apiVersion": "vault.example.com/v1", "kind": "Secret" }))]
fn a_spec_is_read(#[case] more: Value) {
    read(&spec(&more)).unwrap();
}

#[rstest]
#[case::neither(json!({}), "of[0]: objects are named or selected; write name or selector")]
#[case::both(json!({ "name": "a", "selector": {} }), "of[0]: objects are named or selected; write name or selector")]
#[case::a_path(json!({ "name": "a/../b" }), "of[0].name: `a/../b` is not the name of an object; write the name alone")]
#[case::two_tests(
    json!({ "name": "a", "condition": { "type": "Ready" }, "expression": "true" }),
    "of[0].expression: expression takes the place of condition; write one of them"
)]
#[case::secret(json!({ "name": "a", "apiVersion": "v1", "kind": "Secret" }), "of[0].kind: Secrets are never read; name another kind")]
#[case::secret_by_case(json!({ "name": "a", "apiVersion": "v1", "kind": "secret" }), "of[0].kind: Secrets are never read; name another kind")]
#[case::kind(json!({ "name": "a", "kind": "deployments.apps" }), "of[0].kind: `deployments.apps` is not a kind; write one such as Deployment")]
#[case::version(json!({ "name": "a", "apiVersion": "apps" }), "of[0].apiVersion: `apps` is not a group and version; write one such as apps/v1")]
#[case::version_path(json!({ "name": "a", "apiVersion": "../v1" }), "of[0].apiVersion: `../v1` is not a group and version; write one such as apps/v1")]
#[case::empty_group(json!({ "name": "a", "apiVersion": "/v1" }), "of[0].apiVersion: `/v1` is not a group and version; write one such as apps/v1")]
#[case::namespace(json!({ "name": "a", "namespace": "a/b" }), "of[0].namespace: `a/b` is not the name of a namespace; write lower-case letters, digits and hyphens")]
#[case::status(
    json!({ "name": "a", "condition": { "type": "Ready", "status": "true" } }),
    "of[0].condition: `Ready=true` is not a condition; write its type, and as its status True, False or Unknown"
)]
#[case::operator(
    json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "Has" }] } }),
    "of[0].selector: `Has` is not an operator; write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist"
)]
#[case::no_values(
    json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "In", "values": [] }] } }),
    "of[0].selector: In has no values; write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist"
)]
#[case::values(
    json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] } }),
    "of[0].selector: Exists takes no values; write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist"
)]
fn a_mistake_is_refused_with_its_remedy(#[case] more: Value, #[case] words: &str) {
    let refusals = read(&spec(&more)).unwrap_err();
    assert_eq!(refusals.to_string(), format!("spec.objects.{words}"));
}

#[rstest]
#[case::syntax("object.status ==")]
#[case::unknown_name("self.status.phase == 'Running'")]
fn an_expression_that_makes_no_sense_is_refused(#[case] text: &str) {
    let refusals = read(&spec(&json!({ "name": "a", "expression": text }))).unwrap_err();
    let fields: Vec<_> = refusals
        .iter()
        .map(|refusal| refusal.field.as_str())
        .collect();
    assert_eq!(fields, ["spec.objects.of[0].expression"]);
    assert!(refusals.to_string().contains("over `object`"), "{refusals}");
}

#[rstest]
#[case::nothing(
    "0s",
    "`0s` is not between zero and 168h; write a duration such as 10m, or remove it"
)]
#[case::too_long(
    "169h",
    "`169h` is not between zero and 168h; write a duration such as 10m, or remove it"
)]
#[case::no_duration(
    "long",
    "`long` is not a duration; write a duration such as 90m, 1h30m or 7d; the units are d (24 hours), h, m, s and ms"
)]
fn a_soak_is_bounded(#[case] soak: &str, #[case] words: &str) {
    let mut spec = spec(&all());
    spec.soak = Some(soak.into());
    let refusals = read(&spec).unwrap_err();
    assert_eq!(refusals.to_string(), format!("spec.objects.soak: {words}"));
}

#[test]
fn every_mistake_is_told_at_once() {
    let mut spec = spec(&json!({ "kind": "x/y", "name": "" }));
    spec.service_account_name = "../default".to_owned();
    let fields = |spec: &Objects| -> Vec<String> {
        let refusals = read(spec).unwrap_err().into_vec();
        refusals.into_iter().map(|refusal| refusal.field).collect()
    };
    let expected = ["serviceAccountName", "of[0].kind", "of[0].name"];
    assert_eq!(
        fields(&spec),
        expected.map(|name| format!("spec.objects.{name}"))
    );
    spec.of.clear();
    assert_eq!(fields(&spec).last().unwrap(), "spec.objects.of");
}
