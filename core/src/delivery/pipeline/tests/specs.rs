//! What is wrong with specs, told with field and remedy.

use rstest::rstest;

use super::*;

fn change(pointer: &str, value: Value) -> Vec<String> {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.spec(|spec| {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = spec.pointer_mut(parent).unwrap();
        match field.parse::<usize>() {
            Ok(place) => parent[place] = value,
            Err(_) => parent[field] = value,
        }
    });
    match check(&play.object) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    }
}

#[rstest]
#[case("/appRef/kind", json!("Secret"), "spec.appRef.kind: a Secret is no app")]
#[case("/appRef/revisionExpression", json!("object."), "spec.appRef.revisionExpression: ")]
#[case("/environments", json!([]), "spec.environments: there is none; write")]
#[case("/environments/0/gates", json!({"refs": [{"name": "g"}]}),
    "spec.environments[0].gates: nothing is promoted to the first environment; gate its source")]
#[case("/environments/2/name", json!("dev"), "spec.environments[2].name: `dev` is listed twice")]
#[case("/environments/2/name", json!("a..b"), "spec.environments[2].name: `a..b` cannot be part")]
#[case("/environments/2/name", json!("a.lock"), "spec.environments[2].name: `a.lock` cannot be")]
#[case("/environments/2/name", json!("-a"), "spec.environments[2].name: `-a` cannot be part")]
#[case("/environments/1/targets", json!([]), "spec.environments[1].targets: there are 0; write 1")]
#[case("/environments/1/gates/refs", json!([]), "spec.environments[1].gates.refs: it names no gate")]
#[case("/promotion/strategy/notification", json!({}),
    "spec.promotion.strategy: it says not exactly one way; write exactly one of")]
#[case("/promotion/strategy", json!({}),
    "spec.promotion.strategy: it says not exactly one way; write exactly one of")]
#[case("/environments/1/promotion", json!({"strategy": {}}),
    "spec.environments[1].promotion.strategy: it says not exactly one way")]
#[case("/promotion/strategy/pull-request/url", json!("http://a"),
    "spec.promotion.strategy.pull-request.url: forges are asked over https alone")]
#[case("/promotion/strategy/pull-request/paths", json!([]),
    "spec.promotion.strategy.pull-request.paths: there are 0; write 1 to 16 files")]
#[case("/promotion/strategy/pull-request/paths/0", json!("a/../b"),
    "spec.promotion.strategy.pull-request.paths[0]: `a/../b` is no file")]
#[case("/versions", json!([{"name": "a", "expression": "1 +"}]), "spec.versions[0].expression: ")]
#[case("/versions", json!([{"name": "a", "expression": "object.a"}]),
    "spec.environments[0].targets[0].namespace: the expressions of versions")]
fn a_mistake_is_told(#[case] pointer: &str, #[case] value: Value, #[case] expected: &str) {
    let found = change(pointer, value);
    assert!(
        found.iter().any(|it| it.starts_with(expected)),
        "{found:#?}"
    );
}

/// An event in the name of an object that may belong to somebody else.
#[rstest]
#[case("Application", json!({"namespace": "team-b"}), true)]
#[case("Application", json!({"namespace": "apps"}), false)]
#[case("Application", json!({"namespace": "apps", "clusterRef": {"kind": "Secret", "name": "a"}}), true)]
#[case("Pipeline", json!({"namespace": "team-b"}), false)]
fn events_about_apps_are_sent_at_home_alone(
    #[case] about: &str,
    #[case] target: Value,
    #[case] is_refused: bool,
) {
    let mut play = Play::new(&json!({"strategy": {"notification": {"involvedObject": about}}}));
    play.spec(|spec| {
        for environment in spec["environments"].as_array_mut().unwrap() {
            environment["targets"] = json!([target]);
        }
    });
    let found = match check(&play.object) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    };
    let expected = "spec.environments[1].targets[0]: an event about the app can only be sent";
    assert_eq!(
        found.iter().any(|it| it.starts_with(expected)),
        is_refused,
        "{found:?}"
    );
    assert!(
        !found
            .iter()
            .any(|it| it.starts_with("spec.environments[0]")),
        "{found:?}"
    );
}

#[test]
fn too_many_environments_targets_and_versions_are_refused() {
    let environment = |place: usize, targets: usize| {
        let targets: Vec<Value> = (0..targets)
            .map(|n| json!({"namespace": format!("n{n}")}))
            .collect();
        json!({"name": format!("e{place}"), "targets": targets})
    };
    let all = |count: usize, targets| -> Value {
        (0..count)
            .map(|place| environment(place, targets))
            .collect()
    };
    assert_eq!(change("/environments", all(16, 8)), [""; 0]);
    let wrong = change("/environments", all(17, 1));
    assert_eq!(
        wrong,
        ["spec.environments: there are more than 16; split the pipeline"]
    );
    let wrong = change("/environments", all(5, 32));
    let expected = "spec.environments: there are more than 128 targets in all; split the pipeline";
    assert_eq!(wrong, [expected]);
    let wrong = change("/environments", all(1, 33));
    assert_eq!(
        wrong,
        ["spec.environments[0].targets: there are 33; write 1 to 32 targets"]
    );
}

#[test]
fn expressions_may_be_asked_in_the_own_namespace_and_in_other_clusters() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.spec(|spec| {
        spec["versions"] = json!([{"name": "a", "expression": "object.a"}]);
        spec["environments"][0]["targets"] = json!([{"namespace": "apps"}]);
        for place in 1..3 {
            let cluster = json!({"kind": "Secret", "name": "kubeconfig"});
            let target = json!({"namespace": "other", "clusterRef": cluster});
            spec["environments"][place]["targets"] = json!([target]);
        }
    });
    assert!(check(&play.object).is_ok());
}
