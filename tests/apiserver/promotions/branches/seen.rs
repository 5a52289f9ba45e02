//! What can be seen of a promotion: in statuses, and at the forge.

use std::fmt::Debug;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_crds::PromotionStrategyStatus;
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_tests::{conformance, poll, status};

use super::{Branches, DEADLINE, NAME, STEP};
use crate::pipelines::shop::state;

impl Branches {
    /// Waits until `check` is content with an environment.
    pub async fn says(
        &self,
        branch: &str,
        what: &str,
        check: impl Fn(&EnvironmentStatus) -> bool,
    ) -> Result<EnvironmentStatus> {
        let of = |status: &PromotionStrategyStatus| {
            let mut all = status.environments.iter();
            all.find(|it| it.branch == branch).cloned()
        };
        let is = |status: &PromotionStrategyStatus| of(status).is_some_and(|it| check(&it));
        let what = format!("{branch} {what}");
        let found = status::until(&self.strategies(), NAME, DEADLINE, &what, is).await?;
        found.status.as_ref().and_then(of).context("no environment")
    }

    /// The same while time passes faster: what is tried again after some seconds is tried sooner.
    pub async fn says_soon(
        &self,
        branch: &str,
        what: &str,
        check: impl Fn(&EnvironmentStatus) -> bool,
    ) -> Result<EnvironmentStatus> {
        self.soon(self.says(branch, what, check)).await
    }

    /// Time passes faster until something has come.
    async fn soon<T>(&self, comes: impl Future<Output = Result<T>>) -> Result<T> {
        let passing = async {
            poll(DEADLINE * 2, "the end", async || {
                self.clock.put_forward(STEP);
                Err::<(), _>("time passes")
            })
            .await
        };
        tokio::select! {
            found = comes => found,
            ended = passing => Err(ended.err().context("time has ended")?),
        }
    }

    /// Waits until the pull requests are in these states, the oldest first.
    pub async fn pulls_are(&self, states: &[&str]) -> Result<Vec<Value>> {
        poll(DEADLINE, "the pull requests at the forge", async || {
            let all = "/pulls?state=all&sort=oldest";
            let pulls = self.gitea.all_in_repository(&self.repository, all).await?;
            let mut found: Vec<_> = pulls.iter().map(state).collect();
            found.sort_unstable();
            ensure!(found == states, "{found:?}");
            Ok::<_, anyhow::Error>(pulls)
        })
        .await
    }

    /// What the newest commit status of this name says of a branch: its state and its description.
    pub async fn commit_status(&self, branch: &str, context: &str) -> Result<(String, String)> {
        let sha = self.hydrator.head(branch).await?;
        poll(DEADLINE, "the commit status", async || {
            let path = format!("/commits/{sha}/status");
            let all = self.hydrator.ask(Method::GET, &path, &Value::Null).await?;
            let all = all["statuses"].as_array().cloned().unwrap_or_default();
            let found = all.iter().find(|it| it["context"] == context);
            let found = found.with_context(|| format!("{all:?}"))?;
            let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            Ok::<_, anyhow::Error>((text("status"), text("description")))
        })
        .await
    }

    /// Waits until the newest commit status of this name says this of a branch. Returns its description.
    pub async fn commit_status_is(&self, branch: &str, context: &str, is: &str) -> Result<String> {
        poll(DEADLINE, context, async || {
            let (state, description) = self.commit_status(branch, context).await?;
            ensure!(state == is, "{state}: {description}");
            Ok::<_, anyhow::Error>(description)
        })
        .await
    }

    /// Waits, while time passes faster, until the newest commit status of this name has this in its description.
    /// Returns its state. A description alone is rewritten once a minute.
    pub async fn commit_status_names(
        &self,
        branch: &str,
        context: &str,
        what: &str,
    ) -> Result<String> {
        self.soon(poll(DEADLINE, context, async || {
            let (state, description) = self.commit_status(branch, context).await?;
            ensure!(description.contains(what), "{state}: {description}");
            Ok::<_, anyhow::Error>(state)
        }))
        .await
    }

    /// How many pull requests were merged into a branch.
    pub async fn merges(&self, branch: &str) -> Result<usize> {
        let of = format!("into {branch}");
        let titles = self.titles(branch).await?.into_iter();
        let merges = titles.filter(|it| it.starts_with("Merge pull request") && it.ends_with(&of));
        Ok(merges.count())
    }

    /// How many commits of what is proposed for a branch only join its history.
    pub async fn joins(&self, branch: &str) -> Result<usize> {
        let join = format!("Join the history of {branch}");
        let titles = self.titles(&format!("{branch}-next")).await?.into_iter();
        Ok(titles.filter(|it| *it == join).count())
    }

    /// The first lines of what the commits of a branch say.
    async fn titles(&self, branch: &str) -> Result<Vec<String>> {
        let path = format!("/commits?sha={branch}&stat=false");
        let all = self.gitea.all_in_repository(&self.repository, &path);
        let all = all.await?;
        let message = |it: &Value| it["commit"]["message"].as_str().map(str::to_owned);
        let first = |it: String| it.lines().next().map(str::to_owned);
        Ok(all.iter().filter_map(message).filter_map(first).collect())
    }

    /// What the commit status of a dry commit is called.
    pub fn dry_context(&self) -> String {
        format!("sluice/dry/{}/{NAME}", self.stage.namespace())
    }

    /// How often a commit was given a commit status of this name.
    pub async fn told(&self, sha: &str, context: &str) -> Result<usize> {
        let path = format!("/commits/{sha}/statuses?sort=oldest");
        let all = self
            .gitea
            .all_in_repository(&self.repository, &path)
            .await?;
        Ok(all.iter().filter(|it| it["context"] == context).count())
    }

    /// Waits until every status is about the present spec, as it is once nothing is left to do.
    pub async fn rests(&self) -> Result<()> {
        poll(DEADLINE, "statuses about the present", async || {
            let all = [
                listed(&self.strategies()).await?,
                listed(&self.pull_requests()).await?,
                listed(&self.accesses()).await?,
                listed(&self.commit_statuses()).await?,
                listed(&self.reverts()).await?,
            ];
            let broken = all.iter().flatten().flat_map(conformance::at_rest);
            let broken: Vec<_> = broken.collect();
            ensure!(broken.is_empty(), "{broken:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}

async fn listed<K>(api: &Api<K>) -> Result<Vec<Value>>
where
    K: Clone + DeserializeOwned + Debug + Serialize,
{
    let all = api.list(&ListParams::default()).await?;
    Ok(all.iter().map(|it| json!(it)).collect())
}
