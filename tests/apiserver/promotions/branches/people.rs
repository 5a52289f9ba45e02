//! What people do in the repository: to pull requests, to branches, and to its settings.

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_tests::controller::InProcess;
use sluice_tests::gitea::OWNER;
use sluice_tests::{Writes, poll};

use super::{Branches, DEADLINE, NAME};
use crate::pipelines::shop::state;
use crate::promotions::is_at;

/// What the forge signs its webhooks with.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A bad commit that an environment has.
pub struct Spoilt {
    /// The dry commit with which it was healthy before.
    pub good: String,
    /// The dry commit that is bad.
    pub bad: String,
    /// What was made of it: the commit of the environment.
    pub from: String,
}

impl Branches {
    /// A bad commit gets into an environment that is healthy.
    pub async fn spoil(&self, branch: &str) -> Result<Spoilt> {
        self.healthy(branch).await?;
        let before = self
            .says(branch, "to be healthy", |it| !it.last_healthy.is_empty())
            .await?;
        let good = before.last_healthy[0].dry_sha.clone();
        let bad = self.hydrate("2").await?;
        self.request().await?;
        self.says(branch, "to be spoilt", |it| is_at(it, &bad))
            .await?;
        let from = self.head(branch).await?;
        Ok(Spoilt { good, bad, from })
    }

    /// A person deletes a RevertCommit: what it took back may come again.
    pub async fn forget(&self, name: &str) -> Result<()> {
        self.reverts().remove(name).await?;
        Ok(())
    }

    /// From now on the branches are listed once an hour, unless the forge says that something has changed.
    pub async fn waits_for_hooks(&self) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"},
            "stringData": {"token": TOKEN},
        }))
        .await?;
        let spec = json!({"interval": "1h", "webhook": {"secretRef": {"name": "hook"}}});
        let patch = Patch::Merge(json!({ "spec": spec }));
        let params = PatchParams::default();
        self.accesses().patch(NAME, &params, &patch).await?;
        Ok(())
    }

    /// A person enters the webhook in the forge.
    pub async fn enter_hook(&self, controller: &InProcess) -> Result<()> {
        let address = controller.webhook().context("no webhooks are taken")?;
        let url = format!("http://{address}/hooks/{}/{NAME}", self.stage.namespace());
        let hook = json!({
            "type": "gitea", "active": true, "events": ["push", "pull_request"],
            "config": {"url": url, "content_type": "json", "secret": TOKEN},
        });
        self.hydrator.ask(Method::POST, "/hooks", &hook).await?;
        Ok(())
    }

    /// A request about the repository, such as `/pulls/1`.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        self.hydrator.ask(method, path, body).await
    }

    /// All pull requests into a branch, the oldest first.
    async fn pulls_of(&self, branch: &str) -> Result<Vec<Value>> {
        let path = format!("/pulls?state=all&sort=oldest&base_branch={branch}");
        let path = path.replace("env/", "env%2F");
        self.gitea.all_in_repository(&self.repository, &path).await
    }

    /// Waits until the pull requests into a branch are in these states, the oldest first. Returns their numbers.
    pub async fn pulls_into(&self, branch: &str, states: &[&str]) -> Result<Vec<i64>> {
        let what = format!("the pull requests into {branch}");
        poll(DEADLINE, &what, async || {
            let pulls = self.pulls_of(branch).await?;
            let found: Vec<_> = pulls.iter().map(state).collect();
            ensure!(found == states, "{found:?}");
            let numbers = pulls.iter().filter_map(|pull| pull["number"].as_i64());
            Ok::<_, anyhow::Error>(numbers.collect())
        })
        .await
    }

    /// How many commits a pull request lists, and which files it changes.
    pub async fn shows(&self, number: i64) -> Result<(usize, Vec<String>)> {
        let commits = format!("/pulls/{number}/commits?files=false");
        let commits = self.gitea.all_in_repository(&self.repository, &commits);
        let files = format!("/pulls/{number}/files?whitespace=show-all");
        let files = self.gitea.all_in_repository(&self.repository, &files);
        let (commits, files) = tokio::try_join!(commits, files)?;
        let name = |file: &Value| file["filename"].as_str().unwrap_or_default().to_owned();
        Ok((commits.len(), files.iter().map(name).collect()))
    }

    /// A person changes a pull request: its title, or whether it is open.
    pub async fn edit(&self, number: i64, change: &Value) -> Result<()> {
        self.ask(Method::PATCH, &format!("/pulls/{number}"), change)
            .await?;
        Ok(())
    }

    /// A person gives a pull request a label, which is new. Returns its id.
    pub async fn label(&self, number: i64, name: &str) -> Result<i64> {
        let label = json!({"name": name, "color": "#ff0000"});
        let label = self.ask(Method::POST, "/labels", &label).await?;
        let id = label["id"].as_i64().context("the label has no id")?;
        let path = format!("/issues/{number}/labels");
        self.ask(Method::POST, &path, &json!({"labels": [id]}))
            .await?;
        Ok(id)
    }

    /// A person takes a label from a pull request.
    pub async fn unlabel(&self, number: i64, label: i64) -> Result<()> {
        let path = format!("/issues/{number}/labels/{label}");
        self.ask(Method::DELETE, &path, &Value::Null).await?;
        Ok(())
    }

    /// A person deletes a file of a branch.
    pub async fn remove(&self, branch: &str, path: &str) -> Result<()> {
        let seen = format!("/contents/{path}?ref={branch}");
        let seen = self.ask(Method::GET, &seen, &Value::Null).await?;
        let body = json!({"branch": branch, "message": "Remove", "sha": seen["sha"]});
        self.ask(Method::DELETE, &format!("/contents/{path}"), &body)
            .await?;
        Ok(())
    }

    /// A person deletes a branch.
    pub async fn delete(&self, branch: &str) -> Result<()> {
        let path = format!("/branches/{}", branch.replace('/', "%2F"));
        self.ask(Method::DELETE, &path, &Value::Null).await?;
        Ok(())
    }

    /// The hydrator begins to propose for a branch from what that has.
    pub async fn begin_from(&self, branch: &str) -> Result<()> {
        let next = json!({
            "new_branch_name": format!("{branch}-next"), "old_branch_name": branch,
        });
        self.ask(Method::POST, "/branches", &next).await?;
        Ok(())
    }

    /// The repository merges by this method alone: `squash` or `rebase`.
    pub async fn only(&self, method: &str) -> Result<()> {
        let settings = json!({
            "allow_merge_commits": false, "allow_rebase": method == "rebase",
            "allow_rebase_explicit": false, "allow_fast_forward_only_merge": false,
            "allow_squash_merge": method == "squash", "default_merge_style": method,
        });
        self.ask(Method::PATCH, "", &settings).await?;
        Ok(())
    }

    /// A person gives the repository another name. Returns its address.
    pub async fn rename(&mut self, name: &str) -> Result<String> {
        self.ask(Method::PATCH, "", &json!({"name": name})).await?;
        self.repository = name.to_owned();
        self.hydrator.renamed(name);
        Ok(self.gitea.url(OWNER, name))
    }

    /// Whether an environment has exactly what is proposed for it.
    pub async fn is_as_proposed(&self, branch: &str) -> Result<()> {
        let next = format!("{branch}-next");
        let (has, proposed) = tokio::try_join!(self.files(branch), self.files(&next))?;
        ensure!(
            has == proposed,
            "{branch} has {has}, and {next} has {proposed}"
        );
        Ok(())
    }

    /// The files of a branch, each with the id of what it has.
    async fn files(&self, branch: &str) -> Result<Value> {
        let sha = self.head(branch).await?;
        let path = format!("/git/trees/{sha}?recursive=true");
        let found = self.ask(Method::GET, &path, &Value::Null).await?;
        let entries = found["tree"].as_array().context("no files")?.iter();
        Ok(entries.map(|it| json!([it["path"], it["sha"]])).collect())
    }
}
