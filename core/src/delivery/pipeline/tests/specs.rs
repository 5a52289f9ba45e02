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
#[case("/appRef", json!({"kind": "Deployment", "name": "podinfo"}),
    "spec.appRef.apiVersion: the group of the kind `Deployment` is not known; write the group and version")]
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

/// Otherwise nothing would be watched for it, and it would wait for ever.
#[test]
fn a_kind_of_no_known_group_stalls_the_pipeline() {
    let mut play = Play::new(&json!({"strategy": {"admission": {}}}));
    play.spec(|spec| spec["appRef"] = json!({"kind": "Deployment", "name": "podinfo"}));
    play.settle();
    assert_eq!(play.says("Stalled").unwrap(), "True InvalidSpec");
    assert_eq!(play.says("Ready").unwrap(), "False InvalidSpec");
    let conditions = play.object.status.as_ref().unwrap().conditions.iter();
    assert!(
        conditions
            .clone()
            .all(|it| it.message.contains("such as apps/v1"))
    );
    assert!(play.told.is_empty());
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
fn too_many_versions_paths_and_characters_are_refused() {
    let version = |n: usize| json!({"name": format!("v{n}"), "expression": "object.a"});
    let versions = |count: usize| (0..count).map(version).collect::<Value>();
    let remarks = |pointer: &str, value: Value, field: &str| {
        let mut found = change(pointer, value);
        found.retain(|it| it.starts_with(field));
        found
    };
    let field = "spec.versions: ";
    assert_eq!(remarks("/versions", versions(8), field), [""; 0]);
    let wrong = remarks("/versions", versions(9), field);
    assert_eq!(wrong, ["spec.versions: there are more than 8; show fewer"]);

    let paths = |count: usize| (0..count).map(|n| format!("{n}.yaml")).collect::<Value>();
    let pointer = "/promotion/strategy/pull-request/paths";
    assert_eq!(change(pointer, paths(16)), [""; 0]);
    let wrong = change(pointer, paths(17));
    let expected = "spec.promotion.strategy.pull-request.paths: there are 17; write 1 to 16 files in \
                    which the revision is marked";
    assert_eq!(wrong, [expected]);

    let expression = |length: usize| json!(format!("object.{}", "a".repeat(length - 7)));
    let field = "spec.appRef.revisionExpression: ";
    let pointer = "/appRef/revisionExpression";
    assert_eq!(remarks(pointer, expression(1024), field), [""; 0]);
    let wrong = remarks(pointer, expression(1025), field);
    assert!(
        wrong.len() == 1 && wrong[0].contains("longer than 1024 characters"),
        "{wrong:?}"
    );
}

#[test]
fn too_many_environments_and_targets_are_refused() {
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

/// The message of any other object may say anything.
#[rstest]
#[case("HelmRelease", None, "team-b", None)]
#[case("Kustomization", None, "team-b", None)]
#[case("ConfigMap", Some("v1"), "apps", None)]
#[case(
    "Order",
    Some("shop.example.com/v1"),
    "team-b",
    Some(
        "spec.environments[1].targets[0].namespace: apps that are no HelmRelease, Kustomization or \
         Terraform are shown of the Pipeline's own namespace alone, and not of `team-b`; put the \
         Pipeline into that namespace"
    )
)]
#[case(
    "HelmRelease",
    Some("shop.example.com/v1"),
    "team-b",
    Some("spec.environments[1].targets[0].namespace: apps that are no HelmRelease")
)]
fn of_other_namespaces_nothing_but_apps_of_flux_is_shown(
    #[case] kind: &str,
    #[case] version: Option<&str>,
    #[case] namespace: &str,
    #[case] expected: Option<&str>,
) {
    let mut play = Play::new(&json!({"strategy": {"admission": {}}}));
    play.spec(|spec| {
        spec["appRef"] = json!({"apiVersion": version, "kind": kind, "name": "podinfo"});
        let cluster = json!({"kind": "Secret", "name": "kubeconfig"});
        spec["environments"][0]["targets"] = json!([{"namespace": "apps"}]);
        spec["environments"][1]["targets"] = json!([{"namespace": namespace}]);
        let remote = json!({"namespace": "other", "clusterRef": cluster});
        spec["environments"][2]["targets"] = json!([remote]);
    });
    told(&play, expected);
}

fn told(play: &Play, expected: Option<&str>) {
    let found = match check(&play.object) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    };
    match expected {
        None => assert_eq!(found, [""; 0]),
        Some(expected) => assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{found:?}"
        ),
    }
}

const AT_HOME: &str = "spec.environments[1].targets[0]: on this cluster an admission can only be \
                       reported to a gatekeeper of the Pipeline's own namespace; write";
const NO_TARGET: &str = "spec.environments[1].promotion.strategy.admission.gatekeeperRef.namespace: \
                         no target of this environment is in the namespace `team-c`; write the \
                         namespace of a target, or leave it out";

#[rstest]
#[case(None, json!({"namespace": "apps"}), None)]
#[case(None, json!({"namespace": "team-b"}), Some(AT_HOME))]
#[case(None, json!({"namespace": "team-b", "clusterRef": {"kind": "Secret", "name": "a"}}), None)]
#[case(Some("team-b"), json!({"namespace": "team-b", "clusterRef": {"kind": "Secret", "name": "a"}}), None)]
#[case(Some("team-c"), json!({"namespace": "team-b", "clusterRef": {"kind": "Secret", "name": "a"}}),
    Some(NO_TARGET))]
fn an_admission_is_reported_where_a_target_is(
    #[case] namespace: Option<&str>,
    #[case] target: Value,
    #[case] expected: Option<&str>,
) {
    let mut play = Play::new(&json!({"strategy": {"admission": {}}}));
    play.spec(|spec| {
        spec["environments"][1]["targets"] = json!([target]);
        let named = json!({"name": "promoted", "namespace": namespace});
        let admission = json!({"admission": {"gatekeeperRef": named}});
        spec["environments"][1]["promotion"] = json!({"strategy": admission});
    });
    told(&play, expected);
}
