//! Many pipelines: how long starts take, what they cost in memory, and what is written while nothing
//! changes, and while controllers look whether anything has drifted.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::crowd::{self, Crowd};
use super::{FLAGS, say, start};
use crate::bench::Bench;
use crate::bench::process::{Controller, Usage};

/// How often controllers look whether anything has drifted.
const INTERVAL: Duration = Duration::from_secs(60);

pub(super) struct Many {
    n: usize,
    clusters: usize,
    idle: u64,
    /// Without any pipeline.
    empty: Usage,
    start: Duration,
    /// At the end of all that was watched after that start.
    full: Usage,
    quiet: u64,
    flickering: u64,
    /// With a pipeline for each cluster.
    few: Restart,
    all: Restart,
    /// With many more watches.
    wide: Restart,
}

/// A start at which everything was decided before.
struct Restart {
    took: Duration,
    usage: Usage,
}

pub(super) async fn measure(bench: &Bench, crowd: &Crowd, idle: u64) -> Result<Many> {
    let (n, clusters) = (crowd.pipelines(), crowd.clusters());
    let length = Duration::from_secs(idle);
    let empty = {
        let controller = bench.controller(&FLAGS).await?;
        controller.settled(0).await?;
        controller.usage()?
    };
    crowd.create(0..clusters.min(n)).await?;
    drop(start(bench, clusters.min(n)).await?);
    let few = restart(bench, crowd, clusters.min(n), clusters).await?;
    say(&format!("{n} pipelines of {} targets", crowd::TARGETS));
    crowd.create(clusters.min(n)..n).await?;
    let (began, controller) = start(bench, n).await?;
    let start = began.elapsed();
    say(&format!(
        "all of them were decided {start:.1?} after the start"
    ));
    let quiet = controller.idle(length).await?;
    let flickering = flickering(&controller, crowd, length).await?;
    let full = controller.usage()?;
    say(&format!("{quiet} and {flickering} writes in vain"));
    drop(controller);

    let all = restart(bench, crowd, n, clusters).await?;
    crowd.widen().await?;
    let wide = restart(bench, crowd, n + 1, clusters + crowd::WIDTH).await?;
    crowd.narrow().await?;
    Ok(Many {
        n,
        clusters,
        idle,
        empty,
        start,
        full,
        quiet,
        flickering,
        few,
        all,
        wide,
    })
}

/// Starts a controller to which nothing is new. How long it took until it had looked at everything over all
/// its watches, and what it took then.
async fn restart(bench: &Bench, crowd: &Crowd, n: usize, watches: usize) -> Result<Restart> {
    let began = Instant::now();
    let controller = bench.controller(&FLAGS).await?;
    crowd.has_watches(watches).await?;
    controller.settled(n).await?;
    Ok(Restart {
        took: began.elapsed(),
        usage: controller.usage()?,
    })
}

/// How many writes are made while every app of every environment is looked at once a minute.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
async fn flickering(controller: &Controller, crowd: &Crowd, length: Duration) -> Result<u64> {
    let (before, began) = (controller.writes().await?, Instant::now());
    while began.elapsed() < length {
        let next = Instant::now() + INTERVAL.min(length);
        crowd.look_for_drift().await?;
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(controller.writes().await? - before)
}

/// How much more the one takes than the other, in KiB, for each of so many.
#[allow(clippy::cast_precision_loss, reason = "KiB, and counts of thousands")]
fn each(more: &Restart, less: &Restart, of: usize) -> f64 {
    let more = more.usage.resident_kib as f64 - less.usage.resident_kib as f64;
    more / of as f64
}

impl Display for Many {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            n,
            clusters,
            idle,
            empty,
            start,
            full,
            quiet,
            flickering,
            few,
            all,
            wide,
        } = self;
        let targets = (n - clusters.min(n)) * crowd::TARGETS;
        writeln!(
            f,
            "\n| {n} pipelines of {} targets, {clusters} other clusters | |\n|---|---|\n\
             | writes in {idle} s: nothing changes; apps are looked at each minute | {quiet}; {flickering} |\n\
             | from the start until every run is recorded as completed | {:.1} s |\n\
             | a restart, until everything was looked at | {:.1} s |\n\
             | resident: without pipelines, with them, highest | {}, {}, {} MiB |\n\
             | memory of a target, with its part of a pipeline | {:.1} KiB |\n\
             | memory of a watch, with its connection | {:.0} KiB |",
            crowd::TARGETS,
            start.as_secs_f64(),
            all.took.as_secs_f64(),
            empty.resident,
            full.resident,
            full.highest,
            each(all, few, targets),
            each(wide, all, crowd::WIDTH),
        )
    }
}
