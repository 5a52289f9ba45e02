//! The controller, run for tests: in this process under a clock of the test's own, or as the real
//! program that can be paused and killed.
//!
//! What comes in: flags, a client or a kubeconfig, a clock. What goes out: a controller that keeps
//! one namespace, listens on free ports, and ends when it is dropped.

mod process;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gate_controller::observe::clock::Clock;
use gate_controller::observe::repositories::Repositories;
use gate_controller::observe::world::World;
use gate_controller::tell::counters::{Counters, KindLabels, NotificationLabels};
use gate_controller::tell::decisions::Decisions;
use gate_controller::{Controller, Settings};
use kube::Client;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use process::Process;

use crate::poll;
use crate::poll::DEADLINE;

/// The flags of a controller that keeps one namespace and listens on any free port.
#[must_use]
pub fn flags(namespace: &str) -> Vec<String> {
    let fixed = [
        "--metrics-addr=127.0.0.1:0",
        "--health-addr=127.0.0.1:0",
        "--watch-all-namespaces=false",
    ];
    let mut flags: Vec<String> = fixed.map(str::to_owned).into();
    flags.push(format!("--runtime-namespace={namespace}"));
    flags
}

/// The settings of a controller in this process that keeps `namespace`: as the flags have them,
/// but for one worker, so that objects are looked at one after another; and it does not ask the
/// API server for the time, for tests set the clock as they like.
///
/// # Panics
///
/// If the flags are not the controller's.
#[must_use]
pub fn settings(namespace: &str) -> Settings {
    let program = ["gate-controller".to_owned()];
    let mut settings = Settings::parse_from(program.into_iter().chain(flags(namespace)));
    settings.concurrent = 1;
    settings.compare_clocks = false;
    settings
}

/// A controller in this process. Dropped, it stops; what it was writing may be cut short.
pub struct InProcess {
    controller: Controller,
    shutdown: DropGuard,
}

impl InProcess {
    /// Starts a controller. It may not have seen anything yet.
    ///
    /// # Errors
    ///
    /// See [`gate_controller::start`].
    pub async fn start(settings: Settings, client: Client, clock: Arc<dyn Clock>) -> Result<Self> {
        let shutdown = CancellationToken::new();
        let controller = gate_controller::start(settings, client, clock, shutdown.clone()).await?;
        Ok(Self {
            controller,
            shutdown: shutdown.drop_guard(),
        })
    }

    /// What it knows.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.controller.world
    }

    /// What it knows of repositories.
    #[must_use]
    pub fn repositories(&self) -> &Repositories {
        &self.controller.repositories
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.controller.counters
    }

    /// What it has answered.
    #[must_use]
    pub fn decisions(&self) -> &Decisions {
        &self.controller.decisions
    }

    /// Waits until it looks at nothing. Everybody sees a write before the one who wrote has its answer,
    /// counts it and tells of it: who has seen one, and has waited, finds that done.
    ///
    /// # Errors
    ///
    /// If it does not come to rest.
    pub async fn rests(&self) -> Result<()> {
        poll(DEADLINE, "the look under way to end", async || {
            ensure!(!self.controller.looking(), "it is looking at something");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// How many writes of objects of this kind the API server has taken from it, once it
    /// [rests](Self::rests).
    ///
    /// # Errors
    ///
    /// If it does not come to rest.
    pub async fn writes(&self, kind: &'static str) -> Result<u64> {
        self.rests().await?;
        let writes = &self.controller.counters.writes;
        Ok(writes.get_or_create(&KindLabels { kind }).get())
    }

    /// How many looks at objects of this kind have failed.
    #[must_use]
    pub fn failures(&self, kind: &'static str) -> u64 {
        let failures = &self.controller.counters.failures;
        failures.get_or_create(&KindLabels { kind }).get()
    }

    /// How many events that were to be told to notification-controller came to this.
    #[must_use]
    pub fn notifications(&self, outcome: &'static str) -> u64 {
        let notifications = &self.controller.counters.notifications;
        let labels = NotificationLabels { outcome };
        notifications.get_or_create(&labels).get()
    }

    /// Where it serves its metrics.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn metrics(&self) -> Result<SocketAddr> {
        self.controller.metrics.context("no metrics are served")
    }

    /// Where it serves its health.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn health(&self) -> Result<SocketAddr> {
        self.controller.health.context("no health is served")
    }

    /// Where it takes webhooks of forges, if it does.
    #[must_use]
    pub fn webhook(&self) -> Option<SocketAddr> {
        self.controller.webhook
    }

    /// Where it serves artifacts, if it does.
    #[must_use]
    pub fn artifacts(&self) -> Option<SocketAddr> {
        self.controller.artifacts
    }

    /// Stops it, and waits until it has.
    pub async fn stop(self) {
        drop(self.shutdown);
        self.controller.stopped().await;
    }
}
