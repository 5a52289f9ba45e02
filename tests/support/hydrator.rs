//! A hydrator that is played: it makes environment branches in a real Gitea out of a dry branch.
//!
//! What comes in: what people commit, and the files that are made of it. What goes out: one commit on the
//! proposed branch of each environment, with a file that names the dry commit, as the GitOps Promoter and
//! Argo CD have it.

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::Method;
use serde_json::{Value, json};

use crate::gitea::{BRANCH, Gitea, OWNER, SCOPES};

mod script;

/// The file that names the dry commit.
const METADATA: &str = "hydrator.metadata";

/// A repository whose environments are branches.
pub struct Hydrator {
    gitea: &'static Gitea,
    repository: String,
    environments: &'static [&'static str],
}

impl Hydrator {
    /// A new repository, in which every environment has this file, made of the first commit, and proposes the
    /// same.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn open(
        gitea: &'static Gitea,
        repository: &str,
        environments: &'static [&'static str],
        file: (&str, &str),
    ) -> Result<Self> {
        gitea.repository(repository).await?;
        let hydrator = Self {
            gitea,
            repository: repository.to_owned(),
            environments,
        };
        let first = hydrator.head(BRANCH).await?;
        for branch in environments {
            hydrator.commit(BRANCH, Some(branch), &first, file).await?;
            let next = json!({
                "new_branch_name": format!("{branch}-next"), "old_branch_name": branch,
            });
            hydrator.ask(Method::POST, "/branches", &next).await?;
        }
        Ok(hydrator)
    }

    /// The repository has another name now.
    pub fn renamed(&mut self, name: &str) {
        name.clone_into(&mut self.repository);
    }

    /// What the owner of the repository does: a path such as `/pulls/1`.
    ///
    /// # Errors
    ///
    /// With what it says, if it refuses.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        self.gitea
            .in_repository(&self.repository, method, path, body)
            .await
    }

    /// The newest commit of a branch.
    ///
    /// # Errors
    ///
    /// If there is no such branch.
    pub async fn head(&self, branch: &str) -> Result<String> {
        let path = format!("/git/refs/heads/{branch}");
        let found = self.ask(Method::GET, &path, &Value::Null).await?;
        // All that begin with the name are given.
        let refs = found.as_array().cloned().unwrap_or_else(|| vec![found]);
        let name = format!("refs/heads/{branch}");
        let found = refs.iter().find(|it| it["ref"] == name.as_str());
        let sha = found.and_then(|it| it["object"]["sha"].as_str());
        Ok(sha.context("no such branch")?.to_owned())
    }

    /// A person commits to the dry branch, and this is what is proposed for all environments. Returns the
    /// dry commit.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn hydrate(&self, version: &str, file: (&str, &str)) -> Result<String> {
        let bytes = version.as_bytes();
        let dry = self.gitea.push(&self.repository, BRANCH, "version", bytes);
        let dry = dry.await?;
        for branch in self.environments {
            let next = format!("{branch}-next");
            self.commit(&next, None, &dry, file).await?;
        }
        Ok(dry)
    }

    /// The same with the script of the guide: a person commits a manifest for all environments by Git, and
    /// what the script makes of it is proposed. Returns the dry commit.
    ///
    /// # Errors
    ///
    /// If the script fails, or does not propose it for all environments.
    pub async fn run_script(&self, manifest: &str) -> Result<String> {
        let token = self.gitea.token(OWNER, &SCOPES).await?;
        let (gitea, repository) = (self.gitea, self.repository.clone());
        let names = self.environments.iter();
        let names: Vec<&str> = names.filter_map(|it| it.strip_prefix("env/")).collect();
        let manifest = manifest.to_owned();
        let work = move || {
            let clone = script::Clone::of(gitea, &repository, &token)?;
            let dry = clone.commit(&names, &manifest)?;
            let said = clone.hydrate(&names)?;
            let proposed = said.lines().filter(|line| line.ends_with(": proposed"));
            ensure!(proposed.count() == names.len(), "{said}");
            Ok(dry)
        };
        tokio::task::spawn_blocking(work).await?
    }

    /// One commit on a branch, or on a new one that goes on from it.
    async fn commit(
        &self,
        branch: &str,
        new: Option<&str>,
        dry: &str,
        (path, text): (&str, &str),
    ) -> Result<()> {
        let metadata = json!({"drySha": dry, "subject": "A change of the app"}).to_string();
        let operation = if new.is_some() { "create" } else { "update" };
        let files = [(path, text), (METADATA, metadata.as_str())].map(|(path, text)| {
            json!({"operation": operation, "path": path, "content": BASE64_STANDARD.encode(text)})
        });
        let message = format!("Hydrate {dry}");
        let mut body = json!({"branch": branch, "message": message, "files": files});
        if let Some(new) = new {
            body["new_branch"] = new.into();
        }
        self.ask(Method::POST, "/contents", &body).await?;
        Ok(())
    }
}
