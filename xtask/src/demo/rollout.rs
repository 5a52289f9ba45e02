//! The story of a rollout: twenty pods of a shop get a new version, batch by batch.
//!
//! What comes in: the stage of the demo. What goes out: a gate closes in the middle, and what is out stays out;
//! it opens again, and the errors of the new version stop the rollout; it is deleted, and the old version is back.
//! The real controllers of Kubernetes make the pods, and a real Prometheus measures.

use std::time::Instant;

use anyhow::{Result, ensure};
use kube::Api;
use sluice_crds::rollout::{BatchRollingState, RollingState};
use sluice_crds::{Rollout, RolloutStatus};
use sluice_tests::poll;
use sluice_tests::progress::human;

use super::screen::Screen;
use super::stage::{Controller, SOON, Stage};
use super::story::show;
use super::{NAMESPACE, kubectl_gate, say};

mod place;

use place::Place;

/// The Rollout, and what it rolls out in place of what.
const WEB: &str = "web";
const OLD: &str = "web-v1";
const NEW: &str = "web-v2";
/// How many pods the shop has.
const PODS: u32 = 20;
/// The gate that each batch asks.
const GATE: &str = "office-hours";

/// The place of the story, with the shop.
pub(super) struct Chapter {
    place: Place,
}

impl Chapter {
    /// Starts everything, and makes the shop.
    pub(super) async fn prepare(screen: &Screen, stage: &Stage) -> Result<Self> {
        screen.scene("A node, and Prometheus");
        let place = Place::start(screen, stage).await?;
        let began = Instant::now();
        screen.waiting("waiting for the pods of the shop");
        place.furnish(stage).await?;
        screen.waited();
        screen.fact(&format!(
            "version 1 of the shop has {PODS} pods: {}",
            human(began.elapsed())
        ));
        Ok(Self { place })
    }

    pub(super) async fn tell(
        &self,
        screen: &Screen,
        stage: &Stage,
        controller: &Controller,
    ) -> Result<()> {
        self.begin(screen, stage).await?;
        self.close(screen, stage).await?;
        self.go_on(screen, stage).await?;
        self.fail(screen, stage).await?;
        self.go_back(screen, stage).await?;
        record(screen, stage, controller).await
    }

    /// How those who play on begin another rollout.
    pub(super) fn again(screen: &Screen) {
        screen.fact(
            "for another one, apply the Rollout of xtask/src/demo/rollout/rollout.yaml with another revision",
        );
    }

    /// The first batches go out.
    async fn begin(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("A rollout: 1 pod of 20 first, then 5, 10 and the rest");
        screen.fact(&format!(
            "each batch asks the gate {GATE}, and once its pods are there, the metric error-rate"
        ));
        let began = Instant::now();
        self.place.roll_out(stage).await?;
        let rolls = |it: &RolloutStatus| {
            it.current_batch == Some(1) && is_in(it, BatchRollingState::BatchInRolling)
        };
        self.until(screen, stage, "the second batch to roll", rolls)
            .await?;
        screen.happened(&format!(
            "the first pod serves, and the second batch has begun, after {}",
            human(began.elapsed())
        ));
        Ok(())
    }

    /// The gate closes while a batch is on its way.
    async fn close(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("The gate closes in the middle: what is out is carried to its end, and no more goes out");
        let reason = "INC-4711: who changed the prices?";
        let close = ["close", GATE, "--for", "10m", "--reason", reason];
        screen.command(
            "bob",
            &format!("kubectl gate close {GATE} --for 10m --reason '{reason}'"),
        );
        let said = kubectl_gate(stage, "bob", &close).await?;
        screen.quote(&said.text);
        ensure!(said.success, "the gate could not be forced");
        let held = |it: &RolloutStatus| {
            is_in(it, BatchRollingState::BatchReady)
                && it
                    .held
                    .as_ref()
                    .is_some_and(|it| it.reason == "GatesClosed")
        };
        self.until(screen, stage, "the next batch to be held", held)
            .await?;
        show(screen, stage, &["rollout", WEB]).await?;
        show(screen, stage, &["pending"]).await
    }

    /// The gate opens, and the next batch goes out. Its requests fail.
    async fn go_on(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("It opens again, and the rollout goes on by itself");
        screen.command("bob", &format!("kubectl gate reset {GATE}"));
        let said = kubectl_gate(stage, "bob", &["reset", GATE]).await?;
        screen.quote(&said.text);
        ensure!(said.success, "the gate could not be reset");
        let rolls = |it: &RolloutStatus| it.current_batch == Some(2) && it.intent.is_some();
        self.until(screen, stage, "the third batch to roll", rolls)
            .await?;
        self.place.errors(0.2).await?;
        screen.happened("the third batch goes out, and with it every fifth request fails");
        let waits = |it: &RolloutStatus| {
            is_in(it, BatchRollingState::BatchVerifying)
                && it
                    .metrics
                    .iter()
                    .any(|it| it.value.as_deref() == Some("0.2"))
        };
        self.until(screen, stage, "the metric to say so", waits)
            .await?;
        show(screen, stage, &["rollout", WEB]).await
    }

    /// Without progress for 30 seconds it fails.
    async fn fail(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("A metric outside its range is waited for, but not for ever");
        let began = Instant::now();
        let failed = |it: &RolloutStatus| it.rolling_state == Some(RollingState::RolloutFailed);
        self.until(screen, stage, "it to fail", failed).await?;
        screen.happened(&format!("it has failed, after {}", human(began.elapsed())));
        show(screen, stage, &["rollout", WEB]).await?;
        screen.fact("somebody who has mended it could try again, with the pods that are out:");
        show(screen, stage, &["retry", "rollout", WEB, "--dry-run"]).await
    }

    /// The way back asks no gate.
    async fn go_back(&self, screen: &Screen, stage: &Stage) -> Result<()> {
        screen.scene("The way back is to delete it: old pods first, and no gate is asked");
        let began = Instant::now();
        let delete = ["delete", "rollouts.sluice.dev", WEB, "--wait=false"];
        screen.command("bob", &format!("kubectl {}", delete.join(" ")));
        let said = say(stage, &self.place.kubectl, "bob", &delete).await?;
        screen.quote(&said.text);
        ensure!(said.success, "it could not be deleted");
        let goes = |it: &RolloutStatus| it.rolling_state == Some(RollingState::RolloutDeleting);
        self.until(screen, stage, "the old version to come back", goes)
            .await?;
        show(screen, stage, &["rollout", WEB]).await?;
        let rollouts: Api<Rollout> = Api::namespaced(stage.client.clone(), NAMESPACE);
        poll(SOON, "the rollout to be gone", async || {
            let found = rollouts.get_opt(WEB).await?;
            ensure!(found.is_none(), "it is there");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        self.place.is_back().await?;
        screen.happened(&format!(
            "{OLD} has {PODS} pods again and {NEW} none, {} after the command",
            human(began.elapsed())
        ));
        let deployments = ["get", "deployments"];
        screen.command("alice", "kubectl get deployments");
        let said = say(stage, &self.place.kubectl, "alice", &deployments).await?;
        screen.quote(&said.text);
        ensure!(said.success, "kubectl get deployments failed");
        Ok(())
    }

    /// Waits until the status is as `check` wants it, and tells meanwhile how far it is.
    async fn until(
        &self,
        screen: &Screen,
        stage: &Stage,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        let said = |it: &Rollout| {
            let conditions = it.status.iter().flat_map(|it| &it.conditions);
            let mut ready = conditions.filter(|it| it.type_ == "Ready");
            let said = ready.next().map(|it| it.message.clone());
            said.unwrap_or_default()
        };
        let find = |it: &Rollout| it.status.clone().filter(|it| check(it));
        stage.until(screen, (WEB, what), said, find).await
    }
}

fn is_in(status: &RolloutStatus, state: BatchRollingState) -> bool {
    status.rolling_state == Some(RollingState::RollingInBatches)
        && status.batch_rolling_state == Some(state)
}

/// Which batch went out when, by which gate, and who has closed it.
async fn record(screen: &Screen, stage: &Stage, controller: &Controller) -> Result<()> {
    screen.scene("Who let it out, and why? What is on record");
    let log = controller.audit.display().to_string();
    let mut told = Vec::new();
    for arguments in [
        ["audit", &log, "--gate", WEB, "--type", "decision"],
        ["audit", &log, "--gate", GATE, "--type", "override"],
    ] {
        let command = arguments.join(" ").replace(&log, "audit.log");
        screen.command("alice", &format!("kubectl gate {command}"));
        let said = kubectl_gate(stage, "alice", &arguments).await?;
        screen.quote(&said.text);
        ensure!(said.success, "kubectl gate audit failed");
        told.push(said.text);
    }
    // However often it was looked at.
    let held = told
        .first()
        .map(|told| told.matches(" held back: ").count());
    ensure!(
        held == Some(1),
        "it was held back once, and is told as {held:?}"
    );
    Ok(())
}
