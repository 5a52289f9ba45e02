use serde_json::json;

use super::*;

/// A gate as it should be, in its second generation.
fn good() -> Value {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "InsideWindow", "message": "open",
            "lastTransitionTime": "2026-11-20T09:00:00Z", "observedGeneration": 2,
        })
    };
    json!({
        "kind": "Gate",
        "metadata": {
            "generation": 2,
            "managedFields": [
                {"manager": "kubectl", "fieldsV1": {"f:spec": {}}},
                {"manager": "gate-controller-gates", "subresource": "status",
                    "fieldsV1": {"f:status": {"f:conditions": {}}}},
            ],
        },
        "status": {
            "observedGeneration": 2,
            "conditions": [condition("Ready", "True"), condition("Opened", "True")],
        },
    })
}

/// The same, with something else at a place.
fn with(place: &str, value: Value) -> Value {
    let mut object = good();
    *object.pointer_mut(place).expect(place) = value;
    object
}

/// The same, with another condition.
fn and(type_: &str, status: &str) -> Value {
    let mut object = good();
    let mut further = object["status"]["conditions"][0].clone();
    further["type"] = type_.into();
    further["status"] = status.into();
    let conditions = object["status"]["conditions"].as_array_mut();
    conditions.unwrap().push(further);
    object
}

/// The rules that are broken, each once.
fn rules(broken: &[String]) -> Vec<&str> {
    let mut rules: Vec<_> = broken
        .iter()
        .map(|broken| broken.split(": ").next().unwrap())
        .collect();
    rules.dedup();
    rules
}

#[test]
fn what_is_right_breaks_no_rule() {
    let good = good();
    assert_eq!(of_a_version(&good), [""; 0]);
    assert_eq!(of_a_change(&good, &good), [""; 0]);
    assert_eq!(at_rest(&good), [""; 0]);
    let stalled = {
        let mut object = and("Stalled", "True");
        object["status"]["conditions"][0]["status"] = "False".into();
        object
    };
    assert_eq!(of_a_version(&stalled), [""; 0]);
}

#[test]
fn what_nobody_has_looked_at_breaks_no_rule() {
    let mut object = good();
    object.as_object_mut().unwrap().remove("status");
    assert_eq!(of_a_version(&object), [""; 0]);
    let reported = with("/status", json!({"report": {"state": "Open"}}));
    assert_eq!(of_a_version(&reported), [""; 0]);
}

#[test]
fn each_rule_of_a_version_can_be_broken() {
    let first = |field: &str| format!("/status/conditions/0/{field}");
    let whole = "a condition is whole";
    let broken = [
        (and("Ready", "True"), "a condition is there once"),
        (and("Happy", "True"), "a condition is one of its kind's"),
        (
            and("Stalled", "False"),
            "what is abnormal is there only while it holds",
        ),
        (
            and("Reconciling", "True"),
            "what is stalled or under way is not ready",
        ),
        (with(&first("reason"), json!("")), whole),
        (with(&first("reason"), json!("in window")), whole),
        (with(&first("message"), json!("")), whole),
        (with(&first("status"), json!("true")), whole),
        (with(&first("lastTransitionTime"), json!("noon")), whole),
        (
            with("/metadata/generation", json!(1)),
            "nothing is observed before it is there",
        ),
        (
            with(&first("observedGeneration"), json!(1)),
            "ready is what the whole status is about",
        ),
        (
            with("/status/conditions", json!([])),
            "a status has Ready, and says for which generation",
        ),
    ];
    for (object, rule) in broken {
        assert_eq!(rules(&of_a_version(&object)), [rule], "{object}");
    }
    let mut both = and("Stalled", "True");
    let mut under_way = both["status"]["conditions"][2].clone();
    under_way["type"] = "Reconciling".into();
    both["status"]["conditions"][0] = under_way;
    let broken = of_a_version(&both);
    assert!(
        rules(&broken).contains(&"what is stalled is not under way"),
        "{broken:?}"
    );
}

#[test]
fn each_kind_has_the_conditions_of_its_own() {
    let of = |kind: &str, type_: &str, status: &str| {
        let mut object = and(type_, status);
        object["kind"] = kind.into();
        let conditions = object["status"]["conditions"].as_array_mut().unwrap();
        // The second one is the gate's.
        conditions.remove(1);
        of_a_version(&object)
    };
    let right = [
        ("Pipeline", "Blocked", "False"),
        ("Pipeline", "PromotionPending", "True"),
        ("GatedSource", "Blocked", "True"),
        ("PromotionStrategy", "Blocked", "True"),
        ("PromotionStrategy", "Bypassed", "True"),
    ];
    for (kind, type_, status) in right {
        assert_eq!(of(kind, type_, status), [""; 0], "{kind}");
    }
    let (unknown, abnormal) = (
        "a condition is one of its kind's",
        "what is abnormal is there only while it holds",
    );
    let wrong = [
        ("Pipeline", "Opened", "False", unknown),
        ("Pipeline", "PromotionPending", "False", abnormal),
        ("PullRequest", "Blocked", "False", unknown),
        ("GitRepositoryAccess", "Blocked", "False", unknown),
        ("CommitStatus", "Posted", "True", unknown),
        ("RevertCommit", "Merged", "True", unknown),
        ("PromotionStrategy", "Bypassed", "False", abnormal),
        ("PullRequest", "Reconciling", "False", abnormal),
    ];
    for (kind, type_, status, rule) in wrong {
        assert_eq!(rules(&of(kind, type_, status)), [rule], "{kind} {type_}");
    }
}

#[test]
fn each_rule_of_a_change_can_be_broken() {
    let later = json!("2026-11-20T10:00:00Z");
    let moved = with("/status/conditions/1/lastTransitionTime", later);
    assert_eq!(
        of_a_change(&good(), &moved),
        [
            "the last transition is another one only with the status: Opened stays True, and its \
          lastTransitionTime went from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z"
        ]
    );
    let mut closed = moved;
    closed["status"]["conditions"][1]["status"] = "False".into();
    assert_eq!(of_a_change(&good(), &closed), [""; 0]);
    let back = with("/status/observedGeneration", json!(1));
    let broken = of_a_change(&good(), &back);
    assert_eq!(rules(&broken), ["what was observed stays observed"]);
}

#[test]
fn what_lags_may_only_lag_while_something_is_under_way() {
    let lags = with("/metadata/generation", json!(3));
    assert_eq!(of_a_version(&lags), [""; 0]);
    let rule = "at rest the status is about the present generation";
    assert_eq!(rules(&at_rest(&lags)), [rule]);
}

#[test]
fn what_others_write_is_not_judged() {
    let mut lie = with("/status/conditions", json!([]));
    assert!(!of_a_version(&lie).is_empty());
    let other = json!({"manager": "alice", "fieldsV1": {"f:status": {"f:state": {}}}});
    let managers = lie["metadata"]["managedFields"].as_array_mut();
    managers.unwrap().push(other);
    assert_eq!(of_a_version(&lie), [""; 0]);
    // What is theirs to write is no reason to look away.
    lie["metadata"]["managedFields"][2]["fieldsV1"] = json!({"f:status": {"f:report": {}}});
    assert!(!of_a_version(&lie).is_empty());
}

/// The definition of Flux has no `status.observedGeneration`.
#[test]
fn an_external_artifact_says_by_its_conditions_what_it_is_about() {
    let mut artifact = good();
    artifact["kind"] = "ExternalArtifact".into();
    let status = artifact["status"].as_object_mut().unwrap();
    status.remove("observedGeneration");
    status["conditions"].as_array_mut().unwrap().truncate(1);
    assert_eq!(of_a_version(&artifact), [""; 0]);
    artifact["metadata"]["generation"] = 3.into();
    assert_eq!(at_rest(&artifact).len(), 1);
}

#[test]
fn every_kind_with_a_status_is_looked_at() {
    for crd in sluice_crds::all() {
        let (kind, spec) = (&crd.spec.names.kind, &crd.spec);
        let mut versions = spec.versions.iter();
        let has_status = versions.any(|version| {
            let subresources = version.subresources.as_ref();
            subresources.is_some_and(|it| it.status.is_some())
        });
        let watched = watch::KINDS.iter().find(|it| it.2 == kind.as_str());
        assert_eq!(watched.is_some(), has_status, "{kind}");
        assert_eq!(known(kind).is_some(), has_status, "{kind}");
        let is_namespaced = watched.map(|it| it.3);
        assert!(
            is_namespaced.is_none_or(|is| is == (spec.scope == "Namespaced")),
            "{kind}"
        );
    }
}
