//! `cargo xtask bench`: figures with ratios in one run.
//!
//! What comes in: how large. What goes out: tables in Markdown, for `docs/reference/benchmarks.md`.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use kube::Client;

use sluice_tests::programs::Program;
use sluice_tests::{Applier, Options};

use crate::cargo;
use crate::server::{self, Open, Server};
use crate::signals::told_to_end;

mod check;
mod mixed;
mod ordered;
mod pipelines;
mod process;
mod promotion;
mod rollouts;
mod scale;
mod seen;
mod sources;
mod standby;
mod wave;

use process::Controller;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// "Open now, and when does it change": criterion, beside the `cron` crate.
    Windows,
    /// A set of gates, decided: criterion.
    Decide,
    /// Many gates that change at one instant, on a real API server.
    Scale(scale::Arguments),
    /// Many gatekeepers of all kinds, of which some measure what is dead or slow.
    Mixed(mixed::Arguments),
    /// Many who ask over HTTP, beside a bare server.
    Check(check::Arguments),
    /// Gated sources on the real Flux, one and many.
    Sources(sources::Arguments),
    /// Many pipelines, with environments on other clusters and pull requests at a forge; and what a look
    /// at one costs: criterion.
    Pipelines(pipelines::Arguments),
    /// Many promotion strategies over branches of a real Gitea.
    Promotion(promotion::Arguments),
    /// Many rollouts on real controllers of workloads; and what a look at one costs: criterion.
    Rollouts(rollouts::Arguments),
}

pub(crate) async fn run(command: Command) -> Result<()> {
    match command {
        Command::Windows => criterion("windows"),
        Command::Decide => criterion("decide"),
        _ if cfg!(debug_assertions) => released(),
        Command::Scale(arguments) => scale::run(arguments).await,
        Command::Mixed(arguments) => mixed::run(arguments).await,
        Command::Check(arguments) => check::run(arguments).await,
        Command::Sources(arguments) => sources::run(arguments).await,
        Command::Pipelines(arguments) => pipelines::run(arguments).await,
        Command::Promotion(arguments) => promotion::run(arguments).await,
        Command::Rollouts(arguments) => rollouts::run(arguments).await,
    }
}

/// Runs a benchmark of the pure decisions.
fn criterion(bench: &str) -> Result<()> {
    let of = ["bench", "--package", "sluice-core", "--bench", bench];
    cargo::run(cargo::cargo().args(of))
}

/// Runs us again, built for release: figures of any other build say nothing.
fn released() -> Result<()> {
    let mut command = std::process::Command::new(cargo::ourselves_released()?);
    cargo::run(command.args(env::args_os().skip(1)))
}

/// What a benchmark of the released controller works with.
struct Bench {
    program: PathBuf,
    open: Open,
    client: Client,
    namespace: &'static str,
}

impl Bench {
    /// Measures in a namespace of its own, and prints the table.
    async fn run<T: Display>(
        server: &Server,
        namespace: &'static str,
        measure: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Result<()> {
        let open = server.open(Options::default()).await?;
        Self::on(open, namespace, measure).await
    }

    /// The same on a cluster that was started for it.
    async fn on<T: Display>(
        open: Open,
        namespace: &'static str,
        measure: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Result<()> {
        let program = cargo::program(Program::GateController)?;
        let client = open.cluster.client().await?;
        install(&client).await?;
        let bench = Self {
            program,
            open,
            client,
            namespace,
        };
        let measuring = measure(&bench);
        let measured = measure_in(&bench.open, &bench.client, namespace, measuring).await?;
        if let Some(table) = measured {
            print!("{table}");
        }
        Ok(())
    }

    /// Starts the controller.
    async fn controller(&self, flags: &[&str]) -> Result<Controller> {
        let kubeconfig = self.open.cluster.kubeconfig();
        Controller::start(&self.program, kubeconfig, self.namespace, flags).await
    }
}

/// Defines the kinds of Sluice.
async fn install(client: &Client) -> Result<()> {
    let applier = Applier::new(client.clone());
    let installed = applier.path(&cargo::root().join("crds/yaml")).await;
    installed.context("cannot install the CRDs").map(drop)
}

/// What was measured in a namespace of its own, which is cleared afterwards. None: we were told to
/// end before.
async fn measure_in<T>(
    open: &Open,
    client: &Client,
    namespace: &str,
    measuring: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    server::create_namespace(client, namespace).await?;
    let ended = told_to_end()?;
    let measured = tokio::select! {
        measured = measuring => measured.map(Some),
        () = ended => Ok(None),
    };
    if !open.is_ours() {
        server::clear(client, namespace).await?;
    }
    measured
}
