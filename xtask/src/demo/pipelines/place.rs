//! Where the story of pipelines takes place: two clusters with Flux, a Gitea, and charts.
//!
//! What comes in: the cluster of the demo. What goes out: an app that runs in three environments, each
//! described by a file in Gitea, and a pipeline over them.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use sluice_tests::flux::{Charts, Flux, Programs, Reach};
use sluice_tests::gitea::{BRANCH, Bot, Gitea, OWNER};
use sluice_tests::progress::{Stderr, human};
use sluice_tests::rights::grant_rules;
use sluice_tests::{Applier, Binaries, Cluster, ControlPlane, Options, User, apply, kubectl, poll};

use crate::demo::screen::Screen;
use crate::demo::stage::{SOON, Stage, secret};
use crate::demo::{CONTROLLER, NAMESPACE, freeze};
use crate::server::marked;

/// The app, and what it is in Gitea.
pub(super) const APP: &str = "podinfo";
pub(super) const REPOSITORY: &str = "apps";
/// The environments, with their namespaces. The first is on the cluster of the demo, the others elsewhere.
pub(super) const DEV: (&str, &str) = ("dev", NAMESPACE);
pub(super) const STAGING: (&str, &str) = ("staging", "staging");
pub(super) const PROD: (&str, &str) = ("prod", "prod");
/// The versions of the chart: what runs at first, what is promoted, and one to play with.
pub(super) const OLD: &str = "6.1.0";
pub(super) const NEW: &str = "6.1.6";
pub(super) const NEXT: &str = "6.2.0";
/// Who sees the apps of the other cluster.
const READER: &str = "sluice";
/// The Secrets of the pipeline.
const OTHER: &str = "other-cluster";
const TOKEN: &str = "git-token";
/// All that the chart has: an object that says which version it is.
const TEMPLATE: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: podinfo}
data: {version: '{{ .Chart.Version }}'}
";

/// Everything that runs beside the cluster of the demo. Dropped, it ends.
pub(super) struct Place {
    _flux: [Flux; 2],
    charts: Charts,
    pub(super) gitea: Gitea,
    pub(super) kubectl: PathBuf,
    other: ControlPlane,
    /// Of [`READER`].
    token: String,
}

impl Place {
    pub(super) async fn start(screen: &Screen, stage: &Stage) -> Result<Self> {
        let began = Instant::now();
        let progress = Stderr::new();
        let binaries = Binaries::ensure(&progress)?;
        let programs = Programs::ensure(&progress)?;
        let kubectl = kubectl::ensure(&progress)?;
        Gitea::ensure(&progress)?;
        screen.waiting("a second API server, Gitea, and Flux on both clusters are starting");
        let reader = User::new(READER);
        let token = reader.token.clone();
        let elsewhere = async {
            let mut options = Options::default().with_housekeeping();
            options.users.push(reader);
            let plane = ControlPlane::start(&binaries, options).await?;
            let flux = Flux::start(&programs, plane.cluster(), Reach::Cluster).await?;
            Ok::<_, anyhow::Error>((plane, flux))
        };
        let here = Flux::start(&programs, &stage.cluster, Reach::Namespace(NAMESPACE));
        let gitea = Gitea::start(&progress);
        let ((other, there), here, gitea) = tokio::try_join!(elsewhere, here, gitea)?;
        screen.waited();
        screen.fact(&format!(
            "a second API server, Gitea, and Flux on both clusters, built or found, and ready: {}",
            human(began.elapsed())
        ));
        Ok(Self {
            _flux: [here, there],
            charts: Charts::serve().await?,
            gitea,
            kubectl,
            other,
            token,
        })
    }

    /// Writes everything that the story begins with, the pipeline last: until then the app arrives in its
    /// environments.
    pub(super) async fn furnish(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        self.gitea.repository(REPOSITORY).await?;
        let bot = self.gitea.bot(REPOSITORY).await?;
        for version in [OLD, NEW, NEXT] {
            self.charts
                .publish(APP, version, &[("app.yaml", TEMPLATE)])?;
        }
        let other = Applier::new(self.other.client().await?);
        other.text(include_str!("other.yaml")).await?;
        for environment in [DEV, STAGING, PROD] {
            let (path, file) = (path(environment), file(environment));
            (self.gitea.push(REPOSITORY, BRANCH, &path, file.as_bytes())).await?;
            let applier = match environment == DEV {
                true => Applier::new(stage.client.clone()),
                false => other.clone(),
            };
            self.deliver(environment, &bot, &applier.in_namespace(environment.1))
                .await?;
        }
        screen.waiting("waiting for Flux to deliver the app to three environments");
        for environment in [DEV, STAGING, PROD] {
            let what = format!("{APP} to run in {}", environment.0);
            poll(SOON, &what, async || {
                self.says(stage, environment, OLD).await
            })
            .await?;
        }
        self.promote(stage, &bot).await
    }

    /// Has Flux deliver what the file of an environment says.
    async fn deliver(
        &self,
        (name, namespace): (&str, &str),
        bot: &Bot,
        applier: &Applier,
    ) -> Result<()> {
        applier
            .text(&bot.secret_for_flux("git").to_string())
            .await?;
        let yaml = include_str!("environment.yaml")
            .replace("ENVIRONMENT", name)
            .replace("NAMESPACE", namespace)
            .replace("REPOSITORY", &self.repository())
            .replace("CHARTS", &self.charts.url());
        let documents = marked(apply::parse(&yaml, "environment.yaml")?);
        applier.documents(documents).await?;
        Ok(())
    }

    /// Makes the pipeline, and what it needs of others.
    async fn promote(&self, stage: &Stage, bot: &Bot) -> Result<()> {
        let cluster = self.other.cluster();
        let kubeconfig = cluster.secret(OTHER, &cluster.server()?, &self.token)?;
        let rules = [
            secret(OTHER, &["get", "list", "watch"]),
            secret(TOKEN, &["get"]),
        ];
        let client = stage.client.clone();
        grant_rules(client, NAMESPACE, "pipelines", CONTROLLER, &rules).await?;
        let applier = Applier::new(stage.client.clone()).in_namespace(NAMESPACE);
        applier.text(&kubeconfig.to_string()).await?;
        let token = bot.secret_for_pipelines(TOKEN);
        applier.text(&token.to_string()).await?;
        freeze::begin(stage).await?;
        let yaml = include_str!("pipeline.yaml").replace("REPOSITORY", &self.repository());
        stage.apply(&yaml, "pipeline.yaml").await
    }

    /// The address of the repository.
    pub(super) fn repository(&self) -> String {
        self.gitea.url(OWNER, REPOSITORY)
    }

    /// The cluster of staging and prod.
    pub(super) fn other(&self) -> &Cluster {
        self.other.cluster()
    }

    /// Makes sure that the app says it is this version.
    pub(super) async fn says(
        &self,
        stage: &Stage,
        environment: (&str, &str),
        version: &str,
    ) -> Result<()> {
        let client = match environment == DEV {
            true => stage.client.clone(),
            false => self.other.client().await?,
        };
        let maps: Api<ConfigMap> = Api::namespaced(client, environment.1);
        let map = maps.get_opt(APP).await?;
        let said = map.and_then(|map| map.data?.remove("version"));
        ensure!(said.as_deref() == Some(version), "it says {said:?}");
        Ok(())
    }
}

/// The file of an environment.
pub(super) fn path((name, _): (&str, &str)) -> String {
    format!("{name}/{APP}.yaml")
}

/// What it says at first: the version that pull requests may change is marked.
fn file(environment: (&str, &str)) -> String {
    let marker = match environment == DEV {
        // People change it.
        true => String::new(),
        false => {
            let mark = format!("{NAMESPACE}:{APP}:{}", environment.0);
            format!(" # {{\"$promotion\": \"{mark}\"}}")
        }
    };
    include_str!("podinfo.yaml").replace("MARKER", &marker)
}
