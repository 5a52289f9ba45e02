//! `cargo xtask test`: all tests, against one real API server and the released programs, and the
//! demo.
//!
//! What comes in: arguments for `cargo test`. What goes out: its output, and a table of steps.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use sluice_tests::helm::Helm;
use sluice_tests::kubectl;
use sluice_tests::programs::Program;
use sluice_tests::progress::Stderr;
use sluice_tests::{KUBECONFIG_VARIABLE, Options, USERS, prometheus};

use crate::server::{Open, Server};
use crate::steps::Steps;
use crate::{cargo, demo};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// Passed on to `cargo test --workspace`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the tests. Those that need a server of their own start it themselves.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let mut steps = Steps::default();
    if arguments.arguments.is_empty() {
        // Whatever has to be built for them takes both cores, and tests have deadlines.
        let tools = async || find_tools().map(|()| ((), None));
        steps.run("find Helm and Prometheus", tools).await;
    }
    if let Some((programs, open)) = prepare(&mut steps, &arguments.server).await {
        let tests = async || {
            let result = test(&programs, open.cluster.kubeconfig(), &arguments.arguments);
            result.map(|()| ((), None))
        };
        steps.run("cargo test", tests).await;
        if arguments.arguments.is_empty() {
            let story = demo::Arguments::to_the_end(arguments.server.clone());
            steps
                .run("demo", async || demo::run(story).await.map(|()| ((), None)))
                .await;
        }
        steps
            .run("stop the server", async || Ok((drop(open), None)))
            .await;
    }
    steps.finish()
}

/// Programs of others that some tests run: they would build them themselves.
fn find_tools() -> Result<()> {
    let progress = Stderr::new();
    Helm::ensure(&progress)?;
    kubectl::ensure(&progress)?;
    prometheus::Programs::ensure(&progress)?;
    Ok(())
}

/// What the tests need: the folder of the released programs, and a server.
async fn prepare(steps: &mut Steps, server: &Server) -> Option<(PathBuf, Open)> {
    let names = Program::ALL.map(Program::name);
    let build = async || Ok((cargo::build_release(&names)?, None));
    let programs = steps.run("build the programs", build).await?;
    let options = Options::default().with_users(&USERS).with_housekeeping();
    let start = async || Ok((server.open(options).await?, None));
    let open = steps.run("start the server", start).await?;
    Some((programs, open))
}

fn test(programs: &Path, kubeconfig: &Path, arguments: &[OsString]) -> Result<()> {
    let mut command = cargo::cargo();
    command.args(["test", "--workspace"]).args(arguments);
    command.env(KUBECONFIG_VARIABLE, kubeconfig);
    for program in Program::ALL {
        command.env(program.variable(), programs.join(program.name()));
    }
    cargo::run(&mut command)
}
