//! Merges: by every method, and all that holds them.

use http::Method;
use rstest::rstest;
use serde_json::json;
use sluice_forges::{MergeMethod, Mergeable, PullState, Status, StatusState, Trouble, Undone};

use crate::scene::{FILE, Scene, branch, file, refused, soon, unknown};

#[rstest]
#[case::merge("merged", Some(MergeMethod::Merge), 2)]
#[case::squash("squashed", Some(MergeMethod::Squash), 1)]
#[case::rebase("rebased", Some(MergeMethod::Rebase), 1)]
#[case::usual("usual", None, 2)]
#[tokio::test]
async fn a_pull_request_is_merged_by_each_method(
    #[case] name: &str,
    #[case] method: Option<MergeMethod>,
    #[case] parents: usize,
) {
    let scene = Scene::new(name).await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    // So that a rebase makes a commit, too.
    scene
        .push("main", "apps/dev.yaml", b"version: 9\n")
        .await
        .unwrap();
    assert_eq!(scene.merge(pull.number, &commit, method).await, Ok(()));
    let merged = scene.seen(pull.number).await;
    let head = scene.head("main").await.unwrap();
    let state = PullState::Merged {
        commit: Some(head.clone()),
        by: Some(scene.bot.clone()),
    };
    assert_eq!(merged.state, state);
    let read = scene.forge.file(&head, &file(FILE)).await.unwrap().unwrap();
    assert_eq!(read.bytes, b"version: 2\n");
    let path = format!("/git/commits/{head}");
    let seen = scene.ask(Method::GET, &path, json!(null)).await.unwrap();
    assert_eq!(seen["parents"].as_array().map(Vec::len), Some(parents));
    assert_eq!(scene.forge.contains(&head, &commit).await, Ok(parents == 2));

    let again = scene.merge(pull.number, &commit, method).await;
    assert_eq!(again, Err(Trouble::AlreadyMerged));
    let closing = scene.forge.close(&merged, "late", soon()).await;
    assert_eq!(refused(closing), Trouble::AlreadyMerged);
    assert_eq!(scene.head("main").await, Some(head));
}

#[tokio::test]
async fn a_repository_that_only_squashes_says_so() {
    let scene = Scene::new("squash-only").await;
    let rules = json!({
        "allow_merge_commits": false, "allow_rebase": false, "allow_rebase_explicit": false,
        "allow_squash_merge": true, "default_merge_style": "squash",
    });
    scene.ask(Method::PATCH, "", rules).await.unwrap();
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let act = scene
        .merge(pull.number, &commit, Some(MergeMethod::Merge))
        .await;
    assert!(matches!(act, Err(Trouble::NotMergeable(_))), "{act:?}");
    assert_eq!(scene.merge(pull.number, &commit, None).await, Ok(()));
}

/// What is preferred need not be allowed.
#[tokio::test]
async fn a_repository_that_only_rebases_is_not_merged_unless_that_is_asked_for() {
    let scene = Scene::new("rebase-only").await;
    let rules = json!({
        "allow_merge_commits": false, "allow_squash_merge": false, "allow_rebase": true,
        "allow_rebase_explicit": false, "allow_fast_forward_only_merge": false,
        "default_merge_style": "merge",
    });
    scene.ask(Method::PATCH, "", rules).await.unwrap();
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let merge = async |method| scene.merge(pull.number, &commit, Some(method)).await;
    assert_eq!(
        merge(MergeMethod::NoRebase).await,
        Err(Trouble::OnlyRebases)
    );
    assert_eq!(merge(MergeMethod::Rebase).await, Ok(()));
}

#[tokio::test]
async fn a_repository_that_prefers_rebases_is_merged_without_one_if_that_is_asked_for() {
    let scene = Scene::new("rebases").await;
    let rules = json!({"default_merge_style": "rebase"});
    scene.ask(Method::PATCH, "", rules).await.unwrap();
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let method = Some(MergeMethod::NoRebase);
    assert_eq!(scene.merge(pull.number, &commit, method).await, Ok(()));
    let head = scene.head("main").await.unwrap();
    let path = format!("/git/commits/{head}");
    let seen = scene.ask(Method::GET, &path, json!(null)).await.unwrap();
    assert_eq!(seen["parents"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn another_head_is_never_merged() {
    let scene = Scene::new("moved").await;
    let base = scene.head("main").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let pushed = scene.push("next", FILE, b"version: 3\n").await.unwrap();
    for other in [&commit, &unknown()] {
        let act = scene.merge(pull.number, other, None).await;
        assert_eq!(act, Err(Trouble::HeadMoved));
    }
    assert_eq!(scene.head("main").await, base);
    assert_eq!(scene.merge(pull.number, &pushed, None).await, Ok(()));
}

#[tokio::test]
async fn nothing_is_merged_into_another_base() {
    let scene = Scene::new("other-base").await;
    let base = scene.head("main").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let act = scene.merge_into(pull.number, &commit, "prod", None).await;
    let trouble = act.map_err(|undone| undone.error().trouble.clone());
    assert_eq!(trouble, Err(Trouble::HeadMoved));
    assert_eq!(scene.head("main").await, base);
}

/// Gitea has one reply for a conflict and for a check that has not ended.
#[tokio::test]
async fn a_conflict_is_not_yet_for_ever() {
    let scene = Scene::new("conflict").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    scene.push("main", FILE, b"version: 3\n").await.unwrap();
    let conflicting = |state: &PullState| {
        matches!(
            state,
            PullState::Open {
                mergeable: Mergeable::Unknown,
                ..
            }
        )
    };
    scene.becomes(pull.number, conflicting).await;
    let act = scene.merge_into(pull.number, &commit, "main", None).await;
    let Err(Undone::NotDone(error)) = act else {
        panic!("it was not held: {act:?}");
    };
    assert_eq!(error.trouble, Trouble::NotYet);
    let (base, head) = (scene.head("main").await.unwrap(), commit);
    assert_eq!(scene.forge.contains(&base, &head).await, Ok(false));
}

/// After one of two duplicates is merged, Gitea says of the other for ever that it still checks.
#[tokio::test]
async fn a_duplicate_whose_head_is_in_the_base_is_told_by_ancestry() {
    let scene = Scene::new("in-base").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let again = json!({"new_branch_name": "again", "old_ref_name": commit.as_str()});
    scene.ask(Method::POST, "/branches", again).await.unwrap();
    let second = scene.open_pull("again").await.unwrap();
    let merge = Some(MergeMethod::Merge);
    assert_eq!(scene.merge(pull.number, &commit, merge).await, Ok(()));
    let base = scene.head("main").await.unwrap();
    let act = scene
        .merge_into(second.number, &commit, "main", merge)
        .await;
    assert!(act.is_err(), "{act:?}");
    assert_eq!(scene.forge.contains(&base, &commit).await, Ok(true));
    assert_eq!(scene.head("main").await, Some(base));
    scene
        .forge
        .close(&second, "its commit is in main", soon())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_required_status_holds_the_merge_until_it_succeeds() {
    let scene = Scene::new("required").await;
    let context = "sluice/gate/prod";
    let rule = json!({
        "rule_name": "main", "enable_status_check": true, "status_check_contexts": [context],
    });
    scene
        .ask(Method::POST, "/branch_protections", rule)
        .await
        .unwrap();
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    let set = async |state| {
        let status = Status {
            context,
            state,
            description: "why",
            url: "https://example.com",
        };
        scene
            .forge
            .set_status(&commit, &status, &|_| Some(soon()))
            .await
            .unwrap();
    };
    for state in [StatusState::Pending, StatusState::Failure] {
        set(state).await;
        let act = scene.merge(pull.number, &commit, None).await;
        let Err(Trouble::NotMergeable(words)) = act else {
            panic!("it was not held: {act:?}");
        };
        assert!(
            words.to_string().contains("required status checks"),
            "{words}"
        );
    }
    // Success that is taken back counts no longer.
    set(StatusState::Success).await;
    set(StatusState::Pending).await;
    let act = scene.merge(pull.number, &commit, None).await;
    assert!(matches!(act, Err(Trouble::NotMergeable(_))), "{act:?}");
    set(StatusState::Success).await;
    assert_eq!(scene.merge(pull.number, &commit, None).await, Ok(()));
    assert_eq!(
        scene.forge.open_pulls(&branch("main")).await,
        Ok(Vec::new())
    );
}
