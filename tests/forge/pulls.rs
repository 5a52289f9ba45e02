//! Pull requests: opened, listed, found, closed.

use futures::future::join_all;
use http::Method;
use serde_json::json;
use sluice_forges::{Missing, PullState, Trouble, surplus};
use sluice_tests::gitea::OWNER;

use crate::scene::{FILE, Scene, branch, refused, soon};

#[tokio::test]
async fn an_opened_one_is_found_listed_and_read() {
    let scene = Scene::new("opened").await;
    let (head, base) = (branch("next"), branch("main"));
    assert_eq!(scene.forge.find(&head, &base).await, Ok(None));
    assert_eq!(scene.forge.pull(1).await, Ok(None));
    let (commit, opened) = scene.pull("next", b"version: 2\n").await;
    assert!(
        opened.url.starts_with("https://127.0.0.1:"),
        "{}",
        opened.url
    );
    assert_eq!(
        (opened.title.as_str(), opened.body.as_str()),
        ("Promote", "To 2.0.\n")
    );
    assert_eq!(
        (opened.head.as_str(), opened.base.as_str()),
        ("next", "main")
    );
    assert!(opened.own);
    let PullState::Open { head: seen, .. } = &opened.state else {
        panic!("it is open: {opened:?}");
    };
    assert_eq!(*seen, commit);

    let found = scene.forge.find(&head, &base).await.unwrap().unwrap();
    let listed = scene.forge.open_pulls(&base).await.unwrap();
    assert_eq!((found.number, listed.len()), (opened.number, 1));
    assert_eq!(listed[0].number, opened.number);
    assert_eq!(
        scene.forge.open_pulls(&branch("other")).await,
        Ok(Vec::new())
    );
    assert_eq!(refused(scene.open_pull("next").await), Trouble::PullExists);
    let absent = scene.open_pull("gone").await;
    assert_eq!(refused(absent), Trouble::Absent(Missing::Branch));
}

#[tokio::test]
async fn of_several_opened_at_once_one_stays() {
    let scene = Scene::new("at-once").await;
    scene
        .change("next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap();
    let opened = join_all((0..3).map(|_| scene.open_pull("next"))).await;
    let mut numbers: Vec<_> = opened.iter().flatten().map(|pull| pull.number).collect();
    numbers.sort_unstable();
    assert!(!numbers.is_empty(), "{opened:?}");

    let (head, base) = (branch("next"), branch("main"));
    let listed = scene.forge.open_pulls(&base).await.unwrap();
    for pull in surplus(&listed, &head, &base) {
        scene
            .forge
            .close(pull, "a duplicate", soon())
            .await
            .unwrap();
    }
    let left = scene.forge.open_pulls(&base).await.unwrap();
    let left: Vec<_> = left.iter().map(|pull| pull.number).collect();
    assert_eq!(left, numbers[..1]);
    let found = scene.forge.find(&head, &base).await.unwrap();
    assert_eq!(found.map(|pull| pull.number), Some(numbers[0]));
}

/// The server gives three on a page, although more are asked for.
#[tokio::test]
async fn all_pages_are_listed_and_looked_through() {
    let scene = Scene::new("pages").await;
    let mut opened = Vec::new();
    for n in 0..7 {
        let version = format!("version: {n}\n");
        let (_, pull) = scene.pull(&format!("next-{n}"), version.as_bytes()).await;
        opened.push(pull.number);
    }
    let listed = scene.forge.open_pulls(&branch("main")).await.unwrap();
    let mut listed: Vec<_> = listed.iter().map(|pull| pull.number).collect();
    listed.sort_unstable();
    assert_eq!(listed, opened);

    // Closed ones count, and the newest is found wherever it is.
    let newest = async |prefix| scene.forge.newest(prefix, &branch("main")).await.unwrap();
    let number = async |prefix| newest(prefix).await.map(|pull| pull.number);
    scene
        .forge
        .close(&scene.seen(opened[6]).await, "done", soon())
        .await
        .unwrap();
    assert_eq!(number("next-").await, Some(opened[6]));
    assert_eq!(number("next-0").await, Some(opened[0]));
    assert_eq!(number("other/").await, None);
}

#[tokio::test]
async fn a_closed_one_says_why_and_stays_closed() {
    let scene = Scene::new("closed").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    for _ in 0..2 {
        scene
            .forge
            .close(&pull, "superseded by 3.0", soon())
            .await
            .unwrap();
        let seen = scene.seen(pull.number).await;
        assert_eq!(seen.state, PullState::Closed);
        assert_eq!(seen.body, "To 2.0.\n\n**Closed**: superseded by 3.0");
        // As a caller has it who looks again.
        scene
            .forge
            .close(&seen, "superseded by 3.0", soon())
            .await
            .unwrap();
    }
    assert_eq!(
        scene.forge.open_pulls(&branch("main")).await,
        Ok(Vec::new())
    );
    let found = scene
        .forge
        .find(&branch("next"), &branch("main"))
        .await
        .unwrap();
    assert_eq!(found.map(|pull| pull.state), Some(PullState::Closed));
    assert_eq!(
        scene.merge(pull.number, &commit, None).await,
        Err(Trouble::Closed)
    );
}

#[tokio::test]
async fn one_gets_another_title_and_may_become_a_draft() {
    let scene = Scene::new("edited").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    assert!(!pull.draft);
    let edit = async |number, title| {
        scene
            .forge
            .edit(number, title, "To 3.0.\n", &|_| Some(soon()))
            .await
    };
    assert_eq!(edit(pull.number, "Promote 3.0").await, Ok(()));
    let seen = scene.seen(pull.number).await;
    assert_eq!(
        (seen.title.as_str(), seen.body.as_str()),
        ("Promote 3.0", "To 3.0.\n")
    );
    assert_eq!(seen.state, scene.seen(pull.number).await.state);
    assert!(!seen.draft);

    for title in ["WIP: Promote", "[wip] Promote"] {
        assert_eq!(edit(pull.number, title).await, Ok(()));
        assert!(scene.seen(pull.number).await.draft, "{title}");
        let listed = scene.forge.open_pulls(&branch("main")).await.unwrap();
        assert!(listed[0].draft, "{title}");
    }
    let act = scene.merge(pull.number, &commit, None).await;
    assert!(matches!(act, Err(Trouble::NotMergeable(_))), "{act:?}");
    let absent = edit(pull.number + 1, "Promote").await;
    assert_eq!(refused(absent), Trouble::Absent(Missing::Pull));
}

#[tokio::test]
async fn labels_that_people_add_are_seen() {
    let scene = Scene::new("labels").await;
    let (_, pull) = scene.pull("next", b"version: 2\n").await;
    assert_eq!(pull.labels, [""; 0]);
    let mut ids = Vec::new();
    for name in ["sluice/hold", "prod"] {
        let label = json!({"name": name, "color": "#ff0000"});
        let made = scene.ask(Method::POST, "/labels", label).await.unwrap();
        ids.push(made["id"].clone());
    }
    let path = format!("/issues/{}/labels", pull.number);
    scene
        .ask(Method::POST, &path, json!({"labels": ids}))
        .await
        .unwrap();
    let expected = ["prod", "sluice/hold"];
    let sorted = |mut labels: Vec<String>| {
        labels.sort();
        labels
    };
    assert_eq!(sorted(scene.seen(pull.number).await.labels), expected);
    let mut listed = scene.forge.open_pulls(&branch("main")).await.unwrap();
    assert_eq!(sorted(listed.remove(0).labels), expected);
}

#[tokio::test]
async fn one_whose_branch_is_deleted_is_closed_and_keeps_its_name() {
    let scene = Scene::new("branch-gone").await;
    let (_, pull) = scene.pull("next", b"version: 2\n").await;
    scene
        .forge
        .delete_branch(&branch("next"), soon())
        .await
        .unwrap();
    let closed = scene
        .becomes(pull.number, |state| *state == PullState::Closed)
        .await;
    assert_eq!((closed.head.as_str(), closed.own), ("next", true));
}

#[tokio::test]
async fn one_of_a_fork_is_not_ours_and_no_duplicate() {
    let scene = Scene::new("forked").await;
    let gitea = scene.gitea;
    gitea.user("mallory").await.unwrap();
    gitea.permit("mallory", &scene.name, "read").await.unwrap();
    let fork = json!({"name": "forked"});
    let sudo = |path: &str| format!("{path}?sudo=mallory");
    let made = sudo(&format!("/repos/{OWNER}/forked/forks"));
    gitea.ask(Method::POST, &made, &fork).await.unwrap();
    let commit = json!({
        "branch": "main", "new_branch": "next", "message": "Mine",
        "files": [{"operation": "create", "path": "mine.yaml", "content": "YQo="}],
    });
    let contents = sudo("/repos/mallory/forked/contents");
    gitea.ask(Method::POST, &contents, &commit).await.unwrap();
    let pull = json!({"title": "Mine", "head": "mallory:next", "base": "main"});
    let pulls = sudo(&format!("/repos/{OWNER}/forked/pulls"));
    gitea.ask(Method::POST, &pulls, &pull).await.unwrap();

    let (head, base) = (branch("next"), branch("main"));
    assert_eq!(scene.forge.find(&head, &base).await, Ok(None));
    let (_, ours) = scene.pull("next", b"version: 2\n").await;
    let listed = scene.forge.open_pulls(&base).await.unwrap();
    let own: Vec<_> = listed
        .iter()
        .map(|pull| (pull.head.as_str(), pull.own))
        .collect();
    assert_eq!(own, [("next", false), ("next", true)]);
    assert_eq!(
        surplus(&listed, &head, &base),
        Vec::<&sluice_forges::Pull>::new()
    );
    let found = scene.forge.find(&head, &base).await.unwrap();
    assert_eq!(found.map(|pull| pull.number), Some(ours.number));
}
