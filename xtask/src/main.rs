//! The chores of the project: `cargo xtask --help` lists them.
//!
//! What comes in: a subcommand. What goes out: what it is named after, and a table of what was
//! done and how long it took.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person at the terminal"
)]

mod bench;
mod cargo;
mod ci;
mod cluster;
mod demo;
mod deny;
mod docs;
mod floors;
mod fuzz;
mod generate;
mod server;
mod signals;
mod steps;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The chores of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// A local control plane to play with, outside of any test.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// The main job on a real API server, told as a story on one screen.
    Demo(demo::Arguments),
    /// Measures, with ratios in one run.
    #[command(subcommand)]
    Bench(bench::Command),
    /// All tests, against one real API server.
    Test(test::Arguments),
    /// All checks: format, lints, generated files, floors, dependencies, docs.
    Ci,
    /// Random texts for whatever reads what people write, for as long as there is time.
    Fuzz(fuzz::Arguments),
    /// Writes the files that are made from the code.
    Generate(generate::Arguments),
    /// Checks which crate may depend on which.
    Floors,
    /// Checks licences, sources and bans of all dependencies.
    Deny,
    /// Checks the links and the examples of the docs.
    Docs,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse().chore).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::Cluster(command) => cluster::run(command).await,
        Chore::Demo(arguments) => demo::run(arguments).await,
        Chore::Bench(command) => bench::run(command).await,
        Chore::Test(arguments) => test::run(arguments).await,
        Chore::Ci => ci::run().await,
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Generate(arguments) => generate::run(&arguments),
        Chore::Floors => floors::check().map(drop),
        Chore::Deny => deny::check().map(|outcome| println!("{outcome}")),
        Chore::Docs => docs::check().map(|outcome| println!("{outcome}")),
    }
}
