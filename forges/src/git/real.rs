//! Git itself answers: `git http-backend`, as Git's own documentation has it behind a server.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rstest::rstest;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use super::{NewCommit, Signature, Target, Update};
use crate::address::Provider;
use crate::call::{Ended, May, Wants};
use crate::contracts::replay::{header, served};
use crate::forge::Forge;
use crate::names::{Branch, Sha};
use crate::outcome::{Act, Missing, Trouble, Undone};

const MAIN: &str = "refs/heads/main";

/// A repository on a server.
struct Served {
    forge: Forge,
    folder: TempDir,
    heard: Arc<Mutex<Vec<Ended>>>,
    _server: JoinSet<()>,
}

/// Git in this repository, by nobody's own configuration.
fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.env("GIT_DIR", repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Alice")
            .env(format!("GIT_{who}_EMAIL"), "alice@example.com")
            .env(format!("GIT_{who}_DATE"), "1795176000 +0100");
    }
    git
}

/// What a program says to this.
fn output(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
    // One that fails does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().stdout
}

impl Served {
    /// `init` is for `git init`, `config` for the repository. Without version 2, the server has never heard of
    /// versions.
    async fn new(init: &[&str], config: &[(&str, &str)], knows_versions: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("acme/shop.git");
        std::fs::create_dir_all(&repository).unwrap();
        let mut command = git(&repository);
        output(command.args(["init", "--bare"]).args(init), b"");
        for (key, value) in config {
            output(git(&repository).args(["config", key, value]), b"");
        }
        let root = folder.path().to_owned();
        let answer = move |head: &str, body: &[u8]| backend(&root, head, body, knows_versions);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let heard = Arc::<Mutex<Vec<Ended>>>::default();
        let (forge, server) = served(listener, Provider::Gitea, Arc::clone(&heard), answer);
        Self {
            forge,
            folder,
            heard,
            _server: server,
        }
    }

    /// What Git says in the repository itself.
    fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        let repository = self.folder.path().join("acme/shop.git");
        let said = output(git(&repository).args(arguments), input);
        String::from_utf8(said).unwrap()
    }

    fn id(&self, arguments: &[&str], input: &[u8]) -> Sha {
        Sha::parse(self.git(arguments, input).trim()).unwrap()
    }

    /// A commit with one file, on a branch.
    fn commit(&self, reference: &str, text: &str) -> Sha {
        let blob = self.id(&["hash-object", "-w", "--stdin"], text.as_bytes());
        let tree = format!("100644 blob {blob}\tmanifests.yaml\n");
        let tree = self.id(&["mktree"], tree.as_bytes());
        let commit = self.id(&["commit-tree", tree.as_str(), "-m", text], b"");
        self.git(&["update-ref", reference, commit.as_str()], b"");
        commit
    }

    fn new_commit(&self, of: &Sha, parent: &Sha) -> NewCommit {
        let tree = self.id(&["rev-parse", &format!("{of}^{{tree}}")], b"");
        NewCommit {
            tree,
            parents: vec![parent.clone()],
            author: Signature {
                name: "Sluice".to_owned(),
                email: "sluice@example.com".to_owned(),
            },
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
            message: "Keep what is active\n\nGrün.\n".to_owned(),
        }
    }

    async fn moved(&self, name: &str, from: Option<&Sha>, to: Target<'_>) -> Act<()> {
        self.moved_while(name, from, to, &|_| Some(soon())).await
    }

    async fn moved_while(
        &self,
        name: &str,
        from: Option<&Sha>,
        to: Target<'_>,
        may: May<'_>,
    ) -> Act<()> {
        let branch = Branch::parse(name).unwrap();
        let update = Update {
            branch: &branch,
            from,
            to,
        };
        self.forge.push(&update, may).await
    }

    async fn main(&self) -> Result<Vec<Sha>, Trouble> {
        let listed = self.forge.references(&[MAIN.to_owned()]).await;
        let listed = listed.map_err(|error| error.trouble)?;
        Ok(listed.into_iter().map(|it| it.id).collect())
    }

    /// How many requests there were since this was asked last.
    fn requests(&self) -> usize {
        std::mem::take(&mut *self.heard.lock().unwrap()).len()
    }
}

/// The reply to a request, as a server makes it of what the program says.
fn backend(root: &Path, head: &str, body: &[u8], knows_versions: bool) -> Vec<u8> {
    let mut line = head.lines().next().unwrap().split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut command = git(root);
    command
        .env_remove("GIT_DIR")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("REMOTE_USER", "sluice")
        .env("CONTENT_LENGTH", body.len().to_string())
        .env(
            "CONTENT_TYPE",
            header(head, "content-type").unwrap_or_default(),
        )
        .arg("http-backend");
    if let Some(version) = header(head, "git-protocol").filter(|_| knows_versions) {
        command.env("GIT_PROTOCOL", version);
    }
    let said = output(&mut command, body);
    let end = said.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let (headers, body) = (&said[..end], &said[end + 4..]);
    let headers = String::from_utf8(headers.to_vec()).unwrap();
    let status =
        header(&format!("\n{headers}"), "status").map_or("200 OK".to_owned(), str::to_owned);
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn refused(act: Act<()>) -> Trouble {
    match act {
        Err(Undone::Refused(error) | Undone::NotDone(error)) => error.trouble,
        other => panic!("{other:?}"),
    }
}

/// A server that cannot leave trees out says nothing, and is asked once more.
#[rstest]
#[case::leaves_trees_out("true", 1)]
#[case::cannot("false", 2)]
#[tokio::test]
async fn heads_and_commits_are_read(#[case] filters: &str, #[case] requests: usize) {
    let served = Served::new(&[], &[("uploadpack.allowFilter", filters)], true).await;
    let first = served.commit(MAIN, "one");
    served.commit("refs/heads/main-next", "next");
    assert_eq!(served.main().await.unwrap()[0], first);
    assert_eq!(served.requests(), 1);
    let second = served.commit(MAIN, "two");
    for (commit, text) in [(&first, "one\n"), (&second, "two\n")] {
        let read = served.forge.commit_object(commit).await.unwrap().unwrap();
        assert_eq!(served.requests(), requests);
        let tree = served.id(&["rev-parse", &format!("{commit}^{{tree}}")], b"");
        assert_eq!(
            (&read.id, &read.tree, read.message.as_str()),
            (commit, &tree, text)
        );
        assert_eq!(read.committed_at.as_second(), 1_795_176_000);
    }
    let unknown = Sha::parse(&"d".repeat(40)).unwrap();
    assert_eq!(served.forge.commit_object(&unknown).await, Ok(None));
    // A signature is neither message nor parent.
    let signed = served.git(&["cat-file", "commit", second.as_str()], b"");
    let signature =
        "gpgsig -----BEGIN SSH SIGNATURE-----\n parent x\n \n -----END SSH SIGNATURE-----\n\n";
    let signed = signed.replacen("\n\n", &format!("\n{signature}"), 1);
    let signed = served.id(
        &["hash-object", "-t", "commit", "-w", "--stdin"],
        signed.as_bytes(),
    );
    served.git(&["update-ref", MAIN, signed.as_str()], b"");
    let read = served.forge.commit_object(&signed).await.unwrap().unwrap();
    assert_eq!((read.parents.len(), read.message.as_str()), (0, "two\n"));
}

/// However many references somebody has pushed whose names begin like a branch.
#[tokio::test]
async fn a_branch_is_found_among_very_many_that_begin_so() {
    let served = Served::new(&[], &[], true).await;
    let commit = served.commit("refs/heads/r", "one");
    served.commit("refs/heads/s", "two");
    let many: Vec<_> = (0..40_000)
        .map(|n| format!("{commit} refs/heads/r{}{n:05}\n", "x".repeat(200)))
        .collect();
    let packed = served.folder.path().join("acme/shop.git/packed-refs");
    std::fs::write(packed, many.concat()).unwrap();
    let names = ["r", "rx", "s", "t"].map(|name| format!("refs/heads/{name}"));
    let [r, rx, s, t] = names.clone();
    let listed = served.forge.named(&names).await.unwrap();
    let found: Vec<_> = listed.found.iter().map(|it| &it.name).collect();
    assert_eq!(found, [&r]);
    assert_eq!(
        (listed.wide, listed.left),
        (vec![r, rx], vec![s.clone(), t.clone()])
    );
    let listed = served.forge.named(&[s.clone(), t]).await.unwrap();
    assert_eq!(
        (listed.found[0].name.as_str(), listed.found.len()),
        (&*s, 1)
    );
    assert_eq!((listed.left.len(), listed.wide.len()), (0, 0));
}

/// A push is the same in all versions.
#[rstest]
#[case::of_today(true)]
#[case::of_old(false)]
#[tokio::test]
async fn a_commit_is_pushed_once_onto_what_was_seen(#[case] knows_versions: bool) {
    let served = Served::new(&[], &[], knows_versions).await;
    let main = served.commit(MAIN, "one");
    let other = served.commit("refs/heads/other", "two");
    let new = served.new_commit(&other, &main);
    let (to, id) = (Target::New(&new), new.id());
    assert_eq!(served.moved("env/prod", None, to).await, Ok(()));
    let bytes = served.git(&["cat-file", "commit", "env/prod"], b"");
    assert_eq!(bytes.as_bytes(), new.bytes());
    assert_eq!(
        served.git(&["rev-parse", "env/prod"], b"").trim(),
        id.as_str()
    );
    assert_eq!(served.git(&["fsck", "--strict"], b""), "");
    // Not twice, and not over what was not seen.
    assert_eq!(served.moved("main", Some(&main), to).await, Ok(()));
    let unknown = Sha::parse(&"d".repeat(40)).unwrap();
    for stale in [None, Some(&main), Some(&unknown)] {
        let act = served.moved("main", stale, Target::Known(&other)).await;
        assert_eq!(refused(act), Trouble::BranchMoved, "{stale:?}");
    }
    if knows_versions {
        assert_eq!(served.moved("main", Some(&main), to).await, Ok(()));
    }
    assert_eq!(served.git(&["rev-parse", "main"], b"").trim(), id.as_str());
    // Nothing is made of a tree that the repository does not have.
    let mut hollow = new.clone();
    hollow.tree = unknown.clone();
    let act = served.moved("hollow", None, Target::New(&hollow)).await;
    assert_eq!(refused(act), Trouble::Absent(Missing::Object));
    let act = served.moved("hollow", None, Target::Known(&unknown)).await;
    assert_eq!(refused(act), Trouble::Absent(Missing::Commit));
    assert_eq!(served.git(&["for-each-ref", "refs/heads/hollow"], b""), "");
}

/// It may have waited for others.
#[tokio::test]
async fn what_is_not_wanted_any_more_when_it_is_its_turn_is_not_pushed() {
    let served = Served::new(&[], &[], true).await;
    let main = served.commit(MAIN, "one");
    let may = |wants| (wants == Wants::Turn).then(soon);
    let to = Target::Known(&main);
    let act = served.moved_while("env/prod", None, to, &may).await;
    assert_eq!(refused(act), Trouble::Overtaken);
    assert_eq!(served.git(&["for-each-ref", "refs/heads/env"], b""), "");
}

/// What is for later is told as what it is, and nothing is done there.
#[rstest]
#[case::no_versions(&[], false, Trouble::OldGit)]
#[case::other_ids(&["--object-format=sha256"], true, Trouble::Sha256)]
#[tokio::test]
async fn what_cannot_be_read_yet_is_told(
    #[case] init: &[&str],
    #[case] knows_versions: bool,
    #[case] expected: Trouble,
) {
    let served = Served::new(init, &[], knows_versions).await;
    let main = served.commit(MAIN, "one");
    assert_eq!(served.main().await, Err(expected.clone()));
    let id = Sha::parse(&main.as_str()[..40]).unwrap();
    let read = served.forge.commit_object(&id).await.unwrap_err();
    assert_eq!(read.trouble, expected);
    if expected == Trouble::Sha256 {
        let act = served.moved("next", None, Target::Known(&id)).await;
        assert!(act.is_err(), "{act:?}");
        assert_eq!(served.git(&["for-each-ref", "refs/heads/next"], b""), "");
    }
}
