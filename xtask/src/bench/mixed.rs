//! `cargo xtask bench mixed`: N gates with N gatekeepers of every kind but `objects`, of which a
//! fifth measures what a hundred hosts say; and then a tenth of those hosts dies or answers no more.
//!
//! In one run, before and after: how long a decision about everybody else takes, and how long until
//! a gate's status shows that a switch was thrown; how many requests the hosts see, and how many
//! writes the API server; and what it costs.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use futures::TryStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::{Gate, Gatekeeper, State};
use sluice_tests::progress::{Progress, Stderr};
use sluice_tests::{Writes, poll};

use super::Bench;
use super::ordered::Ordered;
use super::process::{Controller, Usage};
use super::standby::Standby;
use crate::server::Server;

mod crowd;
mod endpoints;

use endpoints::Endpoints;

/// Where the crowd lives.
const NAMESPACE: &str = "sluice-mixed";
/// The hosts are on loopback.
const FLAGS: [&str; 1] = ["--egress-allow=127.0.0.0/8"];
/// How many switches are thrown, one after the other.
const THROWN: usize = 50;
/// How often everybody else is decided.
const ROUNDS: usize = 10;
/// How long evidence may take to be had, or to be known to be lost: it stays good for three minutes.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many gatekeepers, and as many gates.
    #[arg(long, default_value_t = 10_000)]
    gatekeepers: usize,
    /// How many hosts a fifth of them ask.
    #[arg(long, default_value_t = 100)]
    endpoints: usize,
    /// For how long requests and writes are counted, in seconds.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

/// What there is to say while the hosts are well, or while some are not.
struct Phase {
    decisions: Ordered,
    thrown: Ordered,
    requests: f64,
    writes: f64,
    usage: Usage,
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<String> {
    let client = &bench.client;
    let progress = Stderr::new();
    let endpoints = Endpoints::start(arguments.endpoints).await?;
    let n = arguments.gatekeepers;
    progress.say(&format!("{n} gatekeepers of every kind"));
    crowd::create(client, n, &endpoints).await?;
    let controller = bench.controller(&FLAGS).await?;
    controller.settled(2 * n).await?;
    wait_for(client, 0).await?;
    progress.say("all hosts are well");
    let well = phase(arguments, &controller, &endpoints, client).await?;
    endpoints.fall_ill();
    let lost = n / 5 * endpoints.weak() / arguments.endpoints;
    wait_for(client, lost).await?;
    progress.say(&format!("{} hosts are dead or slow", endpoints.weak()));
    let ill = phase(arguments, &controller, &endpoints, client).await?;
    Ok(table(arguments, &endpoints, &well, &ill))
}

/// Waits until so many of those who measure, no more and no fewer, are closed.
async fn wait_for(client: &Client, closed: usize) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    poll(PATIENCE, "the evidence to be known", async || {
        let all = gates.list(&Default::default()).await?;
        let is_closed = |gate: &&Gate| {
            let name = gate.metadata.name.as_deref().unwrap_or_default();
            let state = gate.status.as_ref().and_then(|status| status.state);
            name.starts_with(crowd::MEASURED) && state != Some(State::Open)
        };
        let found = all.items.iter().filter(is_closed).count();
        ensure!(found == closed, "{found} are closed, not {closed}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
#[allow(clippy::cast_precision_loss, reason = "counts of thousands")]
async fn phase(
    arguments: &Arguments,
    controller: &Controller,
    endpoints: &Endpoints,
    client: &Client,
) -> Result<Phase> {
    let (asked, written) = (endpoints.asked(), controller.writes().await?);
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
    let requests = (endpoints.asked() - asked) as f64 / arguments.seconds as f64;
    let writes = (controller.writes().await? - written) as f64 * 60.0 / arguments.seconds as f64;
    let thrown = throw(client, arguments.gatekeepers).await?;
    let usage = controller.usage()?;
    // In this process, with all its loops, beside the other.
    let standby = Standby::start(client, NAMESPACE, &FLAGS).await?;
    let decisions = standby.decide(crowd::OTHERS, ROUNDS);
    Ok(Phase {
        decisions,
        thrown,
        requests,
        writes,
        usage,
    })
}

/// Throws switches. How long it took until the status of each one's gate said so.
async fn throw(client: &Client, n: usize) -> Result<Ordered> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    let all: Vec<String> = crowd::switches(n).collect();
    let some = all.iter().step_by((all.len() / THROWN).max(1)).take(THROWN);
    let mut took = Vec::with_capacity(THROWN);
    for name in some {
        let mut seen = pin!(watch_object(gates.clone(), name));
        let before = seen.try_next().await?.flatten().and_then(state);
        let turned = match before {
            Some(State::Open) => "closed",
            _ => "open",
        };
        let patch = json!({"spec": {"manual": {"state": turned}}});
        let began = Instant::now();
        gatekeepers.merge(name, &patch).await?;
        while seen.try_next().await?.flatten().and_then(state) == before {}
        took.push(began.elapsed().as_secs_f64());
    }
    Ok(Ordered::new(took))
}

fn state(gate: Gate) -> Option<State> {
    gate.status.and_then(|status| status.state)
}

fn table(arguments: &Arguments, endpoints: &Endpoints, well: &Phase, ill: &Phase) -> String {
    let Arguments {
        gatekeepers,
        endpoints: hosts,
        seconds,
        server: _,
    } = arguments;
    let mut table = format!(
        "\n{gatekeepers} gates and gatekeepers of every kind, {hosts} hosts, counted for {seconds} s\n\n\
         | | all hosts are well | {} are dead or slow | ratio |\n|---|---|---|---|\n",
        endpoints.weak()
    );
    let mut row = |what: &str, unit: &str, of: &dyn Fn(&Phase) -> f64| {
        let (before, after) = (of(well), of(ill));
        table += &format!(
            "| {what} | {before:.1} {unit} | {after:.1} {unit} | {:.2} |\n",
            after / before
        );
    };
    row("a decision about others: p50", "µs", &|phase| {
        phase.decisions.at(0.5) * 1e6
    });
    row("p99", "µs", &|phase| phase.decisions.at(0.99) * 1e6);
    row("a switch, until its gate's status: p50", "ms", &|phase| {
        phase.thrown.at(0.5) * 1e3
    });
    row("last of them", "ms", &|phase| phase.thrown.at(1.0) * 1e3);
    row("requests to the hosts", "/s", &|phase| phase.requests);
    row("writes", "/min", &|phase| phase.writes);
    #[allow(clippy::cast_precision_loss, reason = "MiB")]
    row("resident", "MiB", &|phase| phase.usage.resident as f64);
    #[allow(clippy::cast_precision_loss, reason = "MiB")]
    row("highest", "MiB", &|phase| phase.usage.highest as f64);
    row("CPU so far", "s", &|phase| phase.usage.cpu);
    table
}
