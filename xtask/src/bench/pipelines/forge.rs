//! Pipelines that promote by pull requests at a real Gitea, in one repository of many files. Their apps are
//! played: we say what runs where.
//!
//! The controller reaches Gitea by a line that counts the bytes and notes how long the forge was waited for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::api::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PullRequest};
use sluice_tests::gitea::{BRANCH, Gitea, OWNER, USUAL_PAGE};
use sluice_tests::line::Line;
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Writes, poll};

use super::super::seen::LAST;
use super::crowd::{self, Crowd, create_app, each};
use super::{NAMESPACE, say};
use repository::Repository;

mod bare;
pub(super) mod figures;
mod repository;

/// How many pipelines there are.
pub(super) const PIPELINES: usize = 100;
/// The repository, and the Secret by which the controller writes to it.
const NAME: &str = "apps";
const SECRET: &str = "git-token";
/// How long the controller and the forge may take for anything. The forge is asked once a minute.
const PATIENCE: Duration = Duration::from_secs(180);
/// The forge is left alone for this long, once nothing is to be done.
const QUIET: Duration = Duration::from_millis(300);

pub(super) struct Forge {
    client: Client,
    gitea: Gitea,
    /// The way of the controller to it, and the way of all others, who keep their connections.
    line: Line,
    other: Line,
    repository: Repository,
    /// The bot's.
    token: String,
    here: Api<DynamicObject>,
    there: Api<DynamicObject>,
}

impl Forge {
    /// Starts it, with its repository and its pipelines.
    pub(super) async fn start(crowd: &Crowd) -> Result<Self> {
        let client = crowd.client().clone();
        let gitea = Gitea::start_with(&Stderr::new(), USUAL_PAGE).await?;
        gitea.repository(NAME).await?;
        let bot = gitea.bot(NAME).await?;
        let url = gitea.url(OWNER, NAME);
        let server = url.strip_suffix(&format!("/{OWNER}/{NAME}"));
        let server = server.context("it has no address")?;
        let (line, other) = (Line::open(server).await?, Line::open(server).await?);
        let by = |line: &Line| format!("{}/{OWNER}/{NAME}", line.server());
        let user = (bot.name.as_str(), bot.token.as_str());
        let repository = Repository::fill(&by(&other), user, gitea.authority()).await?;
        let through = by(&line);
        let (there, target) = crowd.there();
        let secret = bot.secret_for_pipelines(SECRET);
        let forge = Self {
            here: crowd.here(),
            client,
            gitea,
            line,
            other,
            repository,
            token: bot.token,
            there,
        };
        forge.create(&through, &target, &secret).await?;
        say(&format!(
            "{PIPELINES} pipelines with pull requests, in a repository of {} files",
            repository::FILES
        ));
        Ok(forge)
    }

    async fn create(&self, url: &str, target: &Value, secret: &Value) -> Result<()> {
        let applier = Applier::new(self.client.clone()).in_namespace(NAMESPACE);
        applier.text(&secret.to_string()).await?;
        let api = self.pipelines();
        each(0..PIPELINES, async |place| {
            let name = name(place);
            for apps in [&self.here, &self.there] {
                create_app(apps, &name).await?;
            }
            let strategy = json!({
                "type": "gitea", "url": url, "paths": [repository::path(place)],
                "secretRef": {"name": SECRET},
            });
            let promotion = json!({"strategy": {"pull-request": strategy}});
            let environments = [
                json!({"name": "dev", "targets": [{"namespace": NAMESPACE}]}),
                json!({"name": LAST, "targets": [target], "promotion": promotion}),
            ];
            let pipeline = crowd::pipeline(&name, &environments);
            api.add(&serde_json::from_value(pipeline)?).await?;
            Ok(())
        })
        .await
        .context("cannot create the pipelines of the forge")
    }

    fn pipelines(&self) -> Api<Pipeline> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Waits until a controller says that what runs in each first environment is everywhere.
    pub(super) async fn complete(&self) -> Result<()> {
        for place in 0..PIPELINES {
            self.completes(place).await?;
        }
        self.rests().await
    }

    async fn completes(&self, place: usize) -> Result<()> {
        let (api, name) = (self.pipelines(), name(place));
        poll(PATIENCE, "the run to be completed", async || {
            let (status, app) = (api.get(&name).await?.status, self.here.get(&name).await?);
            let run = status.and_then(|status| status.run).context("no run yet")?;
            let is_it = app.data["status"]["lastAppliedRevision"] == json!(run.revision);
            ensure!(is_it && run.completed_at.is_some(), "{}", json!(run));
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until the controller asks nothing of the forge for a moment.
    #[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
    async fn rests(&self) -> Result<()> {
        poll(PATIENCE, "the forge to be left alone", async || {
            let asked = self.line.connections();
            tokio::time::sleep(QUIET).await;
            let is_left = self.line.is_quiet() && asked == self.line.connections();
            ensure!(is_left, "it is asked");
            Ok(())
        })
        .await
    }

    /// All first environments run this revision. Waits until each has a PullRequest, whatever the forge does.
    pub(super) async fn release(&self, revision: &str) -> Result<()> {
        each(0..PIPELINES, async |place| {
            self.first_runs(place, revision).await
        })
        .await?;
        let api: Api<PullRequest> = Api::namespaced(self.client.clone(), NAMESPACE);
        poll(PATIENCE, "the PullRequests", async || {
            let all = api.list(&Default::default()).await?;
            let ours = all
                .iter()
                .filter(|it| it.spec.about.revision.as_deref() == Some(revision));
            let ours = ours.count();
            ensure!(ours == PIPELINES, "{ours} of {PIPELINES} are there");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    async fn first_runs(&self, place: usize, revision: &str) -> Result<()> {
        crowd::runs(&self.here, &name(place), revision).await
    }

    async fn last_runs(&self, place: usize, revision: &str) -> Result<()> {
        crowd::runs(&self.there, &name(place), revision).await
    }

    /// A person merges what was opened for a pipeline last. The instant at which that is done.
    async fn merge(&self, place: usize) -> Result<Instant> {
        let number = self.number(place).await?;
        let path = format!("/pulls/{number}/merge");
        let merge = json!({"Do": "merge"});
        poll(PATIENCE, "the forge to merge it", async || {
            let gitea = &self.gitea;
            gitea.in_repository(NAME, Method::POST, &path, &merge).await
        })
        .await?;
        Ok(Instant::now())
    }

    /// The number of that pull request.
    async fn number(&self, place: usize) -> Result<u64> {
        let (api, name) = (self.pipelines(), name(place));
        poll(PATIENCE, "the pull request to be open", async || {
            let status = api.get(&name).await?.status.context("no status")?;
            let last = status.environments.get(LAST).context("no environment")?;
            let record = last.promotion.as_ref().context("no promotion")?;
            let pull = record
                .pull_request
                .as_ref()
                .context("there is no PullRequest")?;
            ensure!(
                pull.state == Some(PullRequestState::Open),
                "{:?}",
                pull.state
            );
            let number = pull.url.as_ref().and_then(|url| url.rsplit('/').next());
            Ok::<_, anyhow::Error>(number.context("it has no page")?.parse()?)
        })
        .await
    }

    /// A person changes a file that nobody promotes.
    async fn change_by_a_person(&self) -> Result<()> {
        static CHANGES: AtomicUsize = AtomicUsize::new(0);
        let change = CHANGES.fetch_add(1, Ordering::SeqCst);
        let said = format!("change {change}\n");
        self.gitea
            .push(NAME, BRANCH, "README.md", said.as_bytes())
            .await?;
        Ok(())
    }

    /// It does not answer the controller any more.
    pub(super) fn lose(&self) {
        self.line.hold();
        self.line.cut();
    }
}

fn name(place: usize) -> String {
    format!("shop-{place:03}")
}
