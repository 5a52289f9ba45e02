//! What people do: to pull requests, to branches, and to where they lead.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::delivery::pull_request::trailers;
use sluice_crds::pull_request::PullRequestState as State;
use sluice_forges::PullState;

use super::play::Play;
use crate::scene::{FILE, file};

#[rstest]
#[case::merge("merge", 2)]
#[case::squash("squash", 1)]
#[case::rebase("rebase", 1)]
#[tokio::test]
async fn a_merge_by_a_person_is_seen_with_all_that_belongs_to_it(
    #[case] style: &str,
    #[case] parents: usize,
) {
    let mut play = Play::new(&format!("desk-person-{style}")).await;
    play.settle().await;
    // So that a rebase makes a commit, too.
    let base = play
        .scene
        .push("main", "other.yaml", b"a: 1\n")
        .await
        .unwrap();
    play.merge_as_person(style).await;
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Merged));
    assert_eq!(
        status.merged_by.as_deref(),
        Some(sluice_tests::gitea::OWNER)
    );
    assert_eq!(status.merged_onto.as_deref(), Some(base.as_str()));
    assert_eq!(status.outcome, None);
    let path = format!("/git/commits/{}", status.merged_sha.unwrap());
    let commit = play
        .scene
        .ask(Method::GET, &path, Value::Null)
        .await
        .unwrap();
    assert_eq!(commit["parents"].as_array().map(Vec::len), Some(parents));
    assert_eq!(play.scene.head(&play.branch()).await, None);
}

#[tokio::test]
async fn one_that_a_person_closes_does_not_come_back() {
    let mut play = Play::new("desk-closed").await;
    play.settle().await;
    let path = format!("/pulls/{}", play.number());
    let close = json!({"state": "closed"});
    play.scene.ask(Method::PATCH, &path, close).await.unwrap();
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(status.outcome.as_deref(), Some("ClosedByOthers"));
    // Not even with a status that knows nothing of it.
    play.lose();
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Closed));
    assert_eq!(play.pulls().await, 1);
}

#[tokio::test]
async fn a_branch_of_a_person_is_left_alone() {
    let mut play = Play::new("desk-theirs").await;
    let create = json!({"new_branch_name": play.branch(), "old_ref_name": "main"});
    play.scene
        .ask(Method::POST, "/branches", create)
        .await
        .unwrap();
    let theirs = play
        .scene
        .push(&play.branch(), "mine.yaml", b"a: 1\n")
        .await
        .unwrap();
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Pending));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    assert!(status.conditions.iter().any(|it| it.type_ == "Stalled"));
    assert_eq!(play.pulls().await, 0);
    play.object.spec.close = Some("given up".to_owned());
    play.object.metadata.generation = Some(2);
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Closed));
    assert_eq!(play.scene.head(&play.branch()).await, Some(theirs));
}

/// Who may push knows the key: it is the name of the branch. What they make of it is neither opened nor merged.
#[tokio::test]
async fn a_commit_with_our_key_is_not_ours() {
    let mut play = Play::new("desk-forged").await;
    let forged = trailers::message(&play.object.spec);
    let theirs = play.push_as(&play.branch(), &forged).await;
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open), "{status:?}");
    let commits = play.scene.forge.commits(play.number()).await.unwrap();
    let commits: Vec<_> = commits.iter().map(|it| it.sha.to_string()).collect();
    assert_eq!(commits, [status.commit_sha.unwrap()]);
    assert_ne!(commits, [theirs.to_string()]);
    let head = play.scene.head(&play.branch()).await.unwrap();
    let theirs = play.scene.forge.file(&head, &file("theirs.yaml")).await;
    assert_eq!(theirs, Ok(None));

    // It is open already.
    let mut play = Play::new("desk-forged-open").await;
    play.push_as(&play.branch(), &forged).await;
    let pull = play.scene.open_pull(&play.branch()).await.unwrap();
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    assert!(status.message.unwrap().contains("sluice.dev/retry"));
    assert_eq!(play.scene.seen(pull.number).await.state, PullState::Closed);
    play.order_of("1234567890".repeat(4));
    play.settle().await;
    assert_eq!(play.scene.head("main").await.as_ref(), Some(&play.base));
    assert_eq!(play.pulls().await, 1);
}

#[tokio::test]
async fn one_that_leads_to_another_branch_by_now_is_never_merged() {
    let mut play = Play::new("desk-elsewhere").await;
    play.settle().await;
    let create = json!({"new_branch_name": "other", "old_ref_name": "main"});
    let path = "/branches";
    play.scene.ask(Method::POST, path, create).await.unwrap();
    let path = format!("/pulls/{}", play.number());
    let base = json!({"base": "other"});
    play.scene.ask(Method::PATCH, &path, base).await.unwrap();
    // The order comes before it is seen.
    play.order(|order| order);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    for name in ["main", "other"] {
        assert_eq!(play.scene.head(name).await.as_ref(), Some(&play.base));
    }
    // A person merges it: that was no promotion.
    play.merge_as_person("merge").await;
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    assert_eq!(status.merged_sha, None);
}

#[tokio::test]
async fn what_somebody_else_pushes_is_never_merged() {
    let mut play = Play::new("desk-pushed").await;
    play.settle().await;
    let pushed = play
        .scene
        .push(&play.branch(), FILE, b"version: 9\n")
        .await
        .unwrap();
    // The order comes before it is seen.
    play.order(|order| order);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_eq!(status.head_sha.as_deref(), Some(pushed.as_str()));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    assert_eq!(play.scene.head("main").await.as_ref(), Some(&play.base));
    // A person merges it, by squashing: it is told that this was more than our commit.
    play.merge_as_person("squash").await;
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Merged));
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    assert_eq!(play.scene.head(&play.branch()).await, Some(pushed));
}

#[tokio::test]
async fn one_whose_branch_is_deleted_is_closed() {
    let mut play = Play::new("desk-no-branch").await;
    // Before it was opened, the commit is made again.
    play.step().await;
    play.accept();
    play.delete_branch().await;
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Open));
    play.delete_branch().await;
    let number = play.number();
    play.scene
        .becomes(number, |state| *state == PullState::Closed)
        .await;
    play.pass(61);
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Closed));
}
