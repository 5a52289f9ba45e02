//! Files, commits and branches.

use futures::future::join_all;
use rstest::rstest;
use sluice_forges::{Act, Blob, Change, ChangedFile, Committed, Missing, Sha, Trouble};

use crate::scene::{FILE, Scene, branch, file, refused, soon, unknown};

impl Scene {
    /// What guards [`FILE`] at a commit.
    async fn blob(&self, at: &Sha) -> Blob {
        let read = self.forge.file(at, &file(FILE)).await.unwrap();
        read.unwrap().blob
    }

    /// Changes a file of a base on the new branch `next`, as one who has read `from` and `blob`.
    async fn commit(&self, (base, path): (&str, &str), from: &Sha, blob: &Blob) -> Act<Committed> {
        let (next, base, path) = (branch("next"), branch(base), file(path));
        let files = [ChangedFile {
            path: &path,
            blob,
            bytes: b"version: 2\n",
        }];
        let change = Change {
            branch: &next,
            base: &base,
            from,
            message: "Promote",
            files: &files,
        };
        self.forge.commit(&change, soon()).await
    }
}

#[tokio::test]
async fn bytes_are_kept_both_ways() {
    let scene = Scene::new("bytes").await;
    let texts: [(&str, &[u8]); 5] = [
        ("lf.yaml", b"version: 1\n"),
        ("crlf.yaml", b"version: 1\r\nname: a\r\n"),
        ("bom.yaml", b"\xef\xbb\xbfversion: 1\n"),
        ("none.yaml", b"version: 1"),
        ("a b/grün.yaml", b"version: 1\n\n\n"),
    ];
    let texts = texts.map(|(path, bytes)| (path, bytes.to_vec()));
    let attributes = b"*.yaml text eol=lf export-subst export-ignore\n";
    scene
        .push("main", ".gitattributes", attributes)
        .await
        .unwrap();
    for (path, bytes) in &texts {
        scene.push("main", path, bytes).await.unwrap();
    }
    let base = scene.head("main").await.unwrap();
    for (path, bytes) in &texts {
        let read = scene.forge.file(&base, &file(path)).await.unwrap().unwrap();
        assert_eq!(read.bytes, *bytes, "{path}");
    }

    let changed: Vec<_> = texts
        .iter()
        .map(|(path, bytes)| (*path, String::from_utf8_lossy(bytes).replace('1', "2.10")))
        .collect();
    let files: Vec<_> = changed
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    let made = scene.change("sluice/3f9a/77aa", &files).await.unwrap();
    assert_eq!(made.parent, base);
    assert_eq!(
        scene.head("sluice/3f9a/77aa").await,
        Some(made.commit.clone())
    );
    assert_eq!(scene.head("main").await, Some(base));
    for (path, text) in &changed {
        let read = scene
            .forge
            .file(&made.commit, &file(path))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(read.bytes, text.as_bytes(), "{path}");
    }
}

#[tokio::test]
async fn what_is_no_file_is_told() {
    let scene = Scene::new("no-file").await;
    let base = scene.head("main").await.unwrap();
    let read = async |path| scene.forge.file(&base, &file(path)).await;
    assert_eq!(read("apps/dev.yaml").await, Ok(None));
    assert_eq!(read("apps").await.unwrap_err().trouble, Trouble::NotAFile);
    let elsewhere = scene.forge.file(&unknown(), &file(FILE)).await;
    assert_eq!(elsewhere, Ok(None));
}

#[tokio::test]
async fn a_branch_that_is_there_is_left_alone() {
    let scene = Scene::new("there").await;
    let first = scene
        .change("next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap();
    let second = scene.change("next", &[(FILE, b"version: 3\n")]).await;
    assert_eq!(refused(second), Trouble::BranchExists);
    assert_eq!(scene.head("next").await, Some(first.commit));
}

#[tokio::test]
async fn of_four_at_once_one_makes_the_branch() {
    let scene = Scene::new("four").await;
    let at_once = (0..4).map(|_| scene.change("next", &[(FILE, b"version: 2\n")]));
    let mut commits = Vec::new();
    for act in join_all(at_once).await {
        match act {
            Ok(made) => commits.push(made.commit),
            Err(_) => assert_eq!(refused(act), Trouble::BranchExists),
        }
    }
    assert_eq!(commits.len(), 1);
    assert_eq!(scene.head("next").await.as_ref(), commits.first());
}

#[tokio::test]
async fn a_file_that_has_changed_since_is_not_overwritten() {
    let scene = Scene::new("stale").await;
    let from = scene.head("main").await.unwrap();
    let blob = scene.blob(&from).await;
    scene
        .push("main", FILE, b"version: 1 # by a person\n")
        .await
        .unwrap();
    let act = scene.commit(("main", FILE), &from, &blob).await;
    assert_eq!(refused(act), Trouble::FileChanged);
    assert_eq!(scene.head("next").await, None);
}

#[tokio::test]
async fn the_parent_says_that_other_files_have_changed() {
    let scene = Scene::new("parent").await;
    let from = scene.head("main").await.unwrap();
    let blob = scene.blob(&from).await;
    let moved = scene
        .push("main", "apps/dev.yaml", b"version: 9\n")
        .await
        .unwrap();
    let made = scene.commit(("main", FILE), &from, &blob).await.unwrap();
    assert_eq!(made.parent, moved);
    assert_ne!(made.parent, from);
}

#[rstest]
#[case::no_such_base("absent-base", "gone", FILE)]
#[case::no_such_file("absent-file", "main", "apps/gone.yaml")]
#[tokio::test]
async fn nothing_is_made_from_what_is_not_there(
    #[case] name: &str,
    #[case] base: &str,
    #[case] path: &str,
) {
    let scene = Scene::new(name).await;
    let from = scene.head("main").await.unwrap();
    let blob = scene.blob(&from).await;
    let act = scene.commit((base, path), &from, &blob).await;
    assert_eq!(refused(act), Trouble::Absent(Missing::BranchOrFile));
    assert_eq!(scene.head("next").await, None);
}

#[tokio::test]
async fn a_branch_is_deleted_once_and_its_absence_is_a_success() {
    let scene = Scene::new("deleted").await;
    scene
        .change("env/next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap();
    let name = branch("env/next");
    for _ in 0..2 {
        assert_eq!(scene.forge.delete_branch(&name, soon()).await, Ok(()));
        assert_eq!(scene.head("env/next").await, None);
    }
}
