//! The pull request of an environment, whatever somebody does at the forge.

use serde_json::json;
use sluice_crds::promotion_strategy::Arrival;

use super::chain::waiting;
use super::reverts::{broken, revert};
use super::*;

/// Somebody pushes by force what dev had before, and the same is proposed still.
#[test]
fn what_was_merged_and_taken_away_by_force_is_merged_once_more() {
    let mut play = Play::new();
    play.spec(|spec| spec["environments"][0]["foreignCommits"] = json!("Overwrite"));
    play.all_healthy();
    play.settle();
    let first = play.repository.head("env/dev");
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    play.repository.set("env/dev", &first);
    play.settle();
    // The branch may have been listed before the merge.
    assert_eq!(play.reasons("env/dev"), ["PullRequestPending"]);
    assert_eq!(
        play.look().wake,
        Some(play.now + SignedDuration::from_mins(1))
    );
    play.pass(1);
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(
        play.look().wake,
        Some(play.now + SignedDuration::from_mins(1))
    );
    play.pass(1);
    play.settle();
    assert_eq!(play.merges.len(), 2);
    let dev = play.environment("env/dev");
    assert_eq!(dev.pull_request.as_ref().map(|it| it.n), Some(2));
    let arrived = dev.active.as_ref().and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Promotion));
}

/// Forges count requests.
#[test]
fn a_forge_is_not_asked_what_the_commits_themselves_say() {
    let mut play = Play::new();
    play.all_healthy();
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert!(play.repository.compared_needlessly().is_empty());
}

/// A forge closes the pull request of a branch that is deleted.
#[test]
fn what_is_deleted_and_pushed_again_has_a_new_pull_request() {
    let (mut play, _) = waiting();
    let head = play.repository.head("env/dev-next");
    play.repository.remove("env/dev-next");
    play.pull_request("env/dev").status.as_mut().unwrap().state = Some(PullRequestState::Closed);
    play.settle();
    play.repository.set("env/dev-next", &head);
    play.open.insert("start".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 1);
    let record = play.environment("env/dev").pull_request.clone().unwrap();
    assert_eq!(record.n, 2);
}

/// Whether a person has closed it, or the deletion of its branch that nobody saw, is not known.
#[test]
fn to_delete_a_pull_request_has_another_one_opened() {
    let (mut play, _) = waiting();
    play.pull_request("env/dev").status.as_mut().unwrap().state = Some(PullRequestState::Closed);
    play.open.insert("start".to_owned(), true);
    play.settle();
    let name = play.pull_request("env/dev").metadata.name.clone().unwrap();
    let remedy = format!("delete the PullRequest {name}, ");
    assert!(
        play.message("env/dev").contains(&remedy),
        "{}",
        play.message("env/dev")
    );
    play.pull_requests
        .retain(|it| it.metadata.name.as_ref() != Some(&name));
    play.settle();
    assert_eq!(play.merges.len(), 1);
}

/// The forge may be slow to close it.
#[test]
fn what_is_being_closed_is_closed_although_a_revert_begins() {
    let (mut play, first, _) = broken(&json!({}));
    play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint"}]));
    play.hydrate("v3");
    play.settle();
    let name = play.pull_request("env/prod").metadata.name.clone();
    play.forge_works = false;
    play.repository.remove("env/prod-next");
    play.settle();
    assert!(play.pull_request("env/prod").spec.close.is_some());
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    assert_ne!(play.pull_request("env/prod").metadata.name, name);
    play.forge_works = true;
    play.settle();
    let mut all = play.pull_requests.iter();
    let closed = all.find(|it| it.metadata.name == name).unwrap();
    let state = closed.status.as_ref().and_then(|it| it.state);
    assert_eq!(state, Some(PullRequestState::Closed));
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
}
