//! Promotion by branches with the real Flux and a real Gitea: an environment is healthy when the
//! Kustomization that applies its branch is ready with the very commit, as this cluster sees it, or as Flux has
//! written it to the forge.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::commit_status::Phase;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};
use sluice_crds::{PromotionStrategy, PromotionStrategyStatus, RevertCommit};
use sluice_tests::gitea::{OWNER, gitea};
use sluice_tests::hydrator::Hydrator;
use sluice_tests::installation::CONTROLLER;
use sluice_tests::{Writes, poll};

use crate::stage::{DEADLINE, NOW, Stage, app};

const NAME: &str = "shop";
const ENVIRONMENTS: [&str; 2] = ["env/dev", "env/test"];
const FILE: &str = "app.yaml";
const REVERT: &str = "back";

struct Shop {
    stage: Stage<'static>,
    hydrator: Hydrator,
}

impl Shop {
    /// `proved`: what the spec says of how an environment is known to be healthy, by its name.
    async fn open(word: &str, proved: impl Fn(&str) -> Value) -> Result<Self> {
        let stage = Stage::new(word, NOW).await?;
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
            let mut environment = proved(name(branch));
            environment["branch"] = branch.into();
            environment
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

    /// Somebody suspends the Kustomization of an environment, or resumes it.
    async fn suspend(&self, branch: &str, is: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"suspend": is}}));
        let kustomizations = self.stage.api("Kustomization")?;
        let params = PatchParams::default();
        kustomizations.patch(name(branch), &params, &patch).await?;
        Ok(())
    }

    async fn hydrate(&self, version: &str, file: &str) -> Result<String> {
        self.hydrator.hydrate(version, (FILE, file)).await
    }

    /// A person brings an environment back to what was made of an earlier commit.
    async fn revert(&self, environment: &EnvironmentStatus, dry: &str) -> Result<()> {
        let active = environment.active.as_ref().context("it has nothing")?;
        let revert = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
            "metadata": {"name": REVERT},
            "spec": {
                "repoRef": {"name": NAME}, "activeBranch": environment.branch,
                "from": active.hydrated_sha, "drySHA": dry, "reason": "INC-4711", "by": "admin",
            },
        });
        self.stage.apply(&revert.to_string()).await
    }

    /// A person names what fixes it.
    async fn fixed(&self, by: &str) -> Result<()> {
        let stage = &self.stage;
        let reverts: Api<RevertCommit> = Api::namespaced(stage.client(), stage.namespace());
        let fixed = json!({"spec": {"fixedBy": by}});
        reverts.merge(REVERT, &fixed).await?;
        Ok(())
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

/// An environment with this check.
fn checked(mut check: Value) -> Value {
    check["key"] = "flux".into();
    json!({"activeCommitStatuses": [check]})
}

/// An environment with a gate over its Kustomization, which has to be ready for ten minutes with the commit that
/// the environment has.
fn soaked(name: &str) -> Value {
    json!({"activeGates": {"refs": [{"name": format!("{name}-soaked")}]}})
}

/// The gate of an environment, and the account that sees its Kustomization.
async fn keep_soaked(stage: &Stage<'_>, name: &str) -> Result<()> {
    let (gate, account) = (format!("{name}-soaked"), "health-reader");
    let ours = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": gate}, "spec": spec,
        })
    };
    let objects = json!({
        "serviceAccountName": account, "soak": "10m",
        "of": [{
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "name": name,
            "revisionExpression": "object.status.lastAppliedRevision",
        }],
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account},
    });
    let all = [
        account,
        ours("Gatekeeper", json!({"objects": objects})),
        ours("Gate", json!({"gatekeepers": [{"name": gate}]})),
    ];
    for object in all {
        stage.apply(&object.to_string()).await?;
    }
    let rule = json!({
        "apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"],
        "verbs": ["get", "list", "watch"],
    });
    let user = format!("system:serviceaccount:{}:health-reader", stage.namespace());
    stage.grant_rules("health", &user, &[rule]).await
}

/// Whether a gate holds it back, in these words.
fn held_by(it: &EnvironmentStatus, words: &str) -> bool {
    let mut waits = it.waits.iter();
    waits.any(|wait| wait.reason == "GateClosed" && wait.message.contains(words))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soak_is_about_one_commit_and_begins_again_with_the_next() -> Result<()> {
    let shop = Shop::open("branches-soak", soaked).await?;
    for branch in ENVIRONMENTS {
        keep_soaked(&shop.stage, name(branch)).await?;
    }
    let controller = shop.stage.start_with_egress().await?;
    let other = |it: &EnvironmentStatus| held_by(it, "is as it should be, at env/dev@");
    let soaking = |it: &EnvironmentStatus| held_by(it, "be for 10m");
    for version in ["two", "three"] {
        let dry = shop.hydrate(version, &app("app", version)).await?;
        shop.says("env/dev", "to have it", |it| is_at(it, &dry))
            .await?;
        // The Kustomization has been ready for long, with the commit before.
        shop.says("env/test", "to wait for the other commit", other)
            .await?;
        shop.fetch("env/dev").await?;
        shop.says("env/test", "to wait for the soak", soaking)
            .await?;
        let clock = shop.stage.clock();
        clock.step(shop.stage.now() + SignedDuration::from_mins(10));
        shop.says("env/test", "to have it", |it| is_at(it, &dry))
            .await?;
        // The next one begins where time has passed for the one before.
        shop.fetch("env/test").await?;
        clock.step(shop.stage.now() + SignedDuration::from_mins(20));
    }
    controller.stop().await;
    Ok(())
}

/// What Flux cannot apply goes no further. The environment is brought back to `good`, is healthy once Flux has
/// fetched and applied that, and gets the fix, which goes on.
async fn what_flux_cannot_apply_is_taken_back(shop: &Shop, good: &str) -> Result<()> {
    let broken = shop.hydrate("broken", "kind: Nonsense").await?;
    shop.says("env/dev", "to have it", |it| is_at(it, &broken))
        .await?;
    shop.fetch("env/dev").await?;
    let failed = |it: &EnvironmentStatus| it.state == EnvironmentState::Failed;
    let dev = shop.says("env/dev", "to fail", failed).await?;
    let fails = |it: &EnvironmentStatus| it.reason.as_deref() == Some("CheckFailed");
    shop.says("env/test", "to be held back", fails).await?;

    shop.revert(&dev, good).await?;
    let is_back = |it: &EnvironmentStatus, by_flux: Phase| {
        let mut active = it.active.iter();
        let is_there = active.any(|tip| {
            tip.arrived_by == Some(Arrival::Revert) && tip.commit_status == Some(by_flux)
        });
        is_there && is_at(it, good) && it.state == EnvironmentState::Held
    };
    // Flux still says what it has found out about the bad commit.
    shop.says("env/dev", "to be back", |it| is_back(it, Phase::Pending))
        .await?;
    shop.fetch("env/dev").await?;
    shop.says("env/dev", "to be healthy", |it| is_back(it, Phase::Success))
        .await?;
    shop.says("env/test", "to have got nothing of it", |it| {
        is_at(it, good)
    })
    .await?;

    let fix = shop.hydrate("fix", &app("app", "four")).await?;
    shop.fixed(&fix).await?;
    shop.says("env/dev", "to have the fix", |it| is_at(it, &fix))
        .await?;
    shop.fetch("env/dev").await?;
    shop.says("env/test", "to have the fix", |it| is_at(it, &fix))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_healthy_when_flux_is_ready_with_its_commit() -> Result<()> {
    let by_flux = |name: &str| checked(json!({"flux": {"kustomizations": [{"name": name}]}}));
    let shop = Shop::open("branches", by_flux).await?;
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

    // A Kustomization that is suspended proves nothing, although it is ready with the very commit.
    shop.suspend("env/dev", true).await?;
    let is_suspended = |it: &EnvironmentStatus| {
        let mut said = it
            .checks
            .iter()
            .filter_map(|check| check.message.as_deref());
        it.state == EnvironmentState::Verifying && said.any(|it| it.ends_with("is suspended"))
    };
    shop.says("env/dev", "to be suspended", is_suspended)
        .await?;
    let three = shop.hydrate("three", &app("app", "three")).await?;
    shop.says("env/dev", "to have it", |it| is_at(it, &three))
        .await?;
    shop.fetch("env/dev").await?;
    shop.says("env/test", "to wait for Flux", waits).await?;
    shop.suspend("env/dev", false).await?;
    shop.says("env/test", "to have it", |it| is_at(it, &three))
        .await?;
    shop.fetch("env/test").await?;

    what_flux_cannot_apply_is_taken_back(&shop, &three).await?;
    controller.stop().await;
    Ok(())
}

/// The cluster is another one, as far as the strategy knows: Flux itself tells the forge.
#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_healthy_when_flux_tells_the_forge() -> Result<()> {
    let by_forge = |name: &str| checked(json!({"forge": format!("kustomization/{name}/eu")}));
    let shop = Shop::open("branches-forge", by_forge).await?;
    let (stage, gitea) = (&shop.stage, gitea().await?);
    let provider = json!({
        "type": "gitea", "address": gitea.url(OWNER, stage.namespace()),
        "secretRef": {"name": "git-token"}, "certSecretRef": {"name": "git"},
        "commitStatusExpr": "'kustomization/' + event.involvedObject.name + '/eu'",
    });
    stage.put("Provider", "forge", provider).await?;
    let alert = json!({
        "providerRef": {"name": "forge"},
        "eventSources": [{"kind": "Kustomization", "name": "*"}],
    });
    stage.put("Alert", "forge", alert).await?;
    let controller = stage.start_with_egress().await?;
    let two = shop.hydrate("two", &app("app", "two")).await?;
    shop.says("env/dev", "to have it", |it| is_at(it, &two))
        .await?;
    let waits = |it: &EnvironmentStatus| it.reason.as_deref() == Some("CheckMissing");
    shop.says("env/test", "to wait for Flux", waits).await?;
    shop.fetch("env/dev").await?;
    shop.says("env/test", "to have it", |it| is_at(it, &two))
        .await?;
    let broken = shop.hydrate("broken", "kind: Nonsense").await?;
    shop.says("env/dev", "to have it", |it| is_at(it, &broken))
        .await?;
    shop.fetch("env/dev").await?;
    let fails = |it: &EnvironmentStatus| it.reason.as_deref() == Some("CheckFailed");
    shop.says("env/test", "to be held back", fails).await?;
    controller.stop().await;
    Ok(())
}
