//! A repository with three environments in a real Gitea, and a strategy for it. The hydrator is played.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gate_controller::cluster::key::KeyRef;
use gate_controller::observe::clock::{Clock, SystemClock};
use http::Method;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::promotion_strategy::marks;
use sluice_crds::{
    CommitStatus, Gate, GitRepositoryAccess, PromotionStrategy, PullRequest, RevertCommit,
};
use sluice_tests::clock::AheadClock;
use sluice_tests::controller::{self, InProcess};
use sluice_tests::gitea::{Gitea, OWNER, gitea};
use sluice_tests::hydrator::Hydrator;
use sluice_tests::poll;
use sluice_tests::proxy::Proxy;

use crate::stage::Stage;
pub use sluice_tests::DEADLINE;

mod people;
mod seen;

pub use people::Spoilt;

/// After this the branches are listed again.
const ROUND: Duration = Duration::from_secs(11);
/// At each look, where time passes faster: ten seconds in one. An order, which lasts a minute, does not end
/// before the forge has carried it out.
const STEP: Duration = Duration::from_millis(250);
pub const NAME: &str = "shop";
pub const SECRET: &str = "git-token";
pub const ENVIRONMENTS: [&str; 3] = ["env/dev", "env/test", "env/prod"];
/// What is hydrated.
const FILE: &str = "manifests.yaml";

pub struct Branches {
    stage: Stage,
    gitea: &'static Gitea,
    hydrator: Hydrator,
    repository: String,
    clock: Arc<AheadClock>,
    /// The Secret, the access and the strategy.
    objects: Vec<Value>,
}

impl Branches {
    /// All three have what was made of the first commit. `more` belongs to the spec of the strategy.
    pub async fn open(word: &str, more: Value) -> Result<Self> {
        Self::open_on(Self::stage(word).await?, None, more).await
    }

    /// Where one is opened.
    pub async fn stage(word: &str) -> Result<Stage> {
        Stage::new(word, "2026-11-23T12:00:00Z").await
    }

    /// The same on a stage that is there. The controller reaches the forge by `line`, if there is one.
    pub async fn open_on(stage: Stage, line: Option<&Proxy>, more: Value) -> Result<Self> {
        Self::open_with(stage, line, &ENVIRONMENTS, more).await
    }

    /// The same with one environment alone, and with these fields of it.
    pub async fn open_dev(word: &str, mut dev: Value) -> Result<Self> {
        dev["branch"] = "env/dev".into();
        let (stage, more) = (Self::stage(word).await?, json!({"environments": [dev]}));
        Self::open_with(stage, None, &["env/dev"], more).await
    }

    async fn open_with(
        stage: Stage,
        line: Option<&Proxy>,
        environments: &'static [&'static str],
        more: Value,
    ) -> Result<Self> {
        let gitea = gitea().await?;
        let repository = stage.namespace().to_owned();
        let first = (FILE, &*manifest("1"));
        let hydrator = Hydrator::open(gitea, &repository, environments, first).await?;
        let bot = gitea.bot(&repository).await?;
        let mut scene = Self {
            stage,
            gitea,
            hydrator,
            repository,
            clock: Arc::default(),
            objects: Vec::new(),
        };
        scene.turn("closed").await?;
        scene
            .apply(&json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
                "metadata": {"name": "production"}, "spec": {"gatekeepers": [{"name": "switch"}]},
            }))
            .await?;
        let mut secret = bot.secret_for_pipelines(SECRET);
        let mut url = gitea.url(OWNER, &scene.repository);
        if let Some(line) = line {
            url = format!("{}/{OWNER}/{}", line.url(), scene.repository);
            secret["stringData"]["ca.crt"] = line.authority().into();
        }
        let mut spec = json!({
            "repoRef": {"name": NAME},
            "activeCommitStatuses": [{"key": "health"}],
            "environments": [
                {"branch": "env/dev"}, {"branch": "env/test"},
                {"branch": "env/prod", "gates": {"refs": [{"name": "production"}]}},
            ],
        });
        let fields = spec.as_object_mut().context("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let strategy = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"name": NAME}, "spec": spec,
        });
        scene.objects = vec![secret, access(NAME, &url), strategy];
        scene.put().await?;
        Ok(scene)
    }

    /// Writes the Secret, the access and the strategy.
    pub async fn put(&self) -> Result<()> {
        for object in &self.objects {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// An access to a repository at this address.
    pub async fn grant_access(&self, name: &str, url: &str) -> Result<()> {
        self.apply(&access(name, url)).await
    }

    /// Starts a controller.
    pub async fn start(&self) -> Result<InProcess> {
        self.start_as(self.stage.client(), &[]).await
    }

    /// The same with the rights of this client, for these kinds alone.
    pub async fn start_as(&self, client: Client, kinds: &[&str]) -> Result<InProcess> {
        let mut settings = controller::settings(self.stage.namespace());
        settings.egress_allow = vec!["127.0.0.0/8".parse()?];
        // The admission policies are not installed here.
        settings.trust_unverified_identity = true;
        settings.webhook_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
        settings.kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let clock = Arc::clone(&self.clock);
        InProcess::start(settings, client, clock).await
    }

    /// The instant, by the clock of the controller.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The address of the forge.
    pub fn forge(&self) -> String {
        self.gitea.url("", "").trim_end_matches('/').to_owned()
    }

    pub fn namespace(&self) -> &str {
        self.stage.namespace()
    }

    /// The API server, with all rights.
    pub fn client(&self) -> Client {
        self.stage.client()
    }

    /// Lets so much time pass that the branches are listed again.
    pub fn pass(&self) {
        self.clock.put_forward(ROUND);
    }

    /// Lets so much time pass.
    pub fn pass_seconds(&self, seconds: u64) {
        self.clock.put_forward(Duration::from_secs(seconds));
    }

    /// Lets time pass until a controller has listed the branches again, and has nothing left to do.
    pub async fn lists(&self, controller: &InProcess) -> Result<()> {
        let namespace = self.namespace();
        let access = KeyRef {
            namespace,
            name: NAME,
        }
        .into();
        let repositories = controller.repositories();
        let before = repositories.listed_at(&access);
        self.pass();
        poll(DEADLINE, "another list", async || {
            let now = repositories.listed_at(&access);
            ensure!(now > before, "{now:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        controller.rests().await
    }

    /// Has the branches listed now, by the clock of the machine.
    pub async fn request(&self) -> Result<()> {
        let at = SystemClock.now().to_string();
        let annotations = json!({"reconcile.fluxcd.io/requestedAt": at});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let params = PatchParams::default();
        self.strategies().patch(NAME, &params, &patch).await?;
        Ok(())
    }

    pub async fn apply(&self, object: &Value) -> Result<()> {
        self.stage.apply(&object.to_string()).await?;
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

    /// The newest commit of a branch.
    pub async fn head(&self, branch: &str) -> Result<String> {
        self.hydrator.head(branch).await
    }

    /// A person writes a file to a branch. Returns the commit.
    pub async fn push(&self, branch: &str, path: &str, text: &str) -> Result<String> {
        let bytes = text.as_bytes();
        self.gitea.push(&self.repository, branch, path, bytes).await
    }

    /// A person commits to the dry branch, and the hydrator proposes it for all environments. Returns the
    /// commit.
    pub async fn hydrate(&self, version: &str) -> Result<String> {
        let dry = self.hydrate_now(version).await?;
        self.pass();
        Ok(dry)
    }

    /// The same without letting time pass.
    pub async fn hydrate_now(&self, version: &str) -> Result<String> {
        let manifest = manifest(version);
        self.hydrator.hydrate(version, (FILE, &manifest)).await
    }

    /// The same by the script that people take. Returns the commit.
    pub async fn hydrate_by_script(&self, version: &str) -> Result<String> {
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"},
            "data": {"version": version},
        });
        let dry = self.hydrator.run_script(&manifest.to_string()).await?;
        self.pass();
        Ok(dry)
    }

    /// What an environment has.
    pub async fn file(&self, branch: &str) -> Result<String> {
        self.gitea.file(&self.repository, branch, FILE).await
    }

    /// Somebody says that what a branch has is healthy.
    pub async fn healthy(&self, branch: &str) -> Result<()> {
        self.passes(branch, "health").await
    }

    /// Somebody says that what a branch has passes a check.
    pub async fn passes(&self, branch: &str, key: &str) -> Result<()> {
        let sha = self.hydrator.head(branch).await?;
        self.apply(&json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
            "metadata": {
                "name": format!("{key}-{}", &sha[..8]),
                "labels": {"sluice.dev/commit-status": key},
            },
            "spec": {"repoRef": {"name": NAME}, "sha": sha, "name": key, "phase": "success"},
        }))
        .await
    }

    /// A person accepts what a branch has.
    pub async fn accept(&self, branch: &str, sha: &str) -> Result<()> {
        let annotations = json!({marks::ACCEPT: format!("{branch}={sha}")});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let strategies = self.strategies();
        let params = PatchParams::default();
        strategies.patch(NAME, &params, &patch).await?;
        Ok(())
    }

    /// A person brings an environment back.
    pub async fn revert(&self, name: &str, branch: &str, from: &str, to: &str) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit", "metadata": {"name": name},
            "spec": {
                "repoRef": {"name": NAME}, "activeBranch": branch, "from": from, "drySHA": to,
                "reason": "INC-4711", "by": "system:admin",
            },
        }))
        .await
    }

    /// A person names what fixes it.
    pub async fn fixed(&self, name: &str, by: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"fixedBy": by}}));
        let params = PatchParams::default();
        self.reverts().patch(name, &params, &patch).await?;
        Ok(())
    }

    /// The repository rebases unless it is asked for something else.
    pub async fn prefers_rebases(&self) -> Result<()> {
        let settings = json!({"default_merge_style": "rebase"});
        self.hydrator.ask(Method::PATCH, "", &settings).await?;
        Ok(())
    }

    /// How many parents the newest commit of a branch has.
    pub async fn parents(&self, branch: &str) -> Result<usize> {
        let path = format!("/commits?sha={branch}&limit=1");
        let newest = self.hydrator.ask(Method::GET, &path, &Value::Null).await?;
        Ok(newest[0]["parents"].as_array().map_or(0, Vec::len))
    }

    /// A person merges a pull request.
    pub async fn merge(&self, number: i64) -> Result<()> {
        let path = format!("/pulls/{number}/merge");
        poll(DEADLINE, "the forge to be ready to merge", async || {
            self.hydrator
                .ask(Method::POST, &path, &json!({"Do": "merge"}))
                .await
        })
        .await?;
        Ok(())
    }

    /// What metrics say of an environment.
    pub fn labels(&self, branch: &str) -> String {
        let namespace = self.stage.namespace();
        format!("namespace=\"{namespace}\",name=\"{NAME}\",environment=\"{branch}\"")
    }

    pub fn commit_statuses(&self) -> Api<CommitStatus> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    pub fn accesses(&self) -> Api<GitRepositoryAccess> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    pub fn strategies(&self) -> Api<PromotionStrategy> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    fn reverts(&self) -> Api<RevertCommit> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    pub fn gates(&self) -> Api<Gate> {
        self.stage.gates()
    }

    pub fn pull_requests(&self) -> Api<PullRequest> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }
}

fn manifest(version: &str) -> String {
    format!("version: {version}\n")
}

/// An access to a repository at this address.
fn access(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"name": name},
        "spec": {
            "provider": "gitea", "url": url, "secretRef": {"name": SECRET}, "interval": "10s",
        },
    })
}
