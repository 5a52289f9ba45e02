//! How an environment got what it has.

use serde_json::json;
use sluice_crds::promotion_strategy::{Arrival, marks};

use super::*;

fn arrived(play: &Play, branch: &str) -> Option<Arrival> {
    play.environment(branch).active.as_ref()?.arrived_by
}

fn waiting() -> Play {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["gates"] = json!({"refs": [{"name": "office"}]});
    });
    play.open.insert("office".to_owned(), false);
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play
}

#[test]
fn what_was_there_first_is_the_baseline() {
    let mut play = Play::new();
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Baseline));
}

/// The forge shows it merged, as it shows it of any merge.
fn merged_by_person(play: &mut Play, merged: String) {
    let status = play.pull_request("env/dev").status.as_mut().unwrap();
    status.state = Some(PullRequestState::Merged);
    status.merged_sha = Some(merged);
    status.merged_by = Some("alice".to_owned());
}

#[test]
fn a_person_who_merges_past_a_gate_is_named() {
    for squashes in [false, true] {
        let mut play = waiting();
        let head = play.repository.head("env/dev-next");
        let merged = match squashes {
            true => play.repository.squash("env/dev", &head),
            false => play.repository.merge("env/dev", &head),
        };
        merged_by_person(&mut play, merged);
        play.settle();
        let active = play.environment("env/dev").active.clone().unwrap();
        assert_eq!(active.arrived_by, Some(Arrival::Person));
        assert_eq!(active.by.as_deref(), Some("alice"));
        assert_eq!(active.bypassed, ["GateClosed"]);
        assert_eq!(
            play.says("Bypassed").as_deref(),
            Some("True MergedByPerson")
        );
        play.check("env/dev", "health", "success");
        play.settle();
        // It was what was proposed: it goes on.
        assert_eq!(play.merges.len(), 1);
    }
}

#[test]
fn a_person_who_merges_what_everything_lets_pass_has_bypassed_nothing() {
    let mut play = waiting();
    play.open.insert("office".to_owned(), true);
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.settle();
    let head = play.repository.head("env/dev-next");
    let merged = play.repository.merge("env/dev", &head);
    merged_by_person(&mut play, merged);
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Person));
    assert_eq!(play.says("Bypassed"), None);
}

#[test]
fn what_somebody_pushes_holds_everything_whatever_it_says_of_itself() {
    let mut play = waiting();
    play.open.insert("office".to_owned(), true);
    let newest = play.repository.head("main");
    play.repository.push("env/dev", &newest, "forged");
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Foreign));
    assert_eq!(play.reason("env/dev"), Some("ForeignCommit"));
    // It says that it is the newest commit, and proves nothing for others.
    assert_eq!(play.reason("env/test"), Some("WaitsForEnvironment"));
    assert_eq!(play.merges, []);
}

#[test]
fn a_person_accepts_a_commit_by_name() {
    let mut play = waiting();
    play.open.insert("office".to_owned(), true);
    let first = play.repository.head("env/prod");
    let dry = play
        .environment("env/prod")
        .active
        .clone()
        .unwrap()
        .dry_sha
        .unwrap();
    assert_ne!(first, dry);
    let hotfix = play.repository.push("env/dev", &dry, "hotfix");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ForeignCommit"));
    let other = format!("env/test={hotfix}");
    for (accepts, arrival) in [
        (other.as_str(), Arrival::Foreign),
        (&*format!("{other}, env/dev={hotfix}"), Arrival::Baseline),
    ] {
        let accepted = (marks::ACCEPT.to_owned(), accepts.to_owned());
        play.object.metadata.annotations = Some([accepted].into());
        play.forge_works = false;
        play.settle();
        assert_eq!(arrived(&play, "env/dev"), Some(arrival), "{accepts}");
    }
    play.forge_works = true;
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

#[test]
fn where_foreign_commits_are_overwritten_the_next_promotion_goes_on() {
    let mut play = waiting();
    play.open.insert("office".to_owned(), true);
    play.spec(|spec| spec["environments"][0]["foreignCommits"] = json!("Overwrite"));
    let dry = play
        .environment("env/dev")
        .active
        .clone()
        .unwrap()
        .dry_sha
        .unwrap();
    play.repository.push("env/dev", &dry, "hotfix");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Promotion));
}

/// The status was lost, as after a backup: pull requests are found again, and nothing is merged twice.
#[test]
fn a_lost_status_is_found_again() {
    let mut play = waiting();
    play.object.status = None;
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Baseline));
    assert_eq!(play.pull_requests.len(), 3);
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
    play.open.insert("office".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

#[test]
fn a_branch_that_comes_back_with_something_else_is_foreign() {
    let mut play = waiting();
    let newest = play.repository.head("main");
    play.repository.remove("env/dev");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ActiveBranchMissing"));
    play.repository.push("env/dev", &newest, "forged");
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Foreign));
}

/// Nobody has looked at the second, and the one who merged the first has not merged it.
#[test]
fn what_was_not_looked_at_is_nobody_s_promotion() {
    let mut play = waiting();
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.open.insert("office".to_owned(), true);
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["WaitsForPerson"]);
    let before = play.repository.head("env/dev");
    merged_by_person(&mut play, before);
    let dry = play.repository.commit_dry("quick");
    let head = play.propose("env/dev", &dry, "quick");
    play.repository.merge("env/dev", &head);
    play.settle();
    let active = play.environment("env/dev").active.clone().unwrap();
    assert_eq!(active.arrived_by, Some(Arrival::Person));
    assert_eq!(active.bypassed, ["NotLookedAt"]);
}

/// The branches are listed, and nothing else can be read for a while.
#[test]
fn what_cannot_be_read_is_not_recorded() {
    let mut play = Play::new();
    play.repository.fails = true;
    play.settle();
    assert_eq!(play.environment("env/dev").active, None);
    play.repository.fails = false;
    play.all_healthy();
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Baseline));

    play.repository.fails = true;
    let newest = play.repository.head("main");
    play.repository.push("env/dev", &newest, "forged");
    play.settle();
    assert_eq!(
        play.says("Ready").as_deref(),
        Some("False ForgeUnavailable")
    );
    play.repository.fails = false;
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Foreign));
}

/// A person may merge into test. Meanwhile somebody pushes to dev, so that test waits again.
#[test]
fn what_is_taken_back_in_a_hurry_says_nothing_of_others() {
    let mut play = waiting();
    play.open.insert("office".to_owned(), true);
    play.spec(|spec| spec["environments"][1]["autoMerge"] = json!(false));
    play.settle();
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.reasons("env/test"), ["WaitsForPerson"]);
    let newest = play.repository.head("main");
    play.repository.push("env/dev", &newest, "forged");
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Foreign));
}

/// It is overwritten in dev, and proves nothing for test meanwhile.
#[test]
fn what_is_overwritten_proves_nothing_for_others() {
    let mut play = waiting();
    play.spec(|spec| spec["environments"][0]["foreignCommits"] = json!("Overwrite"));
    let newest = play.repository.head("main");
    play.repository.push("env/dev", &newest, "forged");
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.reason("env/test"), Some("WaitsForEnvironment"));
}

/// What is in dev cannot be compared with what was proposed there. What it says of itself is known, and a check of
/// it has passed: it is no proof for test before that.
#[test]
fn what_may_have_been_pushed_by_anybody_proves_nothing_for_others() {
    let mut play = waiting();
    let newest = play.repository.head("main");
    let forged = play.repository.push("env/dev", &newest, "forged");
    play.repository.unread = Some(forged);
    play.repository.fails = true;
    play.check("env/dev", "health", "success");
    for _ in 0..20 {
        play.look();
        play.forge();
    }
    assert_eq!(play.merges, []);
    assert_eq!(play.reason("env/test"), Some("ForgePending"));
    // Once it can be read, it is what it is.
    (play.repository.unread, play.repository.fails) = (None, false);
    play.settle();
    assert_eq!(arrived(&play, "env/dev"), Some(Arrival::Foreign));
    assert_eq!(play.merges, []);
}
