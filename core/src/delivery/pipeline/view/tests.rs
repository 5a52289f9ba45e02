use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn pipeline(status: &Value) -> Pipeline {
    let forge = json!({
        "type": "gitea", "url": "https://git.example.com/apps.git",
        "secretRef": {"name": "token"}, "paths": ["prod/podinfo.yaml"],
    });
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "podinfo", "namespace": "apps", "generation": 2},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "promotion": {"manual": true, "strategy": {"pull-request": forge}},
            "environments": [
                {"name": "dev", "targets": [{"namespace": "dev"}]},
                {"name": "prod", "targets": [{"namespace": "prod"}],
                 "gates": {"refs": [{"name": "production"}, {"name": "freeze", "namespace": "all"}]}},
            ],
        },
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn prod(more: &Value) -> Value {
    let mut prod = json!({"state": "Passed"});
    let fields = prod.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({"observedGeneration": 2, "environments": {"dev": {"state": "Passed"}, "prod": prod}})
}

#[rstest]
#[case(json!({"state": "Passed"}), Needs::Nothing)]
#[case(json!({"state": "Unapproved"}), Needs::Person)]
#[case(json!({"state": "GatesClosed"}), Needs::Time)]
#[case(json!({"state": "Failed"}), Needs::Repair)]
#[case(json!({"state": "PullRequestOpen"}), Needs::Person)]
#[case(json!({"state": "PullRequestOpen", "promotion": {
    "run": 1, "revision": "6.1.6", "key": "k", "phase": "Created",
    "at": "2026-11-23T12:00:00Z", "gate": "pending",
}}), Needs::Time)]
fn a_pipeline_needs_what_its_most_urgent_environment_needs(
    #[case] status: Value,
    #[case] expected: Needs,
) {
    assert_eq!(view(&pipeline(&prod(&status)), &[]).needs, expected);
}

#[test]
fn who_decides_is_shown_while_gates_hold_it_back_and_not_longer() {
    let decision = json!({
        "allowed": false, "at": "2026-11-23T12:00:00Z", "require": "all",
        "subject": {"kind": "Pipeline", "namespace": "apps", "action": "promote"},
        "checked": [], "decidedBy": ["apps/production"], "message": "closed",
        "next": "2026-11-24T09:00:00Z",
    });
    let held = json!({"state": "GatesClosed", "lastDecision": decision});
    let shown = view(&pipeline(&prod(&held)), &[]);
    let prod_shown = &shown.environments[1];
    assert_eq!(prod_shown.gates, ["apps/production", "all/freeze"]);
    assert_eq!(prod_shown.decided_by, ["apps/production"]);
    assert!(prod_shown.until.is_some());
    let passed = json!({"state": "Passed", "lastDecision": decision});
    let shown = view(&pipeline(&prod(&passed)), &[]);
    assert!(shown.environments[1].decided_by.is_empty());
}

#[test]
fn votes_of_this_run_are_shown_and_no_others() {
    let vote = |name: &str, environment: &str, run: i64| {
        let approval = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
            "metadata": {"name": name, "namespace": "apps", "creationTimestamp": "2026-11-23T12:20:00Z"},
            "spec": {
                "pipelineRef": {"name": "podinfo", "environment": environment, "run": run},
                "revision": "6.1.6", "decision": "approve", "by": name,
            },
        });
        Arc::new(serde_json::from_value::<Approval>(approval).unwrap())
    };
    let waits = json!({
        "state": "Unapproved",
        "waitingApproval": {"revision": "6.1.6", "run": 7, "since": "2026-11-23T12:00:00Z"},
    });
    let votes = [
        vote("alice", "prod", 7),
        vote("bob", "prod", 6),
        vote("carol", "dev", 7),
    ];
    let shown = view(&pipeline(&prod(&waits)), &votes);
    let by: Vec<&str> = shown.environments[1]
        .votes
        .iter()
        .map(|it| it.by.as_str())
        .collect();
    assert_eq!(by, ["alice"]);
    assert!(shown.environments[0].votes.is_empty());
}

#[test]
fn the_spec_is_shown_where_there_is_no_status() {
    let shown = view(&pipeline(&Value::Null), &[]);
    assert_eq!(shown.needs, Needs::Repair);
    assert!(
        shown.troubles[0].contains("no controller has looked"),
        "{:?}",
        shown.troubles
    );
    assert_eq!(shown.environments[1].targets[0].namespace, "prod");
    assert_eq!(shown.environments[1].state, None);
    assert_eq!(
        shown.environments[0].strategy, None,
        "nothing is promoted to the first"
    );
    assert!(shown.environments[1].manual);
}

#[test]
fn what_is_wrong_with_the_whole_is_told() {
    let condition = |type_: &str, status: &str, message: &str| {
        json!({"type": type_, "status": status, "reason": "InvalidSpec", "message": message,
               "lastTransitionTime": "2026-11-23T12:00:00Z"})
    };
    let mut status = prod(&json!({}));
    status["observedGeneration"] = 1.into();
    status["conditions"] = json!([
        condition("Ready", "False", "the spec is refused"),
        condition("Stalled", "True", "the spec is refused"),
    ]);
    let shown = view(&pipeline(&status), &[]);
    assert_eq!(shown.troubles.len(), 2, "{:?}", shown.troubles);
    assert_eq!(shown.troubles[0], "the spec is refused");
    assert!(shown.troubles[1].contains("an earlier spec"));
    assert_eq!(shown.needs, Needs::Repair);
}
