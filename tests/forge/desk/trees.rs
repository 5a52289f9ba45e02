//! Pull requests with a commit that has the tree of another one, for a strategy.

use http::Method;
use serde_json::json;
use sluice_core::delivery::promotion_strategy::child;
use sluice_core::delivery::pull_request::{Outcome, Task};
use sluice_crds::pull_request::{PullRequestState as State, Tree};
use sluice_forges::Sha;

use super::branches::{named, strategy};
use super::play::{Owned, Play};
use crate::scene::{FILE, Scene};

/// An environment that is to go back to what it had before. Returns the tree of that, too.
async fn play(name: &str) -> (Play, Sha) {
    let scene = Scene::new(name).await;
    let body = json!({"new_branch_name": "env/prod", "old_ref_name": "main"});
    let path = "/branches";
    scene.ask(Method::POST, path, body).await.unwrap();
    let before = scene.push("env/prod", FILE, b"hydrated: 1\n").await;
    let after = scene.push("env/prod", FILE, b"hydrated: 2\n").await;
    let (before, after) = (before.unwrap(), after.unwrap());
    let read = scene.forge.commit_object(&before).await.unwrap();
    let of = read.unwrap().tree;
    let mut strategy = strategy(after.as_str());
    let prod = strategy.spec.environments[0].clone();
    let tree = Tree {
        of: of.to_string(),
        parent: after.to_string(),
        message: "Go back to c0ffee\n".to_owned(),
        date: 1_795_176_000,
    };
    let (words, numbers) = (("Go back to c0ffee", ""), (2, Some("c0ffee")));
    let object = child::make_revert(&strategy, &prod, numbers, words, ("shop-x7", tree));
    named(&mut strategy, object.metadata.name.as_deref().unwrap(), 2);
    let owner = Owned::Strategy(Box::new(strategy));
    (Play::with(scene, object, owner, after), of)
}

#[tokio::test]
async fn a_tree_is_committed_opened_and_merged() {
    let (mut play, of) = play("desk-tree").await;
    let (task, outcome) = play.step().await.unwrap();
    assert_eq!(task, Task::Commit);
    let Outcome::Committed(commit) = outcome else {
        panic!("{outcome:?}");
    };
    // It was forgotten, and is made again: it is the same one.
    play.die();
    let again = play.step().await.unwrap();
    assert_eq!(again, (Task::Commit, Outcome::Committed(commit.clone())));
    play.accept();
    assert_eq!(play.status().commit_sha.as_ref(), Some(&commit));
    let head = Sha::parse(&commit).unwrap();
    let made = play.scene.forge.commit_object(&head).await.unwrap();
    let made = made.unwrap();
    assert_eq!((&made.tree, &made.parents), (&of, &vec![play.base.clone()]));
    assert_eq!(made.message, "Go back to c0ffee\n");

    play.settle().await;
    assert_eq!(
        play.status().state,
        Some(State::Open),
        "{:?}",
        play.status()
    );
    let shown = play.shown_of(&commit, "sluice/promotion/env/prod").await;
    assert_eq!(shown[0].0, "pending");
    // Nobody on the cluster remembers the commit: it follows from the spec.
    play.lose();
    play.settle().await;
    assert_eq!(
        play.status().state,
        Some(State::Open),
        "{:?}",
        play.status()
    );
    assert_eq!(play.status().commit_sha.as_ref(), Some(&commit));
    assert_eq!(play.pulls().await, 1);

    play.merged().await;
    let active = play.scene.head("env/prod").await.unwrap();
    let active = play.scene.forge.commit_object(&active).await.unwrap();
    assert_eq!(active.unwrap().tree, of);
    assert_eq!(play.status().outcome, None);
    assert!(play.status().branch_deleted);
    assert_eq!(play.scene.head(&play.branch()).await, None);
}

#[tokio::test]
async fn a_branch_that_somebody_has_pushed_to_is_left_alone() {
    let (mut play, _) = play("desk-tree-theirs").await;
    let body = json!({"new_branch_name": play.branch(), "old_ref_name": "main"});
    let path = "/branches";
    play.scene.ask(Method::POST, path, body).await.unwrap();
    play.settle().await;
    let status = play.status();
    assert_eq!(status.outcome.as_deref(), Some("BranchTouched"));
    let message = status.message.unwrap();
    assert!(!message.contains("sluice.dev/retry"), "{message}");
    assert_eq!(play.pulls().await, 0);
    play.object.spec.close = Some("given up".to_owned());
    play.object.metadata.generation = Some(2);
    play.settle().await;
    assert!(play.scene.head(&play.branch()).await.is_some());
}
