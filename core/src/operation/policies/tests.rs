//! What drifts, and what only looks as if it did.

use serde_json::json;

use super::*;

fn object<T: serde::de::DeserializeOwned>(name: &str, part: &str) -> T {
    let specs: Value = serde_json::from_str(SHIPPED).unwrap();
    let object = json!({"metadata": {"name": name}, "spec": specs[name][part]});
    serde_json::from_value(object).unwrap()
}

fn as_shipped(name: &str) -> ValidatingAdmissionPolicy {
    object(name, "policy")
}

fn binding(name: &str) -> ValidatingAdmissionPolicyBinding {
    object(name, "binding")
}

const NAME: &str = "sluice-gate-overrides";

fn changed(change: impl Fn(&mut ValidatingAdmissionPolicySpec)) -> Option<String> {
    let mut policy = as_shipped(NAME);
    change(policy.spec.as_mut().unwrap());
    drift(&policy)
}

/// The API server writes its defaults into it, and the chart the names of users.
#[test]
fn a_policy_is_as_it_was_shipped_with_defaults_and_other_users() {
    let same = changed(|spec| {
        spec.failure_policy = Some("Fail".to_owned());
        let matched = spec.match_constraints.as_mut().unwrap();
        matched.match_policy = Some("Equivalent".to_owned());
        matched.namespace_selector = Some(Default::default());
        matched.object_selector = Some(Default::default());
        matched.resource_rules.as_mut().unwrap()[0].scope = Some("*".to_owned());
        let variables = spec.variables.as_mut().unwrap();
        let controllers = variables.iter_mut().find(|it| it.name == "controllers");
        controllers.unwrap().expression = r#"["somebody"]"#.to_owned();
    });
    assert_eq!(same, None);
}

/// What a name stands in is filled in with names alone: an expression in their place could leave
/// everybody out.
#[rstest::rstest]
#[case::shipped("!(request.userInfo.username in ['one', 'two'])", None)]
#[case::by_the_chart(r#"!(request.userInfo.username in ["o'brien","a,b"])"#, None)]
#[case::nobody("!(request.userInfo.username in [])", None)]
#[case::everybody(
    "!(request.userInfo.username in [request.userInfo.username])",
    Some("spec.matchConditions[0].expression is another")
)]
#[case::everybody_between_quotes_of_two_kinds(
    r#"!(request.userInfo.username in ['a",', request.userInfo.username, ',"b'])"#,
    Some("spec.matchConditions[0].expression is another")
)]
#[case::never("false", Some("spec.matchConditions[0].expression is another"))]
#[case::more(
    "!(request.userInfo.username in ['one'] || true)",
    Some("spec.matchConditions[0].expression is another")
)]
fn a_condition_leaves_out_names_alone(#[case] expression: &str, #[case] said: Option<&str>) {
    let mut policy = as_shipped("sluice-status-writers");
    let conditions = policy.spec.as_mut().unwrap().match_conditions.as_mut();
    expression.clone_into(&mut conditions.unwrap()[0].expression);
    assert_eq!(drift(&policy).as_deref(), said);
}

#[test]
fn a_variable_is_filled_in_with_names_alone() {
    let said = changed(|spec| {
        let variables = spec.variables.as_mut().unwrap();
        let controllers = variables.iter_mut().find(|it| it.name == "controllers");
        controllers.unwrap().expression = "[request.userInfo.username]".to_owned();
    });
    assert!(said.unwrap().ends_with("].expression is another"));
}

type Change = fn(&mut ValidatingAdmissionPolicySpec);

#[test]
fn what_was_taken_out_of_a_policy_is_named() {
    let table: [(Change, &str); 6] = [
        (
            |spec| spec.validations = None,
            "spec.validations is another",
        ),
        (
            |spec| spec.validations.as_mut().unwrap()[1].expression = "true".to_owned(),
            "spec.validations[1].expression is another",
        ),
        (
            |spec| spec.failure_policy = Some("Ignore".to_owned()),
            "spec.failurePolicy is another",
        ),
        (
            |spec| {
                let never = json!([{"name": "never", "expression": "false"}]);
                spec.match_conditions = serde_json::from_value(never).unwrap();
            },
            "spec.matchConditions is another",
        ),
        (
            |spec| {
                let some = json!({"matchLabels": {"a": "b"}});
                let matched = spec.match_constraints.as_mut().unwrap();
                matched.namespace_selector = serde_json::from_value(some).unwrap();
            },
            "spec.matchConstraints.namespaceSelector is another",
        ),
        (
            |spec| {
                let variables = spec.variables.as_mut().unwrap();
                let by = variables.iter_mut().find(|it| it.name == "byController");
                by.unwrap().expression = "true".to_owned();
            },
            "].expression is another",
        ),
    ];
    for (change, expected) in table {
        let said = changed(change).unwrap();
        assert!(said.ends_with(expected), "{said}");
    }
}

/// While a release is upgraded, the policies are the next version's before the controller is.
#[test]
fn a_policy_of_a_later_version_counts_and_one_of_an_earlier_does_not() {
    let of = |version: &str| {
        let mut policy = as_shipped(NAME);
        policy.spec.as_mut().unwrap().validations = None;
        let labels = policy.metadata.labels.get_or_insert_default();
        labels.insert(VERSION.to_owned(), version.to_owned());
        drift(&policy).is_none()
    };
    let own = env!("CARGO_PKG_VERSION");
    let versions = ["999.0.0", own, "0.0.1", "latest"];
    assert_eq!(versions.map(of), [true, false, false, false]);
}

#[test]
fn every_policy_that_is_looked_for_is_shipped() {
    let all = IDENTITY.into_iter().chain(CHILDREN);
    for name in all.clone() {
        let (policy, binding) = (as_shipped(name), binding(name));
        let found = stands(name, Some(&policy), Some(&binding));
        assert_eq!(found, Stands::InForce, "{name}");
    }
    assert_eq!(shipped().len(), all.count());
}

#[rstest::rstest]
#[case::as_shipped(json!({}), None)]
#[case::told_as_well(json!({"validationActions": ["Deny", "Audit"]}), None)]
#[case::of_another(json!({"policyName": "q"}), Some("is bound by another policy's binding"))]
#[case::only_told(
    json!({"validationActions": ["Warn"]}),
    Some("refuses nothing (validationActions)")
)]
#[case::narrowed(
    json!({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
    Some("is bound to a part of the cluster (matchResources)")
)]
fn a_binding_counts_only_if_it_denies_everywhere(
    #[case] change: Value,
    #[case] said: Option<&'static str>,
) {
    for name in IDENTITY.into_iter().chain(CHILDREN) {
        let mut spec = serde_json::to_value(binding(name).spec).unwrap();
        for (field, value) in change.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let mut changed = binding(name);
        changed.spec = serde_json::from_value(spec).unwrap();
        // No version of it may let pass what it judges.
        let labels = changed.metadata.labels.get_or_insert_default();
        labels.insert(VERSION.to_owned(), "999.0.0".to_owned());
        let found = stands(name, Some(&as_shipped(name)), Some(&changed));
        assert_eq!(found, said.map_or(Stands::InForce, Stands::Missing));
    }
}

#[test]
fn a_policy_without_its_binding_is_missing() {
    let (policy, own) = (as_shipped(NAME), binding(NAME));
    let none = stands(NAME, None, Some(&own));
    assert_eq!(none, Stands::Missing("is not there"));
    let unbound = stands(NAME, Some(&policy), None);
    assert_eq!(unbound, Stands::Missing("is bound to nothing"));
}

/// A policy whose parameters are not there judges nothing.
#[rstest::rstest]
#[case::those_of_another_namespace(
    json!({"selector": {}, "namespace": "empty", "parameterNotFoundAction": "Allow"}),
    "spec.paramRef.namespace is another"
)]
#[case::none(
    json!({"selector": {"matchLabels": {"no": "such"}}, "parameterNotFoundAction": "Allow"}),
    "spec.paramRef.selector.matchLabels is another"
)]
#[case::one(
    json!({"name": "gone", "parameterNotFoundAction": "Allow"}),
    "spec.paramRef.selector is another"
)]
#[case::unasked(json!(null), "spec.paramRef is another")]
fn a_binding_with_other_parameters_has_drifted(#[case] parameters: Value, #[case] said: &str) {
    let name = "sluice-child-names";
    let mut changed = binding(name);
    changed.spec.param_ref = serde_json::from_value(parameters).unwrap();
    let found = stands(name, Some(&as_shipped(name)), Some(&changed));
    let expected = format!("of its binding, {said}");
    assert_eq!(found, Stands::Drifted(expected));
}

#[test]
fn the_controllers_are_named_in_each_policy_that_knows_them() {
    let plain = vec!["system:serviceaccount:sluice-system:gate-controller".to_owned()];
    let named = |name| controllers(&as_shipped(name));
    for name in [
        "sluice-child-names",
        "sluice-children",
        "sluice-gate-overrides",
        "sluice-status-writers",
    ] {
        assert_eq!(named(name).as_ref(), Some(&plain), "{name}");
    }
    assert_eq!(named("sluice-approvals"), None);
    assert_eq!(named("sluice-revert-commits"), None);
    assert_eq!(named("sluice-gated-sources"), None);
    assert_eq!(named("sluice-pipelines"), None);
    let mut computed = as_shipped(NAME);
    let variables = computed.spec.as_mut().unwrap().variables.as_mut().unwrap();
    let own = variables.iter_mut().find(|it| it.name == CONTROLLERS);
    own.unwrap().expression = "[request.userInfo.username]".to_owned();
    assert_eq!(controllers(&computed), None);
}

/// A person who may only pause a pipeline changes nothing else of it: a field that the policy does not name
/// would be free for them.
#[test]
fn the_policy_of_pipelines_names_every_field_of_their_spec() {
    let policy = as_shipped("sluice-pipelines").spec.unwrap();
    let variables = policy.variables.unwrap();
    let of = |name: &str| {
        let variable = variables.iter().find(|it| it.name == name).unwrap();
        variable.expression.clone()
    };
    let named = of("edited") + &of("paused");
    let definition = sluice_crds::all().into_iter();
    let mut definition = definition.filter(|it| it.spec.names.kind == "Pipeline");
    let version = definition.next().unwrap().spec.versions.remove(0);
    let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
    let mut spec = schema.properties.unwrap();
    for field in spec.remove("spec").unwrap().properties.unwrap().keys() {
        let is_compared = [
            format!("object.spec.{field}"),
            format!("object.spec.?{field}"),
        ]
        .iter()
        .any(|text| named.contains(text));
        assert!(is_compared, "{field}");
    }
}
