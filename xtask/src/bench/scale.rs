//! A herd: N gates with N gatekeepers that all open at one instant.
//!
//! In one run: the controller's writes, their delays, its memory and CPU; what it writes while
//! idle; how long a restart takes; how long a decision takes at the instant; people who force gates
//! in the midst of it all; and the raw patch rate of the server and how long one patch takes, by a
//! bare client with as many connections that writes the same statuses, with the admission policies
//! and without them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, Parser};
use gate_controller::Settings;
use jiff::Timestamp;
use sluice_tests::progress::{Progress, Stderr};

use super::Bench;
use super::ordered::Ordered;
use super::process::Usage;
use super::seen::{Kind, Moment, Seen};
use super::standby::{Decisions, Standby};
use crate::server::Server;

mod herd;
mod policies;
mod raw;

/// How many gates are forced, one after the other.
const FORCED: usize = 9;
/// Where the herd lives.
const NAMESPACE: &str = "sluice-scale";

/// How many requests are in flight: the controller's default.
pub(super) fn connections() -> Result<usize> {
    let settings = Settings::try_parse_from(["gate-controller"])?;
    Ok(settings.concurrent.into())
}

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many gates, and as many gatekeepers.
    #[arg(long, default_value_t = 1_000)]
    gates: usize,
    /// How long the controller is watched while nothing changes, in seconds.
    #[arg(long, default_value_t = 60)]
    idle: u64,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<Table> {
    let client = &bench.client;
    let progress = Stderr::new();
    let n = arguments.gates;
    let instant = instant(n, arguments.idle)?;
    progress.say(&format!(
        "{n} gates and {n} gatekeepers, all of which open at {instant}"
    ));
    herd::create(client, n, instant).await?;
    let user = policies::install(client).await?;

    let controller = bench.controller(&[]).await?;
    let took = controller.settled(2 * n).await?;
    progress.say(&format!(
        "every status was written {took:.1?} after the start"
    ));
    let idle = controller.idle(Duration::from_secs(arguments.idle)).await?;
    progress.say(&format!("{idle} writes in {} s of idling", arguments.idle));
    drop(controller);

    herd::ask_for_looks(client, n).await?;
    let controller = bench.controller(&[]).await?;
    herd::looked_at(client, n).await?;
    let restart = controller.age();
    controller.settled(2 * n).await?;
    let for_nothing = controller.writes().await? - 2 * u64::try_from(herd::LOOKS)?;
    progress.say(&format!(
        "right {restart:.2?} after a restart, {for_nothing} writes that nobody asked for"
    ));
    let standby = Standby::start(client, NAMESPACE, &[]).await?;
    let before = controller.usage()?;
    let seen = Seen::start(client, NAMESPACE, &[Kind::Gate, Kind::Gatekeeper], "").await?;
    let decisions = standby.decide_all_at(instant).await?;
    let forced = herd::force_in_the_midst(client, n, instant, &user).await?;
    // Those that are forced closed in the midst of it were perhaps never seen open.
    seen.all(Moment::Open, n - FORCED).await?;
    seen.all(Moment::Allowed, n).await?;
    let began = passed(instant)?;
    let (gates, gatekeepers) = (
        seen.since(began, Moment::Open),
        seen.since(began, Moment::Allowed),
    );
    let after = controller.usage()?;
    let writes = controller.writes().await?;
    drop(controller);
    let judged = raw::patch(client).await?;
    policies::remove(client).await?;
    let raw = raw::patch(client).await?;
    Ok(Table {
        n,
        connections: connections()?,
        raw,
        judged,
        idle,
        restart,
        decisions,
        forced,
        gates,
        gatekeepers,
        before,
        after,
        writes,
    })
}

/// An instant that has passed, on the clock of this process.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
fn passed(instant: Timestamp) -> Result<Instant> {
    let ago = Timestamp::now().duration_since(instant).try_into()?;
    let passed = Instant::now().checked_sub(ago);
    passed.context("the instant was before the machine started")
}

/// When everything opens: late enough for everything to have been created and written before.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
fn instant(n: usize, idle: u64) -> Result<Timestamp> {
    // At the slowest rates seen: two objects and two statuses for each gate.
    let creating = n / 70;
    let seconds = i64::try_from(creating)? + i64::try_from(idle)? + 60;
    Ok(Timestamp::from_second(
        Timestamp::now().as_second() + seconds,
    )?)
}

struct Table {
    n: usize,
    connections: usize,
    /// Without the admission policies.
    raw: raw::Raw,
    /// With them, under the name of the controller.
    judged: raw::Raw,
    idle: u64,
    restart: Duration,
    decisions: Decisions,
    forced: Ordered,
    /// From the instant to each status.
    gates: Ordered,
    gatekeepers: Ordered,
    before: Usage,
    after: Usage,
    writes: u64,
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            n,
            connections,
            raw: raw::Raw { rate: raw, median },
            judged: raw::Raw { rate: judged, .. },
            idle,
            restart,
            decisions,
            forced,
            gates,
            gatekeepers,
            before,
            after,
            writes,
        } = self;
        #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
        let statuses = (gates.count() + gatekeepers.count()) as f64;
        let rate = statuses / gates.at(1.0).max(gatekeepers.at(1.0));
        writeln!(f, "\n| {n} gates, {n} gatekeepers | |\n|---|---|")?;
        writeln!(
            f,
            "| raw patch rate of the server, {connections} connections, without the policies | {raw:.0}/s |"
        )?;
        writeln!(
            f,
            "| the same with them, under the controller's name | {judged:.0}/s, {:.0} % of raw |",
            100.0 * judged / raw
        )?;
        writeln!(
            f,
            "| one raw patch beside the others, median | {:.0} ms |",
            median.as_secs_f64() * 1e3
        )?;
        writeln!(f, "| writes at the instant | {writes} |")?;
        writeln!(
            f,
            "| statuses a second | {rate:.0}/s, {:.0} % of raw |",
            100.0 * rate / raw
        )?;
        for (what, of) in [("gates", gates), ("gatekeepers", gatekeepers)] {
            writeln!(
                f,
                "| status of {what}: p50, p99, last | {:.2} s, {:.2} s, {:.2} s |",
                of.at(0.5),
                of.at(0.99),
                of.at(1.0)
            )?;
        }
        writeln!(
            f,
            "| a decision at the instant: p50, p99 | {:.1} µs, {:.1} µs |",
            decisions.each.at(0.5) * 1e6,
            decisions.each.at(0.99) * 1e6
        )?;
        writeln!(
            f,
            "| all {n} decisions right after | {:.1} ms |",
            decisions.all * 1e3
        )?;
        writeln!(
            f,
            "| {} gates forced in the midst, until the status: p50, last | {:.0} ms, {:.0} ms |",
            FORCED,
            forced.at(0.5) * 1e3,
            forced.at(1.0) * 1e3
        )?;
        writeln!(
            f,
            "| resident: before, after, highest | {} MiB, {} MiB, {} MiB |",
            before.resident, after.resident, after.highest
        )?;
        writeln!(
            f,
            "| CPU of the controller for the change | {:.1} s |",
            after.cpu - before.cpu
        )?;
        writeln!(f, "| writes in the idle time | {idle} |")?;
        writeln!(
            f,
            "| restart until right | {:.2} s |",
            restart.as_secs_f64()
        )
    }
}
