//! Pull requests of a branch that somebody else pushes to, for a strategy.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use sluice_core::delivery::promotion_strategy::child;
use sluice_core::delivery::pull_request::Task;
use sluice_crds::PromotionStrategy;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::pull_request::PullRequestState as State;
use sluice_forges::{NewCommit, Pull, PullState, Sha, Signature, Target, Update};
use sluice_tests::gitea::OWNER;
use tokio::time::Instant;

use super::play::{Owned, Play};
use crate::scene::{DEADLINE, FILE, Scene, branch, soon};

const CONTEXT: &str = "sluice/promotion/env/prod";

/// A repository with the branches of an environment, and a strategy with the PullRequest `n` of that.
pub(super) async fn play(name: &str, n: i64) -> Play {
    let scene = Scene::new(name).await;
    for name in ["env/prod", "env/prod-next"] {
        let body = json!({"new_branch_name": name, "old_ref_name": "main"});
        let path = "/branches";
        scene.ask(Method::POST, path, body).await.unwrap();
    }
    hydrate(&scene, "1").await;
    of(scene, n).await
}

/// The next PullRequest of a repository that is there.
async fn of(scene: Scene, n: i64) -> Play {
    let base = scene.head("env/prod").await.unwrap();
    let head = scene.head("env/prod-next").await.unwrap();
    let mut strategy = strategy(head.as_str());
    let prod = strategy.spec.environments[0].clone();
    let (title, text) = ("Promote c0ffee to env/prod", "It waits for a gate.\n");
    let object = child::make(&strategy, &prod, n, title, text, Some("c0ffee"));
    named(&mut strategy, object.metadata.name.as_deref().unwrap(), n);
    let owner = Owned::Strategy(Box::new(strategy));
    Play::with(scene, object, owner, base)
}

pub(super) fn strategy(head: &str) -> PromotionStrategy {
    let strategy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": "shop", "name": "shop"},
        "spec": {"repoRef": {"name": "shop"}, "environments": [{"branch": "env/prod"}]},
        "status": {"environments": [{
            "branch": "env/prod", "state": "Waiting", "gate": "pending",
            "waits": [{"reason": "GateClosed", "message": "closed until Monday"}],
            "proposed": {"hydratedSHA": head, "tree": head, "since": "2026-11-20T12:00:00Z"},
        }]},
    });
    serde_json::from_value(strategy).unwrap()
}

/// The strategy speaks of this PullRequest.
pub(super) fn named(strategy: &mut PromotionStrategy, name: &str, n: i64) {
    let status = strategy.status.as_mut().unwrap();
    let record = json!({"name": name, "n": n});
    status.environments[0].pull_request = serde_json::from_value(record).unwrap();
}

/// Somebody proposes other files.
async fn hydrate(scene: &Scene, version: &str) -> Sha {
    let text = format!("hydrated: {version}\n");
    let pushed = scene.push("env/prod-next", FILE, text.as_bytes()).await;
    pushed.unwrap()
}

async fn open_as_person(scene: &Scene) -> u64 {
    let body = json!({"title": "By hand", "head": "env/prod-next", "base": "env/prod"});
    let made = scene.ask(Method::POST, "/pulls", body).await.unwrap();
    made["number"].as_u64().unwrap()
}

async fn listed(play: &Play) -> Vec<Pull> {
    let listed = play.scene.forge.open_pulls(&branch("env/prod")).await;
    listed.unwrap()
}

fn said(state: &str, why: &str) -> Vec<(String, String)> {
    vec![(state.to_owned(), why.to_owned())]
}

#[tokio::test]
async fn one_is_opened_shown_and_merged_and_the_next_one_is_another() {
    let mut play = play("desk-branch", 1).await;
    play.settle().await;
    let status = play.status();
    let head = play.scene.head("env/prod-next").await.unwrap();
    assert_eq!(status.state, Some(State::Open), "{status:?}");
    assert_eq!(status.head_sha.as_deref(), Some(head.as_str()));
    assert_eq!(status.commit_sha, None);
    let pull = play.scene.seen(play.number()).await;
    assert_eq!(pull.title, "Promote c0ffee to env/prod");
    let shown = play.shown_of(head.as_str(), CONTEXT).await;
    assert_eq!(shown, said("pending", "closed until Monday"));

    play.merged().await;
    let status = play.status();
    let base = play.scene.head("env/prod").await.unwrap();
    assert_eq!(status.merged_sha.as_deref(), Some(base.as_str()));
    assert_eq!(status.merged_onto, Some(play.base.to_string()));
    assert_eq!(status.merged_by, Some(play.scene.bot.clone()));
    assert_eq!(status.head_sha.as_deref(), Some(head.as_str()));
    let shown = play.shown_of(head.as_str(), CONTEXT).await;
    assert_eq!(shown, said("success", "all rules pass"));
    // Its branch is not ours.
    play.pass(100_000);
    assert_eq!(play.begin(), None);
    assert_eq!(play.scene.head("env/prod-next").await, Some(head));

    // The one that was merged is not taken for the next one.
    hydrate(&play.scene, "2").await;
    let former = play.number();
    let mut next = of(play.scene, 2).await;
    next.settle().await;
    assert_eq!(next.status().state, Some(State::Open));
    assert!(next.number() > former);
    assert_eq!(next.pulls().await, 2);
}

#[tokio::test]
async fn one_that_is_open_is_adopted_with_a_title_of_ours() {
    let mut play = play("desk-adopted", 1).await;
    let number = open_as_person(&play.scene).await;
    // One of another branch into the same is none of ours.
    let body = json!({"new_branch_name": "other", "old_ref_name": "env/prod-next"});
    let ask = play.scene.ask(Method::POST, "/branches", body);
    ask.await.unwrap();
    let body = json!({"title": "Other", "head": "other", "base": "env/prod"});
    let ask = play.scene.ask(Method::POST, "/pulls", body);
    ask.await.unwrap();
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Open));
    assert_eq!((play.number(), play.pulls().await), (number, 2));
    assert_eq!(listed(&play).await.len(), 2);
    let pull = play.scene.seen(number).await;
    assert_eq!(pull.title, "Promote c0ffee to env/prod");
    assert_eq!(pull.body.trim(), "It waits for a gate.");

    // Another title follows at once; what a person writes stays.
    play.object.spec.title = "Promote beef to env/prod".to_owned();
    play.object.metadata.generation = Some(2);
    play.settle().await;
    let pull = play.scene.seen(number).await;
    assert_eq!(pull.title, "Promote beef to env/prod");
    let path = format!("/pulls/{number}");
    let body = json!({"title": "Look at this, please"});
    play.scene.ask(Method::PATCH, &path, body).await.unwrap();
    play.pass(61);
    play.settle().await;
    let pull = play.scene.seen(number).await;
    assert_eq!(pull.title, "Look at this, please");
}

/// A rule of the repository lets only others merge. It is not tried with each order.
#[tokio::test]
async fn what_only_others_may_merge_is_put_off() {
    let mut play = play("desk-not-allowed", 1).await;
    play.settle().await;
    let rule = json!({
        "rule_name": "env/prod", "enable_merge_whitelist": true,
        "merge_whitelist_usernames": [OWNER],
    });
    let ask = play.scene.ask(Method::POST, "/branch_protections", rule);
    ask.await.unwrap();
    let end = Instant::now() + DEADLINE;
    while play.status().refusals.is_none() {
        assert!(Instant::now() < end, "{:?}", play.status());
        play.pass(6);
        play.order(|order| order);
        play.settle().await;
    }
    let status = play.status();
    assert_eq!(status.outcome.as_deref(), Some("NoRight"), "{status:?}");
    assert_eq!((status.attempts, status.merge_sent), (None, None));
    let again = status.next_merge_at.unwrap().0;
    assert_eq!(again.duration_since(play.now()).as_secs(), 80);
    let pull = play.scene.seen(play.number()).await;
    assert!(matches!(pull.state, PullState::Open { .. }), "{pull:?}");
}

#[tokio::test]
async fn drafts_and_labels_are_in_the_status_and_a_draft_stays_one() {
    let mut play = play("desk-draft", 1).await;
    play.settle().await;
    let body = json!({"name": "sluice/hold", "color": "#ff0000"});
    let ask = play.scene.ask(Method::POST, "/labels", body);
    let label = ask.await.unwrap()["id"].clone();
    let path = format!("/pulls/{}", play.number());
    let body = json!({"title": "WIP: wait", "labels": [label]});
    play.scene.ask(Method::PATCH, &path, body).await.unwrap();
    // Another title is to be written before that is seen.
    play.object.spec.title = "Promote beef to env/prod".to_owned();
    play.object.metadata.generation = Some(2);
    play.settle().await;
    let status = play.status();
    assert!(status.draft && !status.conflict, "{status:?}");
    assert_eq!(status.labels, ["sluice/hold"]);
    let pull = play.scene.seen(play.number()).await;
    assert_eq!(pull.title, "WIP: wait");
    let body = json!({"title": "By hand", "labels": []});
    play.scene.ask(Method::PATCH, &path, body).await.unwrap();
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert!(!status.draft && status.labels.is_empty(), "{status:?}");
    let pull = play.scene.seen(play.number()).await;
    assert_eq!(pull.title, "Promote beef to env/prod");
}

#[tokio::test]
async fn a_label_that_was_not_seen_yet_holds_an_ordered_merge() {
    let mut play = play("desk-hold", 1).await;
    play.settle().await;
    let body = json!({"name": "sluice/hold", "color": "#ff0000"});
    let ask = play.scene.ask(Method::POST, "/labels", body);
    let label = ask.await.unwrap()["id"].clone();
    let path = format!("/pulls/{}", play.number());
    let body = json!({"labels": [label]});
    play.scene.ask(Method::PATCH, &path, body).await.unwrap();
    play.order(|order| order);
    for _ in 0..3 {
        play.settle().await;
        play.pass(6);
    }
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_eq!(status.labels, ["sluice/hold"]);
    assert_eq!(play.scene.head("env/prod").await.as_ref(), Some(&play.base));
    let body = json!({"labels": []});
    play.scene.ask(Method::PATCH, &path, body).await.unwrap();
    play.merged().await;
}

#[tokio::test]
async fn of_two_that_are_opened_at_once_the_oldest_stays() {
    let mut play = play("desk-branch-twice", 1).await;
    let open = play.begin().unwrap();
    assert_eq!(open, Task::Open { commit: None });
    // Two leaders, and both lead no more before they close what is too much.
    let first = play.perform_within(&open, 1);
    let (_, _) = tokio::join!(first, play.perform_within(&open, 1));
    let opened = listed(&play).await;
    let lowest = opened.iter().map(|pull| pull.number).min();
    play.die();
    play.settle().await;
    let left = listed(&play).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(Some(left[0].number), lowest);
    assert_eq!(left[0].number, play.number());
}

#[tokio::test]
async fn a_head_that_moves_is_followed_and_only_the_ordered_one_is_merged() {
    let mut play = play("desk-moving", 1).await;
    play.settle().await;
    let former = play.head();
    // The order comes before the new head is seen.
    play.order(|order| order);
    let told = play.step().await.unwrap();
    assert!(matches!(told.0, Task::SetStatus(_)), "{told:?}");
    let merge = play.begin().unwrap();
    assert!(matches!(merge, Task::Merge { .. }), "{merge:?}");
    let head = hydrate(&play.scene, "2").await;
    let outcome = play.perform(&merge).await;
    play.take(merge, outcome);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_eq!(status.head_sha.as_deref(), Some(head.as_str()));
    assert_eq!(status.outcome, None);
    assert_eq!(play.scene.head("env/prod").await.as_ref(), Some(&play.base));
    // The success of the former one is taken back, and the new one has its own.
    for commit in [former.as_str(), head.as_str()] {
        let shown = play.shown_of(commit, CONTEXT).await;
        assert_eq!(shown[0].0, "pending", "{shown:?}");
    }
    play.merged().await;
    let merged = play.status();
    assert_eq!(merged.head_sha.as_deref(), Some(head.as_str()));
}

#[tokio::test]
async fn the_commit_status_says_why_it_waits() {
    let mut play = play("desk-why", 1).await;
    play.settle().await;
    play.says(MergeGate::Success);
    play.settle().await;
    let shown = play.shown_of(&play.head(), CONTEXT).await;
    assert_eq!(shown, said("success", "all rules pass"));
    play.says(MergeGate::Pending);
    play.settle().await;
    let shown = play.shown_of(&play.head(), CONTEXT).await;
    assert_eq!(shown, said("pending", "closed until Monday"));
}

#[tokio::test]
async fn one_that_a_person_closes_stays_closed() {
    let mut play = play("desk-branch-closed", 1).await;
    play.settle().await;
    let path = format!("/pulls/{}", play.number());
    let close = json!({"state": "closed"});
    play.scene.ask(Method::PATCH, &path, close).await.unwrap();
    play.pass(61);
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(status.outcome.as_deref(), Some("ClosedByOthers"));
    assert!(play.scene.head("env/prod-next").await.is_some());

    // One that is to be closed keeps its branch, too.
    let mut next = of(play.scene, 2).await;
    next.settle().await;
    next.object.spec.close = Some("the environment has another name".to_owned());
    next.settle().await;
    // A person may have merged it a moment ago.
    assert_eq!(next.status().state, Some(State::Open));
    next.pass(10);
    next.settle().await;
    assert_eq!(next.status().state, Some(State::Closed));
    let pull = next.scene.seen(next.number()).await;
    assert_eq!(pull.state, PullState::Closed);
    assert!(next.scene.head("env/prod-next").await.is_some());
}

#[tokio::test]
async fn a_conflict_is_told_until_the_branch_goes_on_from_what_is_active() {
    let mut play = play("desk-branch-conflict", 1).await;
    let theirs = play.scene.push("env/prod", FILE, b"theirs: 1\n").await;
    let active = theirs.unwrap();
    play.settle().await;
    assert!(!play.status().conflict);
    for _ in 0..3 {
        play.pass(6);
        play.settle().await;
    }
    assert!(play.status().conflict, "{:?}", play.status());

    // What is proposed goes on from both, with its own files.
    let proposed = play.scene.head("env/prod-next").await.unwrap();
    let read = play.scene.forge.commit_object(&proposed).await.unwrap();
    let keep = NewCommit {
        tree: read.unwrap().tree,
        parents: vec![proposed.clone(), active],
        author: Signature {
            name: "Sluice".to_owned(),
            email: "noreply@sluice.dev".to_owned(),
        },
        at: play.now(),
        message: "Keep what is active\n".to_owned(),
    };
    let next = branch("env/prod-next");
    let update = Update {
        branch: &next,
        from: Some(&proposed),
        to: Target::New(&keep),
    };
    let pushed = play.scene.forge.push(&update, &|_| Some(soon())).await;
    pushed.unwrap();
    let end = Instant::now() + DEADLINE;
    while play.status().conflict {
        assert!(Instant::now() < end, "{:?}", play.status());
        play.pass(61);
        play.settle().await;
    }
    let status = play.status();
    assert_eq!(status.head_sha, Some(keep.id().to_string()));
    play.merged().await;
}

/// The process dies once after each kind of task, with whatever that has done.
#[tokio::test]
async fn whatever_is_done_and_forgotten_is_not_done_twice() {
    let mut play = play("desk-branch-killed", 1).await;
    let mut killed = BTreeSet::new();
    let end = Instant::now() + DEADLINE;
    while play.status().state != Some(State::Merged) {
        assert!(Instant::now() < end, "{killed:?}: {:?}", play.status());
        if play.status().state == Some(State::Open) {
            play.order(|order| order);
        }
        let Some((task, _)) = play.step().await else {
            play.pass(6);
            continue;
        };
        let told = format!("{task:?}");
        match killed.insert(told.split([' ', '{', '(']).next().map(str::to_owned)) {
            true => play.die(),
            false => play.accept(),
        }
    }
    assert!(killed.len() >= 3, "{killed:?}");
    assert_eq!(play.pulls().await, 1);
    let status = play.status();
    let base = play.scene.head("env/prod").await.unwrap();
    assert_eq!(status.merged_sha.as_deref(), Some(base.as_str()));
    assert_eq!(status.merged_onto, Some(play.base.to_string()));
}

#[tokio::test]
async fn a_lost_status_is_found_again() {
    let mut play = play("desk-branch-lost", 1).await;
    play.settle().await;
    let number = play.number();
    play.lose();
    play.settle().await;
    assert_eq!((play.number(), play.pulls().await), (number, 1));
    let path = format!("/pulls/{number}");
    let seen = play.scene.ask(Method::GET, &path, Value::Null).await;
    assert_eq!(seen.unwrap()["state"], "open");
}
