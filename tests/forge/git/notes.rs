//! Notes of Git: files of a commit that no branch has.

use std::ffi::OsStr;
use std::process::Command;

use sluice_forges::Sha;
use sluice_tests::gitea::OWNER;

use crate::scene::{Scene, file};

/// A clone of the repository, in which people work with Git itself.
struct Clone<'a> {
    scene: &'a Scene,
    folder: tempfile::TempDir,
}

impl<'a> Clone<'a> {
    fn of(scene: &'a Scene) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), scene.gitea.authority()).unwrap();
        let clone = Self { scene, folder };
        clone.git(["init", "-q", "."]);
        clone.git(["fetch", "-q", &clone.url(), "main"]);
        clone
    }

    fn url(&self) -> String {
        self.scene.gitea.url(OWNER, &self.scene.name)
    }

    /// What Git says.
    fn git<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> String {
        let token = format!("http.extraHeader=Authorization: token {}", self.scene.token);
        let mut command = Command::new("git");
        command
            .current_dir(self.folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_SSL_CAINFO", self.folder.path().join("ca.crt"))
            .args([
                "-c",
                &token,
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.com",
            ])
            .args(arguments);
        let output = command.output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{why}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Git keeps few notes flat, and many in folders by the first digits.
#[tokio::test]
async fn a_note_is_a_file_at_the_commit_of_its_notes() {
    const NOTES: &str = "refs/notes/hydrator.metadata";
    let scene = Scene::new("git-notes").await;
    let main = scene.head("main").await.unwrap();
    let id = main.as_str();
    {
        let clone = Clone::of(&scene);
        let note = [
            "notes",
            "--ref",
            NOTES,
            "add",
            "-m",
            "{\"drySha\": \"x\"}",
            id,
        ];
        clone.git(note);
        let blob = clone.git(["rev-parse", &format!("{NOTES}:{id}")]);
        for (name, path) in [
            ("refs/notes/two", format!("{}/{}", &id[..2], &id[2..])),
            (
                "refs/notes/three",
                format!("{}/{}/{}", &id[..2], &id[2..4], &id[4..]),
            ),
        ] {
            clone.git(["read-tree", "--empty"]);
            let entry = format!("100644,{blob},{path}");
            clone.git(["update-index", "--add", "--cacheinfo", &entry]);
            let tree = clone.git(["write-tree"]);
            let commit = clone.git(["commit-tree", &tree, "-m", "Notes"]);
            clone.git(["update-ref", name, &commit]);
        }
        clone.git(["push", "-q", &clone.url(), "refs/notes/*:refs/notes/*"]);
    }

    let listed = scene.references(&["refs/notes/"]).await;
    let notes = |name: &str| -> Sha {
        let found = listed.iter().find(|(listed, _)| listed == name);
        found.unwrap().1.clone()
    };
    let text = async |at: &Sha, path: &str| {
        let read = scene.forge.file(at, &file(path)).await.unwrap();
        read.map(|file| String::from_utf8(file.bytes).unwrap())
    };
    let expected = Some("{\"drySha\": \"x\"}\n".to_owned());
    let (flat, two, three) = (
        notes(NOTES),
        notes("refs/notes/two"),
        notes("refs/notes/three"),
    );
    let folders = (
        format!("{}/{}", &id[..2], &id[2..]),
        format!("{}/{}/{}", &id[..2], &id[2..4], &id[4..]),
    );
    assert_eq!(text(&flat, id).await, expected);
    assert_eq!(text(&two, &folders.0).await, expected);
    assert_eq!(text(&three, &folders.1).await, expected);
    // No note of this form.
    assert_eq!(text(&flat, &folders.0).await, None);
    assert_eq!(text(&two, id).await, None);
    // The commit of the notes is read as any other is.
    let object = scene.forge.commit_object(&flat).await.unwrap().unwrap();
    assert_eq!(object.parents, []);
}
