//! The crowd: strategies of three environments, and their branches in a Gitea.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use http::Method;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::{CommitStatus, GitRepositoryAccess, PromotionStrategy, PullRequest};
use sluice_tests::gitea::{Bot, Gitea, OWNER, USUAL_PAGE};
use sluice_tests::line::Line;
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Writes, poll};

use super::repository::{Hydration, Repository, branch};
use super::{NAMESPACE, say};
use crate::bench::ordered::Ordered;
use crate::bench::seen::PATIENCE;

/// How many requests are in flight while it is created.
const AT_ONCE: usize = 8;
/// The environments of each strategy, in their order. Each has the branch `<strategy>/<environment>`.
pub(super) const ENVIRONMENTS: [&str; 3] = [FIRST, "test", LAST];
const FIRST: &str = "dev";
const LAST: &str = "prod";
/// The check of what is proposed for the first environment.
const CHECK: &str = "lint";
/// The Secret by which the controller gets to the forge.
const SECRET: &str = "git-token";

/// How many repositories there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// One for all strategies.
    One,
    /// One for each.
    Many,
}

pub(super) struct Crowd {
    client: Client,
    gitea: Gitea,
    /// The way of the controller to it.
    pub(super) line: Line,
    /// The address of the forge, for hydrators.
    server: String,
    clone: Repository,
    pub(super) n: usize,
    pub(super) spread: Spread,
    first: Hydration,
}

impl Crowd {
    /// Starts a forge, and creates so many strategies. Their branches are listed once in each `interval`.
    pub(super) async fn create(
        client: &Client,
        n: usize,
        spread: Spread,
        interval: &str,
    ) -> Result<Self> {
        let gitea = Gitea::start_with(&Stderr::new(), USUAL_PAGE).await?;
        gitea.repository(&repository(spread, 0)).await?;
        let bot = gitea.bot(&repository(spread, 0)).await?;
        let url = gitea.url(OWNER, "");
        let server = url.split(&format!("/{OWNER}")).next().unwrap_or_default();
        let line = Line::open(server).await?;
        let secret = bot.secret_for_pipelines(SECRET);
        let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
        applier.text(&secret.to_string()).await?;
        let clone = Repository::create(bot.clone(), gitea.authority())?;
        let crowd = Self {
            client: client.clone(),
            line,
            server: server.to_owned(),
            n,
            spread,
            first: clone.hydrate(1, None)?,
            clone,
            gitea,
        };
        crowd.fill(&bot).await?;
        crowd.write(interval).await?;
        let repositories = crowd.repositories();
        say(&format!("{n} strategies in {repositories} repositories"));
        Ok(crowd)
    }

    /// How many there are.
    pub(super) fn repositories(&self) -> usize {
        match self.spread {
            Spread::One => 1,
            Spread::Many => self.n,
        }
    }

    /// Pushes what every environment begins with.
    async fn fill(&self, bot: &Bot) -> Result<()> {
        for place in 1..self.repositories() {
            let name = repository(self.spread, place);
            self.gitea.repository(&name).await?;
            self.gitea.permit(&bot.name, &name, "write").await?;
        }
        for place in 0..self.repositories() {
            let strategies: Vec<String> = match self.spread {
                Spread::One => (0..self.n).map(name).collect(),
                Spread::Many => vec![name(place)],
            };
            let url = self.url(&self.server, place);
            self.clone.begin(&url, &self.first, &strategies)?;
        }
        Ok(())
    }

    /// Writes the objects.
    async fn write(&self, interval: &str) -> Result<()> {
        let accesses: Api<GitRepositoryAccess> = self.api();
        let strategies: Api<PromotionStrategy> = self.api();
        for place in 0..self.repositories() {
            let access = json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
                "metadata": {"name": repository(self.spread, place)},
                "spec": {
                    "provider": "gitea", "url": self.url(self.line.server(), place),
                    "secretRef": {"name": SECRET}, "interval": interval,
                },
            });
            accesses.add(&serde_json::from_value(access)?).await?;
        }
        let create = async |place: usize| {
            let name = name(place);
            let branch = |environment: &str| format!("{name}/{environment}");
            let [dev, test, prod] = ENVIRONMENTS.map(branch);
            let strategy = json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
                "metadata": {"name": name},
                "spec": {
                    "repoRef": {"name": repository(self.spread, place)},
                    "environments": [
                        {"branch": dev, "unchecked": true, "proposedCommitStatuses": [{"key": CHECK}]},
                        {"branch": test, "unchecked": true, "autoMerge": false},
                        {"branch": prod, "autoMerge": false},
                    ],
                },
            });
            strategies.add(&serde_json::from_value(strategy)?).await?;
            Ok::<_, anyhow::Error>(())
        };
        futures::stream::iter(0..self.n)
            .map(create)
            .buffer_unordered(AT_ONCE)
            .try_for_each(async |()| Ok(()))
            .await
            .context("cannot create the strategies")
    }

    /// Takes all objects away, so that another part begins with nothing.
    pub(super) async fn remove(self) -> Result<()> {
        let (now, all) = (DeleteParams::default(), Default::default());
        let strategies: Api<PromotionStrategy> = self.api();
        strategies.delete_collection(&now, &all).await?;
        let pulls: Api<PullRequest> = self.api();
        pulls.delete_collection(&now, &all).await?;
        let accesses: Api<GitRepositoryAccess> = self.api();
        accesses.delete_collection(&now, &all).await?;
        let statuses: Api<CommitStatus> = self.api();
        statuses.delete_collection(&now, &all).await?;
        Ok(())
    }

    /// Hydrators push another version for some strategies. What was made of it.
    pub(super) fn propose(
        &self,
        version: usize,
        last: &Hydration,
        strategies: &[String],
    ) -> Result<Hydration> {
        let next = self.clone.hydrate(version, Some(last))?;
        let url = self.url(&self.server, 0);
        self.clone.propose(&url, &next, FIRST, strategies)?;
        Ok(next)
    }

    /// How long the forge takes for a merge that nothing else waits for, from the request to the reply, in seconds:
    /// in an environment of each of these strategies that no controller merges.
    pub(super) async fn merge_by_hand(
        &self,
        next: &Hydration,
        strategies: &[String],
    ) -> Result<Ordered> {
        let url = self.url(&self.server, 0);
        self.clone.propose(&url, next, LAST, strategies)?;
        let name = repository(self.spread, 0);
        let ask = async |method: Method, path: &str, body: &Value| {
            let asked = self.gitea.in_repository(&name, method, path, body);
            asked.await
        };
        let mut lengths = Vec::new();
        for strategy in strategies {
            let base = branch(strategy, LAST);
            let pull = json!({"title": base, "base": base, "head": format!("{base}-next")});
            let pull = ask(Method::POST, "/pulls", &pull).await?;
            let path = format!("/pulls/{}", pull["number"]);
            poll(
                PATIENCE,
                "the forge to know that it can be merged",
                async || {
                    let pull = ask(Method::GET, &path, &Value::Null).await?;
                    ensure!(pull["mergeable"] == json!(true), "{}", pull["mergeable"]);
                    Ok(())
                },
            )
            .await?;
            let (path, began) = (format!("{path}/merge"), Instant::now());
            ask(Method::POST, &path, &json!({"Do": "merge"})).await?;
            lengths.push(began.elapsed().as_secs_f64());
        }
        Ok(Ordered::new(lengths))
    }

    /// The check of what is proposed passes.
    pub(super) async fn pass(&self, hydration: &Hydration) -> Result<()> {
        let Hydration { hydrated, .. } = hydration;
        let status = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
            "metadata": {
                "name": format!("{CHECK}-{}", &hydrated[..8]),
                "labels": {"sluice.dev/commit-status": CHECK},
            },
            "spec": {
                "repoRef": {"name": repository(self.spread, 0)}, "sha": hydrated, "name": CHECK,
                "phase": "success",
            },
        });
        let statuses: Api<CommitStatus> = self.api();
        statuses.add(&serde_json::from_value(status)?).await?;
        Ok(())
    }

    /// What every environment began with.
    pub(super) fn first(&self) -> &Hydration {
        &self.first
    }

    fn url(&self, server: &str, place: usize) -> String {
        format!("{server}/{OWNER}/{}", repository(self.spread, place))
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

/// A strategy.
pub(super) fn name(place: usize) -> String {
    format!("shop-{place:04}")
}

/// The repository of a strategy.
fn repository(spread: Spread, place: usize) -> String {
    match spread {
        Spread::One => "all".to_owned(),
        Spread::Many => name(place),
    }
}
