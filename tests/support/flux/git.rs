//! A Git server whose repository a test writes: `git http-backend` behind a small HTTP server.
//!
//! What comes in: files for the next commit. What goes out: commits, branches and tags that Flux
//! fetches over smart HTTP, with a password if the test wants one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::serve::Serving;

/// The branch that commits go to.
pub const BRANCH: &str = "main";

/// The repository's path on the server.
const PATH: &str = "/repository.git";

/// A Git server with one repository. Dropped, both are gone.
pub struct Git {
    serving: Serving,
    folder: TempDir,
    access: Access,
}

/// What is asked for in the header `Authorization`. None: nothing.
type Access = Arc<Mutex<Option<String>>>;

/// Where a commit goes on from.
enum Parent<'a> {
    /// The branch's last commit, if it has one.
    Last,
    /// This one: what came after it is gone from the branch.
    Commit(&'a str),
}

impl Git {
    /// Serves an empty repository on a free port, on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// Without Git.
    pub async fn serve() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sluice-git-").tempdir()?;
        let repository = repository(folder.path());
        let head = format!("--initial-branch={BRANCH}");
        let mut init = git();
        init.args(["init", "--quiet", "--bare", &head])
            .arg(&repository);
        output(&mut init, b"")?;
        // For people: nobody in a test pushes over HTTP.
        let mut config = git();
        config.arg("--git-dir").arg(&repository);
        output(config.args(["config", "http.receivepack", "true"]), b"")?;
        let access = Access::default();
        let backend = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state((folder.path().to_owned(), Arc::clone(&access)));
        Ok(Self {
            serving: Serving::start(backend).await?,
            folder,
            access,
        })
    }

    /// Where Flux fetches from.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.serving.address())
    }

    /// From now on only this user with this password may fetch.
    pub fn ask_for(&self, user: &str, password: &str) {
        let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
        *self.access.lock() = Some(format!("Basic {pair}"));
    }

    /// Writes files to `main` and returns the commit. Files that are not named stay.
    ///
    /// # Errors
    ///
    /// If Git refuses.
    pub fn commit(&self, files: &[(&str, impl AsRef<str>)]) -> Result<String> {
        self.write(BRANCH, &Parent::Last, files)
    }

    /// The same, signed with an SSH key, of which this is the file of the secret half.
    ///
    /// # Errors
    ///
    /// If Git refuses, or there is no `ssh-keygen`, with which it signs.
    pub fn commit_signed(&self, key: &Path, files: &[(&str, impl AsRef<str>)]) -> Result<String> {
        let unsigned = self.write(BRANCH, &Parent::Last, files)?;
        let mut sign = self.in_repository();
        for who in ["AUTHOR", "COMMITTER"] {
            sign.env(format!("GIT_{who}_NAME"), "Test")
                .env(format!("GIT_{who}_EMAIL"), "test@example.com");
        }
        sign.args(["-c", "gpg.format=ssh", "commit-tree", "-m", "Change"])
            .arg(format!("-S{}", key.display()))
            .arg(format!("{unsigned}^{{tree}}"));
        // What the unsigned one goes on from: nothing, if it is the first.
        let mut parents = self.in_repository();
        let parents = output(parents.args(["rev-parse", &format!("{unsigned}^@")]), b"")?;
        for parent in String::from_utf8(parents.stdout)?.lines() {
            sign.args(["-p", parent]);
        }
        let commit = String::from_utf8(output(&mut sign, b"")?.stdout)?;
        self.reset(commit.trim())?;
        Ok(commit.trim().to_owned())
    }

    /// The same on another branch: one that is new begins empty.
    ///
    /// # Errors
    ///
    /// If Git refuses.
    pub fn commit_to(&self, branch: &str, files: &[(&str, impl AsRef<str>)]) -> Result<String> {
        self.write(branch, &Parent::Last, files)
    }

    /// Pushes by force: `main` is then `parent` and a commit with these files, and what came after
    /// `parent` is gone from it.
    ///
    /// # Errors
    ///
    /// If Git refuses, or there is no such commit.
    pub fn rewrite(&self, parent: &str, files: &[(&str, impl AsRef<str>)]) -> Result<String> {
        self.write(BRANCH, &Parent::Commit(parent), files)
    }

    /// Pushes by force: `main` is then this commit.
    ///
    /// # Errors
    ///
    /// If there is no such commit.
    pub fn reset(&self, commit: &str) -> Result<()> {
        self.update(&format!("refs/heads/{BRANCH}"), commit)
    }

    /// Sets a tag, or moves it.
    ///
    /// # Errors
    ///
    /// If there is no such commit.
    pub fn tag(&self, tag: &str, commit: &str) -> Result<()> {
        self.update(&format!("refs/tags/{tag}"), commit)
    }

    /// A commit of `main` as Flux writes it: `main@sha1:COMMIT`.
    #[must_use]
    pub fn revision(commit: &str) -> String {
        format!("{BRANCH}@sha1:{commit}")
    }

    fn update(&self, reference: &str, commit: &str) -> Result<()> {
        let mut update = self.in_repository();
        output(update.args(["update-ref", reference, commit]), b"")?;
        Ok(())
    }

    fn write(
        &self,
        branch: &str,
        parent: &Parent<'_>,
        files: &[(&str, impl AsRef<str>)],
    ) -> Result<String> {
        let parent = match parent {
            Parent::Commit(commit) => Some((*commit).to_owned()),
            Parent::Last => self.last(branch)?,
        };
        let mut stream = format!(
            "commit refs/heads/{branch}\nmark :1\ncommitter Test <test@example.com> now\n\
             data 7\nChange\n\n"
        );
        if let Some(parent) = parent {
            stream += &format!("from {parent}\n");
        }
        for (path, text) in files {
            let text = text.as_ref();
            let length = text.len();
            stream += &format!("M 100644 inline {path}\ndata {length}\n{text}\n");
        }
        stream += "\nget-mark :1\ndone\n";
        let mut import = self.in_repository();
        import.args([
            "fast-import",
            "--quiet",
            "--force",
            "--date-format=now",
            "--done",
        ]);
        let output = output(&mut import, stream.as_bytes())?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// The last commit of a branch, if there is such a branch.
    fn last(&self, branch: &str) -> Result<Option<String>> {
        let mut list = self.in_repository();
        list.args(["for-each-ref", "--format=%(objectname)"]);
        let found = output(list.arg(format!("refs/heads/{branch}")), b"")?;
        let commit = String::from_utf8(found.stdout)?.trim().to_owned();
        Ok(Some(commit).filter(|commit| !commit.is_empty()))
    }

    fn in_repository(&self) -> Command {
        let mut command = git();
        command.arg("--git-dir").arg(repository(self.folder.path()));
        command
    }
}

fn repository(folder: &Path) -> PathBuf {
    folder.join(PATH.trim_start_matches('/'))
}

fn git() -> Command {
    let mut command = Command::new("git");
    // Anyone who tests has settings of their own.
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// What a command says that reads `input`.
fn output(command: &mut Command, input: &[u8]) -> Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start git, which tests with Flux need")?;
    let mut stdin = child.stdin.take().context("git has no input")?;
    stdin.write_all(input)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git: {}: {said}", output.status);
    Ok(output)
}

async fn answer(
    State((folder, access)): State<(PathBuf, Access)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = access.lock().clone();
    let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if asked.is_some_and(|asked| shown != Some(asked.as_bytes())) {
        let ask = [(WWW_AUTHENTICATE, "Basic realm=\"git\"")];
        return (StatusCode::UNAUTHORIZED, ask).into_response();
    }
    let mut backend = backend(&folder, &method, &uri, &headers);
    // A process is waited for here: not on a thread that others need.
    let answered = tokio::task::spawn_blocking(move || output(&mut backend, &body)).await;
    let answered = answered.map_err(anyhow::Error::from).flatten();
    match answered.and_then(|output| response(&output.stdout)) {
        Ok(response) => response,
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}

/// A CGI program: RFC 3875.
fn backend(folder: &Path, method: &Method, uri: &Uri, headers: &HeaderMap) -> Command {
    let mut command = git();
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default());
    let named = [
        ("CONTENT_TYPE", CONTENT_TYPE.as_str()),
        ("HTTP_CONTENT_ENCODING", CONTENT_ENCODING.as_str()),
        ("GIT_PROTOCOL", "git-protocol"),
    ];
    for (variable, header) in named {
        if let Some(value) = headers.get(header).and_then(|value| value.to_str().ok()) {
            command.env(variable, value);
        }
    }
    command
}

/// What a CGI program writes: headers, an empty line, a body.
fn response(output: &[u8]) -> Result<Response> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.context("git http-backend wrote no headers")?;
    let mut response = Response::builder();
    for line in std::str::from_utf8(&output[..end])?.lines() {
        let (name, value) = line.split_once(": ").context("a header without a value")?;
        response = match name {
            "Status" => response.status(value.split(' ').next().unwrap_or_default()),
            _ => response.header(name, value),
        };
    }
    Ok(response.body(output[end + 4..].to_vec().into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clone(git: &Git, reference: &str, url: &str) -> Result<Vec<String>> {
        let folder = git.folder.path().join(format!("clone-of-{reference}"));
        let mut clone = super::git();
        clone.env("GIT_TERMINAL_PROMPT", "0");
        clone.args(["clone", "--quiet", "--branch", reference, url]);
        output(clone.arg(&folder), b"")?;
        let mut list = super::git();
        list.arg("-C").arg(folder).args(["ls-files"]);
        let files = String::from_utf8(output(&mut list, b"")?.stdout)?;
        Ok(files.lines().map(str::to_owned).collect())
    }

    async fn cloned(git: &Arc<Git>, reference: &'static str, url: &str) -> Result<Vec<String>> {
        let (git, url) = (Arc::clone(git), url.to_owned());
        tokio::task::spawn_blocking(move || clone(&git, reference, &url)).await?
    }

    #[tokio::test]
    async fn commits_tags_and_forced_pushes_are_fetched() -> Result<()> {
        let git = Arc::new(Git::serve().await?);
        let one = git.commit(&[("a.yaml", "a: 1\n")])?;
        let two = git.commit(&[("folder/b.yaml", "b: 1\n")])?;
        assert_eq!((one.len(), two.len()), (40, 40));
        git.tag("v1", &one)?;
        let url = git.url();
        assert_eq!(
            cloned(&git, BRANCH, &url).await?,
            ["a.yaml", "folder/b.yaml"]
        );
        assert_eq!(cloned(&git, "v1", &url).await?, ["a.yaml"]);
        let other = git.rewrite(&one, &[("c.yaml", "c: 1\n")])?;
        git.tag("v2", &other)?;
        assert_eq!(cloned(&git, "v2", &url).await?, ["a.yaml", "c.yaml"]);
        assert_eq!(git.last(BRANCH)?, Some(other));
        git.reset(&two)?;
        assert_eq!(git.last(BRANCH)?, Some(two));
        Ok(())
    }

    #[tokio::test]
    async fn a_password_is_asked_for() -> Result<()> {
        let git = Arc::new(Git::serve().await?);
        git.commit(&[("a.yaml", "a: 1\n")])?;
        git.ask_for("flux", "secret");
        let refused = cloned(&git, BRANCH, &git.url()).await.unwrap_err();
        assert!(format!("{refused:#}").contains("Username"), "{refused:#}");
        let url = git.url().replace("//", "//flux:secret@");
        assert_eq!(cloned(&git, BRANCH, &url).await?, ["a.yaml"]);
        Ok(())
    }
}
