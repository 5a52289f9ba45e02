//! Many promotion strategies over branches of a real Gitea: of one repository, and of a repository each.
//!
//! What comes in: how many, for how long, and which parts. What goes out: a table for each part. A part starts
//! a controller of its own, so that each can be run alone.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use sluice_tests::progress::{Progress, Stderr};

use super::Bench;
use super::ordered::Ordered;
use crate::server::Server;

mod crowd;
mod idle;
mod moves;
mod repository;

use crowd::{Crowd, Spread};

/// Where the strategies live.
const NAMESPACE: &str = "sluice-promotion";
/// The forge is on loopback.
const FLAGS: [&str; 1] = ["--egress-allow=127.0.0.0/8"];

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many strategies, of three environments each.
    #[arg(long, default_value_t = 500)]
    strategies: usize,
    /// How long the controller is watched while nothing changes, in seconds.
    #[arg(long, default_value_t = 300)]
    idle: u64,
    /// How many promotions are made one after the other.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// How many checks pass at once.
    #[arg(long, default_value_t = 100)]
    at_once: usize,
    /// Only this part. May be given several times.
    #[arg(long, value_enum)]
    part: Vec<Part>,
}

/// A part of the figures.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// All strategies in one repository: what they cost while nothing changes.
    One,
    /// A repository for each of them: the same.
    Many,
    /// From a check that passes to the order and the merge, one after the other and many at once.
    Moves,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<String> {
    let (n, length) = (arguments.strategies, Duration::from_secs(arguments.idle));
    let empty = idle::empty(bench).await?.resident;
    let mut tables = String::new();
    for (part, spread) in [(Part::One, Spread::One), (Part::Many, Spread::Many)] {
        if arguments.wants(part) {
            let crowd = Crowd::create(&bench.client, n, spread, "1m").await?;
            write!(
                tables,
                "{}",
                idle::measure(bench, &crowd, (length, empty)).await?
            )?;
            crowd.remove().await?;
        }
    }
    if arguments.wants(Part::Moves) {
        let n = arguments.at_once.max(1);
        let crowd = Crowd::create(&bench.client, n, Spread::One, "10s").await?;
        let moves = moves::measure(bench, &crowd, arguments.rounds).await?;
        write!(tables, "{moves}")?;
        crowd.remove().await?;
    }
    Ok(tables)
}

fn say(what: &str) {
    Stderr::new().say(what);
}

/// So many milliseconds.
fn milliseconds(of: &Ordered, part: f64) -> String {
    format!("{:.0} ms", of.at(part) * 1e3)
}
