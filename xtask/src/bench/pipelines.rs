//! Many pipelines, of which one environment is on this cluster and four are on others, which are one
//! second API server by many kubeconfigs; and some that promote by pull requests at a real Gitea.
//!
//! What comes in: how many, for how long, and which parts. What goes out: a table for each part. A part starts
//! a controller of its own, so that each can be run alone.

use std::fmt::Write;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use sluice_tests::progress::{Progress, Stderr};

use super::ordered::Ordered;
use super::process::Controller;
use super::seen::{Kind, Moment, Seen};
use super::{Bench, criterion};
use crate::server::Server;

mod crowd;
mod elsewhere;
mod forge;
mod many;
mod trouble;
mod wave;

use crowd::Crowd;

/// Where the pipelines live, and their first environments.
const NAMESPACE: &str = "sluice-pipelines";
/// The second API server and the forge are on loopback.
const FLAGS: [&str; 1] = ["--egress-allow=127.0.0.0/8"];

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many pipelines.
    #[arg(long, default_value_t = 1_000)]
    pipelines: usize,
    /// By how many kubeconfigs the second API server is reached. One of them is going to be dead, and a
    /// pipeline names four.
    #[arg(long, default_value_t = 20, value_parser = clusters)]
    clusters: usize,
    /// How long the controller is watched while nothing changes, in seconds. It is watched for as long
    /// again while apps are looked at.
    #[arg(long, default_value_t = 300)]
    idle: u64,
    /// How often ten pipelines are sent to the forge, one after the other.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only this part. May be given several times.
    #[arg(long, value_enum)]
    part: Vec<Part>,
}

/// A part of the figures.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What a look at one costs: criterion.
    Looks,
    /// Many of them: starts, memory, and what is written while nothing changes.
    Many,
    /// What happens when all of them have something to do at once.
    Wave,
    /// From a healthy app to its pull request, and from the merge to the record.
    Forge,
    /// One of the other clusters and the forge are dead.
    Trouble,
}

fn clusters(text: &str) -> Result<usize, String> {
    let least = crowd::ENVIRONMENTS.len() + 1;
    let clusters = text.parse().ok().filter(|clusters| *clusters >= least);
    clusters.ok_or_else(|| format!("write a number of at least {least}"))
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    if arguments.wants(Part::Looks) {
        criterion("pipelines")?;
    }
    let others = [Part::Many, Part::Wave, Part::Forge, Part::Trouble];
    if !others.iter().any(|part| arguments.wants(*part)) {
        return Ok(());
    }
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<String> {
    let client = &bench.client;
    let crowd = Crowd::define(client, arguments.pipelines, arguments.clusters).await?;
    let mut tables = String::new();
    if arguments.wants(Part::Many) {
        let many = many::measure(bench, &crowd, arguments.idle).await?;
        write!(tables, "{many}")?;
    } else if arguments.wants(Part::Wave) || arguments.wants(Part::Trouble) {
        crowd.create(0..arguments.pipelines).await?;
        drop(start(bench, arguments.pipelines).await?);
    }
    if arguments.wants(Part::Wave) {
        write!(tables, "{}", wave::measure(bench, &crowd).await?)?;
    }
    if arguments.wants(Part::Forge) || arguments.wants(Part::Trouble) {
        let forge = forge::Forge::start(&crowd).await?;
        if arguments.wants(Part::Forge) {
            let figures = forge::figures::measure(bench, &forge, arguments.rounds).await?;
            write!(tables, "{figures}")?;
        }
        if arguments.wants(Part::Trouble) {
            write!(tables, "{}", trouble::measure(bench, &crowd, &forge).await?)?;
        }
    }
    Ok(tables)
}

/// Starts a controller, and waits until so many pipelines say that their run is completed. Gives the instant at
/// which it was started, too.
async fn start(bench: &Bench, n: usize) -> Result<(Instant, Controller)> {
    let seen = Seen::start(&bench.client, NAMESPACE, &[Kind::Pipeline], crowd::FIRST).await?;
    let began = Instant::now();
    let controller = bench.controller(&FLAGS).await?;
    seen.all(Moment::Completed, n).await?;
    Ok((began, controller))
}

fn say(what: &str) {
    Stderr::new().say(what);
}

/// So many milliseconds.
fn milliseconds(of: &Ordered, part: f64) -> String {
    format!("{:.1} ms", of.at(part) * 1e3)
}
