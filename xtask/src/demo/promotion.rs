//! The story of promotion by branches: a shop in three environments, each of them a branch in a real Gitea.
//!
//! What comes in: the stage of the demo. What goes out: a commit goes to dev and test by itself, waits before
//! prod for a gate, and gets there when the gate is forced. A bad one is taken back from prod, while the gate
//! is closed, and does not return until its fix is named. The real Flux applies what each branch has.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};
use sluice_tests::gitea::{OWNER, PASSWORD};
use sluice_tests::poll;
use sluice_tests::progress::human;

use super::flux::short;
use super::freeze::GATE;
use super::screen::Screen;
use super::stage::{Controller, SOON, Stage};
use super::story::{ask, record, show};
use super::{kubectl_gate, say};

mod place;
mod repository;

use place::Place;
use repository::{Clone, FILE, HYDRATOR, Version};

/// The strategy, and its repository in Gitea.
const SHOP: &str = "shop";
const REPOSITORY: &str = SHOP;
/// The environments, in their order. Each has the branch `env/<name>`.
const ENVIRONMENTS: [&str; 3] = ["dev", "test", "prod"];
const PROD: &str = "prod";
/// The versions of the shop.
const ONE: Version = Version::new("1", "taken");
const TWO: Version = Version::new("2", "taken");
const BAD: Version = Version::new("3", "lost");
const FIX: Version = Version::new("4", "taken");

/// The place of the story, with the shop and its strategy.
pub(super) struct Chapter {
    place: Place,
    clone: Clone,
}

impl Chapter {
    /// Starts everything, and brings the first version into all environments.
    pub(super) async fn prepare(screen: &Screen, stage: &Stage) -> Result<Self> {
        screen.scene("Gitea, and Flux");
        let place = Place::start(screen, stage).await?;
        let began = Instant::now();
        screen.waiting("waiting for Flux to deliver the shop to three environments");
        let clone = place.furnish(stage, ONE).await?;
        let chapter = Self { place, clone };
        for environment in ENVIRONMENTS {
            let healthy = |it: &EnvironmentStatus| it.state == EnvironmentState::UpToDate;
            let what = format!("{environment} to be healthy");
            chapter
                .until(screen, stage, environment, &what, healthy)
                .await?;
        }
        screen.fact(&format!(
            "version 1 of the shop runs in three environments: {}",
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
        let dry = self.promote(screen, stage).await?;
        self.force(screen, stage, &dry).await?;
        let bad = self.spoil(screen, stage).await?;
        let revert = self.revert(screen, stage, &bad).await?;
        self.fix(screen, stage, &revert).await?;
        let decided = |line: &Value| line["environment"] == "env/prod";
        record(screen, stage, controller, decided).await
    }

    /// Where everything is, for those who play on.
    pub(super) fn addresses(&self, screen: &Screen) {
        screen.fact(&format!(
            "Gitea: {}, user {OWNER}, password '{PASSWORD}'",
            self.place.repository()
        ));
        screen.fact(&format!(
            "a clone: {}; change {FILE}, push it, run {HYDRATOR} {}, and look again",
            self.clone.path().display(),
            ENVIRONMENTS.join(" ")
        ));
    }

    /// What there is.
    async fn introduce(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("A shop in three environments, each of them a branch");
        screen.fact(
            "people commit to main; a program makes manifests of it, and proposes them: env/dev-next and so on",
        );
        screen.fact(
            "Flux applies env/dev, env/test and env/prod; what changes them is a pull request that is merged",
        );
        screen
            .fact("each environment waits for the one before, and prod for the gate go-live, too");
        show(screen, stage, &["promotion", SHOP]).await
    }

    /// A commit that gets to test by itself, and waits before prod. Returns it.
    async fn promote(&self, screen: &Screen, stage: &Stage) -> Result<String> {
        screen.scene("A commit: dev and test follow by themselves, prod waits for its gate");
        let (dry, began) = self.push(screen, TWO, "Sell tea, too")?;
        for environment in ["dev", "test"] {
            self.arrives(screen, stage, environment, &dry, began)
                .await?;
            self.place.says(stage, environment, TWO).await?;
        }
        let held = |it: &EnvironmentStatus| it.reason.as_deref() == Some("GateClosed");
        let what = "the pull request for prod to wait for the gate";
        let prod = self.until(screen, stage, PROD, what, held).await?;
        let pull = prod.pull_request.context("it has no pull request")?;
        let number = pull.number.context("it has no number")?;
        screen.happened(&format!(
            "pull request #{number} for prod is open, and not merged. Its check in Gitea:"
        ));
        let proposed = prod.proposed.context("nothing is proposed")?;
        let status = self.commit_status(&proposed.hydrated_sha).await?;
        screen.quote(&format!("  {status}"));
        let columns = ["get", "promotionstrategies"];
        screen.command("alice", "kubectl get promotionstrategies");
        let said = say(stage, &self.place.kubectl, "alice", &columns).await?;
        screen.quote(&said.text);
        ensure!(said.success, "kubectl get promotionstrategies failed");
        show(screen, stage, &["promotion", SHOP]).await?;
        show(screen, stage, &["why", "promotionstrategy/shop", PROD]).await?;
        Ok(dry)
    }

    /// The gate is forced, and prod follows.
    async fn force(&self, screen: &Screen, stage: &Stage, dry: &str) -> Result<()> {
        screen.scene("It cannot wait: forcing a gate needs a right of its own");
        ask(screen, stage, "open", GATE, "30m").await?;
        let began = Instant::now();
        self.arrives(screen, stage, PROD, dry, began).await?;
        self.place.says(stage, PROD, TWO).await
    }

    /// A bad commit that no check has found. Returns it.
    async fn spoil(&self, screen: &Screen, stage: &Stage) -> Result<String> {
        screen.scene("A bad commit: no check finds what is wrong with it");
        let (dry, began) = self.push(screen, BAD, "Sell coffee, too")?;
        for environment in ENVIRONMENTS {
            self.arrives(screen, stage, environment, &dry, began)
                .await?;
        }
        self.place.says(stage, PROD, BAD).await?;
        screen.fact("prod loses orders. And the freeze is in force again:");
        screen.command("bob", &format!("kubectl gate reset {GATE}"));
        let said = kubectl_gate(stage, "bob", &["reset", GATE]).await?;
        screen.quote(&said.text);
        ensure!(said.success, "the gate could not be reset");
        Ok(dry)
    }

    /// What was healthy comes back, past the freeze. Returns the name of the RevertCommit.
    async fn revert(&self, screen: &Screen, stage: &Stage, bad: &str) -> Result<String> {
        screen.scene("The way back is one command, and no freeze blocks it");
        let began = Instant::now();
        let reason = "INC-4711: orders are lost";
        let arguments = ["revert", SHOP, PROD, "--reason", reason, "--wait"];
        let command = format!("kubectl gate revert {SHOP} {PROD} --reason '{reason}' --wait");
        let mut created = String::new();
        for (who, granted) in [("alice", false), ("bob", true)] {
            screen.command(who, &command);
            let said = kubectl_gate(stage, who, &arguments).await?;
            screen.quote(&said.text);
            ensure!(
                said.success == granted,
                "{who} had to be answered otherwise"
            );
            created = said.text;
        }
        let name = created.split_once("revertcommit.sluice.dev/");
        let name = name.and_then(|(_, rest)| rest.split_whitespace().next());
        let name = name.context("it has no name")?.to_owned();
        self.place.says(stage, PROD, TWO).await?;
        screen.happened(&format!(
            "prod is version 2 again, {} after the command; {} is held",
            human(began.elapsed()),
            short(bad)
        ));
        show(screen, stage, &["promotion", SHOP]).await?;
        Ok(name)
    }

    /// What fixes it gets to prod once it is named, and the gate is open.
    async fn fix(&self, screen: &Screen, stage: &Stage, revert: &str) -> Result<()> {
        screen.scene("What was taken back does not return, until somebody names what fixes it");
        let (dry, began) = self.push(screen, FIX, "Keep the orders")?;
        for environment in ["dev", "test"] {
            self.arrives(screen, stage, environment, &dry, began)
                .await?;
        }
        let is_proposed = |it: &EnvironmentStatus| {
            let proposed = it.proposed.as_ref().and_then(|it| it.dry_sha.as_deref());
            proposed == Some(&*dry) && it.reason.as_deref() == Some("Held")
        };
        let what = "prod to hold it";
        let prod = self.until(screen, stage, PROD, what, is_proposed).await?;
        screen.happened(&format!("prod: {}", prod.message.unwrap_or_default()));
        let arguments = ["fixed", revert, &dry];
        screen.command(
            "bob",
            &format!("kubectl gate fixed {revert} {}", short(&dry)),
        );
        let said = kubectl_gate(stage, "bob", &arguments).await?;
        screen.quote(&said.text);
        ensure!(said.success, "the fix could not be named");
        let open = ["open", GATE, "--for", "10m", "--reason", "INC-4711"];
        screen.command(
            "bob",
            &format!("kubectl gate open {GATE} --for 10m --reason INC-4711"),
        );
        let said = kubectl_gate(stage, "bob", &open).await?;
        screen.quote(&said.text);
        ensure!(said.success, "the gate could not be forced");
        self.arrives(screen, stage, PROD, &dry, Instant::now())
            .await?;
        self.place.says(stage, PROD, FIX).await?;
        show(screen, stage, &["promotion", SHOP]).await
    }

    /// A version is committed, and what is made of it is proposed. Returns the dry commit, and when that was.
    fn push(&self, screen: &Screen, version: Version, message: &str) -> Result<(String, Instant)> {
        let began = Instant::now();
        let dry = self.clone.push(version, message)?;
        self.clone.hydrate()?;
        screen.fact(&format!(
            "git push: {}, version {}: {message}",
            short(&dry),
            version.number
        ));
        Ok((dry, began))
    }

    /// Waits until an environment has a dry commit, and is healthy with it.
    async fn arrives(
        &self,
        screen: &Screen,
        stage: &Stage,
        environment: &str,
        dry: &str,
        began: Instant,
    ) -> Result<()> {
        let is_there = |it: &EnvironmentStatus| {
            let active = it.active.as_ref();
            active.is_some_and(|tip| {
                tip.dry_sha.as_deref() == Some(dry) && tip.arrived_by == Some(Arrival::Promotion)
            }) && it.state == EnvironmentState::UpToDate
        };
        let what = format!("{environment} to have {}", short(dry));
        self.until(screen, stage, environment, &what, is_there)
            .await?;
        screen.happened(&format!(
            "{environment} has {}, and is healthy, after {}",
            short(dry),
            human(began.elapsed())
        ));
        Ok(())
    }

    /// What Gitea shows beside a pull request.
    async fn commit_status(&self, head: &str) -> Result<String> {
        let path = format!("/commits/{head}/status");
        poll(SOON, "the commit status", async || {
            let gitea = &self.place.gitea;
            let said = gitea.in_repository(REPOSITORY, Method::GET, &path, &Value::Null);
            let said = said.await?;
            let [state, context, description] = ["status", "context", "description"]
                .map(|field| said["statuses"][0][field].as_str().unwrap_or_default());
            ensure!(description.contains(GATE), "{said}");
            Ok::<_, anyhow::Error>(format!("{context}: {state} — {description}"))
        })
        .await
    }

    /// Waits until an environment is as `check` wants it, and tells meanwhile how far it is.
    async fn until(
        &self,
        screen: &Screen,
        stage: &Stage,
        environment: &str,
        what: &str,
        check: impl Fn(&EnvironmentStatus) -> bool,
    ) -> Result<EnvironmentStatus> {
        let branch = format!("env/{environment}");
        let of = |strategy: &PromotionStrategy| {
            let all = strategy.status.as_ref().map(|it| it.environments.clone());
            all.unwrap_or_default()
                .into_iter()
                .find(|it| it.branch == branch)
        };
        let said = |it: &PromotionStrategy| {
            let said = of(it).and_then(|it| it.message);
            said.unwrap_or_default()
        };
        let find = |it: &PromotionStrategy| of(it).filter(|it| check(it));
        stage.until(screen, (SHOP, what), said, find).await
    }
}
