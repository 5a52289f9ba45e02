//! A real Gitea, with users, tokens and repositories.
//!
//! What comes in: names. What goes out: a server over TLS that answers as a forge does, for as long as it
//! is held, and the means to do in it what people do. Everything is in a temporary folder: SQLite, and
//! the repositories, for which Git is needed.

mod bot;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{Method, Request, header};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::control_plane::Workspace;
use crate::controller::Process;
use crate::identity::Identity;
use crate::poll::DEADLINE;
use crate::ports::free_port;
use crate::progress::{Progress, Stderr};
use crate::tools;
pub use bot::{Bot, SCOPES};

/// The program, and the folder in `control-plane/` that pins it.
const GITEA: &str = "gitea";
/// Its package: templates and texts are in its sources.
const PACKAGE: &str = "code.gitea.io/gitea";

/// Who administers it, and owns the repositories.
pub const OWNER: &str = "boss";
/// The password of every user: no secret.
pub const PASSWORD: &str = "open sesame 1";
/// The branch that a repository begins with.
pub const BRANCH: &str = "main";
/// How many items a page of a list has: few, so that a few items are several pages.
const SHORT_PAGE: u32 = 3;
/// As many as Gitea has by itself.
pub const USUAL_PAGE: u32 = 50;

/// How often a start is tried when other processes took a port that was free a moment ago.
const ATTEMPTS: usize = 3;

/// A Gitea on a free port of loopback. Dropped, it is gone.
pub struct Gitea {
    process: Process,
    address: SocketAddr,
    identity: Identity,
    token: String,
}

/// The one that all tests of this process share.
///
/// # Errors
///
/// If it cannot be built or does not start. Later callers get the same error without another try.
pub async fn gitea() -> Result<&'static Gitea> {
    static GITEA: OnceCell<Result<Gitea, String>> = OnceCell::const_new();
    let start = async || {
        let started = Gitea::start(&Stderr::new()).await;
        started.map_err(|error| format!("{error:#}"))
    };
    let gitea = GITEA.get_or_init(start).await.as_ref();
    gitea.map_err(|error| anyhow!("no Gitea to test with: {error}"))
}

impl Gitea {
    /// Builds the program, unless it is in the cache: two minutes.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<()> {
        tools::ensure(GITEA, progress)?;
        Ok(())
    }

    /// Starts an empty one, with [`OWNER`] as its only user.
    ///
    /// # Errors
    ///
    /// If it cannot be built or does not start: the error has the last lines of its log.
    pub async fn start(progress: &dyn Progress) -> Result<Self> {
        Self::start_with(progress, SHORT_PAGE).await
    }

    /// The same with other pages of lists.
    ///
    /// # Errors
    ///
    /// See [`Self::start`].
    pub async fn start_with(progress: &dyn Progress, page: u32) -> Result<Self> {
        let program = tools::ensure(GITEA, progress)?.join(GITEA);
        let sources = tools::sources(GITEA, PACKAGE)?;
        for _ in 1..ATTEMPTS {
            match Self::attempt(&program, &sources, page).await {
                Err(error) if format!("{error:#}").contains("address already in use") => {}
                started => return started,
            }
        }
        Self::attempt(&program, &sources, page).await
    }

    async fn attempt(program: &Path, sources: &Path, page: u32) -> Result<Self> {
        let workspace = Workspace::create()?;
        let folder = workspace.path().to_owned();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let identity = Identity::create()?;
        fs::write(folder.join("server.crt"), &identity.certificate)?;
        fs::write(folder.join("server.key"), &identity.key)?;
        let settings = folder.join("app.ini");
        fs::write(&settings, configuration(&folder, sources, address, page))?;

        let gitea = || {
            let mut command = Command::new(program);
            command.arg("--config").arg(&settings).env("HOME", &folder);
            command
        };
        said(gitea().arg("migrate"))?;
        let user = ["admin", "user", "create", "--admin", "--username", OWNER];
        let account = ["--password", PASSWORD, "--email", "boss@example.com"];
        said(
            gitea()
                .args(user)
                .args(account)
                .arg("--must-change-password=false"),
        )?;
        let token = ["admin", "user", "generate-access-token", "--username"];
        let token = said(
            gitea()
                .args(token)
                .args([OWNER, "--scopes", "all", "--raw"]),
        )?;
        // What it logs may come before it or after it.
        let is_token =
            |line: &&str| line.len() == 40 && line.bytes().all(|b| b.is_ascii_hexdigit());
        let token = token
            .lines()
            .find(is_token)
            .context("it gave no token")?
            .to_owned();

        let process = Process::run_in(workspace, gitea().arg("web")).await?;
        let started = Self {
            process,
            address,
            identity,
            token,
        };
        let answers = async || started.ask(Method::GET, "/user", &Value::Null).await;
        let waited = started
            .process
            .until(DEADLINE, "Gitea to answer", answers)
            .await;
        waited.with_context(|| started.process.log_tail())?;
        Ok(started)
    }

    /// A client that has no credentials, on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn nobody(&self) -> Result<Client> {
        Ok(Client::try_from(self.config()?)?)
    }

    /// The address of a repository, as people copy it: `https://127.0.0.1:PORT/OWNER/NAME`.
    #[must_use]
    pub fn url(&self, owner: &str, name: &str) -> String {
        format!("https://{}/{owner}/{name}", self.address)
    }

    /// The certificate of the authority that it is trusted by, in PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.identity.authority
    }

    /// Makes a private repository of [`OWNER`] with one commit.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn repository(&self, name: &str) -> Result<()> {
        let repository = json!({
            "name": name, "private": true, "auto_init": true, "default_branch": BRANCH,
        });
        self.ask(Method::POST, "/user/repos", &repository).await?;
        Ok(())
    }

    /// Makes a user who may do nothing yet.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn user(&self, name: &str) -> Result<()> {
        let user = json!({
            "username": name, "email": format!("{name}@example.com"), "password": PASSWORD,
            "must_change_password": false,
        });
        self.ask(Method::POST, "/admin/users", &user).await?;
        Ok(())
    }

    /// Lets a user work on a repository of [`OWNER`]: `read`, `write` or `admin`.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn permit(&self, user: &str, repository: &str, permission: &str) -> Result<()> {
        let path = format!("/repos/{OWNER}/{repository}/collaborators/{user}");
        self.ask(Method::PUT, &path, &json!({"permission": permission}))
            .await?;
        Ok(())
    }

    /// A new token of a user with these scopes, such as `write:repository`.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn token(&self, user: &str, scopes: &[&str]) -> Result<String> {
        static TOKENS: AtomicUsize = AtomicUsize::new(0);
        let mut config = self.config()?;
        config.auth_info.username = Some(user.to_owned());
        config.auth_info.password = Some(PASSWORD.to_owned().into());
        // A user gives a name once.
        let name = format!("token {}", TOKENS.fetch_add(1, Ordering::SeqCst));
        let body = json!({"name": name, "scopes": scopes});
        let path = format!("/users/{user}/tokens");
        let reply = answer(config, Method::POST, &path, &body).await?;
        let token = reply["sha1"].as_str().context("it gave no token")?;
        Ok(token.to_owned())
    }

    /// What the API answers [`OWNER`] under a path such as `/repos/boss/shop`. `body` is sent unless it is
    /// null.
    ///
    /// # Errors
    ///
    /// With what it says, if it refuses.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let mut config = self.config()?;
        config.auth_info.token = Some(self.token.clone().into());
        answer(config, method, path, body).await
    }

    /// What the API answers [`OWNER`] about a repository of theirs, under a path such as `/pulls/1`.
    ///
    /// # Errors
    ///
    /// With what it says, if it refuses.
    pub async fn in_repository(
        &self,
        repository: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value> {
        let path = format!("/repos/{OWNER}/{repository}{path}");
        self.ask(method, &path, body).await
    }

    /// All items of a list in a repository: the forge answers with short pages, whatever is asked for. `path`
    /// has a query already, such as `/pulls?state=all`.
    ///
    /// # Errors
    ///
    /// With what it says, if it refuses.
    pub async fn all_in_repository(&self, repository: &str, path: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for page in 1.. {
            let path = format!("{path}&page={page}");
            let items = self.in_repository(repository, Method::GET, &path, &Value::Null);
            match items.await?.as_array() {
                Some(items) if !items.is_empty() => all.extend(items.iter().cloned()),
                Some(_) | None => break,
            }
        }
        Ok(all)
    }

    /// The text of a file at the newest commit of a branch.
    ///
    /// # Errors
    ///
    /// If there is no such file.
    pub async fn file(&self, repository: &str, branch: &str, path: &str) -> Result<String> {
        let (place, at) = (escaped(path), escaped(branch));
        let path = format!("/contents/{place}?ref={at}");
        let seen = self.in_repository(repository, Method::GET, &path, &Value::Null);
        let content = seen.await?["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        Ok(String::from_utf8(BASE64_STANDARD.decode(content)?)?)
    }

    /// Writes a file to a branch, as a person pushes it. Returns the commit.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn push(
        &self,
        repository: &str,
        branch: &str,
        path: &str,
        bytes: &[u8],
    ) -> Result<String> {
        let (place, at) = (escaped(path), escaped(branch));
        let seen = format!("/contents/{place}?ref={at}");
        let seen = self.in_repository(repository, Method::GET, &seen, &Value::Null);
        let mut file = json!({
            "operation": "create", "path": path, "content": BASE64_STANDARD.encode(bytes),
        });
        if let Ok(seen) = seen.await {
            file["operation"] = "update".into();
            file["sha"] = seen["sha"].clone();
        }
        let body = json!({"branch": branch, "message": "Push", "files": [file]});
        let made = self.in_repository(repository, Method::POST, "/contents", &body);
        let made = made.await?;
        let commit = made["commit"]["sha"].as_str();
        Ok(commit.context("no commit")?.to_owned())
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(format!("https://{}", self.address).parse()?);
        config.default_retry = false;
        config.root_cert = Some(vec![self.identity.authority_der.clone()]);
        Ok(config)
    }
}

/// Every byte as `%XX`.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// On the runtime of the caller, which may not be that of the test that started the server.
async fn answer(config: Config, method: Method, path: &str, body: &Value) -> Result<Value> {
    let what = format!("{method} {path}");
    let bytes = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(bytes))?;
    let reply = Client::try_from(config)?.send(request).await?;
    let status = reply.status();
    let bytes = reply.into_body().collect_bytes().await?;
    let text = String::from_utf8_lossy(&bytes);
    ensure!(status.is_success(), "{what}: {status}: {text}");
    match text.trim() {
        "" => Ok(Value::Null),
        text => serde_json::from_str(text).with_context(|| format!("{what}: {text}")),
    }
}

/// What a command says on its standard output.
fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {said}{why}", output.status);
    }
    Ok(said)
}

/// What a server of tests needs: SQLite, no jobs by the clock, and nothing that looks elsewhere.
fn configuration(folder: &Path, sources: &Path, address: SocketAddr, page: u32) -> String {
    let (port, folder) = (address.port(), folder.display());
    let sources = sources.display();
    format!(
        "RUN_MODE = prod
; Containers that test run as root.
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = {folder}
[server]
PROTOCOL = https
CERT_FILE = {folder}/server.crt
KEY_FILE = {folder}/server.key
HTTP_ADDR = {}
HTTP_PORT = {port}
ROOT_URL = https://{address}/
STATIC_ROOT_PATH = {sources}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
; Cheap: the passwords are no secrets.
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
[log]
MODE = console
LEVEL = warn
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[queue]
TYPE = channel
[session]
PROVIDER = memory
[webhook]
ALLOWED_HOST_LIST = loopback
[api]
MAX_RESPONSE_ITEMS = {page}
DEFAULT_PAGING_NUM = {page}
",
        address.ip()
    )
}
