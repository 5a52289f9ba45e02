use rstest::rstest;

use super::*;

fn spec(yaml: &str) -> GatePolicySpec {
    let gates = "gates: {refs: [{name: freeze, namespace: platform}]}";
    serde_saphyr::from_str(&format!("{{{yaml}, {gates}}}")).unwrap()
}

fn subject(kind: &str) -> Subject {
    Subject {
        kind: kind.to_owned(),
        namespace: "apps".to_owned(),
        name: None,
        action: "promote".to_owned(),
        revision: None,
    }
}

fn labels(text: &str) -> Labels {
    let pairs = text.split_whitespace();
    pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// As Kubernetes selects by labels: all has to hold, and what is not there is not in any list.
#[rstest]
#[case::everywhere("kinds: []", "", true)]
#[case::empty_selector("namespaceSelector: {}", "tier=prod", true)]
#[case::label(
    "namespaceSelector: {matchLabels: {tier: prod}}",
    "tier=prod a=b",
    true
)]
#[case::other_value("namespaceSelector: {matchLabels: {tier: prod}}", "tier=dev", false)]
#[case::no_label("namespaceSelector: {matchLabels: {tier: prod}}", "", false)]
#[case::two_labels(
    "namespaceSelector: {matchLabels: {tier: prod, a: b}}",
    "tier=prod",
    false
)]
#[case::is_in(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: In, values: [prod, qa]}]}",
    "tier=qa",
    true
)]
#[case::not_in(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]}",
    "tier=prod",
    true
)]
#[case::not_in_without(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]}",
    "",
    true
)]
#[case::not_in_but_is(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]}",
    "tier=dev",
    false
)]
#[case::exists(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: Exists}]}",
    "tier=",
    true
)]
#[case::exists_not(
    "namespaceSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}",
    "tier=",
    false
)]
#[case::both(
    "namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: tier, operator: Exists}]}",
    "tier=x",
    false
)]
#[case::kind("kinds: [Rollout, Pipeline]", "", true)]
#[case::other_kind("kinds: [Rollout]", "", false)]
fn a_policy_concerns_whom_it_selects(
    #[case] yaml: &str,
    #[case] of_namespace: &str,
    #[case] expected: bool,
) {
    let concern = concerns(&spec(yaml), &subject("Pipeline"), || {
        Some(labels(of_namespace))
    });
    let expected = match expected {
        true => Concern::Yes,
        false => Concern::No,
    };
    assert_eq!(concern, expected);
}

#[test]
fn what_nobody_can_tell_is_told_as_such() {
    let prod = spec("namespaceSelector: {matchLabels: {tier: prod}}");
    let unknown = concerns(&prod, &subject("Check"), || None);
    let expected = "the labels of the namespace apps are unknown";
    assert_eq!(unknown, Concern::Unknown(expected.to_owned()));
    // One that selects nothing by labels needs none.
    let everywhere = concerns(&spec("kinds: [Check]"), &subject("Check"), || None);
    assert_eq!(everywhere, Concern::Yes);

    // Past admission: as Kubernetes reads it, it would select nothing, and freeze nobody.
    let without_values = "{key: tier, operator: In}";
    for selector in [
        format!("matchExpressions: [{without_values}]"),
        "matchLabels: {tier: 'not a label'}".to_owned(),
        "matchLabels: {'not/a/name': a}".to_owned(),
    ] {
        let refused = spec(&format!("namespaceSelector: {{{selector}}}"));
        let concern = concerns(&refused, &subject("Check"), || Some(Labels::new()));
        assert!(
            matches!(concern, Concern::Unknown(_)),
            "{selector}: {concern:?}"
        );
        assert!(check(&refused).is_err(), "{selector}");
    }
}

fn policy(refs: &str) -> GatePolicy {
    let spec = serde_saphyr::from_str(&format!("{{gates: {{refs: [{refs}]}}}}")).unwrap();
    let mut policy = GatePolicy::new("freeze", spec);
    policy.metadata.generation = Some(3);
    policy
}

/// `there` is, `odd` cannot be read, and any other is missing.
fn reported(policy: &GatePolicy) -> Report {
    let gate = |reference: &GateReference| match reference.name.as_str() {
        "there" => Named::Here(()),
        "odd" => Named::Unreadable("odd".into()),
        _ => Named::Missing,
    };
    report(policy, gate, "2026-11-20T12:00:00Z".parse().unwrap())
}

#[rstest]
#[case::there(
    "{name: there, namespace: p}",
    "Ready True GatesFound: every gate that it names is there"
)]
#[case::missing(
    "{name: a, namespace: p}, {name: there, namespace: p}, {name: b, namespace: q}",
    "Ready False GateMissing: there is no gate p/a, q/b, which counts as closed"
)]
#[case::unreadable(
    "{name: odd, namespace: p}",
    "Ready False GateUnreadable: this version cannot read the gate p/odd, which counts as closed"
)]
#[case::both(
    "{name: odd, namespace: p}, {name: a, namespace: p}",
    "Ready False GateMissing: there is no gate p/a, and this version cannot read the gate p/odd, which counts as closed"
)]
#[case::refused(
    "{name: there}",
    "Ready False InvalidSpec: the spec is refused: spec.gates.refs[0].namespace: it is missing, and a GatePolicy has no namespace of its own; write the namespace of the gate"
)]
fn the_status_names_the_gates_that_are_not_there(#[case] refs: &str, #[case] expected: &str) {
    let Report { status, changed } = reported(&policy(refs));
    assert!(changed);
    assert_eq!(status.observed_generation, Some(3));
    let first = &status.conditions[0];
    let said = format!(
        "{} {} {}: {}",
        first.type_, first.status, first.reason, first.message
    );
    assert_eq!(said, expected);
    let stalled = status
        .conditions
        .iter()
        .any(|condition| condition.type_ == STALLED);
    assert_eq!(stalled, first.reason == "InvalidSpec");
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let mut policy = policy("{name: a, namespace: p}");
    policy.status = Some(reported(&policy).status);
    assert!(!reported(&policy).changed);
    // Somebody asks for a look, and is answered.
    let asked = (
        "reconcile.fluxcd.io/requestedAt".to_owned(),
        "now".to_owned(),
    );
    policy.metadata.annotations = Some([asked].into());
    let answered = reported(&policy);
    assert!(answered.changed);
    assert_eq!(
        answered.status.last_handled_reconcile_at.as_deref(),
        Some("now")
    );
}
