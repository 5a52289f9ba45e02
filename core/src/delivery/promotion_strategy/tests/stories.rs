//! What people go through.

use serde_json::json;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState};

use super::*;

const ALL: [&str; 3] = ["env/dev", "env/test", "env/prod"];

#[test]
fn a_commit_goes_from_one_environment_to_the_next() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    assert!(
        ALL.iter()
            .all(|it| play.state(it) == EnvironmentState::UpToDate)
    );
    assert_eq!(
        play.says("Blocked").as_deref(),
        Some("False NothingBlocked")
    );

    let dry = play.hydrate("v2");
    play.settle();
    // A pull request is open for each, and the first is merged at once.
    assert_eq!(play.pull_requests.len(), 3);
    assert_eq!(play.at("env/dev"), Some(dry.as_str()));
    assert_eq!(play.state("env/dev"), EnvironmentState::Verifying);
    assert_eq!(play.reason("env/test"), Some("CheckMissing"));
    assert_eq!(play.reason("env/prod"), Some("WaitsForEnvironment"));
    assert_eq!(
        play.says("Ready").as_deref(),
        Some("True ReconciliationSucceeded")
    );
    assert_eq!(play.says("Blocked").as_deref(), Some("True CheckMissing"));

    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.at("env/test"), Some(dry.as_str()));
    play.check("env/test", "health", "success");
    play.settle();
    play.check("env/prod", "health", "success");
    play.settle();
    for branch in ALL {
        assert_eq!(play.state(branch), EnvironmentState::UpToDate);
        let environment = play.environment(branch);
        let active = environment.active.as_ref().unwrap();
        assert_eq!(active.arrived_by, Some(Arrival::Promotion));
        assert_eq!(environment.last_healthy[0].dry_sha, dry);
        assert_eq!(environment.order, None);
    }
    let merged: Vec<_> = play
        .merges
        .iter()
        .map(|(branch, _)| branch.as_str())
        .collect();
    assert_eq!(merged, ALL);
    let summary = play
        .object
        .status
        .as_ref()
        .unwrap()
        .summary
        .clone()
        .unwrap();
    assert_eq!(summary.newest.as_deref(), Some(&dry[..12]));
    assert_eq!(
        (summary.reached.as_deref(), summary.waits_at),
        (Some("env/prod"), None)
    );
}

#[test]
fn nothing_is_asked_and_nothing_is_written_while_nothing_happens() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    // As after a restart.
    play.repository.forget();
    let writes = play.writes;
    for _ in 0..60 {
        play.pass(1);
        let report = play.look();
        assert!(!report.changed && report.acts.is_empty());
    }
    assert_eq!((play.writes, play.repository.known()), (writes, 0));
}

#[test]
fn a_promotion_takes_few_writes() {
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"}, "environments": [{"branch": "env/dev"}],
    }));
    play.settle();
    let writes = play.writes;
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert!(play.writes - writes <= 4, "{}", play.writes - writes);
}

#[test]
fn a_closed_gate_holds_it_and_is_named() {
    let mut play = Play::new();
    play.open.insert("office".to_owned(), false);
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    for branch in ["env/dev", "env/test"] {
        play.settle();
        play.check(branch, "health", "success");
    }
    play.settle();
    assert_eq!(play.reasons("env/prod"), ["GateClosed"]);
    assert!(
        play.message("env/prod").contains("apps/office"),
        "{}",
        play.message("env/prod")
    );
    let decision = play.environment("env/prod").last_decision.clone().unwrap();
    let revision = format!("env/prod@sha1:{}", play.repository.head("env/prod-next"));
    assert_eq!(decision.subject.revision, Some(revision));
    play.open.insert("office".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.last().unwrap().0, "env/prod");
}

#[test]
fn a_newer_commit_takes_the_place_of_the_one_that_waits() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    let third = play.hydrate("v3");
    play.settle();
    // Nobody has proved the second one: test goes from the first to the third.
    assert_eq!(play.at("env/dev"), Some(third.as_str()));
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.at("env/test"), Some(third.as_str()));
    assert_eq!(
        play.pull_requests
            .iter()
            .filter(|it| it.spec.about.environment == "env/test")
            .count(),
        1
    );
    let title = play.pull_request("env/prod").spec.title.clone();
    assert_eq!(title, format!("Promote {} to env/prod", &third[..12]));
}

#[test]
fn what_changes_in_one_environment_alone_is_promoted_past_the_others() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    let dry = play.repository.commit_dry("test alone");
    play.propose("env/test", &dry, "v2");
    play.repository.note("env/dev-next", &dry);
    play.repository.note("env/prod-next", &dry);
    play.settle();
    assert_eq!(play.at("env/test"), Some(dry.as_str()));
    assert_eq!(play.state("env/test"), EnvironmentState::Verifying);
    // What proves it are the checks of dev on what it had before.
    assert_eq!(play.merges.len(), 1);
}

/// A change of prod alone waits for the checks of everything before, although nothing changed there.
#[test]
fn a_note_proves_nothing_by_itself() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    let second = play.hydrate("v2");
    play.settle();
    assert_eq!(play.at("env/dev"), Some(second.as_str()));
    // dev is not healthy with the second, and test has the first.
    let third = play.repository.commit_dry("prod alone");
    play.propose("env/prod", &third, "v3");
    play.repository.note("env/dev-next", &third);
    play.propose("env/test", &third, "v2");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(play.reason("env/prod"), Some("WaitsForEnvironment"));
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.at("env/test"), Some(third.as_str()));
    assert_eq!(play.reason("env/prod"), Some("CheckMissing"));
    play.check("env/test", "health", "success");
    play.settle();
    assert_eq!(play.at("env/prod"), Some(third.as_str()));
}

#[test]
fn an_environment_that_is_renamed_leaves_no_pull_request() {
    let mut play = Play::new();
    play.all_healthy();
    play.open.insert("office".to_owned(), false);
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.repository.branch("env/live", "env/prod");
    play.repository.branch("env/live-next", "env/prod-next");
    play.spec(|spec| spec["environments"][2]["branch"] = json!("env/live"));
    play.settle();
    let of = |play: &Play, branch: &str| {
        play.pull_requests
            .iter()
            .filter(|it| it.spec.about.environment == branch)
            .count()
    };
    assert_eq!((of(&play, "env/prod"), of(&play, "env/live")), (0, 1));
}
