//! Where the story of promotion takes place: a Gitea with the repository of the shop, and Flux.
//!
//! What comes in: the cluster of the demo. What goes out: a shop that runs in three environments, each of
//! them a branch, and a strategy over them.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use sluice_tests::flux::{Flux, Programs, Reach};
use sluice_tests::gitea::{Bot, Gitea, OWNER};
use sluice_tests::progress::{Stderr, human};
use sluice_tests::rights::grant_rules;
use sluice_tests::{Applier, kubectl, poll};

use super::repository::{Clone, Version};
use super::{ENVIRONMENTS, REPOSITORY};
use crate::demo::screen::Screen;
use crate::demo::stage::{SOON, Stage, secret};
use crate::demo::{CONTROLLER, NAMESPACE, freeze};

/// The Secret of the controller.
const TOKEN: &str = "git-token";

/// Everything that runs beside the cluster of the demo. Dropped, it ends.
pub(super) struct Place {
    _flux: Flux,
    pub(super) gitea: Gitea,
    pub(super) kubectl: PathBuf,
}

impl Place {
    pub(super) async fn start(screen: &Screen, stage: &Stage) -> Result<Self> {
        let began = Instant::now();
        let progress = Stderr::new();
        let programs = Programs::ensure(&progress)?;
        let kubectl = kubectl::ensure(&progress)?;
        Gitea::ensure(&progress)?;
        screen.waiting("Gitea and Flux are starting");
        let flux = Flux::start(&programs, &stage.cluster, Reach::Namespace(NAMESPACE));
        let (flux, gitea) = tokio::try_join!(flux, Gitea::start(&progress))?;
        screen.waited();
        screen.fact(&format!(
            "Gitea and Flux, built or found, and ready: {}",
            human(began.elapsed())
        ));
        Ok(Self {
            _flux: flux,
            gitea,
            kubectl,
        })
    }

    /// Brings the first version into all environments, and writes the strategy.
    pub(super) async fn furnish(&self, stage: &Stage, first: Version) -> Result<Clone> {
        self.gitea.repository(REPOSITORY).await?;
        let bot = self.gitea.bot(REPOSITORY).await?;
        let clone = Clone::create(&self.gitea, &self.kubectl)?;
        clone.push(first, "Open the shop")?;
        clone.begin()?;
        self.deliver(stage, &bot).await?;
        for environment in ENVIRONMENTS {
            self.says(stage, environment, first).await?;
        }
        self.promote(stage, &bot).await?;
        Ok(clone)
    }

    /// Has Flux deliver what the branch of each environment has.
    async fn deliver(&self, stage: &Stage, bot: &Bot) -> Result<()> {
        stage
            .apply(&bot.secret_for_flux("git").to_string(), "secret")
            .await?;
        for environment in ENVIRONMENTS {
            let yaml = include_str!("environment.yaml")
                .replace("ENVIRONMENT", environment)
                .replace("REPOSITORY", &self.repository());
            stage.apply(&yaml, "environment.yaml").await?;
        }
        Ok(())
    }

    /// Makes the strategy, and what it needs.
    async fn promote(&self, stage: &Stage, bot: &Bot) -> Result<()> {
        let rules = [secret(TOKEN, &["get"])];
        let client = stage.client.clone();
        grant_rules(client, NAMESPACE, "promotion", CONTROLLER, &rules).await?;
        let applier = Applier::new(stage.client.clone()).in_namespace(NAMESPACE);
        let token = bot.secret_for_pipelines(TOKEN);
        applier.text(&token.to_string()).await?;
        freeze::begin(stage).await?;
        let yaml = include_str!("strategy.yaml").replace("REPOSITORY", &self.repository());
        stage.apply(&yaml, "strategy.yaml").await
    }

    /// The address of the repository.
    pub(super) fn repository(&self) -> String {
        self.gitea.url(OWNER, REPOSITORY)
    }

    /// Waits until the shop of an environment is this version.
    pub(super) async fn says(
        &self,
        stage: &Stage,
        environment: &str,
        version: Version,
    ) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
        let name = format!("{REPOSITORY}-{environment}");
        let what = format!("{name} to be version {}", version.number);
        poll(SOON, &what, async || {
            let map = maps.get_opt(&name).await?;
            let said = map.and_then(|map| map.data?.remove("version"));
            ensure!(said.as_deref() == Some(version.number), "it says {said:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}
