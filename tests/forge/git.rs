//! Git's own protocol: heads, commits with their trees, and pushes of one commit.

use http::Method;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;
use sluice_forges::{
    Act, CommitObject, Forge, Missing, NewCommit, PullState, Reference, Sha, Signature, Target,
    Trouble, Update,
};
use sluice_tests::gitea::SCOPES;

use crate::scene::{FILE, Scene, branch, refused, soon, unknown};

mod notes;

impl Scene {
    pub(crate) async fn references(&self, prefixes: &[&str]) -> Vec<(String, Sha)> {
        let prefixes: Vec<_> = prefixes.iter().map(|it| (*it).to_owned()).collect();
        let listed = self.forge.references(&prefixes).await.unwrap();
        let pair = |Reference { name, id }| (name, id);
        listed.into_iter().map(pair).collect()
    }

    async fn object(&self, commit: &Sha) -> CommitObject {
        self.forge.commit_object(commit).await.unwrap().unwrap()
    }

    /// A commit with the tree of one that is there.
    async fn with_tree_of(&self, commit: &Sha, parents: &[&Sha]) -> NewCommit {
        NewCommit {
            tree: self.object(commit).await.tree,
            parents: parents.iter().map(|id| (*id).clone()).collect(),
            author: Signature {
                name: "Sluice".to_owned(),
                email: "sluice@example.com".to_owned(),
            },
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
            message: "Keep what is active\n\nGrün, and with a Trailer: x\n".to_owned(),
        }
    }

    async fn moved(&self, name: &str, from: Option<&Sha>, to: Target<'_>) -> Act<()> {
        moved(&self.forge, name, from, to).await
    }
}

async fn moved(forge: &Forge, name: &str, from: Option<&Sha>, to: Target<'_>) -> Act<()> {
    let branch = branch(name);
    let update = Update {
        branch: &branch,
        from,
        to,
    };
    forge.push(&update, &|_| Some(soon())).await
}

#[tokio::test]
async fn references_are_found_by_what_they_begin_with() {
    let scene = Scene::new("git-references").await;
    let main = scene.head("main").await.unwrap();
    let commit = scene.with_tree_of(&main, &[&main]).await;
    for name in ["env/prod", "env/prod-next", "other"] {
        scene.moved(name, None, Target::New(&commit)).await.unwrap();
    }
    let pair = |name: &str, id: &Sha| (name.to_owned(), id.clone());
    let listed = scene
        .references(&["refs/heads/env/prod", "refs/heads/main", "refs/notes/none"])
        .await;
    let expected = [
        pair("refs/heads/env/prod", &commit.id()),
        pair("refs/heads/env/prod-next", &commit.id()),
        pair("refs/heads/main", &main),
    ];
    assert_eq!(listed, expected);
    assert_eq!(scene.references(&["refs/heads/none"]).await, []);
    assert_eq!(scene.references(&[]).await, []);
}

#[tokio::test]
async fn who_may_not_read_gets_no_references() {
    let scene = Scene::new("git-unseen").await;
    let heads = ["refs/heads/".to_owned()];
    let unknown = scene.with("0123456789abcdef0123456789abcdef01234567");
    let why = unknown.references(&heads).await.unwrap_err();
    assert_eq!(why.trouble, Trouble::Unauthorized);
    scene.shows_no_secret(&why);

    scene.gitea.user("git-stranger").await.unwrap();
    let token = scene.gitea.token("git-stranger", &SCOPES).await.unwrap();
    let stranger = scene.with(&token);
    let why = stranger.references(&heads).await.unwrap_err();
    assert_eq!(why.trouble, Trouble::NoRepository);

    scene
        .ask(Method::PATCH, "", json!({"name": "git-unseen-now"}))
        .await
        .unwrap();
    let why = scene.forge.references(&heads).await.unwrap_err();
    assert_eq!(why.trouble, Trouble::Moved);
    let main = unknown_commit();
    let act = scene.moved("next", None, Target::New(&main)).await;
    assert_eq!(refused(act), Trouble::Moved);
}

fn unknown_commit() -> NewCommit {
    NewCommit {
        tree: unknown(),
        parents: vec![],
        author: Signature {
            name: "Sluice".to_owned(),
            email: "sluice@example.com".to_owned(),
        },
        at: Timestamp::UNIX_EPOCH,
        message: "Nothing".to_owned(),
    }
}

#[tokio::test]
async fn a_commit_is_read_with_its_tree() {
    let scene = Scene::new("git-object").await;
    let first = scene.head("main").await.unwrap();
    let second = scene.push("main", FILE, b"version: 2\n").await.unwrap();
    let object = scene.object(&second).await;
    assert_eq!(
        (&object.id, &object.parents),
        (&second, &vec![first.clone()])
    );
    assert_eq!(object.message.trim_end(), "Push");
    assert!(object.author.is_some());
    let path = format!("/git/commits/{second}");
    let told = scene.ask(Method::GET, &path, json!(null)).await.unwrap();
    let at = told["commit"]["committer"]["date"].as_str().unwrap();
    assert_eq!(object.committed_at, at.parse().unwrap());
    let parent = scene.object(&first).await;
    assert_ne!(object.tree, parent.tree);
    // The same files are the same tree.
    let back = scene.push("main", FILE, b"version: 1\n").await.unwrap();
    assert_eq!(scene.object(&back).await.tree, parent.tree);

    assert_eq!(scene.forge.commit_object(&unknown()).await, Ok(None));
    let long = Sha::parse(&"a".repeat(64)).unwrap();
    let why = scene.forge.commit_object(&long).await.unwrap_err();
    assert_eq!(why.trouble, Trouble::Sha256);
    // A tree is no commit.
    let why = scene.forge.commit_object(&object.tree).await.unwrap_err();
    assert!(matches!(why.trouble, Trouble::NotUnderstood(_)), "{why}");
}

#[tokio::test]
async fn what_is_pushed_is_there_and_can_be_opened() {
    let scene = Scene::new("git-pushed").await;
    let main = scene.head("main").await.unwrap();
    let changed = scene.change("changed", &[(FILE, b"version: 2\n")]).await;
    let changed = changed.unwrap().commit;
    let new = scene.with_tree_of(&changed, &[&main]).await;
    // More characters than the API would take.
    let name = format!("sluice/{}", "x".repeat(150));
    scene.moved(&name, None, Target::New(&new)).await.unwrap();
    let object = scene.object(&new.id()).await;
    assert_eq!((&object.tree, &object.parents), (&new.tree, &new.parents));
    assert_eq!(
        (object.author.as_ref(), object.committed_at),
        (Some(&new.author), new.at)
    );
    assert_eq!(object.message, new.message);
    let pull = scene.open_pull(&name).await.unwrap();
    let PullState::Open { head, .. } = pull.state else {
        panic!("{pull:?}");
    };
    assert_eq!(head, new.id());

    // It is still read when no branch has it any more.
    let (name, orphan) = (branch(&name), new.id());
    scene.forge.delete_branch(&name, soon()).await.unwrap();
    assert_eq!(scene.object(&orphan).await, object);
    let moved = scene.moved("again", None, Target::Known(&orphan)).await;
    assert_eq!(moved, Ok(()));
    assert_eq!(scene.head("again").await, Some(orphan));
}

#[tokio::test]
async fn a_branch_is_moved_only_from_where_it_was_seen() {
    let scene = Scene::new("git-moved").await;
    let main = scene.head("main").await.unwrap();
    let first = scene.with_tree_of(&main, &[&main]).await;
    let (one, second) = (
        first.id(),
        scene.with_tree_of(&main, &[&first.id(), &main]).await,
    );
    let to = Target::New(&first);
    assert_eq!(scene.moved("next", None, to).await, Ok(()));
    // Once more: somebody has done it before.
    assert_eq!(scene.moved("next", None, to).await, Ok(()));
    assert_eq!(scene.moved("next", Some(&main), to).await, Ok(()));
    assert_eq!(scene.moved("next", Some(&one), to).await, Ok(()));

    let to = Target::New(&second);
    for stale in [None, Some(&main), Some(&unknown())] {
        let act = scene.moved("next", stale, to).await;
        assert_eq!(refused(act), Trouble::BranchMoved, "{stale:?}");
        assert_eq!(scene.head("next").await, Some(one.clone()));
    }
    assert_eq!(scene.moved("next", Some(&one), to).await, Ok(()));
    assert_eq!(scene.head("next").await, Some(second.id()));
    // Backwards, to one that is known.
    let act = scene
        .moved("next", Some(&second.id()), Target::Known(&one))
        .await;
    assert_eq!(act, Ok(()));
    assert_eq!(scene.head("next").await, Some(one.clone()));
    // One that is gone.
    let act = scene.moved("gone", Some(&one), Target::New(&second)).await;
    assert_eq!(refused(act), Trouble::BranchMoved);
    assert_eq!(scene.head("gone").await, None);
}

#[tokio::test]
async fn nothing_is_made_of_what_the_repository_does_not_have() {
    let scene = Scene::new("git-missing").await;
    let main = scene.head("main").await.unwrap();
    let no_tree = unknown_commit();
    let no_parent = scene.with_tree_of(&main, &[&unknown()]).await;
    for commit in [&no_tree, &no_parent] {
        let act = scene.moved("next", None, Target::New(commit)).await;
        assert_eq!(refused(act), Trouble::Absent(Missing::Object));
    }
    let act = scene.moved("next", None, Target::Known(&unknown())).await;
    assert_eq!(refused(act), Trouble::Absent(Missing::Commit));
    assert_eq!(scene.head("next").await, None);
}

#[rstest]
#[case::protected("git-protected", "env/prod", "protected branch")]
#[case::in_the_way("git-in-the-way", "main/next", "")]
#[tokio::test]
async fn a_push_that_is_not_taken_says_why(
    #[case] name: &str,
    #[case] branch: &str,
    #[case] expected: &str,
) {
    let scene = Scene::new(name).await;
    let main = scene.head("main").await.unwrap();
    let rule = json!({"rule_name": "env/prod", "enable_push": false});
    let made = scene.ask(Method::POST, "/branch_protections", rule).await;
    made.unwrap();
    let commit = scene.with_tree_of(&main, &[&main]).await;
    let act = scene.moved(branch, None, Target::New(&commit)).await;
    let trouble = refused(act);
    let Trouble::PushRefused(words) = &trouble else {
        panic!("{trouble:?}");
    };
    let words = words.to_string();
    assert!(words.contains(expected), "{words}");
    assert!(!words.contains(&scene.token), "{words}");
}

#[tokio::test]
async fn who_may_not_push_is_told_so() {
    let scene = Scene::new("git-no-push").await;
    let main = scene.head("main").await.unwrap();
    let commit = scene.with_tree_of(&main, &[&main]).await;
    let push = async |token: &str| {
        let forge = scene.with(token);
        refused(moved(&forge, "next", None, Target::New(&commit)).await)
    };
    let scope = ["read:repository"];
    let reads = scene.gitea.token(&scene.bot, &scope).await.unwrap();
    let trouble = push(&reads).await;
    assert!(matches!(trouble, Trouble::NoRight(_)), "{trouble:?}");

    scene.gitea.user("git-looker").await.unwrap();
    let reader = scene.gitea.permit("git-looker", &scene.name, "read").await;
    reader.unwrap();
    let token = scene.gitea.token("git-looker", &SCOPES).await.unwrap();
    let trouble = push(&token).await;
    assert!(
        matches!(trouble, Trouble::PushRefused(_) | Trouble::NoRight(_)),
        "{trouble:?}"
    );

    let archived = json!({"archived": true});
    scene.ask(Method::PATCH, "", archived).await.unwrap();
    let trouble = push(&scene.token).await;
    assert!(matches!(trouble, Trouble::NoRight(_)), "{trouble:?}");
    assert_eq!(scene.head("next").await, None);
}
