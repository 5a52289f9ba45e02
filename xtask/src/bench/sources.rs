//! `cargo xtask bench sources`: gated sources on the real Flux.
//!
//! In one run: where the time goes from the switch of a gate to the app that is applied, alone and
//! beside N others; and what it costs when one gate lets N GatedSources go at once, or spread over
//! some minutes, and when nothing happens.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use kube::Client;
use sluice_tests::flux::{Flux, Programs, Reach};
use sluice_tests::progress::{Progress, Stderr, human};

use super::Bench;
use super::ordered::Ordered;
use super::seen::{Kind, Moment, Seen};
use crate::server::Server;

mod crowd;
mod path;
mod switch;

use crowd::{Crowd, Release, Workers};
use path::Steps;

/// Where everything lives.
const NAMESPACE: &str = "sluice-sources";
/// Over how long the gate's sources are spread in the second release.
const SPREAD: Duration = Duration::from_secs(300);

/// Watches for what happens with `commit`.
async fn watch(client: &Client, commit: &str) -> Result<Seen> {
    let kinds = [
        Kind::Gate,
        Kind::GatedSource,
        Kind::GitRepository,
        Kind::Kustomization,
    ];
    Seen::start(client, NAMESPACE, &kinds, commit).await
}

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many GatedSources wait for one gate.
    #[arg(long, default_value_t = 2_000)]
    sources: usize,
    /// How often one app is sent on its way, alone and beside the others.
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// How long the controller is watched while nothing changes, in seconds.
    #[arg(long, default_value_t = 300)]
    idle: u64,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<Table> {
    let client = &bench.client;
    bench.open.has_no_flux().await?;
    let progress = Stderr::new();
    let programs = Programs::ensure(&progress)?;
    let flux = Flux::start(&programs, &bench.open.cluster, Reach::Namespace(NAMESPACE)).await?;
    let controller = bench.controller(&[]).await?;

    let n = arguments.sources;
    let app = path::App::deploy(client).await?;
    let alone = app.steps(client, arguments.rounds).await?;
    progress.say(&format!(
        "one app, {} times: {}",
        arguments.rounds,
        alone.medians()
    ));
    let crowd = Crowd::create(client, n).await?;
    progress.say(&format!(
        "{n} GatedSources, each with a child that was fetched"
    ));
    let idle = controller.idle(Duration::from_secs(arguments.idle)).await?;
    progress.say(&format!("{idle} writes in {} s of idling", arguments.idle));
    let beside = app.steps(client, arguments.rounds).await?;
    progress.say("one app again, beside them");
    let workers = Workers {
        controller: &controller,
        flux: &flux,
    };
    let at_once = crowd.release(Duration::ZERO, &workers).await?;
    progress.say(&format!("all {n} released at once"));
    let spread = crowd.release(SPREAD, &workers).await?;
    progress.say(&format!("all {n} released, over {}", human(SPREAD)));
    Ok(Table {
        n,
        rounds: arguments.rounds,
        seconds: arguments.idle,
        steps: [alone, beside],
        idle,
        releases: [at_once, spread],
    })
}

struct Table {
    n: usize,
    rounds: usize,
    seconds: u64,
    /// Alone, and beside N others.
    steps: [Steps; 2],
    idle: u64,
    /// At once, and spread.
    releases: [Release; 2],
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path(f)?;
        self.crowd(f)
    }
}

impl Table {
    fn path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, rounds, .. } = self;
        writeln!(
            f,
            "\n| from the switch, {rounds} times: p50, last | alone | beside {n} others |"
        )?;
        writeln!(f, "|---|---|---|")?;
        for (what, moment) in [
            ("the API server has answered the switch", Moment::Answered),
            ("the gate's status says Open", Moment::Open),
            ("the GatedSource says admitted", Moment::Admitted),
            ("the child is pinned: our part", Moment::Pinned),
            ("source-controller has fetched it", Moment::Fetched),
            ("kustomize-controller has applied it", Moment::Applied),
        ] {
            let [alone, beside] = self.steps.each_ref().map(|steps| {
                let Some(lengths) = steps.until(moment) else {
                    return String::new();
                };
                let (median, last) = (lengths.at(0.5), lengths.at(1.0));
                format!("{:.0} ms, {:.0} ms", median * 1e3, last * 1e3)
            });
            writeln!(f, "| {what} | {alone} | {beside} |")?;
        }
        Ok(())
    }

    fn crowd(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n, seconds, idle, ..
        } = self;
        writeln!(
            f,
            "\n| {n} GatedSources, one gate | spread: 0 | spread: 5m |"
        )?;
        writeln!(f, "|---|---|---|")?;
        let mut row = |what: &str, of: &dyn Fn(&Release) -> String| {
            let [at_once, spread] = self.releases.each_ref().map(of);
            writeln!(f, "| {what} | {at_once} | {spread} |")
        };
        let lengths = |of: &Ordered| {
            let [half, most, all] = [0.5, 0.99, 1.0].map(|part| of.at(part));
            format!("{half:.1} s, {most:.1} s, {all:.1} s")
        };
        row("child pinned: p50, p99, last", &|it| lengths(&it.pinned))?;
        row("fetched: p50, p99, last", &|it| lengths(&it.fetched))?;
        row("from pinned to fetched: p50, p99, last", &|it| {
            lengths(&it.queued)
        })?;
        row("our writes", &|it| it.writes.to_string())?;
        row("all requests to the API server", &|it| {
            it.requests.to_string()
        })?;
        let cost = |(cpu, highest): (f64, u64)| format!("{cpu:.1} s, {highest} MiB");
        row("our CPU and highest memory", &|it| cost(it.ours))?;
        row("those of source-controller", &|it| cost(it.source))?;
        writeln!(f, "\n{idle} writes in {seconds} s in which nothing changed")
    }
}
