//! The chapter with Flux: an app in Git, a freeze, a commit that waits, drift that is corrected, and the
//! commit rolled out when the gate opens.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::json;
use sluice_crds::{GatedSource, GatedSourceStatus};
use sluice_tests::flux::{Flux, Git, Programs, Reach};
use sluice_tests::progress::{Stderr, human};
use sluice_tests::{Applier, Writes, poll};

use super::screen::Screen;
use super::stage::Stage;
use super::story::show;
use super::{NAMESPACE, kubectl_gate};
use crate::server::marked;

/// How long Flux may take for anything.
const SOON: Duration = Duration::from_secs(60);
/// What everything is called.
const APP: &str = "app";

/// Flux, running, and the repository of the app.
pub(super) struct Chapter {
    // Dropped, both end.
    _flux: Flux,
    git: Git,
}

impl Chapter {
    /// Starts Flux in the namespace of the demo, and a Git server.
    pub(super) async fn prepare(screen: &Screen, stage: &Stage) -> Result<Self> {
        let began = Instant::now();
        let programs = Programs::ensure(&Stderr::new())?;
        let flux = Flux::start(&programs, &stage.cluster, Reach::Namespace(NAMESPACE)).await?;
        let git = Git::serve().await?;
        screen.fact(&format!(
            "Flux, built or found, and ready: {}",
            human(began.elapsed())
        ));
        Ok(Self { _flux: flux, git })
    }

    pub(super) async fn tell(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("An app in Git: Flux delivers what the gate lets pass");
        let one = self.push(screen, "one")?;
        let yaml = include_str!("app.yaml").replace("REPOSITORY", &self.git.url());
        let applier = Applier::new(stage.client.clone()).in_namespace(NAMESPACE);
        applier
            .documents(marked(sluice_tests::apply::parse(&yaml, "app.yaml")?))
            .await?;
        self.runs(stage, "one").await?;
        screen.happened(&format!("{} is deployed: the app says one", short(&one)));

        screen.scene("A change freeze: what is new waits, and says why");
        let freeze = [
            "close",
            "delivery",
            "--for",
            "30m",
            "--reason",
            "change freeze",
        ];
        screen.command(
            "bob",
            "kubectl gate close delivery --for 30m --reason 'change freeze'",
        );
        screen.quote(&kubectl_gate(stage, "bob", &freeze).await?.text);
        let two = self.push(screen, "two")?;
        self.waits(stage, &two).await?;
        show(screen, stage, &["pending"]).await?;
        show(screen, stage, &["why", "gatedsource/app"]).await?;

        screen.scene("Meanwhile drift is corrected, at the commit that is out");
        maps(stage).remove(APP).await?;
        screen.fact("somebody deletes the ConfigMap of the app by hand");
        self.runs(stage, "one").await?;
        screen.happened("it is back, and says one");

        screen.scene("The freeze ends, and the commit rolls out");
        screen.command("bob", "kubectl gate reset delivery");
        let said = kubectl_gate(stage, "bob", &["reset", "delivery"]).await?;
        ensure!(said.success, "{}", said.text);
        let began = Instant::now();
        self.admitted(stage, &two).await?;
        let admitted = began.elapsed();
        self.runs(stage, "two").await?;
        screen.happened(&format!(
            "{} is admitted after {} ms, and deployed after {}: the app says two",
            short(&two),
            admitted.as_millis(),
            human(began.elapsed())
        ));
        show(screen, stage, &["why", "gatedsource/app"]).await
    }

    fn push(&self, screen: &Screen, word: &str) -> Result<String> {
        let app = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": APP}, "data": {"word": word},
        });
        let commit = self.git.commit(&[("app.yaml", &app.to_string())])?;
        screen.fact(&format!(
            "git push: {}, in which the app says {word}",
            short(&commit)
        ));
        Ok(commit)
    }

    /// Waits until the app says so.
    async fn runs(&self, stage: &Stage, word: &str) -> Result<()> {
        poll(SOON, &format!("the app to say {word}"), async || {
            let map = maps(stage).get_opt(APP).await?;
            let said = map.and_then(|map| map.data?.remove("word"));
            ensure!(said.as_deref() == Some(word), "it says {said:?}");
            Ok(())
        })
        .await
    }

    async fn waits(&self, stage: &Stage, commit: &str) -> Result<()> {
        let pending = |status: &GatedSourceStatus| {
            let pending = status.pending.as_ref();
            pending.is_some_and(|it| it.revision.ends_with(commit))
        };
        self.until(stage, "the commit to be seen", pending).await
    }

    async fn admitted(&self, stage: &Stage, commit: &str) -> Result<()> {
        let admitted = |status: &GatedSourceStatus| {
            let admitted = status.admitted.as_ref();
            admitted.is_some_and(|it| it.revision.ends_with(commit))
        };
        self.until(stage, "the commit to be admitted", admitted)
            .await
    }

    async fn until(
        &self,
        stage: &Stage,
        what: &str,
        check: impl Fn(&GatedSourceStatus) -> bool,
    ) -> Result<()> {
        let sources: Api<GatedSource> = Api::namespaced(stage.client.clone(), NAMESPACE);
        poll(SOON, what, async || {
            let status = sources.get(APP).await?.status.unwrap_or_default();
            ensure!(check(&status), "{}", json!(status));
            Ok(())
        })
        .await
    }
}

fn maps(stage: &Stage) -> Api<ConfigMap> {
    Api::namespaced(stage.client.clone(), NAMESPACE)
}

/// As people write commits.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}
