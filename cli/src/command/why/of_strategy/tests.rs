use serde_json::json;

use super::*;

const NOW: &str = "2026-11-20T19:00:00Z";

fn shown() -> Strategy {
    let tip = |digit: &str, by: &str| {
        json!({"drySHA": digit.repeat(40), "hydratedSHA": "1".repeat(40), "tree": digit.repeat(40),
            "arrivedBy": by, "by": "alice", "bypassed": ["GateClosed"], "since": NOW})
    };
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": "shop", "namespace": "apps"},
        "spec": {"repoRef": {"name": "shop"}, "environments": [{"branch": "env/dev"}, {"branch": "env/prod"}]},
        "status": {"environments": [
            {"branch": "env/dev", "state": "Waiting", "reason": "ForeignCommit", "message": "foreign",
                "active": tip("f", "Foreign"), "proposed": tip("f", "Foreign"),
                "waits": [{"reason": "ForeignCommit", "message": "somebody has pushed"}]},
            {"branch": "env/prod", "state": "Waiting", "reason": "GateClosed", "message": "closed",
                "active": tip("a", "Person"), "proposed": tip("c", "Promotion"),
                "waits": [
                    {"reason": "GateClosed", "message": "nights", "next": "2026-11-23T09:00:00Z"},
                    {"reason": "WaitsForPerson", "message": "a person merges it"}],
                "checks": [{"key": "flux", "of": "active", "phase": "failure", "message": "shop-prod is not ready"}],
                "pullRequest": {"name": "p", "n": 1, "number": 7, "url": "https://git/7", "state": "Open"},
                "held": [{"drySHA": "d".repeat(40), "revertCommit": "shop-prod-1"}],
                "reverts": [{"name": "shop-prod-1", "phase": "Merged", "reason": "Merged", "message": "it is back"}],
                "lastHealthyDrySHAs": [{"drySHA": "a".repeat(40), "hydratedSHA": "1".repeat(40), "time": NOW}],
                "lastDecision": {
                    "allowed": false, "at": NOW, "require": "all", "message": "held back",
                    "decidedBy": ["apps/production"],
                    "checked": [{"gate": "apps/production", "state": "Closed", "reason": "Schedule", "message": "nights"}],
                    "subject": {"kind": "PromotionStrategy", "namespace": "apps", "action": "promote"}}},
        ]},
    });
    Strategy::of(&serde_json::from_value(object).unwrap())
}

fn told(named: &[&str]) -> String {
    let strategy = shown();
    let named: Vec<String> = named.iter().map(|it| (*it).to_owned()).collect();
    let text = Shown::new(&strategy, &named).unwrap().text(&Zone::utc());
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn an_environment_tells_everything_that_it_waits_for_in_order() {
    let text = told(&["prod"]);
    let mut from = 0;
    for part in [
        "env/prod is Waiting (GateClosed)",
        "has aaaaaaaaaaaa as 111111111111 since Fri 2026-11-20 19:00 UTC",
        "merged by alice past GateClosed",
        "cccccccccccc as 111111111111 is proposed",
        "waits for 2 rules, the first of which decides",
        "GateClosed until Mon 2026-11-23 09:00 UTC",
        "nights",
        "WaitsForPerson",
        "check flux of what it has: failure",
        "shop-prod is not ready",
        "its gates said at Fri 2026-11-20 19:00 UTC: not allowed: held back",
        "apps/production is Closed (Schedule)",
        "pull request #7 is Open: https://git/7",
        "dddddddddddd was taken back by shop-prod-1",
        "RevertCommit shop-prod-1 is Merged (Merged)",
        "its checks have passed with aaaaaaaaaaaa",
    ] {
        let at = text[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part} is not there, or not in order:\n{text}"));
    }
    assert!(!text.contains("env/dev"), "{text}");
}

#[test]
fn a_foreign_commit_tells_the_way_out() {
    let text = told(&[]);
    assert!(
        text.contains("kubectl gate accept shop env/dev --reason TEXT"),
        "{text}"
    );
    assert!(text.contains("waits for one rule"), "{text}");
    assert!(text.contains("nothing else is proposed"), "{text}");
    assert!(text.contains("env/prod"), "{text}");
}

#[test]
fn programs_get_the_environments_that_are_asked_about() {
    let strategy = shown();
    let data = Shown::new(&strategy, &["env/dev".to_owned()])
        .unwrap()
        .data();
    let environments = data["environments"].as_array().unwrap();
    assert_eq!(environments.len(), 1);
    assert_eq!(environments[0]["status"]["reason"], "ForeignCommit");
    assert!(Shown::new(&strategy, &["none".to_owned()]).is_err());
}
