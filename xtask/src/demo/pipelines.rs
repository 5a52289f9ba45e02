//! The story of pipelines: an app in three environments on two clusters, and a version on its way through
//! them, by pull requests in a real Gitea.
//!
//! What comes in: the stage of the demo. What goes out: a version that dev runs gets to staging by itself,
//! waits before prod for a gate, and arrives there when the gate is forced. The real Flux applies what each
//! merge has changed.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use sluice_crds::pipeline::{EnvironmentState, PullRequestRecord};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::gitea::{BRANCH, OWNER, PASSWORD};
use sluice_tests::poll;
use sluice_tests::progress::human;

use super::flux::short;
use super::freeze::GATE;
use super::say;
use super::screen::Screen;
use super::stage::{Controller, SOON, Stage};
use super::story::{ask, record, show};

mod place;

use place::{APP, DEV, NEW, NEXT, OLD, PROD, Place, REPOSITORY, STAGING, path};

/// The place of the story, with the app and its pipeline.
pub(super) struct Chapter {
    place: Place,
}

impl Chapter {
    /// Starts everything, and brings the app into its three environments.
    pub(super) async fn prepare(screen: &Screen, stage: &Stage) -> Result<Self> {
        screen.scene("A second cluster, Gitea, and Flux on both clusters");
        let place = Place::start(screen, stage).await?;
        let began = Instant::now();
        place.furnish(screen, stage).await?;
        let chapter = Self { place };
        let completed = |status: &PipelineStatus| {
            let run = status.run.as_ref()?;
            (run.revision == OLD && run.completed_at.is_some()).then_some(())
        };
        let what = "the pipeline to see that";
        chapter.until(screen, stage, what, completed).await?;
        screen.fact(&format!(
            "{APP} {OLD} is delivered to three environments: {}",
            human(began.elapsed())
        ));
        Ok(chapter)
    }

    pub(super) async fn tell(
        &self,
        screen: &Screen,
        stage: &Stage,
        controller: &Controller,
    ) -> Result<()> {
        self.introduce(screen, stage).await?;
        self.bump(screen, stage).await?;
        self.wait(screen, stage).await?;
        self.force(screen, stage).await?;
        let decided = |line: &Value| line["environment"] == PROD.0 && line["action"] == "merge";
        record(screen, stage, controller, decided).await
    }

    /// Where everything is, for those who play on.
    pub(super) fn addresses(&self, screen: &Screen) {
        let other = self.place.other().kubeconfig().display();
        screen.fact(&format!(
            "the cluster of staging and prod: KUBECONFIG={other}"
        ));
        let repository = self.place.repository();
        screen.fact(&format!(
            "Gitea: {repository}, user {OWNER}, password '{PASSWORD}'"
        ));
        screen.fact(&format!(
            "git -c http.sslVerify=false clone {repository}; write {NEXT} into {}, push, and look again",
            path(DEV)
        ));
    }

    /// What there is.
    async fn introduce(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("An app in three environments on two clusters");
        screen.fact(
            "dev is on this cluster; staging and prod are on another one, which a Secret leads to",
        );
        screen.fact(&format!(
            "Flux applies to each what its file in Gitea says: {}",
            [DEV, STAGING, PROD].map(path).join(", ")
        ));
        screen.fact(
            "the pipeline changes the last two by pull requests; the gate go-live has to admit the merge for prod",
        );
        show(screen, stage, &["pipeline", APP]).await
    }

    /// A new version in dev, and how it gets to staging by itself.
    async fn bump(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene(&format!(
            "Dev is changed to {NEW}; staging follows by a pull request"
        ));
        let began = Instant::now();
        let file = path(DEV);
        let old = self.file(DEV).await?;
        let new = old.replace(OLD, NEW);
        let gitea = &self.place.gitea;
        (gitea.push(REPOSITORY, BRANCH, &file, new.as_bytes())).await?;
        screen.fact(&format!("git push: {file} says {NEW}"));
        let since = || human(began.elapsed());

        let what = format!("Flux to apply {file}");
        let dev = |status: &PipelineStatus| runs(status, DEV);
        self.until(screen, stage, &what, dev).await?;
        screen.happened(&format!("dev runs {NEW}, {} after the push", since()));

        let merged = |status: &PipelineStatus| {
            let pull = pull(status, STAGING)?;
            Some((called(pull)?, pull.merge_commit.clone()?))
        };
        let what = "the pull request for staging to be merged";
        let (name, commit) = self.until(screen, stage, what, merged).await?;
        screen.happened(&format!(
            "pull request {name} changes {}; no gate holds it: merged as {}, after {}",
            path(STAGING),
            short(&commit),
            since()
        ));
        let what = format!("Flux to apply {}", path(STAGING));
        let staging = |status: &PipelineStatus| runs(status, STAGING);
        self.until(screen, stage, &what, staging).await?;
        screen.happened(&format!("staging runs {NEW}, after {}", since()));
        Ok(())
    }

    /// What holds prod, as everybody can see it.
    async fn wait(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("Prod waits for its gate, and everybody can see why");
        let held = |status: &PipelineStatus| {
            let prod = status.environments.get(PROD.0)?;
            let pull = pull(status, PROD)?;
            let is_held = prod.state == EnvironmentState::GatesClosed
                && pull.state == Some(PullRequestState::Open);
            is_held.then(|| pull.clone())
        };
        let what = "the pull request for prod to be open";
        let pull = self.until(screen, stage, what, held).await?;
        let name = called(&pull).context("it has no number")?;
        let status = self.commit_status(&pull).await?;
        screen.happened(&format!(
            "pull request {name} for prod is open, and not merged. Its check in Gitea:"
        ));
        screen.quote(&format!("  {status}"));
        let columns = ["get", "pipelines"];
        screen.command("alice", "kubectl get pipelines");
        let said = say(stage, &self.place.kubectl, "alice", &columns).await?;
        screen.quote(&said.text);
        ensure!(said.success, "kubectl get pipelines failed");
        show(screen, stage, &["pipeline", APP]).await?;
        let prod = format!("pipeline/{APP}/{}", PROD.0);
        show(screen, stage, &["why", &prod]).await
    }

    /// The gate is forced, and what follows from that.
    async fn force(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("A hotfix cannot wait: forcing a gate needs a right of its own");
        let before = self.file(PROD).await?;
        ask(screen, stage, "open", GATE, "10m").await?;
        let began = Instant::now();
        let merged = |status: &PipelineStatus| {
            let pull = pull(status, PROD)?;
            Some((called(pull)?, pull.merge_commit.clone()?))
        };
        let what = "the pull request for prod to be merged";
        let (name, commit) = self.until(screen, stage, what, merged).await?;
        screen.happened(&format!(
            "pull request {name} is merged as {}, after {}",
            short(&commit),
            human(began.elapsed()),
        ));
        screen.fact(&format!(
            "the marked value in {} has changed, and nothing else:",
            path(PROD)
        ));
        self.changed(screen, &before).await?;

        let completed = |status: &PipelineStatus| {
            let run = status.run.as_ref()?;
            (run.revision == NEW && run.completed_at.is_some()).then_some(())
        };
        let what = format!("Flux to apply {}", path(PROD));
        self.until(screen, stage, &what, completed).await?;
        self.place.says(stage, PROD, NEW).await?;
        screen.happened(&format!(
            "prod runs {NEW}, after {}: the app itself says so",
            human(began.elapsed())
        ));
        show(screen, stage, &["pipeline", APP]).await
    }

    /// Shows what has become of the file of prod: one line has to be another.
    async fn changed(&self, screen: &Screen, before: &str) -> Result<()> {
        let after = self.file(PROD).await?;
        let lines = before.lines().zip(after.lines());
        let differ = lines.filter(|(old, new)| old != new).count();
        ensure!(
            differ == 1 && before.len() == after.len(),
            "more has changed: {after}"
        );
        screen.change(before, &after);
        Ok(())
    }

    /// The file of an environment, as it is on the branch.
    async fn file(&self, environment: (&str, &str)) -> Result<String> {
        let gitea = &self.place.gitea;
        gitea.file(REPOSITORY, BRANCH, &path(environment)).await
    }

    /// What Gitea shows beside a pull request.
    async fn commit_status(&self, pull: &PullRequestRecord) -> Result<String> {
        let commit = pull.commit_sha.as_deref().context("it has no commit")?;
        let path = format!("/commits/{commit}/status");
        poll(SOON, "the commit status", async || {
            let gitea = &self.place.gitea;
            let said = gitea.in_repository(REPOSITORY, Method::GET, &path, &Value::Null);
            let said = said.await?;
            let [state, context, description] = ["status", "context", "description"]
                .map(|field| said["statuses"][0][field].as_str().unwrap_or_default());
            ensure!(state == "pending", "{said}");
            Ok::<_, anyhow::Error>(format!("{context}: {state} — {description}"))
        })
        .await
    }

    /// Waits until there is something in the status of the pipeline, and tells meanwhile how far it is.
    async fn until<T>(
        &self,
        screen: &Screen,
        stage: &Stage,
        what: &str,
        find: impl Fn(&PipelineStatus) -> Option<T>,
    ) -> Result<T> {
        let status = |pipeline: &Pipeline| pipeline.status.clone().unwrap_or_default();
        let said = |it: &Pipeline| status(it).run.map(|run| run.message).unwrap_or_default();
        let find = |it: &Pipeline| find(&status(it));
        stage.until(screen, (APP, what), said, find).await
    }
}

/// Whether all targets of an environment run the new version healthily.
fn runs(status: &PipelineStatus, (environment, _): (&str, &str)) -> Option<()> {
    let targets = &status.environments.get(environment)?.targets;
    let all = (targets.iter()).all(|it| it.ready && it.revision.as_deref() == Some(NEW));
    (all && !targets.is_empty()).then_some(())
}

/// The pull request by which the new version gets to an environment.
fn pull<'s>(
    status: &'s PipelineStatus,
    (environment, _): (&str, &str),
) -> Option<&'s PullRequestRecord> {
    let promotion = status.environments.get(environment)?.promotion.as_ref();
    let promotion = promotion.filter(|promotion| promotion.revision == NEW)?;
    promotion.pull_request.as_ref()
}

/// What people call it: `#2`.
fn called(pull: &PullRequestRecord) -> Option<String> {
    let number = pull.url.as_deref()?.rsplit('/').next()?;
    Some(format!("#{number}"))
}
