//! `cargo xtask test`: all tests, against one real API server, with the programs, and the demo.
//!
//! What comes in: arguments for `cargo test`. What goes out: its output, and a table of steps.

mod tries;

use std::env;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use anyhow::{Result, bail};
use clap::Args;
use sluice_tests::helm::Helm;
use sluice_tests::programs::Program;
use sluice_tests::progress::{Progress, Stderr};
use sluice_tests::{
    Binaries, KUBECONFIG_VARIABLE, Options, USERS, flux, gitea, kubectl, prometheus, workloads,
};

use crate::server::{Open, Server};
use crate::steps::Steps;
use crate::{cargo, demo};

/// How many tests of a program run at once, for each core: they wait for servers most of the time.
const AT_ONCE: usize = 3;

/// Says how many tests run at once, where `cargo test` is not told by `--test-threads`.
const THREADS: &str = "RUST_TEST_THREADS";

/// Says which cases properties try.
const SEED: &str = "PROPTEST_RNG_SEED";

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
    let all = arguments.arguments.is_empty();
    let tools = thread::spawn(find_tools);
    let programs = build(&mut steps, all).await;
    // Before any test, whichever are asked for: what a test has to build takes both cores from the
    // others, which have deadlines.
    let found = async || wait_for(tools).map(|()| ((), None));
    let found = steps.run("find what tests run", found).await;
    let programs = programs.filter(|_| found.is_some());
    if let Some((programs, open)) = serve(&mut steps, programs, &arguments.server).await {
        // A property that fails is tried once more with the same cases.
        let seed = env::var_os(SEED).unwrap_or_else(new_seed);
        let tests = || tests(&programs, open.cluster.kubeconfig(), &seed);
        let tests = async || match all {
            true => tries::run(tests).map(|note| ((), note)),
            false => cargo::run(tests().args(&arguments.arguments)).map(|()| ((), None)),
        };
        let passed = steps.run("cargo test", tests).await.is_some();
        // What a failed test has said stays at the end.
        if all && passed {
            let gates = demo::Arguments::to_the_end(arguments.server.clone());
            let stories = [
                ("demo", gates),
                ("demo of pipelines", demo::Arguments::of_pipelines()),
                ("demo of promotion", demo::Arguments::of_promotion()),
                ("demo of a rollout", demo::Arguments::of_rollout()),
            ];
            for (name, story) in stories {
                steps
                    .run(name, async || demo::run(story).await.map(|()| ((), None)))
                    .await;
            }
        }
        steps
            .run("stop the server", async || Ok((drop(open), None)))
            .await;
    }
    steps.finish()
}

/// Finds or builds the programs of others that tests run: they would build them themselves. Those
/// that most of them need come first.
fn find_tools() -> Result<()> {
    let progress = Lines(Stderr::new());
    Binaries::ensure(&progress)?.with_controllers(&progress)?;
    Helm::ensure(&progress)?;
    kubectl::ensure(&progress)?;
    prometheus::Programs::ensure(&progress)?;
    gitea::Gitea::ensure(&progress)?;
    workloads::Programs::ensure(&progress)?;
    flux::Registry::ensure(&progress)?;
    flux::Programs::ensure(&progress)?;
    Ok(())
}

fn wait_for(tools: JoinHandle<Result<()>>) -> Result<()> {
    match tools.join() {
        Ok(found) => found,
        Err(_) => bail!("looking for what tests run has panicked"),
    }
}

/// Progress beside that of others: no line is rewritten.
struct Lines(Stderr);

impl Progress for Lines {
    fn say(&self, line: &str) {
        self.0.say(line);
    }

    fn update(&self, _line: &str) {}
}

/// Builds the programs, and where all tests are run the tests. Returns the folder of the
/// programs.
async fn build(steps: &mut Steps, all: bool) -> Option<PathBuf> {
    let build = async || Ok((cargo::build(&Program::ALL)?, None));
    let programs = steps.run("build the programs", build).await?;
    if all {
        // While what they run is built: cargo and Go leave a core idle at different times.
        let mut command = cargo::cargo();
        command.args(["test", "--workspace", "--no-run"]);
        let tests = async || cargo::run(&mut command).map(|()| ((), None));
        steps.run("build the tests", tests).await?;
    }
    Some(programs)
}

/// Starts a server, if there is something to test on it.
async fn serve(
    steps: &mut Steps,
    programs: Option<PathBuf>,
    server: &Server,
) -> Option<(PathBuf, Open)> {
    let programs = programs?;
    let options = Options::default().with_users(&USERS).with_housekeeping();
    let start = async || Ok((server.open(options).await?, None));
    let open = steps.run("start the server", start).await?;
    Some((programs, open))
}

/// A seed that no other run has.
fn new_seed() -> OsString {
    let seed = RandomState::new().hash_one(SEED);
    eprintln!("{SEED}={seed}");
    seed.to_string().into()
}

/// All tests, on a server, with our programs.
fn tests(programs: &Path, kubeconfig: &Path, seed: &OsStr) -> Command {
    let mut command = cargo::cargo();
    command.args(["test", "--workspace"]).env(SEED, seed);
    command.env(KUBECONFIG_VARIABLE, kubeconfig);
    if env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (cores * AT_ONCE).to_string());
    }
    for program in Program::ALL {
        command.env(program.variable(), programs.join(program.name()));
    }
    command
}
