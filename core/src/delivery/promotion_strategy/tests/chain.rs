//! The rules, one by one.

use rstest::rstest;
use serde_json::json;
use sluice_crds::promotion_strategy::EnvironmentState;

use super::*;
use crate::delivery::promotion_strategy::evidence::{ForgeState, ForgeStatus};
use crate::time::stamp::time;

/// dev, test and prod are healthy with the first commit, and the second waits at dev.
pub(super) fn waiting() -> (Play, String) {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["gates"] = json!({"refs": [{"name": "start"}]});
    });
    play.open.insert("start".to_owned(), false);
    play.all_healthy();
    play.settle();
    let dry = play.hydrate("v2");
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
    (play, dry)
}

#[test]
fn what_is_not_on_the_dry_branch_waits() {
    let (mut play, _) = waiting();
    let first = play.repository.head("main");
    let aside = play.repository.commit_dry("aside");
    play.repository.set("main", &first);
    play.propose("env/dev", &aside, "aside");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("NotOnDryBranch"));
    play.repository.remove("main");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("DryBranchMissing"));
    assert_eq!(
        play.says("Ready").as_deref(),
        Some("False DryBranchMissing")
    );
}

#[rstest]
#[case::of_its_own("env/dev")]
#[case::of_the_next("env/test")]
#[case::of_the_last("env/prod")]
fn nothing_moves_backwards(#[case] ahead: &str) {
    let (mut play, second) = waiting();
    let third = play.repository.commit_dry("third");
    // Somebody has brought the third commit there by hand.
    play.propose(ahead, &third, "v3");
    let head = play.repository.head(&format!("{ahead}-next"));
    play.repository.merge(ahead, &head);
    play.settle();
    play.propose("env/dev", &second, "v2 again");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("MovesBackwards"));
    assert!(play.message("env/dev").contains(ahead));
}

#[test]
fn what_a_force_push_has_removed_is_told_apart_from_what_goes_back() {
    let (mut play, _) = waiting();
    let first = play.repository.head("main");
    let lost = play.repository.commit_dry("lost");
    play.propose("env/prod", &lost, "lost");
    let head = play.repository.head("env/prod-next");
    play.repository.merge("env/prod", &head);
    play.settle();
    play.repository.set("main", &first);
    let other = play.repository.commit_dry("other");
    play.propose("env/dev", &other, "other");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("Diverged"));
}

#[rstest]
#[case::nothing("", "NoMetadata")]
#[case::no_json("dry", "MetadataInvalid")]
#[case::no_commit(r#"{"drySha": "main"}"#, "MetadataInvalid")]
fn what_does_not_say_what_it_was_made_from_waits(#[case] says: &str, #[case] reason: &str) {
    let (mut play, _) = waiting();
    play.repository.push_bare("env/dev-next", "unknown");
    if !says.is_empty() {
        play.repository.says("env/dev-next", says);
    }
    play.settle();
    assert_eq!(play.reason("env/dev"), Some(reason));
    assert_eq!(play.merges, []);
}

#[test]
fn an_environment_that_is_empty_gets_its_first_commit() {
    let mut play = Play::new();
    play.repository.remove("env/dev");
    play.repository.push_bare("env/dev", "readme");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(
        play.at("env/dev"),
        Some(play.repository.head("main").as_str())
    );
}

#[test]
fn a_branch_that_is_not_there_is_named() {
    let mut play = Play::new();
    play.repository.remove("env/test");
    play.settle();
    assert_eq!(play.reason("env/test"), Some("ActiveBranchMissing"));
    assert_eq!(
        play.says("Ready").as_deref(),
        Some("False ActiveBranchMissing")
    );
}

#[rstest]
#[case::suspended(|play: &mut Play| play.spec(|spec| spec["suspend"] = json!(true)), "Suspended")]
#[case::owned(|play: &mut Play| { play.owned_by.insert("env/dev".into(), "apps/older".into()); }, "BranchOwned")]
fn what_may_not_be_used_opens_and_merges_nothing(
    #[case] change: fn(&mut Play),
    #[case] reason: &str,
) {
    let mut play = Play::new();
    change(&mut play);
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some(reason));
    let opened = play
        .pull_requests
        .iter()
        .filter(|it| it.spec.about.environment == "env/dev");
    assert_eq!((opened.count(), play.merges.len()), (0, 0));
}

#[rstest]
#[case::access(|play: &mut Play| play.access = Access::NotReady("no such access".into()), "AccessNotReady")]
#[case::forge(|play: &mut Play| play.repository.trouble = Some("down".into()), "ForgeUnavailable")]
fn a_repository_that_cannot_be_read_takes_orders_back(
    #[case] change: fn(&mut Play),
    #[case] reason: &str,
) {
    let (mut play, _) = waiting();
    play.forge_works = false;
    play.open.insert("start".to_owned(), true);
    play.settle();
    assert!(play.environment("env/dev").order.is_some());
    change(&mut play);
    play.settle();
    assert_eq!(play.environment("env/dev").order, None);
    assert_eq!(play.state("env/dev"), EnvironmentState::Unknown);
    assert_eq!(play.says("Ready"), Some(format!("False {reason}")));
}

#[rstest]
#[case::pending("pending", "CheckPending")]
#[case::failed("failure", "CheckFailed")]
#[case::cancelled("cancelled", "CheckFailed")]
fn a_check_that_does_not_pass_is_waited_for(#[case] phase: &str, #[case] reason: &str) {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.check("env/dev", "health", phase);
    play.settle();
    assert_eq!(play.reason("env/test"), Some(reason));
    assert_eq!(play.merges.len(), 1);
}

#[test]
fn only_one_commit_status_for_this_very_commit_counts() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.reason("env/test"), Some("CheckMissing"));
    // Of another commit, and of the dry one.
    let (other, dry) = (
        play.repository.head("env/dev-next"),
        play.repository.head("main"),
    );
    play.check_sha(&other, "health", "success");
    play.check_sha(&dry, "health", "success");
    play.settle();
    assert_eq!(play.reason("env/test"), Some("CheckMissing"));
    // Two of one key.
    play.check("env/dev", "health", "success");
    let head = play.repository.head("env/dev");
    play.statuses
        .push(status("another", &head, "health", "success"));
    play.settle();
    assert_eq!(play.reason("env/test"), Some("CheckDuplicate"));
    assert!(play.message("env/test").contains("apps/another"));
    play.statuses.pop();
    play.settle();
    assert_eq!(play.merges.len(), 2);
}

#[rstest]
#[case::of_the_promoter("promoter.argoproj.io/commit-status")]
#[case::of_the_proposal("commit-status.argoproj.io/key")]
fn labels_that_say_different_keys_count_for_none(#[case] other: &str) {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.check("env/dev", "health", "success");
    let own = "sluice.dev/commit-status";
    let label = |play: &mut Play, key: &str| {
        let labels = &mut play.statuses.last_mut().unwrap().metadata.labels;
        let labels = labels.get_or_insert_default();
        labels.insert(other.to_owned(), key.to_owned());
        labels.len()
    };
    assert_eq!(label(&mut play, "other"), 2);
    play.settle();
    assert_eq!(play.reason("env/test"), Some("CheckMissing"));
    let labels = &mut play.statuses.last_mut().unwrap().metadata.labels;
    labels.get_or_insert_default().remove(own);
    assert_eq!(label(&mut play, "health"), 1);
    play.settle();
    assert_eq!(play.merges.len(), 2);
}

#[test]
fn a_check_expires() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.check("env/dev", "health", "success");
    let end = play.now + SignedDuration::from_mins(1);
    let spec = &mut play.statuses.last_mut().unwrap().spec;
    spec.expires_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(end));
    play.pass(2);
    play.settle();
    assert_eq!(play.reason("env/test"), Some("CheckExpired"));
}

#[test]
fn a_key_that_nobody_writes_is_told_with_those_that_there_are() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.check("env/dev", "helth", "success");
    play.settle();
    // It is told when it takes long, and nothing else wakes it for that.
    let active = play.environment("env/dev").active.clone().unwrap();
    let long = active.since.0 + SignedDuration::from_mins(10);
    assert_eq!(play.look().wake, Some(long));
    assert!(!play.message("env/test").contains("helth"));
    play.now = long;
    play.settle();
    assert!(
        play.message("env/test").ends_with("there are helth"),
        "{}",
        play.message("env/test")
    );
}

#[test]
fn what_is_proposed_has_checks_of_its_own() {
    let mut play = Play::new();
    play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint", "forge": "ci/lint"}]));
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["CheckMissing"]);
    let head = play.repository.head("env/dev-next");
    let status = ForgeStatus {
        context: "ci/lint".to_owned(),
        state: ForgeState::Success,
        description: "42 manifests".to_owned(),
    };
    play.repository.tell(&head, status);
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

#[test]
fn gates_of_what_is_active_hold_back_the_environments_after_it() {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["activeGates"] = json!({"refs": [{"name": "errors"}]});
    });
    play.open.insert("errors".to_owned(), false);
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.reasons("env/test"), ["GateClosed"]);
    let asked = play
        .told
        .iter()
        .rfind(|it| it.subject.action == "pass")
        .unwrap();
    let revision = format!("env/dev@sha1:{}", play.repository.head("env/dev"));
    assert_eq!(asked.subject.revision, Some(revision));
    play.open.insert("errors".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 2);
}

#[rstest]
#[case::draft(|it: &mut sluice_crds::PullRequestStatus| it.draft = true, "Draft")]
#[case::label(|it: &mut sluice_crds::PullRequestStatus| it.labels.push("sluice/hold".into()), "HeldByLabel")]
#[case::conflict(|it: &mut sluice_crds::PullRequestStatus| it.conflict = true, "Conflict")]
fn a_pull_request_that_cannot_be_merged_waits(
    #[case] change: fn(&mut sluice_crds::PullRequestStatus),
    #[case] reason: &str,
) {
    let (mut play, _) = waiting();
    play.open.insert("start".to_owned(), true);
    change(play.pull_request("env/dev").status.as_mut().unwrap());
    play.settle();
    assert_eq!(play.reasons("env/dev"), [reason]);
    assert_eq!(play.merges, []);
}

#[test]
fn a_person_who_closes_a_pull_request_is_obeyed_until_something_else_is_proposed() {
    let (mut play, _) = waiting();
    play.pull_request("env/dev").status.as_mut().unwrap().state = Some(PullRequestState::Closed);
    play.open.insert("start".to_owned(), true);
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["ClosedByPerson"]);
    let third = play.hydrate("v3");
    play.settle();
    assert_eq!(play.at("env/dev"), Some(third.as_str()));
    let record = play.environment("env/dev").pull_request.clone().unwrap();
    assert_eq!(record.n, 2);
}

/// Everybody can write the trailer of a join.
#[test]
fn checks_of_a_parent_count_for_no_other_files() {
    let mut play = Play::new();
    play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint"}]));
    play.all_healthy();
    play.settle();
    let dry = play.hydrate("v2");
    let head = play.repository.head("env/dev-next");
    play.check_sha(&head, "lint", "success");
    let active = play.repository.head("env/dev");
    let message = format!("x\n\nSluice-Keep: {active}");
    play.repository
        .push_with("env/dev-next", &dry, "evil", &message);
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("CheckMissing"));
    assert_eq!(play.merges, []);
}

/// Who may push notes may not be who may push branches.
#[test]
fn a_note_on_what_waits_says_nothing() {
    let (mut play, second) = waiting();
    // It says that dev, whose promotion waits, has it.
    play.repository.note("env/dev", &second);
    play.repository.note("env/dev-next", &second);
    play.settle();
    assert_eq!(play.reasons("env/test")[0], "WaitsForEnvironment");
    // And one that is no note at all stops nothing.
    play.repository.note("env/prod", "nonsense");
    play.open.insert("start".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

#[test]
fn nothing_is_merged_by_a_clock_that_is_not_right() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.clock_is_lost = true;
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ClockLost"));
    play.clock_is_lost = false;
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

/// Whether it says so, or only merges pass: that is no trouble that somebody has to end.
#[rstest]
#[case::limited("RateLimited", Some(2))]
#[case::kept_for_merges("ForgeThrottled", None)]
fn a_forge_that_wants_to_be_asked_later_is_waited_for(
    #[case] outcome: &str,
    #[case] attempts: Option<u32>,
) {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.forge_works = false;
    play.hydrate("v2");
    play.settle();
    let until = time(play.given().now.at + SignedDuration::from_mins(10));
    let status = play.pull_request("env/dev").status.get_or_insert_default();
    (status.outcome, status.attempts) = (Some(outcome.to_owned()), attempts);
    status.message = Some("git.example.com: its rate limit".to_owned());
    status.next_attempt_at = Some(until.clone());
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ForgeThrottled"));
    assert!(
        play.message("env/dev")
            .contains("git.example.com: its rate limit")
    );
    assert_eq!(play.environment("env/dev").waits[0].next, Some(until));
    assert_eq!(
        play.says("Ready").as_deref(),
        Some("True ReconciliationSucceeded")
    );
    play.forge_works = true;
    let status = play.pull_request("env/dev").status.get_or_insert_default();
    (status.outcome, status.attempts, status.next_attempt_at) = (None, None, None);
    play.settle();
    assert_eq!(play.merges.len(), 1);
}
