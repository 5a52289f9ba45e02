//! A pipeline that promotes by pull requests in a real Gitea. Its apps are played: tests say what runs where.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentStatus;
use sluice_crds::{Gate, Pipeline, PipelineStatus, PullRequest};
use sluice_tests::clock::AheadClock;
use sluice_tests::controller::{self, InProcess, Process};
use sluice_tests::gitea::{BRANCH, Gitea, OWNER, gitea};
use sluice_tests::proxy::Proxy;
use sluice_tests::{Applier, DEADLINE, conformance, poll, shared, status};

use super::told::events_on;
use crate::clusters::scene::Scene;

/// After this the forge is asked again: once a minute.
const ROUND: Duration = Duration::from_secs(61);
/// The pipeline, the environment that is promoted to, and the file that says what it runs.
pub const NAME: &str = "web";
pub const PROD: &str = "prod";
const FILE: &str = "prod.yaml";

/// Dev is on the second server, prod on the first.
pub struct Shop {
    scene: Scene,
    gitea: &'static Gitea,
    repository: String,
    /// How often each of the two apps was written.
    written: [AtomicI64; 2],
    promotion: Value,
    clock: Arc<AheadClock>,
}

impl Shop {
    /// Both run 1.0.0. `more` belongs to the strategy.
    pub async fn open(word: &str, more: Value) -> Result<Self> {
        Self::open_on(Scene::new(word).await?, None, more).await
    }

    /// The same on a scene that is there. The controller reaches the forge by `line`, if there is one.
    pub async fn open_on(scene: Scene, line: Option<&Proxy>, more: Value) -> Result<Self> {
        scene.define_here().await?;
        let token = scene.token().await?;
        scene.put_kubeconfig(scene.server(), &token).await?;
        let gitea = gitea().await?;
        let repository = scene.namespace().to_owned();
        gitea.repository(&repository).await?;
        let bot = gitea.bot(&repository).await?;
        let mut secret = bot.secret_for_pipelines("git-token");
        let mut url = gitea.url(OWNER, &repository);
        if let Some(line) = line {
            url = format!("{}/{OWNER}/{repository}", line.url());
            secret["stringData"]["ca.crt"] = line.authority().into();
        }
        let mut strategy = json!({
            "type": "gitea", "url": url, "paths": [FILE],
            "secretRef": {"name": "git-token"},
        });
        let fields = strategy.as_object_mut().context("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let shop = Self {
            gitea,
            repository,
            written: Default::default(),
            promotion: json!({"strategy": {"pull-request": strategy}}),
            clock: Arc::default(),
            scene,
        };
        gitea
            .push(
                &shop.repository,
                BRANCH,
                FILE,
                shop.file("1.0.0").as_bytes(),
            )
            .await?;
        shop.apply(&secret).await?;
        shop.turn("open").await?;
        shop.apply(&json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production"}, "spec": {"gatekeepers": [{"name": "switch"}]},
        }))
        .await?;
        shop.dev_runs("1.0.0").await?;
        shop.prod_runs("1.0.0").await?;
        shop.create().await?;
        Ok(shop)
    }

    /// Starts a controller that looks after the pipeline.
    pub async fn start(&self) -> Result<InProcess> {
        self.start_with(&[]).await
    }

    /// The same, for these kinds alone.
    pub async fn start_with(&self, kinds: &[&str]) -> Result<InProcess> {
        self.start_as(self.scene.own(), kinds).await
    }

    /// The same, with the rights of this client.
    pub async fn start_as(&self, client: Client, kinds: &[&str]) -> Result<InProcess> {
        let mut settings = controller::settings(self.scene.namespace());
        settings.egress_allow = vec!["127.0.0.0/8".parse()?];
        settings.kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let clock = Arc::clone(&self.clock);
        InProcess::start(settings, client, clock).await
    }

    /// Lets so much time pass that the forge is asked again.
    pub fn pass(&self) {
        self.clock.put_forward(ROUND);
    }

    /// Starts the real program.
    pub async fn start_process(&self) -> Result<Process> {
        let kubeconfig = shared().await?.kubeconfig();
        let flags = ["--egress-allow=127.0.0.0/8"];
        Process::start(kubeconfig, self.scene.namespace(), "c-0", &flags).await
    }

    /// The file with this version, and all that must stay as it is.
    pub fn file(&self, version: &str) -> String {
        let mark = format!("{}:{NAME}:{PROD}", self.scene.namespace());
        format!(
            "# What prod runs.\r\napp: web\r\nversion: \"{version}\" # {{\"$promotion\": \"{mark}\"}}\r\nreplicas:   2"
        )
    }

    /// What the file says on a branch.
    pub async fn said_on(&self, branch: &str) -> Result<String> {
        self.gitea.file(&self.repository, branch, FILE).await
    }

    pub async fn apply(&self, object: &Value) -> Result<()> {
        let applier = Applier::new(self.scene.own()).in_namespace(self.scene.namespace());
        applier.text(&object.to_string()).await?;
        Ok(())
    }

    /// The gate of prod.
    pub async fn turn(&self, state: &str) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
            "metadata": {"name": "switch"}, "spec": {"manual": {"state": state}},
        }))
        .await
    }

    /// Makes the pipeline, or makes it again.
    pub async fn create(&self) -> Result<()> {
        let gates = json!({"refs": [{"name": "production"}]});
        let pipeline = self.pipeline(NAME, &self.promotion, Some(&gates));
        self.apply(&pipeline).await
    }

    /// Makes another pipeline of the same app, without gates, whose forge is at another address.
    pub async fn create_at(&self, name: &str, forge: &str) -> Result<()> {
        let mut promotion = self.promotion.clone();
        let url = format!("{forge}/{OWNER}/{}.git", self.repository);
        promotion["strategy"]["pull-request"]["url"] = url.into();
        self.apply(&self.pipeline(name, &promotion, None)).await
    }

    fn pipeline(&self, name: &str, promotion: &Value, gates: Option<&Value>) -> Value {
        let dev = json!({
            "namespace": self.scene.apps(),
            "clusterRef": {"kind": "Secret", "name": "prod-kubeconfig"},
        });
        let mut prod = json!({
            "name": PROD, "targets": [{"namespace": self.scene.namespace()}],
            "promotion": promotion,
        });
        if let Some(gates) = gates {
            prod["gates"] = gates.clone();
        }
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": name},
            "spec": {
                "appRef": {"apiVersion": self.scene.api_version(), "kind": "Widget", "name": "web"},
                "environments": [{"name": "dev", "targets": [dev]}, prod],
            },
        })
    }

    /// Deletes the pipeline, and waits only until there is none of its name.
    pub async fn delete(&self, params: DeleteParams) -> Result<()> {
        let before = self.pipelines().delete(NAME, &params).await?;
        let uid = before.left().and_then(|it| it.metadata.uid);
        poll(DEADLINE, "the pipeline to be gone", async || {
            let now = self.pipelines().get_opt(NAME).await?;
            ensure!(now.is_none() || now.and_then(|it| it.metadata.uid) != uid);
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until Kubernetes has deleted the objects of earlier pipelines. Its garbage collector looks for new
    /// kinds every half minute. Before it knows PullRequests, it takes no owner off them: a pipeline that is
    /// deleted without them is let go, and they are deleted later.
    pub async fn collected(&self) -> Result<()> {
        poll(DEADLINE, "what earlier ones had to be gone", async || {
            let own = self.pipelines().get(NAME).await?.metadata.uid;
            let all = self.pull_requests().list(&ListParams::default()).await?;
            let owners = all.iter().flat_map(ResourceExt::owner_references);
            let left: Vec<_> = owners.filter(|it| own.as_ref() != Some(&it.uid)).collect();
            ensure!(left.is_empty(), "{left:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    pub async fn dev_runs(&self, revision: &str) -> Result<()> {
        let written = self.written[0].fetch_add(1, Ordering::SeqCst) + 1;
        let (remote, namespace) = (self.scene.remote(), self.scene.apps());
        self.scene
            .runs_at(&remote, namespace, written, revision)
            .await
    }

    pub async fn prod_runs(&self, revision: &str) -> Result<()> {
        let written = self.written[1].fetch_add(1, Ordering::SeqCst) + 1;
        let (own, namespace) = (self.scene.own(), self.scene.namespace());
        self.scene.runs_at(&own, namespace, written, revision).await
    }

    pub fn pipelines(&self) -> Api<Pipeline> {
        Api::namespaced(self.scene.own(), self.scene.namespace())
    }

    pub fn gates(&self) -> Api<Gate> {
        Api::namespaced(self.scene.own(), self.scene.namespace())
    }

    /// Where the forge is.
    pub fn forge(&self) -> String {
        let url = self.gitea.url(OWNER, &self.repository);
        let parts: Vec<_> = url.split('/').take(3).collect();
        parts.join("/")
    }

    pub fn pull_requests(&self) -> Api<PullRequest> {
        Api::namespaced(self.scene.own(), self.scene.namespace())
    }

    /// Waits until `check` is content with the status of the pipeline.
    pub async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let pipeline = status::until(&self.pipelines(), NAME, DEADLINE, what, check).await?;
        pipeline.status.context("no status")
    }

    /// The same for the status of prod.
    pub async fn prod_says(
        &self,
        what: &str,
        check: impl Fn(&EnvironmentStatus) -> bool,
    ) -> Result<EnvironmentStatus> {
        let prod = |status: &PipelineStatus| status.environments.get(PROD).cloned();
        let is = |status: &PipelineStatus| prod(status).is_some_and(|it| check(&it));
        let status = self.says(what, is).await?;
        prod(&status).context("no prod")
    }

    /// Waits until the first run is completed: 1.0.0 is everywhere.
    pub async fn begins(&self) -> Result<()> {
        let is = |status: &PipelineStatus| {
            let run = status.run.as_ref();
            run.is_some_and(|run| run.revision == "1.0.0" && run.completed_at.is_some())
        };
        self.says("the first run to be completed", is).await?;
        Ok(())
    }

    /// All pull requests of the repository, the oldest first: the forge gives three a page.
    pub async fn pulls(&self) -> Result<Vec<Value>> {
        let all = "/pulls?state=all&sort=oldest";
        self.gitea.all_in_repository(&self.repository, all).await
    }

    /// Waits until the pull requests are in these states.
    pub async fn pulls_are(&self, states: &[&str]) -> Result<Vec<Value>> {
        poll(DEADLINE, "the pull requests at the forge", async || {
            let pulls = self.pulls().await?;
            let found: Vec<_> = pulls.iter().map(state).collect();
            ensure!(found == states, "{found:?}");
            Ok::<_, anyhow::Error>(pulls)
        })
        .await
    }

    /// What the owner of the repository does: a path such as `/pulls/1`.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        self.gitea
            .in_repository(&self.repository, method, path, body)
            .await
    }

    /// A person merges a pull request.
    pub async fn merge(&self, number: u64) -> Result<()> {
        let path = format!("/pulls/{number}/merge");
        poll(DEADLINE, "the forge to be ready to merge", async || {
            self.ask(Method::POST, &path, &json!({"Do": "merge"})).await
        })
        .await?;
        Ok(())
    }

    /// Waits until every status is about the present spec, as it is once nothing is left to do.
    pub async fn rests(&self) -> Result<()> {
        poll(DEADLINE, "statuses about the present", async || {
            let all = ListParams::default();
            let (pipelines, pulls) = (self.pipelines(), self.pull_requests());
            let (pipelines, pulls) = tokio::try_join!(pipelines.list(&all), pulls.list(&all))?;
            let pipelines = pipelines.iter().map(|it| json!(it));
            let all = pipelines.chain(pulls.iter().map(|it| json!(it)));
            let broken: Vec<_> = all.flat_map(|it| conformance::at_rest(&it)).collect();
            ensure!(broken.is_empty(), "{broken:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until events of these reasons were told of the pipeline, each so often.
    pub async fn has_told(&self, expected: &[(&str, usize)]) -> Result<()> {
        poll(DEADLINE, "the events", async || {
            let (own, namespace) = (self.scene.own(), self.scene.namespace());
            let all = events_on(own, namespace, "Pipeline", NAME).await?;
            let reasons: Vec<_> = all.iter().filter_map(|it| it.reason.as_deref()).collect();
            for (reason, times) in expected {
                let found = reasons.iter().filter(|it| *it == reason).count();
                ensure!(found == *times, "{found} times {reason}: {reasons:?}");
            }
            Ok(())
        })
        .await
    }

    /// The commits of the branch, the newest first.
    pub async fn history(&self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for page in 1.. {
            // A page is short.
            let path = format!("/commits?sha={BRANCH}&stat=false&page={page}");
            let commits = self.ask(Method::GET, &path, &Value::Null).await?;
            match commits.as_array().filter(|commits| !commits.is_empty()) {
                Some(commits) => all.extend(commits.iter().cloned()),
                None => break,
            }
        }
        Ok(all)
    }

    /// The names of all branches.
    pub async fn branches(&self) -> Result<Vec<String>> {
        let all = self.ask(Method::GET, "/branches", &Value::Null).await?;
        let names = all.as_array().into_iter().flatten();
        let names = names.filter_map(|branch| branch["name"].as_str().map(str::to_owned));
        Ok(names.collect())
    }

    /// The names of the PullRequests.
    pub async fn children(&self) -> Result<Vec<String>> {
        let all = self.pull_requests().list(&ListParams::default()).await?;
        Ok(all.iter().map(ResourceExt::name_any).collect())
    }
}

/// `open`, `closed` or `merged`.
pub fn state(pull: &Value) -> &str {
    match pull["merged"].as_bool() {
        Some(true) => "merged",
        _ => pull["state"].as_str().unwrap_or_default(),
    }
}
