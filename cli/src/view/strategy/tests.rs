use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-11-20T19:00:00Z";
const OLD: &str = "b5d8f7a6c5e4d3b2a1908f7e6d5c4b3a29180f7e";
const NEW: &str = "c0ffee1a2b3c4d5e6f708192a3b4c5d6e7f80912";

fn tip(dry: &str, by: &str) -> Value {
    json!({
        "drySHA": dry, "hydratedSHA": "1".repeat(40), "tree": "2".repeat(40), "arrivedBy": by,
        "since": NOW,
    })
}

fn shown(status: &Value) -> Strategy {
    let mut object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": "shop", "namespace": "apps"},
        "spec": {
            "repoRef": {"name": "shop"},
            "environments": [
                {"branch": "env/dev"}, {"branch": "env/prod", "autoMerge": false},
            ],
        },
    });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    Strategy::of(&serde_json::from_value(object).unwrap())
}

fn waiting() -> Value {
    json!({
        "summary": {"newest": &NEW[..12], "reached": "env/dev", "waitsAt": "env/prod"},
        "environments": [
            {"branch": "env/dev", "state": "UpToDate", "message": "all is well", "active": tip(NEW, "Promotion"),
                "pullRequest": {"name": "a", "n": 3, "number": 6, "state": "Merged"}},
            {"branch": "env/prod", "state": "Waiting", "message": "the gate is closed",
                "active": tip(OLD, "Person"), "pullRequest": {"name": "b", "n": 2, "number": 7},
                "waits": [
                    {"reason": "GateClosed", "message": "the gate is closed", "next": "2026-11-23T09:00:00Z"},
                    {"reason": "WaitsForPerson", "message": "a person merges it"},
                ]},
        ],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "a", "message": "ready", "lastTransitionTime": NOW},
            {"type": "Bypassed", "status": "True", "reason": "a", "message": "alice merged past a gate",
                "lastTransitionTime": NOW},
        ],
    })
}

#[test]
fn each_environment_says_what_it_has_and_what_it_waits_for() {
    let strategy = shown(&waiting());
    assert_eq!(
        strategy.headline(),
        "PromotionStrategy apps/shop: the newest commit c0ffee1a2b3c has reached env/dev, and waits at env/prod"
    );
    assert_eq!(strategy.troubles, ["alice merged past a gate"]);
    let zone = Zone::named("Europe/London").unwrap();
    let rows = strategy.table(NOW.parse().unwrap(), &zone);
    assert_eq!(rows[0][4], "UNTIL (Europe/London)");
    assert_eq!(
        rows[1],
        ["env/dev", "c0ffee1a2b3c", "UpToDate", "", "", "", ""]
    );
    assert_eq!(
        rows[2],
        [
            "env/prod",
            "b5d8f7a6c5e4",
            "Waiting",
            "GateClosed (+1)",
            "Mon 2026-11-23 09:00",
            "#7",
            "the gate is closed"
        ]
    );
    // What has passed is no news.
    let later = strategy.table("2026-11-24T09:00:00Z".parse().unwrap(), &zone);
    assert_eq!(later[2][4], "");
}

#[test]
fn what_no_controller_has_looked_at_says_so() {
    let strategy = shown(&Value::Null);
    assert!(
        strategy
            .headline()
            .ends_with("no controller has looked at it yet"),
        "{}",
        strategy.headline()
    );
    let rows = strategy.table(NOW.parse().unwrap(), &Zone::utc());
    assert_eq!(rows[1][2], "Unknown");
    let error = strategy.environments[0].active().unwrap_err().to_string();
    assert_eq!(error, "it is not known yet what env/dev has");
}

#[test]
fn an_environment_is_named_by_its_branch_or_by_the_end_of_it() {
    let strategy = shown(&waiting());
    let found = |named: &str| strategy.environment(named).map(|it| it.branch.as_str());
    assert_eq!(found("env/prod").unwrap(), "env/prod");
    assert_eq!(found("prod").unwrap(), "env/prod");
    let error = found("od").unwrap_err().to_string();
    assert_eq!(
        error,
        "shop has no environment `od`; write one of env/dev, env/prod"
    );
    let known: Vec<_> = strategy.dry_commits().collect();
    assert_eq!(known, [NEW, OLD]);
}

#[test]
fn a_commit_that_is_everywhere_waits_nowhere() {
    let strategy = shown(&json!({"summary": {"newest": "c0ffee1a2b3c", "reached": "env/prod"}}));
    assert!(
        strategy
            .headline()
            .ends_with("c0ffee1a2b3c has reached every environment"),
        "{}",
        strategy.headline()
    );
}
