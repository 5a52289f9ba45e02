//! PullRequests: from their spec to the merge, with a real forge and with every place at which a process may
//! be killed.

use rstest::rstest;
use serde_json::json;
use sluice_core::delivery::pull_request::{Task, trailers};
use sluice_crds::pipeline::MergeGate;
use sluice_crds::pull_request::PullRequestState as State;
use sluice_forges::PullState;

use crate::scene::{FILE, branch, file};
use play::{AFTER, BEFORE, Play};

mod branches;
mod people;
mod play;
mod trees;

/// Byte for byte, with another line end at each line, a byte order mark and no line break at the end.
#[tokio::test]
async fn a_revision_is_committed_opened_shown_and_merged() {
    let mut play = Play::new("desk-happy").await;
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    let (commit, number) = (status.commit_sha.unwrap(), play.number());
    let head = play.scene.head(&play.branch()).await.unwrap();
    assert_eq!(head.as_str(), commit);
    let read = play.scene.forge.file(&head, &file(FILE)).await.unwrap();
    assert_eq!(String::from_utf8(read.unwrap().bytes).unwrap(), AFTER);
    let pull = play.scene.seen(number).await;
    assert_eq!(pull.title, "Promote flux-system/podinfo to 6.1.6 in prod");
    assert_eq!(status.url, Some(pull.url));
    assert_eq!(play.shown().await, ["pending"]);

    // The gates open: the status says so, and it is merged.
    play.merged().await;
    let status = play.status();
    assert_eq!(play.shown().await, ["success"]);
    assert_eq!(status.state, Some(State::Merged), "{status:?}");
    assert_eq!(status.merged_by, Some(play.scene.bot.clone()));
    let base = play.scene.head("main").await.unwrap();
    assert_eq!(status.merged_sha.as_deref(), Some(base.as_str()));
    assert_eq!(status.merged_onto, Some(play.base.to_string()));
    assert_eq!(status.outcome, None);
    // The branch is gone, and the forge is not asked again.
    assert!(status.branch_deleted);
    assert_eq!(play.scene.head(&play.branch()).await, None);
    play.pass(100_000);
    assert_eq!(play.begin(), None);
}

/// The process dies after each task, with whatever the task has done: what its status did not say by then
/// is forgotten.
#[tokio::test]
async fn whatever_is_done_and_forgotten_is_not_done_twice() {
    let mut play = Play::new("desk-killed").await;
    for kind in ["Commit", "Open", "SetStatus"] {
        for _ in 0..2 {
            let (task, _) = play.step().await.unwrap();
            assert!(format!("{task:?}").starts_with(kind), "{task:?}");
            play.die();
        }
        play.step().await;
        play.refuse(2);
        play.accept();
    }
    assert_eq!(play.pulls().await, 1);
    let commits = play.scene.forge.commits(play.number()).await.unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(play.status().state, Some(State::Open));

    // Also after the merge, and after its branch was deleted. Each process says pending first, so that one
    // which always dies would never get on: it dies once after each kind of task.
    play.order(|order| order);
    let mut killed = std::collections::BTreeSet::new();
    for left in (0..20).rev() {
        let Some((task, _)) = play.step().await else {
            break;
        };
        assert!(left > 0, "{task:?} after {killed:?}");
        let told = format!("{task:?}");
        match killed.insert(told.split([' ', '{']).next().map(str::to_owned)) {
            true => play.die(),
            false => play.accept(),
        }
    }
    assert_eq!(killed.len(), 3, "{killed:?}");
    assert_eq!(play.status().state, Some(State::Merged));
    let merged = play.scene.head("main").await.unwrap();
    assert_eq!(play.status().merged_sha.as_deref(), Some(merged.as_str()));
    assert_eq!(play.status().merged_onto, Some(play.base.to_string()));
}

/// The whole status is lost, of one in each state.
#[tokio::test]
async fn a_lost_status_is_found_again_at_the_forge() {
    let mut play = Play::new("desk-lost").await;
    play.settle().await;
    let open = play.status();
    play.lose();
    play.settle().await;
    let again = play.status();
    assert_eq!(
        (again.id, again.commit_sha),
        (open.id, open.commit_sha.clone())
    );
    assert_eq!(play.pulls().await, 1);
    play.merged().await;
    let merged = play.status();
    play.lose();
    play.settle().await;
    let again = play.status();
    assert_eq!(again.state, Some(State::Merged));
    let both = [&again, &merged].map(|it| (it.merged_sha.clone(), it.merged_onto.clone()));
    assert_eq!(both[0], both[1]);
    assert_eq!((again.outcome, play.pulls().await), (None, 1));
}

#[tokio::test]
async fn one_that_is_to_be_closed_is_closed_with_the_reason() {
    let mut play = Play::new("desk-close").await;
    play.settle().await;
    play.object.spec.close = Some("another revision takes its place".to_owned());
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Closed));
    let pull = play.scene.seen(play.number()).await;
    assert_eq!(pull.state, PullState::Closed);
    assert!(
        pull.body.contains("another revision takes its place"),
        "{}",
        pull.body
    );
    assert_eq!(play.scene.head(&play.branch()).await, None);

    // One that was merged meanwhile says so.
    let mut play = Play::new("desk-close-merged").await;
    play.settle().await;
    play.merge_as_person("merge").await;
    play.object.spec.close = Some("too late".to_owned());
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Merged));
}

/// It is closed before its pull request was opened, by a process that does not know of the commit.
#[tokio::test]
async fn a_commit_that_nobody_wants_any_more_leaves_nothing() {
    let mut play = Play::new("desk-unwanted").await;
    play.step().await;
    play.die();
    assert!(play.scene.head(&play.branch()).await.is_some());
    play.object.spec.close = Some("another revision takes its place".to_owned());
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Closed));
    assert_eq!(
        (play.scene.head(&play.branch()).await, play.pulls().await),
        (None, 0)
    );
}

/// The status that said that the commit is ours was never accepted, or the branch has another one since.
#[tokio::test]
async fn a_commit_that_no_status_has_is_made_again() {
    let mut play = Play::new("desk-again").await;
    play.step().await;
    play.accept();
    let ours = play.status().commit_sha;
    play.delete_branch().await;
    let forged = trailers::message(&play.object.spec);
    play.push_as(&play.branch(), &forged).await;
    // Its number is lost with the object, and the commit is remembered.
    play.lose();
    play.settle().await;
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_ne!(status.commit_sha, ours);
    let commits = play.scene.forge.commits(play.number()).await.unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(status.commit_sha, Some(commits[0].sha.to_string()));
    let theirs = file("theirs.yaml");
    let theirs = play.scene.forge.file(&commits[0].sha, &theirs).await;
    assert_eq!(theirs, Ok(None));
}

/// Nobody on the cluster remembers it.
#[tokio::test]
async fn another_one_of_the_environment_is_closed_before_ours_is_opened() {
    let mut play = Play::new("desk-others").await;
    let prefix = play.branch();
    let prefix = prefix.rsplit_once('/').unwrap().0;
    let former = format!("{prefix}/000000000000");
    play.push_as(&former, "former").await;
    play.push_as("sluice/a-person", "theirs").await;
    let former = play.scene.open_pull(&former).await.unwrap();
    let theirs = play.scene.open_pull("sluice/a-person").await.unwrap();
    let commit = play.begin().unwrap();
    let outcome = play.perform(&commit).await;
    assert_eq!(
        play.scene.seen(former.number).await.state,
        PullState::Closed
    );
    play.take(commit, outcome);
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Open));
    let listed = play.scene.forge.open_pulls(&branch("main")).await.unwrap();
    let mut open: Vec<_> = listed.iter().map(|pull| pull.number).collect();
    open.sort_unstable();
    assert_eq!(open, [theirs.number, play.number()]);
}

#[tokio::test]
async fn an_order_for_another_commit_or_that_is_too_late_merges_nothing() {
    let mut play = Play::new("desk-orders").await;
    play.settle().await;
    let now = play.now();
    for number in 0..2 {
        play.order(|order| match number {
            0 => sluice_crds::pipeline::Order {
                head_sha: "1234567890".repeat(4),
                ..order
            },
            _ => sluice_crds::pipeline::Order {
                not_after: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                    now - jiff::SignedDuration::from_secs(1),
                ),
                ..order
            },
        });
        play.settle().await;
        assert_eq!(play.status().state, Some(State::Open));
    }
    // Decided in time, and begun too late.
    play.order(|order| order);
    let task = play.begin().unwrap();
    assert!(matches!(task, Task::Merge { .. }), "{task:?}");
    play.pass(61);
    let outcome = play.perform(&task).await;
    assert!(
        format!("{outcome:?}").contains("the order to merge it has ended"),
        "{outcome:?}"
    );
    assert_eq!(play.scene.head("main").await.as_ref(), Some(&play.base));
}

#[tokio::test]
async fn a_conflict_is_told_and_ends_with_the_order() {
    let mut play = Play::new("desk-conflict").await;
    play.settle().await;
    let theirs = BEFORE.replace("6.1.0", "6.1.1");
    let base = play
        .scene
        .push("main", FILE, theirs.as_bytes())
        .await
        .unwrap();
    play.order(|order| order);
    play.settle().await;
    // Just after a push Gitea may say that the pull request changes in this moment.
    for _ in 0..5 {
        if play.status().outcome.as_deref() == Some("Changed") {
            play.pass(5);
            play.settle().await;
        }
    }
    let status = play.status();
    assert_eq!(status.state, Some(State::Open));
    assert_eq!(status.outcome.as_deref(), Some("NotYet"));
    assert!(status.conditions.iter().any(|it| it.reason == "Open"));
    play.pass(300);
    play.settle().await;
    assert_eq!(play.scene.head("main").await, Some(base));
}

/// After one of two that were opened at once was merged, Gitea says of the other for ever that it checks.
#[tokio::test]
async fn of_duplicates_the_oldest_stays() {
    let mut play = Play::new("desk-twice").await;
    // Two leaders have committed, and open it at once.
    play.step().await;
    play.accept();
    let open = play.begin().unwrap();
    // Both lead no more before they close what is too much. Gitea mostly takes both.
    let first = play.perform_within(&open, 1);
    let (_, _) = tokio::join!(first, play.perform_within(&open, 1));
    assert!(play.pulls().await > 0);
    play.die();
    play.refuse(2);
    play.settle().await;
    let listed = play.scene.forge.open_pulls(&branch("main")).await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].number, play.number());
}

#[tokio::test]
async fn a_change_that_is_there_needs_no_pull_request() {
    let mut play = Play::new("desk-there").await;
    play.scene
        .push("main", FILE, AFTER.as_bytes())
        .await
        .unwrap();
    play.settle().await;
    assert_eq!(play.status().state, Some(State::AlreadyInBase));
    assert_eq!(
        (play.scene.head(&play.branch()).await, play.pulls().await),
        (None, 0)
    );

    // A commit that somebody has pushed into the target branch: Gitea leaves the pull request open.
    let mut play = Play::new("desk-ff").await;
    play.settle().await;
    let update = json!({"Do": "fast-forward-only"});
    play.merge_with(update).await;
    play.look_now();
    play.settle().await;
    let state = play.status().state;
    assert!(
        matches!(state, Some(State::Merged | State::AlreadyInBase)),
        "{state:?}"
    );
}

#[rstest]
#[case::no_mark("desk-no-mark", "a: 1\n", "apps/prod.yaml: no value is marked")]
#[case::no_yaml("desk-no-yaml", "a: [\n", "apps/prod.yaml: line ")]
#[tokio::test]
async fn a_file_that_cannot_be_changed_is_named_with_what_to_write(
    #[case] name: &str,
    #[case] text: &str,
    #[case] expected: &str,
) {
    let mut play = Play::new(name).await;
    play.scene
        .push("main", FILE, text.as_bytes())
        .await
        .unwrap();
    play.settle().await;
    let status = play.status();
    assert_eq!(status.outcome.as_deref(), Some("FileNotEditable"));
    assert!(
        status.message.as_deref().unwrap().starts_with(expected),
        "{:?}",
        status.message
    );
    assert_eq!(play.scene.head(&play.branch()).await, None);
    // It is corrected, and goes on by itself.
    play.scene
        .push("main", FILE, BEFORE.as_bytes())
        .await
        .unwrap();
    play.pass(20);
    play.settle().await;
    assert_eq!(play.status().state, Some(State::Open));
}

#[tokio::test]
async fn the_commit_status_follows_the_gates() {
    let mut play = Play::new("desk-shown").await;
    play.settle().await;
    for (gate, expected) in [
        (MergeGate::Success, "success"),
        (MergeGate::Pending, "pending"),
        (MergeGate::Success, "success"),
    ] {
        play.says(gate);
        play.settle().await;
        assert_eq!(play.shown().await, [expected]);
        let set = play.statuses;
        play.pass(61);
        play.settle().await;
        // It is set only where it changes.
        assert_eq!(play.statuses, set);
    }
    // Pending, and each change; and the forge has kept them all.
    assert_eq!((play.statuses, play.listed().await), (4, 4));
}
