//! A bare client: the same requests as the controller sends for a change, one after the other over one
//! connection that is kept; and what peers do instead.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use serde_json::{Value, json};
use sluice_tests::gitea::{BRANCH, OWNER};

use super::repository::{edited, path};
use super::{Forge, NAME};

/// A client of the repository.
pub(super) struct Bare<'f> {
    forge: &'f Forge,
    client: reqwest::Client,
    api: String,
    /// How many changes it has made: each has a branch of its own.
    made: usize,
}

/// What a change has cost.
pub(super) struct Cost {
    /// Until its pull request is open, in seconds.
    pub(super) took: f64,
    /// On the wire, both ways together.
    pub(super) bytes: u64,
}

/// How a change is made.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// As the controller does it: the files that are named.
    Paths,
    /// By an archive of all files.
    Archive,
    /// By `git clone --depth 1` and a push.
    Clone,
}

impl<'f> Bare<'f> {
    pub(super) fn new(forge: &'f Forge) -> Result<Self> {
        let tls = sluice_egress::tls(Some(forge.gitea.authority().as_bytes()))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .build()?;
        let api = format!("{}/api/v1/repos/{OWNER}/{NAME}", forge.other.server());
        Ok(Self {
            forge,
            client,
            api,
            made: 0,
        })
    }

    /// Makes a change to a file of no pipeline. Its pull request is closed again, which does not count.
    pub(super) async fn change(&mut self, way: Way) -> Result<Cost> {
        self.made += 1;
        let (branch, place) = (format!("bare/{:04}", self.made), 1_000 + self.made);
        let revision = format!("3.{}.0", self.made);
        let (before, began) = (self.forge.other.bytes(), Instant::now());
        let (pull, took) = match way {
            Way::Paths => self.by_paths(&branch, place, &revision).await?,
            Way::Archive => {
                self.read_head(BRANCH).await?;
                let archive = format!("/archive/{BRANCH}.tar.gz");
                let (status, _) = self.send(&Method::GET, &archive, &Value::Null).await?;
                ensure!(status == 200, "{archive}: {status}");
                self.commit(&branch, place, &revision).await?;
                (self.open(&branch).await?, began.elapsed())
            }
            Way::Clone => {
                let repository = &self.forge.repository;
                repository.clone_and_push(&branch, place, &revision).await?;
                (self.open(&branch).await?, began.elapsed())
            }
        };
        let bytes = self.forge.other.bytes() - before;
        let closed = json!({"state": "closed"});
        let number = pull["number"].as_u64().context("it has no number")?;
        let path = format!("/pulls/{number}");
        self.json(&Method::PATCH, &path, &closed).await?;
        Ok(Cost {
            took: took.as_secs_f64(),
            bytes,
        })
    }

    /// What the controller does, until the pull request is known to be open. Then it sets a commit status.
    async fn by_paths(
        &self,
        branch: &str,
        place: usize,
        revision: &str,
    ) -> Result<(Value, Duration)> {
        let began = Instant::now();
        self.find(branch).await?;
        self.list().await?;
        self.read_head(branch).await?;
        let head = self.read_head(BRANCH).await?;
        ensure!(head.is_some(), "there is no {BRANCH}");
        let commit = self.commit(branch, place, revision).await?;
        self.find(branch).await?;
        self.read_head(branch).await?;
        let pull = self.open(branch).await?;
        self.list().await?;
        let took = began.elapsed();
        let status = json!({
            "state": "pending", "context": "bench", "description": "as the controller sets it",
            "target_url": "https://git.example.com/",
        });
        let path = format!("/statuses/{commit}");
        self.json(&Method::POST, &path, &status).await?;
        Ok((pull, took))
    }

    /// Looks for the pull request of a branch. Where there is none, it is asked whether the repository is
    /// there.
    async fn find(&self, branch: &str) -> Result<()> {
        let path = format!("/pulls/{BRANCH}/{}", branch.replace('/', "%2F"));
        self.found(&path).await?;
        Ok(())
    }

    async fn list(&self) -> Result<()> {
        let path = format!("/pulls?state=open&base_branch={BRANCH}&sort=oldest&limit=50");
        self.json(&Method::GET, &path, &Value::Null).await?;
        Ok(())
    }

    async fn read_head(&self, branch: &str) -> Result<Option<Value>> {
        self.found(&format!("/git/refs/heads/{branch}")).await
    }

    /// Reads a file and commits it changed to a new branch. The commit.
    async fn commit(&self, branch: &str, place: usize, revision: &str) -> Result<String> {
        let path = path(place);
        let contents = format!("/contents/{path}?ref={BRANCH}");
        let file = self.json(&Method::GET, &contents, &Value::Null).await?;
        let content = file["content"].as_str().context("it has no content")?;
        let text = String::from_utf8(BASE64_STANDARD.decode(content)?)?;
        let change = json!({
            "operation": "update", "path": path, "sha": file["sha"],
            "content": BASE64_STANDARD.encode(edited(&text, revision)),
        });
        let body = json!({
            "branch": BRANCH, "new_branch": branch, "message": "A change", "files": [change],
        });
        let made = self.json(&Method::POST, "/contents", &body).await?;
        let commit = made["commit"]["sha"].as_str();
        Ok(commit.context("there is no commit")?.to_owned())
    }

    async fn open(&self, branch: &str) -> Result<Value> {
        let body = json!({"title": "A change", "body": "", "head": branch, "base": BRANCH});
        self.json(&Method::POST, "/pulls", &body).await
    }

    async fn found(&self, path: &str) -> Result<Option<Value>> {
        let (status, body) = self.send(&Method::GET, path, &Value::Null).await?;
        if status == 404 {
            self.json(&Method::GET, "", &Value::Null).await?;
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&body)?))
    }

    async fn json(&self, method: &Method, path: &str, body: &Value) -> Result<Value> {
        let (status, body) = self.send(method, path, body).await?;
        let said = String::from_utf8_lossy(&body);
        ensure!(status < 300, "{method} {path}: {status}: {said}");
        Ok(serde_json::from_slice(&body)?)
    }

    async fn send(&self, method: &Method, path: &str, body: &Value) -> Result<(u16, Vec<u8>)> {
        let url = format!("{}{path}", self.api);
        let mut request = self.client.request(method.clone(), url);
        request = request.bearer_auth(&self.forge.token);
        if !body.is_null() {
            let json = "application/json";
            request = request.header("content-type", json).body(body.to_string());
        }
        let reply = request.send().await?;
        let status = reply.status().as_u16();
        Ok((status, reply.bytes().await?.to_vec()))
    }
}
