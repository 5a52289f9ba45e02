//! Strategies to which nothing happens: what they cost the forge, the API server and memory.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::crowd::{Crowd, ENVIRONMENTS};
use super::{FLAGS, NAMESPACE, say};
use crate::bench::Bench;
use crate::bench::process::{Controller, Usage};
use crate::bench::seen::{Kind, Moment, Seen};

pub(super) struct Idle {
    n: usize,
    repositories: usize,
    length: Duration,
    /// Without any strategy, in MiB.
    empty: u64,
    /// From the start until every strategy says what its environments have.
    first: Duration,
    asked_first: Asked,
    /// The same where all of it is said already.
    restart: Duration,
    asked_again: Asked,
    asked: Asked,
    writes: u64,
    full: Usage,
}

/// How often the forge was asked.
struct Asked {
    git: u64,
    rest: u64,
}

impl Asked {
    async fn of(controller: &Controller) -> Result<Self> {
        let metric = "sluice_forge_requests_total";
        Ok(Self {
            git: controller.count(metric, "protocol=\"git\"").await?,
            rest: controller.count(metric, "protocol=\"api\"").await?,
        })
    }
}

/// What a controller costs that has nothing to look at.
pub(super) async fn empty(bench: &Bench) -> Result<Usage> {
    let controller = bench.controller(&FLAGS).await?;
    controller.settled(0).await?;
    controller.usage()
}

pub(super) async fn measure(
    bench: &Bench,
    crowd: &Crowd,
    (length, empty): (Duration, u64),
) -> Result<Idle> {
    let (first, controller) = start(bench, crowd).await?;
    let asked_first = Asked::of(&controller).await?;
    say(&format!(
        "all of them were read {first:.1?} after the start"
    ));
    drop(controller);
    let began = Instant::now();
    let controller = bench.controller(&FLAGS).await?;
    controller.settled(crowd.n).await?;
    let restart = began.elapsed();
    let asked_again = Asked::of(&controller).await?;
    let before = Asked::of(&controller).await?;
    let writes = controller.idle(length).await?;
    let after = Asked::of(&controller).await?;
    Ok(Idle {
        n: crowd.n,
        repositories: crowd.repositories(),
        length,
        empty,
        first,
        asked_first,
        restart,
        asked_again,
        asked: Asked {
            git: after.git - before.git,
            rest: after.rest - before.rest,
        },
        writes,
        full: controller.usage()?,
    })
}

/// Starts a controller to which all of it is new.
async fn start(bench: &Bench, crowd: &Crowd) -> Result<(Duration, Controller)> {
    let dry = &crowd.first().dry;
    let seen = Seen::start(&bench.client, NAMESPACE, &[Kind::PromotionStrategy], dry).await?;
    let began = Instant::now();
    let controller = bench.controller(&FLAGS).await?;
    seen.all(Moment::Merged, crowd.n).await?;
    Ok((began.elapsed(), controller))
}

impl Display for Idle {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            n,
            repositories,
            length,
            empty,
            first,
            asked_first,
            restart,
            asked_again,
            asked,
            writes,
            full,
        } = self;
        let seconds = length.as_secs().max(1);
        let hourly = |count: u64| count * 3600 / seconds;
        writeln!(
            f,
            "\n| {n} strategies of {} environments, repositories: {repositories} | |\n|---|---|\n\
             | requests to the forge in {seconds} s in which nothing changes: git, REST | {}, {} |\n\
             | of an hour | {}, {} |\n\
             | writes to the API server meanwhile | {writes} |\n\
             | from the first start until all is read and written | {:.1} s |\n\
             | requests until then: git, REST | {}, {} |\n\
             | a restart, until everything was looked at | {:.1} s |\n\
             | requests until then: git, REST | {}, {} |\n\
             | resident: without strategies, with them, highest | {}, {}, {} MiB |",
            ENVIRONMENTS.len(),
            asked.git,
            asked.rest,
            hourly(asked.git),
            hourly(asked.rest),
            first.as_secs_f64(),
            asked_first.git,
            asked_first.rest,
            restart.as_secs_f64(),
            asked_again.git,
            asked_again.rest,
            empty,
            full.resident,
            full.highest,
        )
    }
}
