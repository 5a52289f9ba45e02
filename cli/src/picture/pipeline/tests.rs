use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::delivery::pipeline::view;
use sluice_crds::{Approval, Pipeline};

use super::*;

const NOW: &str = "2026-11-20T14:25:00Z";

/// A pipeline that waits for the gate of prod, with a target on another cluster that cannot be read.
fn waiting() -> Pipeline {
    let target = |namespace: &str, cluster: Option<&str>, revision: &str| {
        let mut target = json!({
            "namespace": namespace, "ready": true, "revision": revision,
            "versions": {"image": format!("v{revision}")},
        });
        if let Some(cluster) = cluster {
            target["clusterRef"] = json!({"kind": "Secret", "name": cluster});
        }
        target
    };
    let record = |phase: &str, more: &Value| {
        let mut record = json!({
            "run": 7, "revision": "6.1.6", "key": "k", "phase": phase, "at": "2026-11-20T14:11:00Z",
        });
        record
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        record
    };
    let merged = json!({"pullRequest": {
        "name": "p", "url": "https://git.example.com/platform/apps/pulls/412", "state": "Merged",
    }});
    let decision = json!({
        "allowed": false, "at": "2026-11-20T14:20:00Z", "require": "all",
        "subject": {"kind": "Pipeline", "namespace": "apps", "action": "promote"},
        "checked": [], "decidedBy": ["apps/production"], "message": "closed",
        "next": "2026-11-23T09:00:00Z",
    });
    let held = "held back by apps/production: closed by window 'office-hours'";
    let spec = |name: &str, namespaces: &[&str]| {
        let targets: Vec<Value> = namespaces
            .iter()
            .map(|it| json!({"namespace": it}))
            .collect();
        json!({"name": name, "targets": targets})
    };
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "podinfo", "namespace": "apps", "generation": 1},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "promotion": {"manual": true, "strategy": {"admission": {}}},
            "environments": [spec("dev", &["podinfo-dev"]), spec("staging", &["podinfo", "perf"]),
                spec("prod", &["podinfo"])],
        },
        "status": {
            "observedGeneration": 1,
            "run": {
                "id": 7, "revision": "6.1.6", "short": "6.1.6", "since": "2026-11-20T14:02:00Z",
                "environment": "prod", "state": "GatesClosed", "message": held,
            },
            "environments": {
                "dev": {"state": "Passed", "targets": [target("podinfo-dev", None, "6.1.6")]},
                "staging": {"state": "Passed", "promotion": record("Succeeded", &merged), "targets": [
                    target("podinfo", Some("staging-kubeconfig"), "6.1.6"),
                    target("perf", Some("staging-kubeconfig"), "6.1.6")]},
                "prod": {"state": "GatesClosed", "message": held, "lastDecision": decision,
                    "promotion": record("Unattempted", &json!({})),
                    "targets": [target("podinfo", Some("prod-eu"), "6.1.0")]},
            },
            "clusters": [{"cluster": "Secret prod-eu", "reachable": true, "since": "2026-11-20T14:02:00Z"}],
        },
    });
    serde_json::from_value(object).unwrap()
}

fn of_alice() -> Vec<Arc<Approval>> {
    let approval = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
        "metadata": {"name": "a", "namespace": "apps", "creationTimestamp": "2026-11-20T14:20:00Z"},
        "spec": {
            "pipelineRef": {"name": "podinfo", "environment": "prod", "run": 7}, "revision": "6.1.6",
            "decision": "approve", "by": "alice@example.com",
        },
    });
    vec![Arc::new(serde_json::from_value(approval).unwrap())]
}

fn drawn(object: &Pipeline, width: usize, unicode: bool) -> String {
    let zone = Zone::named("Europe/London").unwrap();
    let look = Look { width, unicode };
    let text = pipeline(
        &view(object, &of_alice()),
        look,
        &zone,
        NOW.parse().unwrap(),
    );
    anstream::adapter::strip_str(&text).to_string()
}

#[rstest]
#[case::wide(160, true)]
#[case::usual(120, true)]
#[case::narrow(80, true)]
#[case::ascii(120, false)]
fn a_pipeline_fits_the_terminal(#[case] width: usize, #[case] unicode: bool) {
    let text = drawn(&waiting(), width, unicode);
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{line}");
    }
    assert_eq!(text.is_ascii(), !unicode);
    insta::assert_snapshot!(format!("a_pipeline_in_{width}_{unicode}"), text);
}

#[test]
fn what_is_wrong_stands_above_the_environments() {
    let mut object = waiting();
    object.metadata.generation = Some(2);
    object.spec.suspend = true;
    let status = object.status.as_mut().unwrap();
    status.run = None;
    status.clusters[0].reachable = false;
    status.clusters[0].message = Some("connection refused".to_owned());
    status.environments.remove("prod");
    insta::assert_snapshot!(drawn(&object, 120, true));
}

#[test]
fn a_pull_request_that_waits_is_shown_with_its_page() {
    let mut object = waiting();
    let url = "https://git.example.com/platform/apps/pulls/412";
    assert!(!drawn(&object, 120, true).contains(url));
    let status = object.status.as_mut().unwrap();
    let staging = status.environments.get_mut("staging").unwrap();
    staging.state = EnvironmentState::PullRequestOpen;
    let text = drawn(&object, 120, true);
    assert!(
        text.ends_with(&format!("pull request for staging: {url}\n")),
        "{text}"
    );
}

#[rstest]
#[case("https://github.com/platform/apps/pull/7", "platform/apps#7")]
#[case("https://git.example.com/a/b/c/-/merge_requests/12", "a/b/c#12")]
#[case(
    "https://git.example.com/x/review/12",
    "https://git.example.com/x/review/12"
)]
#[case(
    "https://git.example.com/a/b/pulls/new",
    "https://git.example.com/a/b/pulls/new"
)]
fn pull_requests_are_named_as_people_name_them(#[case] url: &str, #[case] expected: &str) {
    assert_eq!(called(url), expected);
}
