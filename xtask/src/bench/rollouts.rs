//! Many Rollouts of pairs of Deployments, on real controllers of workloads, with kwok as the node.
//!
//! What comes in: how many, for how long, and which parts. What goes out: a table for each part. A part starts
//! a controller of its own, so that each can be run alone. The cluster is always a local one.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use sluice_tests::progress::{Progress, Stderr};
use sluice_tests::workloads::World;

use super::ordered::Ordered;
use super::{Bench, criterion};
use crate::server::Open;

mod batches;
mod crowd;
mod many;
mod wave;

use crowd::Crowd;

/// Where the Rollouts live.
const NAMESPACE: &str = "sluice-rollouts";

#[derive(Args)]
pub(crate) struct Arguments {
    /// How many Rollouts.
    #[arg(long, default_value_t = 1_000)]
    rollouts: usize,
    /// How long the controller is watched while all of them are held, in seconds.
    #[arg(long, default_value_t = 300)]
    idle: u64,
    /// How many Rollouts of 30 batches go out one after the other.
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
    /// Many of them that are held: memory, and what is written meanwhile.
    Many,
    /// One gate lets all of them go on at once.
    Wave,
    /// How long the controller takes between pods that are there and its next write.
    Batches,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    if arguments.wants(Part::Looks) {
        criterion("rollouts")?;
    }
    let others = [Part::Many, Part::Wave, Part::Batches];
    if !others.iter().any(|part| arguments.wants(*part)) {
        return Ok(());
    }
    let World {
        kruise,
        kwok,
        plane,
    } = World::start().await?;
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    let measured = Bench::on(Open::local(plane), NAMESPACE, measuring).await;
    drop((kruise, kwok));
    measured
}

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<String> {
    let crowd = Crowd::new(&bench.client).await?;
    let (n, length) = (arguments.rollouts, Duration::from_secs(arguments.idle));
    let mut tables = String::new();
    if arguments.wants(Part::Batches) {
        let batches = batches::measure(bench, &crowd, arguments.rounds).await?;
        write!(tables, "{batches}")?;
    }
    if arguments.wants(Part::Many) || arguments.wants(Part::Wave) {
        let many = many::measure(bench, &crowd, n, length).await?;
        if arguments.wants(Part::Many) {
            write!(tables, "{many}")?;
        }
    }
    if arguments.wants(Part::Wave) {
        write!(tables, "{}", wave::measure(bench, &crowd, n).await?)?;
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
