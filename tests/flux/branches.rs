//! Promotion by branches with the real Flux and a real Gitea: an environment is healthy when the
//! Kustomization that applies its branch is ready with the very commit.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use kube::Api;
use serde_json::json;
use sluice_crds::promotion_strategy::{EnvironmentState, EnvironmentStatus};
use sluice_crds::{PromotionStrategy, PromotionStrategyStatus};
use sluice_tests::gitea::{OWNER, gitea};
use sluice_tests::hydrator::Hydrator;
use sluice_tests::installation::CONTROLLER;
use sluice_tests::poll;

use crate::stage::{DEADLINE, NOW, Stage, app};

const NAME: &str = "shop";
const ENVIRONMENTS: [&str; 2] = ["env/dev", "env/test"];
const FILE: &str = "app.yaml";

struct Shop {
    stage: Stage<'static>,
    hydrator: Hydrator,
}

impl Shop {
    async fn open() -> Result<Self> {
        let stage = Stage::new("branches", NOW).await?;
        let gitea = gitea().await?;
        let repository = stage.namespace().to_owned();
        let first = app("app", "one");
        let hydrator = Hydrator::open(gitea, &repository, &ENVIRONMENTS, (FILE, &first)).await?;
        let bot = gitea.bot(&repository).await?;
        stage.apply(&bot.secret_for_flux("git").to_string()).await?;
        let secret = bot.secret_for_pipelines("git-token");
        stage.apply(&secret.to_string()).await?;
        let rule = json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["git-token"],
            "verbs": ["get"],
        });
        stage.grant_rules("forge", CONTROLLER, &[rule]).await?;
        for branch in ENVIRONMENTS {
            let name = name(branch);
            let source = json!({
                "url": gitea.url(OWNER, &repository), "secretRef": {"name": "git"},
                "ref": {"branch": branch}, "interval": "1h",
            });
            stage.put("GitRepository", name, source).await?;
            let kustomization = json!({
                "sourceRef": {"kind": "GitRepository", "name": name}, "interval": "1h",
                "retryInterval": "2s", "timeout": "30s", "prune": true, "wait": true,
                "targetNamespace": stage.namespace(), "nameSuffix": format!("-{name}"),
            });
            stage.put("Kustomization", name, kustomization).await?;
        }
        let access = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
            "metadata": {"name": NAME},
            "spec": {
                "provider": "gitea", "url": gitea.url(OWNER, &repository),
                "secretRef": {"name": "git-token"}, "interval": "10s",
            },
        });
        stage.apply(&access.to_string()).await?;
        let environments = ENVIRONMENTS.map(|branch| {
            let flux = json!({"kustomizations": [{"name": name(branch)}]});
            json!({"branch": branch, "activeCommitStatuses": [{"key": "flux", "flux": flux}]})
        });
        let strategy = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"name": NAME},
            "spec": {"repoRef": {"name": NAME}, "environments": environments},
        });
        stage.apply(&strategy.to_string()).await?;
        Ok(Self { stage, hydrator })
    }

    /// Waits, while the clock of the controller goes on.
    async fn says(
        &self,
        branch: &str,
        what: &str,
        check: impl Fn(&EnvironmentStatus) -> bool,
    ) -> Result<EnvironmentStatus> {
        let stage = &self.stage;
        let api: Api<PromotionStrategy> = Api::namespaced(stage.client(), stage.namespace());
        poll(DEADLINE, &format!("{branch} {what}"), async || {
            stage
                .clock()
                .step(stage.now() + SignedDuration::from_secs(1));
            let status = api.get(NAME).await?.status.context("no status")?;
            let found = of(&status, branch).context("no environment")?;
            ensure!(check(found), "{}", json!(found));
            Ok::<_, anyhow::Error>(found.clone())
        })
        .await
    }

    /// Flux fetches what an environment has.
    async fn fetch(&self, branch: &str) -> Result<()> {
        self.stage.reconcile("GitRepository", name(branch)).await?;
        Ok(())
    }

    async fn hydrate(&self, version: &str, file: &str) -> Result<String> {
        self.hydrator.hydrate(version, (FILE, file)).await
    }
}

fn name(branch: &str) -> &str {
    branch.rsplit('/').next().unwrap_or(branch)
}

fn of<'s>(status: &'s PromotionStrategyStatus, branch: &str) -> Option<&'s EnvironmentStatus> {
    status.environments.iter().find(|it| it.branch == branch)
}

fn is_at(environment: &EnvironmentStatus, dry: &str) -> bool {
    let active = environment.active.as_ref();
    active.is_some_and(|tip| tip.dry_sha.as_deref() == Some(dry))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_healthy_when_flux_is_ready_with_its_commit() -> Result<()> {
    let shop = Shop::open().await?;
    let controller = shop.stage.start_with_egress().await?;
    let healthy = |it: &EnvironmentStatus| it.state == EnvironmentState::UpToDate;
    for branch in ENVIRONMENTS {
        shop.says(branch, "to be healthy", healthy).await?;
    }
    // It is merged into dev. Flux is still ready, with the commit before.
    let two = shop.hydrate("two", &app("app", "two")).await?;
    shop.says("env/dev", "to have it", |it| {
        is_at(it, &two) && it.state == EnvironmentState::Verifying
    })
    .await?;
    let waits = |it: &EnvironmentStatus| it.reason.as_deref() == Some("CheckPending");
    shop.says("env/test", "to wait for Flux", waits).await?;
    shop.fetch("env/dev").await?;
    shop.says("env/test", "to have it", |it| is_at(it, &two))
        .await?;
    shop.fetch("env/test").await?;
    shop.says("env/test", "to be healthy", healthy).await?;

    // What Flux cannot apply goes no further, and its fix does.
    let broken = shop.hydrate("broken", "kind: Nonsense").await?;
    shop.says("env/dev", "to have it", |it| is_at(it, &broken))
        .await?;
    shop.fetch("env/dev").await?;
    shop.says("env/dev", "to fail", |it| {
        it.state == EnvironmentState::Failed
    })
    .await?;
    let fails = |it: &EnvironmentStatus| it.reason.as_deref() == Some("CheckFailed");
    shop.says("env/test", "to be held back", fails).await?;
    let fix = shop.hydrate("fix", &app("app", "three")).await?;
    shop.says("env/dev", "to have the fix", |it| is_at(it, &fix))
        .await?;
    shop.fetch("env/dev").await?;
    shop.says("env/test", "to have the fix", |it| is_at(it, &fix))
        .await?;
    controller.stop().await;
    Ok(())
}
